import HttpWare
import Testing

@testable import GatewayConfig

/// Covers the gaps of the suite Tests/Schema: it has a real validator, but only valid files, and some invalid ones.
@Suite struct ConfigurationSchemaTests {
    private let schema = ConfigurationSchema(ScriptedWares.all, stores: ScriptedWares.stores).json

    private func node(_ path: String...) throws -> ConfigNode {
        try path.reduce(schema) { try #require($0[$1], "no \($1)") }
    }

    @Test func `every noun that the checker knows is described`() throws {
        let keys = try #require(try node("properties").entries).map(\.key)
        #expect(Set(keys) == Set(ConfigurationChecker.nouns + ["version", "include"]))
    }

    @Test func `a ware is described under its name, on its side`() throws {
        #expect(try node("$defs", "middleware", "anyOf").json.contains("\"#/$defs/retry\""))
        #expect(try !node("$defs", "postware", "anyOf").json.contains("\"#/$defs/retry\""))
        #expect(try node("$defs", "postware", "anyOf").json.contains("\"#/$defs/accessLog\""))
        #expect(try node("$defs", "bodyLimit", "properties", "max").json.contains("10MiB"))
    }

    @Test func `the condition of a middleware asks nothing of a response`() throws {
        let middleware = try node("$defs", "middleware").json
        let postware = try node("$defs", "postware").json
        #expect(!middleware.contains("responseHeaders\":{\"type"))
        #expect(postware.contains("\"responder\"") && !middleware.contains("\"responder\""))
    }

    @Test func `an unknown key is refused everywhere but in maps of names`() throws {
        func check(_ node: ConfigNode, _ path: String) {
            if node["properties"] != nil, node["type"] != nil {
                #expect(node["additionalProperties"] != nil, "\(path)")
            }
            for entry in node.entries ?? [] { check(entry.value, "\(path).\(entry.key)") }
            if node.entries == nil { for member in node.members where node.text == nil { check(member, path) } }
        }
        check(schema, "")
    }

    @Test(arguments: [
        0...0, 0...9, 7...7, 1...10, 9...10, 0...255, 99...101, 100...599, 250...86_400, 1000...1001, 38...4096,
    ])
    func `a pattern of digits matches the numbers of its range and no others`(range: ClosedRange<Int>) throws {
        let pattern = try Pattern("^(\(DigitPattern.pattern(range)))$")
        func matches(_ text: String) throws -> Bool {
            try Array(text.utf8).withUnsafeBytes { try pattern.matches($0) }
        }
        for number in 0...(range.upperBound + 1200) {
            let isMatch = try matches(String(number))
            #expect(isMatch == range.contains(number), "\(number)")
        }
        for text in ["", "00", "01", "-1", "1 ", "1a"] { #expect(try !matches(text), "\(text)") }
    }

    @Test func `a quantity keeps its bounds in every unit`() throws {
        var reader = OptionsReader.describing()
        var delay = Duration.seconds(1)
        reader.read("delay", into: &delay, in: .milliseconds(100) ... .seconds(7200))
        let shape = try #require(reader.described.first?.shape)
        let schema = try #require(shape.schema?["anyOf"]?.members.first?["pattern"]?.text)
        let pattern = try Pattern(schema)
        func matches(_ text: String) throws -> Bool {
            try Array(text.utf8).withUnsafeBytes { try pattern.matches($0) }
        }
        for text in ["100ms", "7200000ms", "1s", "7200s", "120m", "2h"] { #expect(try matches(text), "\(text)") }
        for text in ["99ms", "0s", "7201s", "121m", "3h", "5", "5d", "1.5s"] { #expect(try !matches(text), "\(text)") }
    }
}
