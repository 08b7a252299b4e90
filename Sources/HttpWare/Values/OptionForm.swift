/// The form of a type's values, for schemas: a necessary condition, and where possible a sufficient one.
///
/// By default, a type accepts any text.
public indirect enum OptionForm: Sendable, Hashable {
    /// Any text; a number or a boolean counts as text.
    case text
    /// `true` or `false`.
    case boolean
    /// A whole number within bounds.
    case whole(ClosedRange<Int>)
    /// A number from 0 to 1.
    case share
    /// One of these words.
    case words([String])
    /// The whole text matches the expression (ECMA-262, as in JSON Schema).
    case pattern(String)
    /// A whole number followed by one of the units; the product is within the bounds.
    case quantity([Unit], ClosedRange<Int>)
    /// Any of these.
    case either([OptionForm])

    /// A unit and its factor.
    public struct Unit: Sendable, Hashable {
        /// The name as written.
        public let name: String
        /// The factor; at least 1.
        public let factor: Int
    }

    /// The form of a type with units.
    static func quantity(_ units: [(name: String, factor: Int)], to largest: Int) -> OptionForm {
        .quantity(units.map { Unit(name: $0.name, factor: $0.factor) }, 0...largest)
    }

    /// The part of the form between two values, in the notation of their type.
    func within(_ lower: String, _ upper: String) -> OptionForm {
        switch self {
        case .whole:
            guard let lower = Int(lower), let upper = Int(upper), lower <= upper else { return self }
            return .whole(lower...upper)
        case .quantity(let units, _):
            let pairs = units.map { (name: $0.name, factor: $0.factor) }
            guard let lower = UnitText.product(lower, units: pairs), let upper = UnitText.product(upper, units: pairs),
                lower <= upper
            else { return self }
            return .quantity(units, lower...upper)
        default: return self
        }
    }
}

/// The structure of an option: one value, a list, a map, or nested options.
public indirect enum OptionShape: Sendable, Hashable {
    case value(OptionForm)
    /// A list; one value counts as a list with one member.
    case list(OptionForm)
    case map(OptionForm, OptionShape)
    /// A list of names, or a map of names to values.
    case names(OptionForm, OptionForm)
    /// A map of options, whose descriptions follow.
    case options
    /// Such a map, or a word in place of it.
    case optionsOr(word: String)
    /// A list of such maps. One map counts as a list with one member, and a text as a map with only that key.
    case optionsList(orText: String?)
    /// A list of maps that the schema defines by that name. One map counts as a list with one member.
    case definitions(String)
    /// Any structure: the ware interprets it.
    case any

    /// Whether it is one map of options.
    public var isOptions: Bool {
        switch self {
        case .options, .optionsOr: true
        default: false
        }
    }
}
