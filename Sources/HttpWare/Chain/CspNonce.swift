extension Exchange {
    private enum CspNonce: ExchangeKey { typealias Value = String }

    /// A value for the `nonce` of scripts and styles in a page: 128 random bits as base64, created on first use and constant until the
    /// exchange ends. CSP Level 3 §2.3.1.
    public var cspNonce: String {
        if let made = self[CspNonce.self] { return made }
        var generator = SystemRandomNumberGenerator()
        let parts = [generator.next(), generator.next()] as [UInt64]
        let made = parts.withUnsafeBytes { Base64.encode(Array($0)) }
        self[CspNonce.self] = made
        return made
    }

    /// Whether the client uses TLS: with the gateway, or with a trusted proxy that says so in `X-Forwarded-Proto`.
    public var isClientSecure: Bool {
        guard isPeerTrusted, let scheme = heldRequest.fields.received[.xForwardedProto] else { return isSecure }
        return scheme.lowercased() == "https"
    }
}
