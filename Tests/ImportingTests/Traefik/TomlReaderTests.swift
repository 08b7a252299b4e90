import HttpWare
import Testing

@testable import Importing

@Suite struct TomlReaderTests {
    private func flow(_ text: String) throws -> String { try TomlReader.read(Array(text.utf8), file: "a.toml").flow }

    @Test(arguments: [
        ("a = 1\nb = \"x\"", "{ a: 1, b: x }"),
        ("a.b.c = 1\na.d = 2", "{ a: { b: { c: 1 }, d: 2 } }"),
        ("[a.b]\nc = 1\n[a]\nd = 2", "{ a: { b: { c: 1 }, d: 2 } }"),
        ("[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3", "{ a: [{ b: 1 }, { b: 2, c: { d: 3 } }] }"),
        ("a = [1, 2, # three\n 3,\n]", "{ a: [1, 2, 3] }"),
        ("a = { b = 1, c.d = \"e\" }", "{ a: { b: 1, c: { d: e } } }"),
        (
            "a = 1979-05-27T07:32:00Z\nb = 1979-05-27 07:32:00\nc = 07:32:00",
            "{ a: 1979-05-27T07:32:00Z, b: 1979-05-27 07:32:00, c: 07:32:00 }"
        ),
        (
            "a = 1_000\nb = 0xff\nc = 1e3\nd = -0.5\ne = inf\nf = true",
            "{ a: 1000, b: 255, c: 1e3, d: -0.5, e: inf, f: true }"
        ),
        ("a = \"\"\"\none\n  two\\\n   three\"\"\"", "{ a: \"one\\n  twothree\" }"),
        ("a = '''\nx''y'''", "{ a: \"x''y\" }"),
        ("\"a b\".'c.d' = \"\\u00e9\\t\"", "{ a b: { c.d: \"é\\t\" } }"),
        ("a = \"\"\"x\"\"\"\"\"", "{ a: \"x\\\"\\\"\" }"),
        ("# nothing\r\n\r\na = 'b'\r\n", "{ a: b }"),
    ])
    func `TOML becomes the tree of YAML`(text: String, expected: String) throws {
        #expect(try flow(text) == expected)
    }

    @Test(arguments: [
        "a", "a =", "a = 1 b = 2", "a = 1\na = 2", "[a]\n[a]", "a = 1\n[a]", "[a", "[[a]]\n[a]", "a = [1", "a = {b = 1",
        "a = \"x", "a = \"\\q\"",
        "a = 01", "a = 1__0", "a = tru", "a = { b = 1 }\na.c = 2", "a = \"x\ny\"", "a.b = 1\n[a.b]", "a = '''x", "= 1",
        "a = \"\\uD800\"",
        "[a.b]\n[a]\nb = 1", "a = 0xzz",
    ])
    func `text that is not TOML is refused`(text: String) {
        #expect(throws: TomlReader.Fault.self) { try flow(text) }
    }

    @Test func `values know their places`() throws {
        let node = try TomlReader.read(Array("\n[a]\n  b = \"\"\"\n\n\"\"\"\nc = 1\n".utf8), file: "a.toml")
        #expect(node["a"]?["c"]?.location == SourceLocation(file: "a.toml", line: 6, column: 5))
        #expect(node["a"]?.location.line == 2)
    }

    @Test(arguments: [
        "a = " + String(repeating: "[", count: 10_000), String(repeating: "a = {", count: 1),
        "a = " + String(repeating: "{a = ", count: 10_000), "[" + String(repeating: "a.", count: 10_000) + "a]",
    ])
    func `deep nesting is refused`(text: String) {
        #expect(throws: TomlReader.Fault.self) { try flow(text) }
    }
}
