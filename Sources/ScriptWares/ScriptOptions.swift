import HttpWare
import Scripting

/// Reads the options of a script from a configuration, by the defaults that the script gives.
struct ScriptOptions {
    /// A mistake, and its place in the configuration.
    struct Mistake {
        let key: String
        let location: SourceLocation
        let message: String
    }

    private(set) var mistakes: [Mistake] = []

    /// The options: the defaults, replaced by what is written.
    mutating func read(_ node: ConfigNode?, defaults: ScriptValue) -> ScriptValue {
        var members: [ScriptValue.Member] = if case .table(let members) = defaults { members } else { [] }
        let names = members.compactMap { $0.key.bytes.map { String(decoding: $0, as: UTF8.self) } }
        guard let node else { return .table(members) }
        guard let entries = node.entries else {
            mistakes.append(Mistake(key: "", location: node.location, message: "must be a map of the script's options"))
            return .table(members)
        }
        for entry in entries {
            guard let place = members.firstIndex(where: { $0.key == .text(entry.key) }) else {
                mistakes.append(
                    Mistake(
                        key: entry.key, location: entry.location,
                        message:
                            "unknown option\(names.isEmpty ? "; the script has no options" : didYouMean(entry.key, among: names))"
                    ))
                continue
            }
            if let value = value(entry.value, like: members[place].value, entry.key) { members[place].value = value }
        }
        return .table(members)
    }

    /// The value as the default's type; `nil` if it has another one.
    private mutating func value(_ node: ConfigNode, like standard: ScriptValue, _ key: String) -> ScriptValue? {
        let expected: String
        switch standard {
        case .boolean:
            if node.text == "true" { return .boolean(true) }
            if node.text == "false" { return .boolean(false) }
            expected = "true or false"
        case .integer:
            if let value = node.text.flatMap({ Int64($0) }) { return .integer(value) }
            expected = "a whole number"
        case .number:
            if let value = node.text.flatMap({ Double($0) }), value.isFinite { return .number(value) }
            expected = "a number"
        case .string:
            if let text = node.text { return .text(text) }
            expected = "a text"
        case .list(let values):
            if node.entries == nil || node.isEmpty {
                let read = node.members.map { member in
                    values.first.map { value(member, like: $0, key) } ?? Self.free(member)
                }
                return read.contains { $0 == nil } ? nil : .list(read.compactMap(\.self))
            }
            expected = "a list"
        case .table(let members):
            if case .list = node.content, members.isEmpty { return Self.free(node) }
            if let entries = node.entries {
                return .table(
                    entries.map { entry in
                        ScriptValue.Member(key: .text(entry.key), value: Self.free(entry.value))
                    })
            }
            expected = "a map"
        default: return Self.free(node)
        }
        mistakes.append(Mistake(key: key, location: node.location, message: "\(node.shown) is not \(expected)"))
        return nil
    }

    /// A value whose type only its text shows.
    private static func free(_ node: ConfigNode) -> ScriptValue {
        switch node.content {
        case .scalar(let text, let isQuoted):
            if isQuoted { return .text(text) }
            if text == "true" || text == "false" { return .boolean(text == "true") }
            if let value = Int64(text) { return .integer(value) }
            if text.first.map({ $0.isNumber || $0 == "-" }) == true, let value = Double(text), value.isFinite {
                return .number(value)
            }
            return .text(text)
        case .list(let members): return .list(members.map { free($0) })
        case .map(let entries):
            return .table(entries.map { ScriptValue.Member(key: .text($0.key), value: free($0.value)) })
        }
    }
}
