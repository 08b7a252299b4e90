import Glibc
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct PageMemoryTests {
    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

    @Test func `it holds what was written, and no more than it has room for`() throws {
        let memory = try #require(PageMemory(capacity: 10_000))
        #expect(memory.append(bytes(6000)))
        #expect(!memory.append(bytes(60_000)))
        #expect(memory.append([1, 2, 3]))
        #expect(memory.count == 6003)
        #expect(memory.bytes(0..<6000) == bytes(6000))
        #expect(memory.bytes(5999..<6003) == [bytes(6000)[5999], 1, 2, 3])
        #expect(memory.bytes(6000..<9000) == [1, 2, 3], "what was not written is not there")
        #expect(PageMemory(capacity: 0) == nil)
        #expect(PageMemory(capacity: .max) == nil)
    }

    @Test func `contents that lie together keep their own bytes, whatever becomes of the others`() throws {
        var kept: [(memory: PageMemory, seed: Int)] = []
        for round in 0..<3 {
            for seed in 0..<60 {
                let length = 33_000 + 9000 * (seed % 50)
                let memory = try #require(PageMemory(capacity: length))
                #expect(memory.append([UInt8](repeating: UInt8(seed + round), count: length)))
                memory.trim()
                kept.append((memory, seed + round))
            }
            kept = kept.enumerated().filter { $0.offset % 3 != round }.map(\.element)
        }
        for (memory, seed) in kept {
            #expect(memory.bytes(0..<memory.count) == [UInt8](repeating: UInt8(seed), count: memory.count))
            #expect(memory.size - memory.count < 4096 && memory.count >= 33_000)
        }
    }

    @Test func `room that nothing was written to is given back`() throws {
        let memory = try #require(PageMemory(capacity: 16 << 20))
        #expect(memory.append(bytes(40_000)))
        memory.trim()
        #expect(memory.size >= 40_000 && memory.size < 40_000 + 65_536)
        #expect(memory.bytes(0..<40_000) == bytes(40_000))
        #expect(!memory.append(bytes(100_000)))
    }

    @Test func `a socket gets the bytes, as it takes them, also when no other holder is left`() throws {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        defer { for end in ends { Socket.close(end) } }
        let all = bytes(1 << 20)
        var memory = PageMemory(capacity: all.count)
        #expect(memory?.append(all) == true)
        var sent: PagesOnTheirWay? = PagesOnTheirWay(
            try #require(memory), 5..<all.count, through: try #require(Pipe()))
        memory = nil
        var got: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while got.count < all.count - 5 {
            switch sent?.drain(to: ends[0]) {
            case .bytes, .wouldBlock, nil: break
            case .end, .failed: Issue.record("not sent")
            }
            // The last pages are with the kernel only.
            if sent?.count == 0 { sent = nil }
            guard case .bytes(let count) = buffer.withUnsafeMutableBytes({ Socket.read(ends[1], into: $0) }) else {
                continue
            }
            got += buffer[..<count]
        }
        #expect(got == Array(all[5...]))
        #expect(sent == nil)
    }
}
