/// The reason why a name could not be resolved.
public enum ResolveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name does not exist, has no addresses, or is invalid.
    case notFound
    /// No answer came in time.
    case timeout
    /// The name servers refused, are unreachable, or failed.
    case serverFailure(String)
    /// Too many lookups are running on this loop.
    case overloaded
    /// The resolver was closed, or the waiting task was cancelled.
    case cancelled

    /// The error for a log: lower case, no full stop.
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
