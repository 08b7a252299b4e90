import HttpWare
import Testing

@testable import Importing

@Suite struct CaddyfileTests {
    private func words(_ text: String) throws -> [String] {
        try CaddyfileLexer.read(Array(text.utf8), file: "Caddyfile").tokens.map(\.text)
    }

    @Test(arguments: [
        ("a b\tc\n", ["a", "b", "c"]),
        ("a # no b\nc#d", ["a", "c#d"]),
        ("a \"b c\" \"d\\\"e\" \"f\\n\"", ["a", "b c", "d\"e", "f\\n"]),
        ("a `b \"c\"`", ["a", "b \"c\""]),
        ("a \\\n  b", ["a", "b"]),
        ("a <<END\n  one\n    two\n  END x", ["a", "one\n  two", "x"]),
        ("a \\<<END b", ["a", "<<END", "b"]),
        ("{$HOST:a.test} {$PORT}", ["a.test", "{$PORT}"]),
        ("\u{FEFF}a", ["a"]),
        ("a\r\nb", ["a", "b"]),
    ])
    func `words are told as Caddy does`(text: String, expected: [String]) throws {
        #expect(try words(text) == expected)
    }

    @Test(arguments: ["\"a", "`a", "a <<END\nb", "a {\nb", "a }\n}", "(s) {\nimport s\n}\nimport s", "import"])
    func `a Caddyfile that is not closed, or imports itself, is refused`(text: String) {
        #expect(throws: CaddyfileFault.self) {
            try CaddyfileParser.read(Array(text.utf8), file: "Caddyfile") { _, _ in [] }
        }
    }

    @Test func `snippets take arguments and blocks`() throws {
        let text = """
            (s) {
                respond {args[0]} {args[1]}
                header {
                    {block}
                }
                {blocks.more}
            }
            a.test {
                import s "one two" 201 {
                    X-A b
                    more {
                        abort
                    }
                }
            }
            """
        let result = try CaddyfileParser.read(Array(text.utf8), file: "Caddyfile") { _, _ in [] }
        let segments = try #require(result.sites.first?.segments)
        #expect(segments.map(\.name) == ["respond", "header", "abort"])
        #expect(segments[0].arguments == ["one two", "201"])
        #expect(segments[1].block?.first?.arguments == ["b"])
        #expect(segments[0].line == 2)
    }

    @Test func `imported files come through the closure alone`() throws {
        let result = try CaddyfileParser.read(Array("import sites/*\n".utf8), file: "/etc/Caddyfile") { pattern, from in
            #expect(pattern == "sites/*" && from == "/etc/Caddyfile")
            return [("sites/a", Array("a.test {\n\trespond 1\n}\n".utf8)), ("sites/b", Array("b.test\n".utf8))]
        }
        #expect(result.sites.map(\.addresses.first?.text) == ["a.test", "b.test"])
        #expect(result.sites.first?.segments.first?.file == "sites/a")
    }

    @Test func `blocks nested ten thousand deep are refused`() {
        let text = String(repeating: "a {\n", count: 10_000)
        #expect(throws: CaddyfileFault.self) {
            try CaddyfileParser.read(Array(text.utf8), file: "Caddyfile") { _, _ in [] }
        }
    }
}
