public import Credentials
public import FoundationEssentials

// Properties of an error by which an app decides what to tell its user.

extension HttpError {
    /// Whether something took too long: the name, the connection, the response, or content that stopped arriving.
    public var isTimeout: Bool {
        if case .exchange(let fault) = fault {
            if [.connectionTimeout, .responseTimeout, .requestTimeout, .dnsTimeout].contains(fault) { return true }
            if (underlying as? GatewayError)?.isStall == true { return true }
        }
        return cause?.isTimeout ?? false
    }

    /// Whether the user has to log in (again), because the login has ended or the origin server answered 401.
    public var isAuthentication: Bool { fault == .authentication || fault == .status(.unauthorized) }

    /// Whether the server could not be reached: there is no network, or nothing answers at its address.
    public var isOffline: Bool {
        if case .exchange(let fault) = fault {
            switch fault {
            case .dnsError, .dnsTimeout, .destinationUnavailable, .noEndpoint, .connectionRefused, .connectionTimeout:
                return true
            default: break
            }
        }
        return cause?.isOffline ?? false
    }

    /// Whether the task was cancelled. Occurs only in the result of `result(of:)`.
    public var isCancelled: Bool { fault == .cancelled }

    /// The error of a token source's own request, if that stopped the source.
    private var cause: HttpError? { (underlying as? CredentialFailure)?.cause as? HttpError }
}

extension HttpError: LastingFailure {
    /// Whether a server's refusal is permanent, so that another attempt would fail too.
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
