/// Decides whether a request goes out again after an attempt that got no byte of a response. One value for each time that the request
/// goes inward.
///
/// 1. A request that the origin server refused unseen goes out again, whatever its method, up to five times. RFC 9113 §8.7.
/// 2. A request for which the origin server requires HTTP/1.1 goes out again by HTTP/1.1, once. RFC 9113 §7.
/// 3. Any other idempotent request goes out again once, on a new connection: the first one was probably closed while it was idle.
///    RFC 9110 §9.2.2.
///
/// In each case the content must be available from its beginning.
struct ResendRule {
    enum Decision: Equatable {
        case fail
        /// On any connection that takes requests. The endpoint is not to blame.
        case again
        /// On a new connection.
        case onNewConnection
        /// By HTTP/1.1, which the endpoint requires from now on.
        case byHttp1

        /// Whether the endpoint is asked again, as if this attempt had not been.
        var isSameEndpoint: Bool { self == .again || self == .byHttp1 }
    }

    /// The request whose attempt failed.
    struct Facts {
        var isIdempotent: Bool
        /// Whether everything that was sent of the content can be sent once more.
        var hasContent: Bool
        /// Whether HTTP/1.1 can carry the request, and the endpoint lets us choose it.
        var mayUseHttp1: Bool
    }

    /// How often a request that is refused unseen goes out again.
    static let mostRefusals = 5

    private(set) var refusals = 0
    /// Whether the request, or the client behind its connection, has used its one further try.
    private(set) var hasRetried = false
    private var usesHttp1 = false

    /// Decides after an attempt failed.
    mutating func decide(after error: GatewayError, _ facts: Facts) -> Decision {
        guard error.mayRetry, facts.hasContent else { return .fail }
        if error.requiresHttp1 {
            guard facts.mayUseHttp1, !usesHttp1, !isFinal else { return .fail }
            usesHttp1 = true
            return .byHttp1
        }
        if error.isUnprocessed {
            guard refusals < ResendRule.mostRefusals, !isFinal else { return .fail }
            refusals += 1
            return .again
        }
        guard facts.isIdempotent, !hasRetried else { return .fail }
        hasRetried = true
        return .onNewConnection
    }

    /// The client behind the connection tries again by itself: no attempt follows.
    mutating func leaveToConnection() {
        hasRetried = true
        isFinal = true
    }
    private var isFinal = false
}
