public import Credentials
public import FoundationEssentials

// What an app asks of an error, to decide what its user is told.

extension HttpError {
    /// Something took too long: the name, the connection, the response, or content that stopped coming.
    public var isTimeout: Bool {
        if case .exchange(let fault) = fault {
            if [.connectionTimeout, .responseTimeout, .requestTimeout, .dnsTimeout].contains(fault) { return true }
            if (underlying as? GatewayError)?.isStall == true { return true }
        }
        return cause?.isTimeout ?? false
    }

    /// The user has to log in (again): the login has ended, or the origin server answered 401.
    public var isAuthentication: Bool { fault == .authentication || fault == .status(.unauthorized) }

    /// The server could not be reached: there is no network, or nothing answers there.
    public var isOffline: Bool {
        if case .exchange(let fault) = fault {
            switch fault {
            case .dnsError, .dnsTimeout, .destinationUnavailable, .connectionRefused, .connectionTimeout: return true
            default: break
            }
        }
        return cause?.isOffline ?? false
    }

    /// The task was cancelled; only in the result of `result(of:)`.
    public var isCancelled: Bool { fault == .cancelled }

    /// What a source of tokens was stopped by, where that was a request of its own.
    private var cause: HttpError? { (underlying as? CredentialFailure)?.cause as? HttpError }
}

extension HttpError: LastingFailure {
    /// Whether a server refused for good: asked again, it would refuse again.
    public var isLasting: Bool {
        switch fault {
        case .status(let status): [400, 401, 403].contains(status.code)
        case .authentication: true
        default: false
        }
    }
}

extension HttpError: LocalizedError {
    /// The host and the reason, for a log or an alert.
    public var errorDescription: String? { localizedDescription }

    public var localizedDescription: String {
        var text = request?.host.map { "\($0): " } ?? ""
        text += reason
        if let problem { text += " (\(problem))" }
        return text
    }
}
