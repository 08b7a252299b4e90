/// An environment in which a service runs: production, or another.
public struct Environment: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let name: String

    public init(_ name: String) { self.name = name }
    public init(stringLiteral value: String) { name = value }
    public var description: String { name }

    public static let production: Environment = "production"
    public static let staging: Environment = "staging"
    public static let development: Environment = "development"
}
