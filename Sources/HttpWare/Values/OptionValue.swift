/// A type for options: read from one text, with an error that says what to write instead.
public protocol OptionValue: Sendable {
    /// The type's name for people, such as `byte count`; follows "is not a".
    static var optionType: String { get }
    /// Whether the value must not be printed.
    static var isSecret: Bool { get }
    /// Whether the texts of its mistakes can be printed although it is secret, because they never contain a part of the value.
    static var explainsMistakes: Bool { get }
    /// The form of its texts, for schemas.
    static var optionForm: OptionForm { get }
    /// Reads the text as a whole; spaces are not skipped.
    init(optionText: String) throws(OptionMistake)
    /// The value as a configuration file would write it, for help and dumps.
    var optionText: String { get }
    /// The captures of the route's path pattern that its placeholders need.
    var neededCaptures: [String] { get }
}

extension OptionValue {
    public static var isSecret: Bool { false }
    public static var explainsMistakes: Bool { false }
    public static var optionForm: OptionForm { .text }
    public var neededCaptures: [String] { [] }
}

/// The reason why a text is not a value of its type.
public struct OptionMistake: Error, Sendable, Equatable {
    /// The second half of the error: `write a number and a unit, such as 10MiB or 10MB`.
    public var hint: String
    /// Replaces the first half, `"10 mb" is not a byte count`, by a more specific text.
    public var problem: String?

    /// Makes a mistake from its halves.
    public init(_ hint: String, problem: String? = nil) {
        self.hint = hint
        self.problem = problem
    }
}

/// A type in which a list of values makes one value: `statuses: [401, 5xx]` is one set.
public protocol OptionUnion: OptionValue {
    init(union members: [Self])
}

/// One of a few words, declared as an enum: `enum Style: String, OptionWord { case text, json }`.
public protocol OptionWord: OptionValue, CaseIterable, RawRepresentable where RawValue == String {}

extension OptionWord {
    public static var optionType: String { allCases.map(\.rawValue).joined(separator: " | ") }
    public static var optionForm: OptionForm { .words(allCases.map(\.rawValue)) }
    public var optionText: String { rawValue }

    public init(optionText: String) throws(OptionMistake) {
        guard let value = Self(rawValue: optionText) else {
            let words = Self.allCases.map(\.rawValue)
            throw OptionMistake(
                "write \(words.joinedByOr)\(didYouMean(optionText, among: words))",
                problem: "\(optionText.quotedForErrors) is not an allowed value")
        }
        self = value
    }
}

extension String: OptionValue {
    public static var optionType: String { "text" }
    public var optionText: String { self }
    public init(optionText: String) { self = optionText }
}

extension Bool: OptionValue {
    public static var optionType: String { "boolean" }
    public static var optionForm: OptionForm { .boolean }
    public var optionText: String { self ? "true" : "false" }
    public init(optionText: String) throws(OptionMistake) {
        switch optionText {
        case "true": self = true
        case "false": self = false
        default: throw OptionMistake("write true or false")
        }
    }
}

extension Int: OptionValue {
    public static var optionType: String { "whole number" }
    public static var optionForm: OptionForm { .whole(.min ... .max) }
    public var optionText: String { String(self) }
    public init(optionText: String) throws(OptionMistake) {
        let isNegative = optionText.utf8.first == UInt8(ascii: "-")
        let digits = isNegative ? optionText.dropFirst() : optionText[...]
        guard let magnitude = UnitText.number(digits.utf8) else {
            throw OptionMistake("write decimal digits, such as 100")
        }
        self = isNegative ? -magnitude : magnitude
    }
}

/// A text that must not be shown. Printing it, in any way, gives `***`.
public struct Secret: OptionValue, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text itself; for using it, never for printing it.
    public let revealed: String

    /// Makes a secret from a text.
    public init(_ text: String) { revealed = text }
    public init(optionText: String) { revealed = optionText }

    public static var optionType: String { "secret text" }
    public static var isSecret: Bool { true }
    public var optionText: String { "***" }
    public var description: String { "***" }
    public var debugDescription: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
