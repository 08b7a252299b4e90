import HttpWare
import Scripting

/// Reads the response that a script returns.
enum ScriptVerdict {
    private static let members = ["status", "fields", "text", "html", "json", "body"]

    /// The response; `nil` if the script returned nothing. Throws the reason why a value is not a response.
    static func response(_ value: ScriptValue) throws(ScriptMisuse) -> HttpResponse? {
        switch value {
        case .missing: return nil
        case .table(let members):
            for member in members {
                let name = member.key.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "?"
                guard Self.members.contains(name) else {
                    throw ScriptMisuse(
                        "the returned response has no member \(name.quotedForErrors)\(didYouMean(name, among: Self.members))"
                    )
                }
            }
        default: throw ScriptMisuse("the function must return nothing or a response, as a table")
        }
        var response = HttpResponse(try status(value["status"]))
        try setContent(value, of: &response)
        try setFields(value["fields"], of: &response)
        return response
    }

    private static func status(_ value: ScriptValue) throws(ScriptMisuse) -> HttpStatus {
        switch value {
        case .missing: return .ok
        case .integer(let code):
            if let status = HttpStatus(Int(clamping: code)), status.code >= 200 { return status }
        default: break
        }
        throw ScriptMisuse("a status is a number from 200 to 599")
    }

    private static func setContent(_ value: ScriptValue, of response: inout HttpResponse) throws(ScriptMisuse) {
        let given = ["text", "html", "json", "body"].filter { value[$0] != .missing }
        guard given.count <= 1 else { throw ScriptMisuse("a response has only one of text, html, json and body") }
        guard let name = given.first else { return }
        let content = value[name]
        if name == "json" {
            let json: Json
            if case .string(let text) = content, let first = text.first, [0x7b, 0x5b].contains(first) {
                // A text that is JSON already, such as `json.encode` makes.
                json = .raw(String(decoding: text, as: UTF8.self))
            } else {
                json = try Json(script: content)
            }
            response.content = .bytes(json.bytes)
        } else {
            guard let bytes = content.bytes else { throw ScriptMisuse("\(name) of a response must be a string") }
            response.content = .bytes(bytes)
        }
        let type: FieldLine? =
            switch name {
            case "text": plainType
            case "html": htmlType
            case "json": jsonType
            default: nil
            }
        if let type { response.fields.set(type) }
    }

    private static let plainType = FieldLine(literal: .contentType, "text/plain; charset=utf-8")
    private static let htmlType = FieldLine(literal: .contentType, "text/html; charset=utf-8")
    private static let jsonType = FieldLine(literal: .contentType, "application/json")

    private static func setFields(_ value: ScriptValue, of response: inout HttpResponse) throws(ScriptMisuse) {
        guard case .table(let members) = value else {
            if value == .missing { return }
            throw ScriptMisuse("fields of a response must be a table of names and values")
        }
        for member in members {
            guard let text = member.key.bytes.map({ String(decoding: $0, as: UTF8.self) }), let name = FieldName(text),
                !name.isGatewayOwned
            else { throw ScriptMisuse("a field of the response has an invalid name") }
            response.fields.remove(name)
            let values: [ScriptValue] = if case .list(let values) = member.value { values } else { [member.value] }
            for value in values {
                guard let bytes = value.bytes, (try? response.fields.append(name, raw: bytes)) != nil else {
                    throw ScriptMisuse("the value of \(name.text) cannot be sent in a field")
                }
            }
        }
    }
}
