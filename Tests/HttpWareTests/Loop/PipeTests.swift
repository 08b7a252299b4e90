import Glibc
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct PipeTests {
    /// Two connected, non-blocking sockets.
    private func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError("socketpair") }
        return (ends[0], ends[1])
    }

    @Test func `bytes go from one socket to another, no more than asked for, in order`() throws {
        let (source, near) = try pair()
        let (far, sink) = try pair()
        let pipe = try #require(Pipe())
        #expect(pipe.fill(from: near, atMost: 100) == .wouldBlock)
        #expect("hello, world".utf8.withContiguousStorageIfAvailable { Socket.write(source, .init($0)) } == .bytes(12))
        #expect(pipe.fill(from: near, atMost: 5) == .bytes(5))
        #expect(pipe.count == 5)
        #expect(pipe.drain(to: far) == .bytes(5))
        #expect(pipe.count == 0)
        #expect(pipe.fill(from: near, atMost: 100) == .bytes(7))
        #expect(pipe.drain(to: far) == .bytes(7))
        var got = [UInt8](repeating: 0, count: 20)
        #expect(got.withUnsafeMutableBytes { Socket.read(sink, into: $0) } == .bytes(12))
        #expect(got.prefix(12).elementsEqual("hello, world".utf8))
        Socket.close(source)
        #expect(pipe.fill(from: near, atMost: 100) == .end)
        for end in [near, far, sink] { Socket.close(end) }
    }

    @Test func `bytes that a socket does not take stay in the pipe`() throws {
        let (source, near) = try pair()
        let (far, sink) = try pair()
        let pipe = try #require(Pipe())
        let piece = [UInt8](repeating: 7, count: 65536)
        var filled = 0
        var drained = 0
        // Until the far end is full.
        for _ in 0..<1000 where pipe.count == 0 {
            _ = piece.withUnsafeBytes { Socket.write(source, $0) }
            if case .bytes(let count) = pipe.fill(from: near, atMost: .max) { filled += count }
            while pipe.count > 0, case .bytes(let count) = pipe.drain(to: far), count > 0 { drained += count }
        }
        #expect(pipe.count > 0 && pipe.count == filled - drained)
        #expect(pipe.drain(to: far) == .wouldBlock)
        for end in [source, near, far, sink] { Socket.close(end) }
    }
}
