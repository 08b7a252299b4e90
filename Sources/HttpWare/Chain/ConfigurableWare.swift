/// A ware that a configuration file can name and build.
public protocol ConfigurableWare: Ware {
    /// The name used in configuration files, in lowerCamelCase: `bodyLimit`.
    static var name: WareName { get }
    /// What it does, its source and an example, for `httpware wares` and the reference.
    static var about: WareAbout { get }
    /// Reads the options: once, when the configuration is loaded, never per request. Mistakes are recorded and reading goes on.
    init(options: inout OptionsReader)
}

/// The name of a ware in configuration files.
public struct WareName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral value: String) { text = value }
    public var description: String { text }
}

/// What a ware does, for people: `httpware wares`, the reference and the schema show it.
public struct WareAbout: Sendable {
    /// One sentence.
    public let sentence: String
    /// The standard or the program that it follows: `RFC 9110 §15.5.14`.
    public let source: String
    /// Entries of a chain that show its use, each behind a dash: `- bodyLimit: { max: 1MiB }`.
    public let example: String
    /// What the options do not say, in one or more paragraphs; may be empty.
    public let details: String

    public init(_ sentence: String, source: String = "", example: String = "", details: String = "") {
        self.sentence = sentence
        self.source = source
        self.example = example
        self.details = details
    }
}
