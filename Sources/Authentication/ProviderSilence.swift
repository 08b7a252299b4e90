import HttpWare

// Signs that a whole provider is in trouble, and not only one answer of it.

extension HttpStatus {
    /// Whether the server, or one in front of it, takes no requests at the moment. RFC 9110 §15.6, RFC 6585 §4.
    var saysBusy: Bool { [429, 502, 503, 504].contains(code) }
}

extension GatewayError.Fault {
    /// Whether the server cannot be reached or does not answer. Otherwise it answered, though perhaps wrongly.
    var isSilence: Bool {
        switch self {
        case .tlsProtocolError, .tlsCertificateError, .tlsAlertReceived, .destinationProhibited, .connectionTerminated,
            .connectionLimitReached, .responseTimeout:
            true
        default: isUnreachable
        }
    }
}
