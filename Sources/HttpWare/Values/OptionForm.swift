/// What one value of a type looks like, for schemas: a necessary condition, and where possible a sufficient one.
///
/// A type that says nothing takes any text.
public indirect enum OptionForm: Sendable, Hashable {
    /// Any text; a number or a boolean is a text too.
    case text
    /// `true` or `false`.
    case boolean
    /// A whole number within bounds.
    case whole(ClosedRange<Int>)
    /// A number from 0 to 1.
    case share
    /// One of these.
    case words([String])
    /// The whole text matches the expression (ECMA-262, which is what JSON Schema has).
    case pattern(String)
    /// A whole number with one of the units behind it; the product lies within bounds.
    case quantity([Unit], ClosedRange<Int>)
    /// Any of these.
    case either([OptionForm])

    /// A unit and what it multiplies by.
    public struct Unit: Sendable, Hashable {
        /// As it is spelt.
        public let name: String
        /// At least 1.
        public let factor: Int
    }

    /// The form of a type with units.
    static func quantity(_ units: [(name: String, factor: Int)], to largest: Int) -> OptionForm {
        .quantity(units.map { Unit(name: $0.name, factor: $0.factor) }, 0...largest)
    }

    /// The part that lies between two values, as their type spells them.
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

/// How an option is written: one value, a list, a map, or options of its own.
public indirect enum OptionShape: Sendable, Hashable {
    case value(OptionForm)
    /// One value stands for a list of one.
    case list(OptionForm)
    case map(OptionForm, OptionShape)
    /// A list of names, or a map of names to values.
    case names(OptionForm, OptionForm)
    /// A map of options, which are described behind this one.
    case options
    /// A list of such maps. One map stands for a list of one, and a text for a map with only that key.
    case optionsList(orText: String?)
    /// A list of maps that the schema defines by that name. One map stands for a list of one.
    case definitions(String)
    /// Anything: the ware's own affair.
    case any
}
