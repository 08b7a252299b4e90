import GatewayConfig
import HttpWare
import Testing

@testable import Importing

@Suite struct YamlTextTests {
    /// Texts that would be structure, other types or something else if they were written as they are.
    static let hostile = [
        "", " ", "a", "a b", "~", "null", "true", "no", "1", "1.5", "0x1F", "- a", "-", "? a", ": a", "a: b", "a:",
        "#a", "a #b",
        "{a: b}", "[a]", "]", "}", ",", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'", "\"", "\\", "\\\"",
        "a\nb: c", "a\r\nb",
        "\t", "\u{0}", "\u{1B}[31m", "\u{7F}", "\u{85}x", "\u{2028}y: z", "\u{2029}", "\u{FEFF}", "ü", "日本",
        "\u{1F600}", "$", "$$", "${HOME}",
        "$${HOME}", "$$$", "a$", "${", "$1", "$1$$2", "{request.path}", "---", "...", "--- a", "\n---\nversion: 2",
        "<<", "=",
        String(repeating: "x", count: 3000), String(repeating: "\"", count: 300),
    ]

    @Test(arguments: hostile)
    func `a text is read as itself, as a value and as a key`(text: String) throws {
        // `<<` cannot be a key in the house's YAML, quoted or not.
        let key = text.isEmpty || text == "<<" || text.utf8.count > 900 ? "k" : text
        let value = ConfigNode(.scalar(text, isQuoted: true))
        let inner: ConfigNode = .entries([("inner", value)])
        let named: ConfigNode = .entries([(key, value)])
        let node: ConfigNode = .entries([
            ("value", value), ("list", ConfigNode(.list([value, value]))), ("map", inner), ("keys", named),
            ("last", value),
        ])
        for lines in [YamlText.lines("root", node), ["root: " + YamlText.flow(node)], ["root:"] + YamlText.item(node)] {
            let file = lines.joined(separator: "\n") + "\n"
            let parsed = OptionsFile(path: "a.yaml", environment: [:], files: Self.files(file))
            #expect(parsed.errors.isEmpty, "\(file)")
            let found: ConfigNode? = parsed.root?["root"]
            var root = try #require(found)
            if case .list(let members) = root.content, let first = members.first { root = first }
            #expect(root["value"]?.text == text)
            let list: [String?] = root["list"]?.members.map { $0.text } ?? []
            #expect(list == [text, text])
            #expect(root["map"]?["inner"]?.text == text)
            let read: String? = root["keys"]?.entries?.first?.key
            #expect(read == key)
            let keys: [String] = root.entries?.map { $0.key } ?? []
            #expect(keys == ["value", "list", "map", "keys", "last"])
        }
    }

    @Test(arguments: hostile)
    func `a comment stays one line`(text: String) throws {
        let file = "a: 1 # \(YamlText.comment(text))\nb: 2\n# \(YamlText.comment(text))\n"
        let read = OptionsFile(path: "a.yaml", environment: [:], files: Self.files(file))
        #expect(read.errors.isEmpty, "\(file)")
        let keys: [String] = read.root?.entries?.map { $0.key } ?? []
        #expect(keys == ["a", "b"])
    }

    static func files(_ text: String) -> ConfigurationFiles {
        ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
    }
}
