/// Why a name has no addresses for us.
public enum ResolveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name does not exist, has no addresses, or cannot be a name.
    case notFound
    /// No answer came in time.
    case timeout
    /// The name servers refused, cannot be reached, or have failed themselves.
    case serverFailure(String)
    /// Too many lookups are under way on this loop.
    case overloaded
    /// The resolver was closed, or the task that waited was cancelled.
    case cancelled

    /// What happened, for a log: lower case, no full stop.
    public var description: String {
        switch self {
        case .notFound: "name not found"
        case .timeout: "name lookup timed out"
        case .serverFailure(let reason): "name server failure: \(reason)"
        case .overloaded: "too many name lookups"
        case .cancelled: "name lookup cancelled"
        }
    }
}
