import HttpWare

extension OptionForm {
    /// The JSON Schema of a value: the form itself, or any text with `${…}`, whose value a schema cannot know.
    var schema: ConfigNode {
        self == .text ? plainSchema : ["anyOf": .list(alternatives + [["$ref": "#/$defs/interpolated"]])]
    }

    /// The expression that the name of an entry must match; `nil` for any name. Names are not interpolated.
    var namePattern: String? {
        if case .pattern(let pattern) = self { OptionForm.whole(pattern) } else { nil }
    }

    private var alternatives: [ConfigNode] {
        switch self {
        case .either(let forms): forms.flatMap(\.alternatives)
        // A quoted number is read in the same way.
        case .whole(let range): [plainSchema, ["type": "string", "pattern": .text(OptionForm.quoted(range))]]
        case .share: [plainSchema, ["type": "string", "pattern": #"^(0+(\.[0-9]+)?|0*1(\.0+)?)$"#]]
        default: [plainSchema]
        }
    }

    private var plainSchema: ConfigNode {
        switch self {
        case .text: return ["type": ["string", "number", "boolean", "null"]]
        case .boolean: return ["enum": [true, false, "true", "false"]]
        case .whole(let range):
            var entries: [(String, ConfigNode)] = [("type", "integer")]
            if range.lowerBound > .min { entries.append(("minimum", ConfigNode(integerLiteral: range.lowerBound))) }
            if range.upperBound < .max { entries.append(("maximum", ConfigNode(integerLiteral: range.upperBound))) }
            return .map(entries)
        case .share: return ["type": "number", "minimum": 0, "maximum": 1]
        case .words(let words): return ["enum": .list(words.map(ConfigNode.text))]
        case .pattern(let pattern): return ["type": "string", "pattern": .text(OptionForm.whole(pattern))]
        case .quantity(let units, let range):
            let spellings = units.compactMap { unit -> String? in
                let lower = range.lowerBound / unit.factor + (range.lowerBound % unit.factor == 0 ? 0 : 1)
                let upper = range.upperBound / unit.factor
                return lower <= upper ? DigitPattern.pattern(lower...upper) + unit.name : nil
            }
            return ["type": "string", "pattern": .text(OptionForm.whole(spellings.joined(separator: "|")))]
        case .either(let forms): return ["anyOf": .list(forms.flatMap(\.alternatives))]
        }
    }

    private static func whole(_ pattern: String) -> String { "^(\(pattern))$" }

    private static func quoted(_ range: ClosedRange<Int>) -> String {
        range.lowerBound < 0 ? "^-?[0-9]+$" : whole(DigitPattern.pattern(range))
    }
}

extension OptionShape {
    /// The JSON Schema of a value; `nil` for an option that has options of its own.
    var schema: ConfigNode? {
        switch self {
        case .value(let form): form.schema
        case .list(let form): OptionShape.list(of: form.schema)
        case .map(let key, let value): OptionShape.map(key, value.schema ?? true)
        case .names(let key, let value):
            ["anyOf": [OptionShape.list(of: key.schema), OptionShape.map(key, value.schema)]]
        case .any: true
        case .definitions(let name): OptionShape.list(of: ["$ref": .text("#/$defs/\(name)")])
        case .options, .optionsOr, .optionsList: nil
        }
    }

    /// The schema of a list. A single value means a list of one, and an empty value an empty list.
    static func list(of member: ConfigNode) -> ConfigNode {
        ["anyOf": [["type": "array", "items": member], member, ["type": "null"]]]
    }

    private static func map(_ key: OptionForm, _ value: ConfigNode) -> ConfigNode {
        var entries: [(String, ConfigNode)] = [("type", ["object", "null"])]
        if let pattern = key.namePattern { entries.append(("propertyNames", ["pattern": .text(pattern)])) }
        return .map(entries + [("additionalProperties", value)])
    }
}

extension OptionRelation {
    /// The keys that each key needs.
    static func needs(_ relations: [OptionRelation]) -> [(String, ConfigNode)] {
        let pairs = relations.compactMap {
            if case .implies(.given(let key), .given(let other)) = $0 { (key, other) } else { nil }
        }
        return Dictionary(grouping: pairs) { $0.0 }.sorted { $0.key < $1.key }.map { key, pairs in
            (key, .list(pairs.map { .text($0.1) }))
        }
    }

    /// The JSON Schema of a map that obeys the rule; `nil` for a key that needs another one, which `needs` has.
    var schema: ConfigNode? {
        switch self {
        case .any(let keys): return ["anyOf": .list(keys.map { .required($0) })]
        case .single(let keys):
            let pairs = keys.indices.flatMap { first in
                keys[(first + 1)...].map { ConfigNode.required(keys[first], $0) }
            }
            return ["not": ["anyOf": .list(pairs)]]
        case .filled(let key):
            let null = ConfigNode(.scalar("null", isQuoted: false))
            return .property(key, ["not": ["enum": [[], .map([]), null]]])
        case .implies(.given, .given): return nil
        case .implies(let cause, let consequence):
            return ["if": cause.schema(isDemand: false), "then": consequence.schema(isDemand: true)]
        }
    }
}

extension OptionRelation.Fact {
    /// The JSON Schema of a map for which the fact holds. A demand is also fulfilled by a value with a variable.
    fileprivate func schema(isDemand: Bool) -> ConfigNode {
        switch self {
        case .given(let key): return .required(key)
        case .not(let fact): return ["not": fact.schema(isDemand: false)]
        case .value(let key, let texts, let otherwise):
            let values =
                texts.map(ConfigNode.text) + texts.compactMap { $0 == "true" ? true : $0 == "false" ? false : nil }
            let value: ConfigNode = ["enum": .list(values)]
            let schema = ConfigNode.property(
                key, isDemand ? ["anyOf": [value, ["$ref": "#/$defs/interpolated"]]] : value)
            return otherwise ? schema : ["allOf": [schema, .required(key)]]
        }
    }
}

extension ConfigNode {
    /// The type is needed, because `required` alone holds for all other types, too.
    fileprivate static func required(_ keys: String...) -> ConfigNode {
        ["type": "object", "required": .list(keys.map(text))]
    }

    fileprivate static func property(_ key: String, _ schema: ConfigNode) -> ConfigNode {
        ["properties": .map([(key, schema)])]
    }
}
