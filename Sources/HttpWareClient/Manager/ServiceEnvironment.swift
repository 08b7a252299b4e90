/// An environment in which a service runs, such as production.
public struct ServiceEnvironment: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let name: String

    public init(_ name: String) { self.name = name }
    public init(stringLiteral value: String) { name = value }
    public var description: String { name }

    public static let production: ServiceEnvironment = "production"
    public static let staging: ServiceEnvironment = "staging"
    public static let development: ServiceEnvironment = "development"
}
