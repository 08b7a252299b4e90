import Testing

@testable import HttpWare
@testable import HttpWareRedis

@Suite struct RedisSlotTests {
    private func slot(_ key: String) -> UInt16 { RedisSlot.of(Array(key.utf8)) }

    @Test func `the checksum is that of XMODEM`() {
        #expect(RedisSlot.checksum("123456789".utf8) == 0x31C3)
        #expect(RedisSlot.checksum([]) == 0)
    }

    @Test func `a part in braces decides the slot`() {
        #expect(slot("foo") == 12_182)
        #expect(slot("{user1000}.following") == slot("user1000"))
        #expect(slot("foo{bar}{zap}") == slot("bar"))
        #expect(slot("foo{{bar}}zap") == slot("{bar"))
        #expect(slot("foo{}{bar}") != slot("bar"), "an empty part counts as none")
        #expect(slot("foo{bar") != slot("bar"))
    }

    @Test func `the first key of a command decides, if it has one`() {
        func key(_ words: RedisArgument...) -> [UInt8]? { words.routingKey }
        #expect(key("GET", "a") == Array("a".utf8))
        #expect(key("EVALSHA", "digest", 1, "a", "b") == Array("a".utf8))
        #expect(key("EVAL", "text", 0, "a") == nil)
        #expect(key("PUBLISH", "a", "b") == nil)
        #expect(key("SCAN", "0") == nil)
        #expect(key("PING") == nil)
    }

    @Test func `keys have braces on clusters only`() throws {
        let address = try RedisAddress(optionText: "127.0.0.1:1")
        let url = RedisDefinition(url: try RedisUrl(optionText: "redis://127.0.0.1"))
        #expect(url.tagged("l:", "name") == "httpware:l:name")
        #expect(RedisDefinition(.sentinels([address], master: "m")).tagged("l:", "name") == "httpware:l:name")
        #expect(RedisDefinition(.nodes([address])).tagged("l:", "name") == "httpware:l:{name}")
    }
}
