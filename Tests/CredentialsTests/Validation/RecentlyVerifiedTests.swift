import HttpWare
import Testing

@testable import Authentication

@Suite struct RecentlyVerifiedTests {
    private func key(_ number: Int) -> Digest256 {
        withUnsafeBytes(of: number) { Digest256(of: $0) }
    }

    @Test func `a value is there until its time, and not at it`() {
        let memory = RecentlyVerified<Int>(most: 100, mostBytes: .kibibytes(64))
        memory.remember(7, for: key(1), until: 10, bytes: 1)
        #expect(memory.value(key(1), at: 9) == 7)
        #expect(memory.value(key(1), at: 10) == nil)
        #expect(memory.value(key(2), at: 0) == nil)
    }

    @Test func `how many are kept is bounded, and those in use stay`() {
        let memory = RecentlyVerified<Int>(most: 200, mostBytes: .mebibytes(1), shards: 4)
        memory.remember(-1, for: key(-1), until: .max, bytes: 1)
        for number in 0..<10_000 {
            memory.remember(number, for: key(number), until: .max, bytes: 1)
            #expect(memory.value(key(-1), at: 0) == -1)
            #expect(memory.count <= 200)
        }
        #expect(memory.value(key(9_999), at: 0) == 9_999)
        #expect(memory.value(key(0), at: 0) == nil)
    }

    @Test func `how many bytes are kept is bounded`() {
        let memory = RecentlyVerified<Int>(most: 1_000_000, mostBytes: .kibibytes(8), shards: 1)
        for number in 0..<1000 { memory.remember(number, for: key(number), until: .max, bytes: 100) }
        #expect(memory.count <= 81)
        #expect(memory.count > 39)
        memory.remember(1, for: key(-2), until: .max, bytes: 5000)
        #expect(memory.value(key(-2), at: 0) == nil)
    }

    @Test func `a value that is remembered again counts once`() {
        let memory = RecentlyVerified<Int>(most: 4, mostBytes: .kibibytes(8), shards: 1)
        for _ in 0..<100 { memory.remember(1, for: key(1), until: .max, bytes: 4000) }
        memory.remember(2, for: key(2), until: .max, bytes: 10)
        #expect(memory.value(key(1), at: 0) == 1)
        #expect(memory.count == 2)
    }
}
