import HttpWare
import Testing

@Suite struct OptionRelationsTests {
    private enum Mode: String, OptionWord { case plain, keyed, signed }

    private func read(_ options: inout OptionsReader) {
        var mode = Mode.plain
        var kind: Mode?
        var text: [String: String?] = [:]
        options.read("mode", into: &mode)
        options.read("kind", into: &kind)
        for key in ["a", "b", "c", "key", "more"] { options.read(key, into: &text[key, default: nil]) }
        options.read("inner") { options in
            var name: String?
            options.read("name", into: &name)
            options.require("name")
        }
        options.exclusive("a", "b", "c")
        options.useless("c", with: "more", hint: "write it there")
        options.require("key", with: "mode", mode, is: .keyed, hint: "; write key: x")
        options.only("key", with: "mode", mode, is: .keyed, .signed)
        options.useless("b", with: "mode", mode, is: .plain)
        options.only("more", with: "kind")
        options.only("inner", with: "kind", kind, is: .signed)
    }

    private func mistakes(_ node: ConfigNode) -> [String] {
        var reader = OptionsReader(node, keyPath: "ware")
        read(&reader)
        return reader.finish().map { "\($0.keyPath): \($0.message)" }
    }

    @Test(
        arguments: [
            [:], ["a": "1"], ["mode": "keyed", "key": "x"], ["mode": "signed", "key": "x", "b": "1"],
            ["mode": "signed"],
            ["kind": "plain", "more": "1"], ["kind": "signed", "inner": ["name": "x"]],
        ] as [ConfigNode])
    func `options that go together are accepted`(node: ConfigNode) { #expect(mistakes(node) == []) }

    @Test(
        arguments: [
            (["mode": "keyed"], ["ware.mode: keyed needs the option key; write key: x"]),
            (
                ["key": "x"],
                ["ware.key: has no effect without mode: keyed or signed; write mode: keyed or signed, or remove key"]
            ),
            (["b": "1"], ["ware.b: has no effect with mode: plain; remove one of them"]),
            (["a": "1", "c": "1"], ["ware.c: cannot be combined with a; write only one of a, b or c"]),
            (["more": "1"], ["ware.more: has no effect without kind; write kind, or remove more"]),
            (["c": "1", "more": "1", "kind": "plain"], ["ware.c: has no effect with more; write it there"]),
            (
                ["inner": [:]],
                [
                    "ware.inner.name: is missing, and there is no default",
                    "ware.inner: has no effect without kind: signed; write kind: signed, or remove inner",
                ]
            ),
        ] as [(ConfigNode, [String])])
    func `an option that is useless, or lacks another, is an error`(node: ConfigNode, errors: [String]) {
        #expect(mistakes(node) == errors)
    }

    @Test func `a wrong value is one error, whatever depends on it`() {
        #expect(mistakes(["mode": "keyd", "key": "x", "b": "1"]).count == 1)
        #expect(mistakes(["kind": [:], "inner": ["name": "x"]]).count == 1)
    }

    @Test func `an error stands at the place of the useless option`() {
        let place = SourceLocation(file: "a.yaml", line: 3, column: 7)
        let node = ConfigNode(
            .map([.init(key: "key", location: place, value: ConfigNode(.scalar("x", isQuoted: false), at: place))]))
        var reader = OptionsReader(node, keyPath: "ware")
        read(&reader)
        #expect(reader.finish().map(\.location) == [place])
    }

    @Test func `the rules are described with the options`() {
        var reader = OptionsReader.describing()
        read(&reader)
        let relations = Dictionary(uniqueKeysWithValues: reader.described.map { ($0.key, $0.relations) })
        #expect(relations["a"] == [.single(["a", "b", "c"])])
        #expect(relations["c"] == [.implies(.given("c"), .not(.given("more")))])
        #expect(
            relations["key"] == [
                .implies(.value("mode", among: ["keyed"], otherwise: false), .given("key")),
                .implies(.given("key"), .value("mode", among: ["keyed", "signed"], otherwise: false)),
            ])
        #expect(relations["b"] == [.implies(.given("b"), .not(.value("mode", among: ["plain"], otherwise: true)))])
        #expect(reader.described.first { $0.key == "inner.name" }?.isRequired == true)
        #expect(reader.finish().isEmpty)
    }
}
