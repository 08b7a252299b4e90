import HttpWare

/// Why there is no token.
public struct CredentialFailure: Error, Equatable, Sendable {
    /// What kind of failure it is.
    public enum Kind: String, Sendable {
        /// The authorization server said no: asking again changes nothing.
        case refused
        /// The token endpoint could not be reached, did not answer in time, or answered what is no token.
        case failed
        /// There were `window` refreshes, or a failure just now.
        case paused
        /// The origin server refuses a token that cannot be renewed.
        case rejected
    }

    public let kind: Kind
    /// For people: starts in lower case, ends without a full stop, holds no credentials.
    public let reason: String
    /// The grant itself was refused: its refresh token is spent, or revoked. RFC 6749 §5.2.
    public let isInvalidGrant: Bool
    /// The authorization server said no without a reason that can be read: perhaps the grant, perhaps something between.
    let isUnexplained: Bool
    /// When it is worth trying again; `nil` where nobody knows.
    public internal(set) var retryAfter: Duration?
    /// Whether there may be a new token in a while. If not, the refusal of the present one is the last word.
    public let mayPass: Bool
    /// The error that a program's own source of tokens threw; `nil` for a token endpoint. It does not count when failures are compared.
    public let cause: (any Error)?

    /// Something that is needed for a token could not be reached.
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

    /// Whether it is the end of a login: only a new one brings tokens again.
    public var endsLogin: Bool { kind == .refused || kind == .rejected }

    /// Whether the same call may succeed in a moment.
    var isTransient: Bool { kind == .failed }

    static func badResponse(_ reason: String) -> CredentialFailure { CredentialFailure(.failed, reason) }

    /// The error codes of RFC 6749 §5.2, and two that pass. Others are not shown: they could be anything.
    private static let lasting = [
        "invalid_grant", "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope",
    ]
    private static let passing = ["temporarily_unavailable", "server_error", "slow_down"]

    /// The token endpoint refused, with a status and perhaps an error code.
    init(refusal status: HttpStatus, code: String?) {
        if let code, CredentialFailure.lasting.contains(code) {
            self.init(
                .refused, "the token endpoint refused the request: \(code)", isInvalidGrant: code == "invalid_grant")
        } else if let code, CredentialFailure.passing.contains(code) {
            self.init(.failed, "the token endpoint is not available: \(code)")
        } else if [400, 401, 403, 404, 405].contains(status.code) {
            // RFC 6749 §5.2 has 400 and 401 for what the request says, and a reason always. Those that leave it out refuse all the
            // same; but a refresh token is not given up for what may have come from something between.
            self.init(
                .refused, "the token endpoint refused the request with status \(status.code)",
                isUnexplained: status == .badRequest || status == .unauthorized)
        } else {
            self.init(.failed, "the token endpoint answered with status \(status.code)")
        }
    }
}
