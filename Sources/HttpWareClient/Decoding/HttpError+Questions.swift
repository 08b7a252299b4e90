public import Credentials
public import FoundationEssentials

// Properties of an error by which an app decides what to tell its user.

extension HttpError {
    /// Whether something took too long: the name, the connection, the response, or content that stopped arriving.
    public var isTimeout: Bool {
        if let failure {
            if [.connectionTimeout, .responseTimeout, .requestTimeout, .dnsTimeout].contains(failure) { return true }
            if (underlying as? GatewayError)?.isStall == true { return true }
        }
        return cause?.isTimeout ?? false
    }

    /// Whether the user has to log in (again), because the login has ended or the origin server answered 401. The response to a login
    /// with a wrong password is a 401, too.
    public var isAuthentication: Bool {
        if (underlying as? ContentSentOnce)?.isRenewed == true { return false }
        return fault == .authentication || fault == .status(.unauthorized)
    }

    /// Whether the server could not be reached: there is no network, or nothing answers at its address.
    public var isOffline: Bool {
        if let failure {
            switch failure {
            case .dnsError, .dnsTimeout, .destinationUnavailable, .noEndpoint, .connectionRefused, .connectionTimeout:
                return true
            default: break
            }
        }
        return cause?.isOffline ?? false
    }

    /// Whether the request was cancelled: by `cancelAll`, or with its task, which only `result(of:)` reports in this way.
    public var isCancelled: Bool { fault == .cancelled }

    /// The failure of the exchange: its own, or the one for which a ware answered.
    private var failure: GatewayError.Fault? {
        if case .exchange(let fault) = fault { return fault }
        return (underlying as? GatewayError)?.fault
    }

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
