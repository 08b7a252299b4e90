/// The URL that a client asked for, as it looks from the client's side.
///
/// Behind another proxy, the scheme and the host are those of that proxy. They are taken from `X-Forwarded-Proto` and
/// `X-Forwarded-Host` if one of the listener's `trustedProxies` sent them. In a list, the first member counts: it is nearest to the client.
extension Exchange {
    /// The scheme that the client used: `http` or `https`.
    public func clientScheme(of request: HttpRequest) -> String {
        switch forwarded(.xForwardedProto, request)?.lowercased() {
        case "https", "wss": "https"
        case "http", "ws": "http"
        default: isForward ? request.scheme : isSecure ? "https" : "http"
        }
    }

    /// The authority that a trusted proxy names; `nil` if the field is missing or invalid.
    public func forwardedAuthority(of request: HttpRequest) -> Authority? {
        forwarded(.xForwardedHost, request).flatMap(Authority.init)
    }

    /// The URL that the client asked for, regardless of later changes by wares. A path if the request names no host; empty if the
    /// target has no path.
    func clientUrl(of request: HttpRequest) -> String {
        guard request.hasPath else { return "" }
        guard let authority = forwardedAuthority(of: request) ?? request.receivedAuthority else {
            return request.receivedPathAndQuery
        }
        return "\(clientScheme(of: request))://\(authority)\(request.receivedPathAndQuery)"
    }

    private func forwarded(_ name: FieldName, _ request: HttpRequest) -> String? {
        guard isPeerTrusted else { return nil }
        var first: String?
        request.fields.withReceivedValue(of: name) {
            first = FieldList.members(of: String(decoding: $0, as: UTF8.self)).first
        }
        return first
    }
}
