/// How large a head may be.
public struct HeadLimits: Sendable, Equatable {
    /// The start line and the field lines together, in bytes.
    public var head = 64 * 1024
    /// The number of field lines.
    public var fieldLines = 100
    /// The request target, in bytes.
    public var requestTarget = 16 * 1024

    public init() {}

    /// The limits for responses: origin servers are given as much room as clients by default.
    static let response = HeadLimits()
}
