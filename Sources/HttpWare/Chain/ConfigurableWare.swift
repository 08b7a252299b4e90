/// A ware that a configuration file can name and build.
public protocol ConfigurableWare: Ware {
    /// The name used in configuration files, in lowerCamelCase: `bodyLimit`.
    static var name: WareName { get }
    /// The description of the ware, for `httpware wares` and the reference.
    static var about: WareAbout { get }
    /// Where the ware belongs in a chain; `nil` if it can stand anywhere.
    static var chainPlace: ChainPlace? { get }
    /// The risks of placing the ware before certain other wares.
    static var orderRisks: [OrderRisk] { get }
    /// Reads the options: once, when the configuration is loaded, never per request. Mistakes are recorded and reading continues.
    init(options: inout OptionsReader)
}

extension ConfigurableWare {
    public static var chainPlace: ChainPlace? { nil }
    public static var orderRisks: [OrderRisk] { [] }
}

/// The name of a ware in configuration files.
public struct WareName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral value: String) { text = value }
    public var description: String { text }
}

/// The description of a ware, which `httpware wares`, the reference and the schema show.
public struct WareAbout: Sendable {
    /// One sentence that says what an operator gets.
    public let sentence: String
    /// The standard or the program that the ware follows: `RFC 9110 §15.5.14`.
    public let source: String
    /// Entries of a chain that show its use, each behind a dash: `- bodyLimit: { max: 1MiB }`.
    public let example: String
    /// Facts that the options do not show, in one or more paragraphs; may be empty.
    public let details: String
    /// Names of similar wares in other programs, such as `gzip`. An error about an unknown ware of such a name suggests this ware.
    public let otherNames: [String]

    public init(
        _ sentence: String, source: String = "", example: String = "", details: String = "", otherNames: [String] = []
    ) {
        self.sentence = sentence
        self.source = source
        self.example = example
        self.details = details
        self.otherNames = otherNames
    }
}
