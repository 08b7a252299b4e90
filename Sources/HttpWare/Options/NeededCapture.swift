/// A capture of the route's path pattern that an option takes through a placeholder, `{path.NAME}`.
public struct NeededCapture: Sendable, Hashable {
    /// What the pattern has to call it.
    public let name: String
    /// The option that needs it.
    public let keyPath: String
    /// Where the option is written.
    public let location: SourceLocation
}
