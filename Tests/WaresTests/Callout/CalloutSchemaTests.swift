import HttpWare
import Testing

@testable import GatewayWares

/// The schemas of the article accept what the writer writes and what the reader reads.
@Suite struct CalloutSchemaTests {
    private func schema(_ title: String) throws -> JsonValue {
        try #require(
            try CalloutProgramTests.blocks("json").map { try JsonValue(Array($0.utf8)) }
                .first { $0["title"]?.string == title })
    }

    /// Whether a value is valid by a schema, for the keywords that the article uses.
    private func accepts(_ value: JsonValue, _ schema: JsonValue, _ root: JsonValue) throws -> Bool {
        for keyword in schema.members ?? [] {
            let argument = keyword.value
            let isValid: Bool
            switch keyword.name {
            case "$schema", "title", "$defs": isValid = true
            case "$ref":
                let name = try #require(argument.string?.split(separator: "/").last)
                isValid = try accepts(value, try #require(root["$defs"]?[String(name)]), root)
            case "type":
                switch (argument.string, value) {
                case ("object", .object), ("array", .array), ("string", .string), ("boolean", .boolean): isValid = true
                case ("integer", .number(let digits)): isValid = Int(digits) != nil
                default: isValid = false
                }
            case "const": isValid = value == argument
            case "enum": isValid = argument.elements?.contains(value) == true
            case "anyOf": isValid = try (argument.elements ?? []).contains { try accepts(value, $0, root) }
            case "required":
                isValid = value.members == nil || (argument.elements ?? []).allSatisfy { value[$0.string ?? ""] != nil }
            case "properties":
                isValid = try (value.members ?? []).allSatisfy { member in
                    try argument[member.name].map { try accepts(member.value, $0, root) } ?? true
                }
            case "additionalProperties":
                isValid = try (value.members ?? []).filter { schema["properties"]?[$0.name] == nil }.allSatisfy {
                    if case .boolean(let allows) = argument { return allows }
                    return try accepts($0.value, argument, root)
                }
            case "items": isValid = try (value.elements ?? []).allSatisfy { try accepts($0, argument, root) }
            case "minItems": isValid = try value.elements.map { $0.count >= (try #require(argument.whole)) } ?? true
            case "maxItems": isValid = try value.elements.map { $0.count <= (try #require(argument.whole)) } ?? true
            case "minProperties":
                isValid = try value.members.map { $0.count >= (try #require(argument.whole)) } ?? true
            case "maxProperties":
                isValid = try value.members.map { $0.count <= (try #require(argument.whole)) } ?? true
            case "minimum": isValid = try value.whole.map { $0 >= (try #require(argument.whole)) } ?? true
            case "maximum": isValid = try value.whole.map { $0 <= (try #require(argument.whole)) } ?? true
            default:
                Issue.record("the keyword \(keyword.name) is unknown here")
                isValid = false
            }
            if !isValid { return false }
        }
        return true
    }

    @Test(arguments: [
        ("{}", true), ("[]", false), (#"{"a": 1}"#, false), (#"{"set": {"A": "1", "B": ["2"]}}"#, true),
        (#"{"set": {"A": 1}}"#, false), (#"{"set": {"A": []}}"#, false), (#"{"set": []}"#, false),
        (#"{"remove": ["A"]}"#, true), (#"{"remove": "A"}"#, false), (#"{"append": [["A", "1"]]}"#, true),
        (#"{"append": [["A"]]}"#, false), (#"{"method": "PUT", "url": "/"}"#, true), (#"{"method": 1}"#, false),
        (#"{"content": {"text": "a"}}"#, true), (#"{"content": {}}"#, false), (#"{"content": {"text": 1}}"#, false),
        (#"{"content": {"text": "a", "base64": "YQ=="}}"#, false), (#"{"notes": {"a": "b"}}"#, true),
        (#"{"notes": {"a": 1}}"#, false), (#"{"respond": {"status": 200}}"#, true), (#"{"respond": {}}"#, false),
        (#"{"respond": {"status": 199}}"#, false), (#"{"respond": {"status": 200, "a": 1}}"#, false),
        (#"{"respond": {"status": 200, "fields": [["A", "1"]], "content": {"base64": "YQ=="}}}"#, true),
        (#"{"drop": true}"#, true), (#"{"drop": "yes"}"#, false),
    ])
    func `the schema of answers and their reader agree`(json: String, isValid: Bool) throws {
        let schema = try schema("answer")
        #expect(try accepts(try JsonValue(Array(json.utf8)), schema, schema) == isValid)
        #expect(((try? CalloutAnswer(Array(json.utf8), to: .request)) != nil) == isValid)
    }

    @Test func `a status belongs to responses`() throws {
        let schema = try schema("answer")
        for json in [#"{"status": 404}"#, #"{"status": 600}"#] {
            let isValid = (try? CalloutAnswer(Array(json.utf8), to: .response)) != nil
            #expect(try accepts(try JsonValue(Array(json.utf8)), schema, schema) == isValid)
        }
    }

    @Test func `messages are as their schema says`() throws {
        let schema = try schema("message")
        let examples = try CalloutProgramTests.blocks("json").map { try JsonValue(Array($0.utf8)) }
            .filter { $0["half"] != nil }
        #expect(examples.count == 2)
        for example in examples { #expect(try accepts(example, schema, schema)) }
        let hello = try JsonValue(CalloutHello.message(options: .object([])))
        #expect(try accepts(hello, schema, schema))
        // The answers to the first message.
        for block in CalloutProgramTests.blocks("json") where !block.contains("\"title\"") && !block.contains("half") {
            #expect((try? CalloutHello(Array(block.utf8))) != nil, "\(block)")
        }
    }
}
