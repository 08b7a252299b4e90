import HttpWare

/// The reason why there is no token.
public struct CredentialFailure: Error, Equatable, Sendable {
    /// A kind of failure.
    public enum Kind: String, Sendable {
        /// The authorization server refused. Asking again would not help.
        case refused
        /// The token endpoint was unreachable, too slow, or sent an invalid response.
        case failed
        /// There were `window.max` refreshes in `window.per`, or a failure a moment ago.
        case paused
        /// The origin server refused a token that cannot be renewed.
        case rejected
    }

    public let kind: Kind
    /// The reason for people: starts in lower case, ends without a full stop, contains no credentials.
    public let reason: String
    /// Whether the grant itself was refused: its refresh token is spent or revoked. RFC 6749 §5.2.
    public let isInvalidGrant: Bool
    /// Whether the refusal has no readable reason. It may then come from an intermediary instead of the authorization server.
    let isUnexplained: Bool
    /// Whether the authorization server was not asked, because the lock or the tokens that gateways share are not available.
    private(set) var isUnasked = false
    /// When it is worthwhile to try again; `nil` if that is unknown.
    public internal(set) var retryAfter: Duration?
    /// Whether there may be a new token later. If not, the refusal of the current token is final.
    public let mayPass: Bool
    /// The error that a program's own source of tokens threw; `nil` for a token endpoint. Ignored when failures are compared.
    public let cause: (any Error)?

    /// A failure to reach something that is needed to obtain a token.
    public init(cannotReach reason: String) { self.init(.failed, reason) }

    init(
        _ kind: Kind, _ reason: String, isInvalidGrant: Bool = false, isUnexplained: Bool = false,
        retryAfter: Duration? = nil, mayPass: Bool? = nil, cause: (any Error)? = nil
    ) {
        self.cause = cause
        self.mayPass = mayPass ?? (kind == .failed)
        self.kind = kind
        self.reason = reason
        self.isInvalidGrant = isInvalidGrant
        self.isUnexplained = isUnexplained
        self.retryAfter = retryAfter
    }

    public static func == (left: CredentialFailure, right: CredentialFailure) -> Bool {
        left.kind == right.kind && left.reason == right.reason && left.isInvalidGrant == right.isInvalidGrant
            && left.isUnexplained == right.isUnexplained && left.retryAfter == right.retryAfter
            && left.mayPass == right.mayPass
    }

    /// The same failure, before the authorization server was asked.
    var unasked: CredentialFailure {
        var failure = self
        failure.isUnasked = true
        return failure
    }

    /// Whether the login has ended, so that only a new one brings tokens.
    public var endsLogin: Bool { kind == .refused || kind == .rejected }

    /// Whether the same call may succeed in a moment.
    var isTransient: Bool { kind == .failed }

    package static func badResponse(_ reason: String) -> CredentialFailure { CredentialFailure(.failed, reason) }

    /// The error codes of RFC 6749 §5.2, and three temporary ones. Other codes are not shown, because they could contain
    /// anything.
    private static let lasting = [
        "invalid_grant", "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope",
    ]
    private static let passing = ["temporarily_unavailable", "server_error", "slow_down"]

    /// A refusal by the token endpoint, with a status and perhaps an error code.
    init(refusal status: HttpStatus, code: String?) {
        if let code, CredentialFailure.lasting.contains(code) {
            self.init(
                .refused, "the token endpoint refused the request: \(code)", isInvalidGrant: code == "invalid_grant")
        } else if let code, CredentialFailure.passing.contains(code) {
            self.init(.failed, "the token endpoint is not available: \(code)")
        } else if [400, 401, 403, 404, 405].contains(status.code) {
            // RFC 6749 §5.2 defines 400 and 401 for refusals, always with a reason. Some servers omit it. Such a refusal counts,
            // but the refresh token is kept, because an intermediary may have sent the response.
            self.init(
                .refused, "the token endpoint refused the request with status \(status.code)",
                isUnexplained: status == .badRequest || status == .unauthorized)
        } else {
            self.init(.failed, "the token endpoint answered with status \(status.code)")
        }
    }
}
