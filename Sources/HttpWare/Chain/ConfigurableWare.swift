/// A ware that a configuration file can name and build.
public protocol ConfigurableWare: Ware {
    /// The name used in configuration files, in lowerCamelCase: `bodyLimit`.
    static var name: WareName { get }
    /// One sentence and the source, for `httpware wares`.
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

/// What a ware does, for people.
public struct WareAbout: Sendable {
    /// One sentence.
    public let sentence: String
    /// The standard or the program that it follows: `RFC 9110 §15.5.14`.
    public let source: String

    public init(_ sentence: String, source: String = "") {
        self.sentence = sentence
        self.source = source
    }
}
