public import HttpWare

/// The outcomes of an attempt that count as failures of a service: statuses, and kinds of faults.
///
/// A status matches a response of the origin server, and a fault that is reported to the client with that status.
/// Responses of a cache or another ware, and faults of the client, are not failures of the service.
public struct FailureSet: Sendable, Hashable {
    /// A kind of fault.
    public enum Kind: String, OptionWord {
        /// No connection was made, so nothing of the request was sent.
        case connect
        /// The connection ended before the response's header section was complete.
        case reset
        /// A step took too long.
        case timeout
    }

    /// The statuses that are failures.
    public var statuses: StatusSet
    /// The kinds of faults that are failures.
    public var kinds: Set<Kind>

    public init(_ kinds: Set<Kind> = [], statuses: StatusSet = []) {
        self.kinds = kinds
        self.statuses = statuses
    }

    /// The statuses of all responses that may be failures: faults are reported with a status of the 5xx class.
    var responseStatuses: StatusSet { kinds.isEmpty ? statuses : StatusSet(union: [statuses, StatusSet([500...599])]) }

    /// Whether the response at hand is a failure of the service; `nil` if it says nothing about the service.
    @inline(__always)
    func judge(_ status: HttpStatus, _ exchange: Exchange) -> Bool? {
        if case .upstream = exchange.responder { return statuses.contains(status.code) }
        guard case .gateway = exchange.responder, let failure = exchange.failure else { return nil }
        return judge(failure, status)
    }

    /// Whether the error is a failure of the service; `nil` if it says nothing about the service.
    func judge(_ failure: GatewayError, _ status: HttpStatus) -> Bool? {
        guard failure.side == .upstream else { return nil }
        let isMember: Bool
        switch failure.fault {
        case .dnsTimeout, .connectionTimeout: isMember = kinds.contains(.connect) || kinds.contains(.timeout)
        case .responseTimeout: isMember = kinds.contains(.timeout)
        case .connectionTerminated, .responseIncomplete: isMember = kinds.contains(.reset)
        case .responseMalformed, .responseHeadTooLarge, .responseContentTooLarge, .upgradeFailed: isMember = false
        default:
            guard failure.fault.isBeforeRequest else { return nil }
            isMember = kinds.contains(.connect)
        }
        return isMember || statuses.contains(status.code)
    }
}

extension GatewayError.Fault {
    /// No connection was made, so nothing of the request was sent.
    var isBeforeRequest: Bool {
        switch self {
        case .dnsError, .dnsTimeout, .destinationUnavailable, .noEndpoint, .proxyRefused, .connectionRefused,
            .connectionTimeout,
            .tlsProtocolError, .tlsCertificateError, .tlsAlertReceived:
            true
        default: false
        }
    }
}

extension FailureSet: OptionUnion {
    public static let optionType = "set of failures"
    public static var optionForm: OptionForm { .either([Kind.optionForm, StatusSet.optionForm]) }

    public var optionText: String {
        let words = Kind.allCases.filter(kinds.contains).map(\.rawValue)
        return "[" + (words + (statuses.isEmpty ? [] : [statuses.description])).joined(separator: ", ") + "]"
    }

    public init(union members: [FailureSet]) {
        kinds = members.reduce(into: []) { $0.formUnion($1.kinds) }
        statuses = StatusSet(union: members.map(\.statuses))
    }

    public init(optionText: String) throws(OptionMistake) {
        if let kind = Kind(rawValue: optionText) {
            self.init([kind])
        } else if let statuses = try? StatusSet(optionText: optionText) {
            self.init(statuses: statuses)
        } else {
            throw OptionMistake("write connect, reset, timeout, or a status such as 503, 5xx or 500-599")
        }
    }
}
