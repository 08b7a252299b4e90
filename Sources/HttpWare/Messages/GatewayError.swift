/// The reason why an exchange failed: the side, the fault, and whether a second try is safe.
public struct GatewayError: Error, Sendable {
    /// The side of the failure.
    public enum Side: Sendable { case downstream, upstream, gateway }

    /// The kind of failure. Named as in RFC 9209 §2.3 if it is listed there.
    public enum Fault: Sendable, CaseIterable {
        // The client's request.
        case requestMalformed, requestTargetTooLong, requestHeadTooLarge, requestTimeout, versionUnsupported
        case transferCodingUnsupported, contentCodingUnsupported, protocolUnsupported, contentTooLarge, methodNotAllowed
        case methodUnsupported, requestDenied, noRoute
        /// The connection, or the tunnel, is for another host. RFC 9110 §15.5.20.
        case misdirected
        // Finding and reaching the origin server.
        case dnsError, dnsTimeout, destinationUnavailable, destinationProhibited, connectionRefused, connectionTimeout
        case connectionLimitReached, tlsProtocolError, tlsCertificateError, tlsAlertReceived, loopDetected
        /// No program runs that the service could ask.
        case noEndpoint
        /// The upstream proxy refused to open a tunnel.
        case proxyRefused
        // The origin server's response.
        case connectionTerminated, responseTimeout, responseIncomplete, responseMalformed, responseHeadTooLarge
        case responseContentTooLarge, upgradeFailed
        // The gateway itself.
        case wareFailed, misconfigured, internalError, clientLeft
    }

    public let side: Side
    public let fault: Fault
    /// The details for people: starts in lower case, ends without a full stop, holds no credentials.
    public let reason: String
    /// Whether the request may be sent again: nothing reached the origin server, or a reused connection closed before any response
    /// and the method is idempotent. RFC 9110 §9.2.2.
    public let mayRetry: Bool
    /// Whether the origin server stated that it did not process the request: any method may be sent again. RFC 9113 §8.7.
    public let isUnprocessed: Bool
    /// Whether the origin server requires HTTP/1.1 for the request, which it did not process. RFC 9113 §7.
    public let requiresHttp1: Bool
    /// Whether the content stopped arriving for too long.
    public let isStall: Bool
    /// The error that another transport threw; `nil` for the gateway's own.
    public let cause: (any Error)?

    public init(
        _ side: Side, _ fault: Fault, _ reason: String, mayRetry: Bool = false, isUnprocessed: Bool = false,
        requiresHttp1: Bool = false, isStall: Bool = false, cause: (any Error)? = nil
    ) {
        self.cause = cause
        self.isStall = isStall
        self.isUnprocessed = isUnprocessed
        self.requiresHttp1 = requiresHttp1
        self.side = side
        self.fault = fault
        self.reason = reason
        self.mayRetry = mayRetry
    }

    /// The client's request is invalid.
    static func malformed(_ reason: String) -> GatewayError { GatewayError(.downstream, .requestMalformed, reason) }

    /// The origin server did not complete a change of the protocol.
    static func upgradeFailed(_ reason: String) -> GatewayError { GatewayError(.upstream, .upgradeFailed, reason) }

    /// The origin server's response is invalid.
    static func badResponse(_ reason: String) -> GatewayError { GatewayError(.upstream, .responseMalformed, reason) }
}

extension GatewayError: Equatable {
    /// Whether two errors say the same, whatever caused them.
    public static func == (one: GatewayError, other: GatewayError) -> Bool {
        one.side == other.side && one.fault == other.fault && one.reason == other.reason
            && one.mayRetry == other.mayRetry && one.isUnprocessed == other.isUnprocessed
            && one.requiresHttp1 == other.requiresHttp1 && one.isStall == other.isStall
    }
}

extension GatewayError {
    /// The status of the response to the client.
    public var status: HttpStatus {
        switch fault {
        case .requestMalformed: .badRequest
        case .requestTargetTooLong: .uriTooLong
        case .requestHeadTooLarge: .requestHeaderFieldsTooLarge
        case .requestTimeout: .requestTimeout
        case .versionUnsupported: .versionNotSupported
        case .transferCodingUnsupported, .protocolUnsupported, .methodUnsupported: .notImplemented
        case .contentCodingUnsupported: .unsupportedMediaType
        case .contentTooLarge: .contentTooLarge
        case .methodNotAllowed: .methodNotAllowed
        case .requestDenied, .destinationProhibited: .forbidden
        case .noRoute: .notFound
        case .misdirected: .misdirectedRequest
        case .loopDetected: .loopDetected
        case .dnsError, .connectionRefused, .connectionTerminated, .destinationUnavailable, .proxyRefused,
            .tlsProtocolError,
            .tlsCertificateError, .tlsAlertReceived, .responseIncomplete, .responseMalformed, .responseHeadTooLarge,
            .responseContentTooLarge, .upgradeFailed:
            .badGateway
        case .connectionLimitReached, .noEndpoint: .serviceUnavailable
        case .dnsTimeout, .connectionTimeout, .responseTimeout: .gatewayTimeout
        case .wareFailed: side == .upstream ? .badGateway : .internalServerError
        case .misconfigured, .internalError, .clientLeft: .internalServerError
        }
    }

    /// The `error` parameter of the `Proxy-Status` field. RFC 9209 §2.3.
    public var proxyStatusName: String {
        switch fault {
        case .requestMalformed, .requestTargetTooLong, .requestHeadTooLarge, .requestTimeout, .versionUnsupported,
            .transferCodingUnsupported, .contentCodingUnsupported, .protocolUnsupported, .contentTooLarge,
            .methodNotAllowed, .methodUnsupported, .misdirected, .clientLeft:
            "http_request_error"
        case .requestDenied, .proxyRefused: "http_request_denied"
        case .noRoute: "destination_not_found"
        case .dnsError: "dns_error"
        case .dnsTimeout: "dns_timeout"
        case .destinationUnavailable, .noEndpoint: "destination_unavailable"
        case .destinationProhibited: "destination_ip_prohibited"
        case .connectionRefused: "connection_refused"
        case .connectionTimeout: "connection_timeout"
        case .connectionLimitReached: "connection_limit_reached"
        case .tlsProtocolError: "tls_protocol_error"
        case .tlsCertificateError: "tls_certificate_error"
        case .tlsAlertReceived: "tls_alert_received"
        case .loopDetected: "proxy_loop_detected"
        case .connectionTerminated: "connection_terminated"
        case .responseTimeout: "http_response_timeout"
        case .responseIncomplete: "http_response_incomplete"
        case .responseMalformed: "http_protocol_error"
        case .responseHeadTooLarge: "http_response_header_section_size"
        case .responseContentTooLarge: "http_response_body_size"
        case .upgradeFailed: "http_upgrade_failed"
        case .misconfigured: "proxy_configuration_error"
        case .wareFailed, .internalError: "proxy_internal_error"
        }
    }
}
