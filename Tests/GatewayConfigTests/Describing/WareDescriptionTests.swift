import GatewayConfig
import HttpWare
import Testing

@Suite struct WareDescriptionTests {
    @Test func `the side is that of the conformances`() {
        let sides = WareDescription.all(ScriptedWares.all).map { "\($0.name) \($0.side.rawValue) \($0.list)" }
        #expect(sides.contains("retry both middlewares"))
        #expect(sides.contains("bodyLimit middleware middlewares"))
        #expect(sides.contains("accessLog postware postwares"))
        #expect(sides == sides.sorted())
    }

    @Test func `options have type, default, bounds and meaning`() throws {
        let description = WareDescription(ScriptedWares.BodyLimit.self)
        let max = try #require(description.shownOptions.first)
        #expect(max.key == "max" && max.type == "byte count" && max.shownDefault == "10MiB")
        #expect(max.meaning == "1B … 1GiB")
        #expect(description.shownOptions[1].shownDefault == "none")
        #expect(description.json.json.contains(#""allowed":"1B to 1GiB""#))
    }

    @Test func `pretty JSON says the same as JSON on one line`() {
        let node: ConfigNode = [
            "a": ["b": .text(String(repeating: "x", count: 120)), "c": [1, true, .list([])]], "d": .map([]),
        ]
        let pretty = node.prettyJson
        #expect(pretty.contains("\n"))
        let joined = pretty.split(separator: "\n").map { $0.drop { $0 == " " } }.joined().replacing("\": ", with: "\":")
        #expect(joined == node.json)
    }
}
