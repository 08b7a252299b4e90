/// A capture of the route's path pattern that an option uses in a placeholder, `{path.NAME}`.
public struct NeededCapture: Sendable, Hashable {
    /// The capture's name in the pattern.
    public let name: String
    /// The option that needs it.
    public let keyPath: String
    /// The place of the option.
    public let location: SourceLocation
}
