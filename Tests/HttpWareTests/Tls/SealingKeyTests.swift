import Testing

@testable import HttpWare

@Suite struct SealingKeyTests {
    private let key = SealingKey(Array("a secret of some bytes".utf8), for: "tests")
    private let text = Array("what is sealed".utf8)

    @Test func `data that a key seals is opened by the same key in the same context`() throws {
        let sealed = try #require(key.seal(text, context: [1, 2]))
        #expect(sealed.count == text.count + SealingKey.overhead)
        #expect(key.open(sealed, context: [1, 2]) == text)
        #expect(key.open(sealed, context: [1]) == nil)
        #expect(key.open(sealed, context: []) == nil)
        #expect(try #require(key.seal(text, context: [1, 2])) != sealed)
    }

    @Test func `the same secret opens it in another process, and no other secret or purpose does`() throws {
        let sealed = try #require(key.seal(text, context: []))
        #expect(SealingKey(Array("a secret of some bytes".utf8), for: "tests").open(sealed, context: []) == text)
        #expect(SealingKey(Array("a secret of some bytes".utf8), for: "more").open(sealed, context: []) == nil)
        #expect(SealingKey(Array("another secret".utf8), for: "tests").open(sealed, context: []) == nil)
    }

    @Test func `no changed or shortened text opens`() throws {
        let sealed = try #require(key.seal(text, context: []))
        for place in sealed.indices {
            var changed = sealed
            changed[place] ^= 1 << UInt8(place % 8)
            #expect(key.open(changed, context: []) == nil, "byte \(place)")
            #expect(key.open(Array(sealed[..<place]), context: []) == nil, "\(place) bytes")
        }
        #expect(key.open(sealed + [0], context: []) == nil)
    }

    @Test func `the secret of the process stays the same, and another one comes too late`() {
        let secret = ProcessSecret.bytes
        #expect(secret.count == ProcessSecret.count)
        ProcessSecret.adopt([UInt8](repeating: 7, count: ProcessSecret.count))
        #expect(ProcessSecret.bytes == secret)
    }
}
