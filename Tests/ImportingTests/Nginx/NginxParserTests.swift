import HttpWare
import Testing

@testable import Importing

@Suite struct NginxParserTests {
    private func words(_ text: String) throws -> [[String]] {
        try NginxParser.parse(Array(text.utf8), file: "a").map { [$0.name] + $0.words }
    }

    @Test(arguments: [
        ("a b c;", ["a", "b", "c"]), ("a 'b c';", ["a", "b c"]), ("a \"b \\\" c\";", ["a", "b \" c"]),
        ("a b\\ c;", ["a", "b\\ c"]),
        ("a # b;\n c;", ["a", "c"]), ("a ${x}y;", ["a", "${x}y"]), ("a \"\";", ["a", ""]), ("a b#c;", ["a", "b#c"]),
        ("a \\.php$;", ["a", "\\.php$"]), ("a \"\\n\";", ["a", "\n"]), ("a\n\tb\r\n;", ["a", "b"]),
    ])
    func `words are read as nginx reads them`(text: String, expected: [String]) throws {
        #expect(try words(text) == [expected])
    }

    @Test func `blocks nest, and blocks of Lua are skipped`() throws {
        let text = "a { b 1; c { d; } } content_by_lua_block { if x then y = \"}\" end -- }\n z = [[ } ]] } e;"
        let parsed = try NginxParser.parse(Array(text.utf8), file: "a")
        #expect(parsed.map(\.name) == ["a", "content_by_lua_block", "e"])
        #expect(parsed[0].block?.map(\.name) == ["b", "c"])
        #expect(parsed[0].block?[1].block?.map(\.name) == ["d"])
    }

    @Test(arguments: [
        ("a", "the directive has no end"), ("a {", "the block has no end"), ("}", "a } without {"),
        ("a 'b;", "a quoted text has no end"),
        (";", "a directive without a name"), ("a { b }", "a semicolon is missing before }"),
        ("a \"b\"c;", "a space is missing after a quoted text"),
        ("x_by_lua_block { {", "a block of Lua has no end"),
    ])
    func `a mistake is named`(text: String, reason: String) {
        #expect(throws: NginxFault.self) { try words(text) }
        do { _ = try words(text) } catch let fault as NginxFault { #expect(fault.reason == reason) } catch {}
    }

    @Test func `the line of a directive is known`() throws {
        let parsed = try NginxParser.parse(Array("a;\n\n  b\n c;".utf8), file: "f")
        #expect(parsed.map(\.place.line) == [1, 3])
        #expect(parsed.map(\.place.column) == [1, 3])
    }
}
