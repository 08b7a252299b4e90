import Testing

@testable import HttpWare
@testable import HttpWareRedis

@Suite struct RedisReplyReaderTests {
    /// The replies that are read, whole and a byte at a time; `nil` for refused bytes.
    private func read(_ wire: [UInt8], by step: Int) throws -> [RedisReply]? {
        let reader = try #require(RedisReplyReader())
        var replies: [RedisReply] = []
        do throws(RedisReplyReader.Fault) {
            for start in stride(from: 0, to: wire.count, by: step) {
                let piece = Array(wire[start..<min(start + step, wire.count)])
                guard piece.withUnsafeBytes({ (try? reader.feed($0)) != nil }) else { return nil }
                while let reply = try reader.next() { replies.append(reply) }
            }
        } catch {
            return nil
        }
        return replies
    }

    private func read(_ text: String) throws -> [RedisReply]? {
        let wire = Array(text.utf8)
        let whole = try read(wire, by: max(1, wire.count))
        #expect(try read(wire, by: 1) == whole)
        return whole
    }

    private func bytes(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }

    @Test func `replies of every kind are read, whole and one byte at a time`() throws {
        #expect(try read("+OK\r\n") == [bytes("OK")])
        #expect(
            try read("$5\r\na\r\n\0b\r\n:-7\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n") == [
                bytes("a\r\n\0b"), .integer(-7), .null, .null, bytes(""), .array([]),
            ])
        #expect(
            try read("*3\r\n*2\r\n:1\r\n$1\r\nx\r\n-ERR no\r\n$-1\r\n+next\r\n") == [
                .array([.array([.integer(1), bytes("x")]), .error("ERR no"), .null]), bytes("next"),
            ])
        #expect(try read("*2\r\n$1\r\nx\r\n") == [], "what is not whole waits")
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{0}\u{0}\u{0}", "$abc\r\n", "*9999999999999999999\r\n",
        "*2147483648\r\n",
        "*2147483647\r\n", "*65536\r\n", ":12a\r\n", "$-2\r\n", "*-2\r\n",
        String(repeating: "*1\r\n", count: 9) + ":1\r\n", String(repeating: "*1\r\n", count: 60_000) + ":1\r\n",
        "%1\r\n+a\r\n+b\r\n", ",1.5\r\n", "#t\r\n", "~1\r\n+a\r\n", ">1\r\n+a\r\n", "(123\r\n", "=5\r\ntxt:x\r\n",
        "*1\r\n,1.5\r\n",
    ])
    func `bytes that are not a reply, or promise too much, are refused`(text: String) throws {
        #expect(try read(text) == nil)
    }

    @Test func `members are counted over all arrays of one reply, and again for the next`() throws {
        let many = "*60000\r\n" + String(repeating: ":1\r\n", count: 60_000)
        #expect(try read(Array((many + many).utf8), by: 4096)?.count == 2)
        #expect(try read(Array(("*2\r\n" + many + many).utf8), by: 4096) == nil)
    }

    @Test func `a string that does not end is refused at the limit`() throws {
        let head = Array("$536870912\r\n".utf8)
        let content = [UInt8](repeating: 0x78, count: RedisReplyReader.mostBytes + 65_536)
        #expect(try read(head + content, by: 65_536) == nil)
        let line = Array("+".utf8) + content
        #expect(try read(line, by: 65_536) == nil)
        let most = RedisReplyReader.mostBytes
        let large = Array("$\(most)\r\n".utf8) + content.prefix(most) + Array("\r\n".utf8)
        #expect(try read(large, by: 65_536)?.first?.bytes?.count == most)
        let two = Array("*2\r\n$\(most / 2 + 1)\r\n".utf8) + content.prefix(most / 2 + 1) + Array("\r\n".utf8)
        let rest = Array("$\(most / 2)\r\n".utf8) + content.prefix(most / 2) + Array("\r\n".utf8)
        #expect(try read(two + rest, by: 65_536) == nil)
    }

    @Test func `a command is put together with the length of each word`() {
        let command: [RedisArgument] = ["SET", RedisArgument([0, 13, 10]), RedisArgument(-5), RedisArgument([])]
        #expect(command.command == Array("*4\r\n$3\r\nSET\r\n$3\r\n\0\r\n\r\n$2\r\n-5\r\n$0\r\n\r\n".utf8))
        #expect([RedisArgument]().command == nil)
    }
}
