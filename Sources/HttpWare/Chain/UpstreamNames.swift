/// The names by which a request reaches its origin server, as a signature must cover them.
public struct UpstreamNames: Sendable, Equatable {
    /// The value of the `Host` field, or of `:authority`; empty if neither the request nor the service names one.
    public let authority: String
    /// The path of the service's base URL, which precedes the request's path: empty, or `/api`.
    public let basePath: String
    /// Whether the request is sent over TLS.
    public let isSecure: Bool
}

/// The names of a service's origin server, as far as its definition fixes them.
struct OriginNames: Sendable {
    /// The value for the `Host` field; `nil` keeps the client's.
    var host: String?
    /// The authority for requests that name none.
    var fallback = ""
    var basePath = ""
    var isSecure = false
    /// The endpoints have different authorities, so a request has to name one.
    var isSeveral = false
}

extension Exchange {
    /// The names by which the request will reach the origin server. If the endpoints have different authorities, the request
    /// gets that of the first endpoint, so that a signature is valid at every endpoint.
    public func fixUpstreamNames(of request: inout HttpRequest) -> UpstreamNames {
        guard let notes = serviceNotes, !notes.isPassthrough, !goesByTarget, let origin = notes.origin else {
            return UpstreamNames(
                authority: request.sentHost ?? "", basePath: "", isSecure: request.target.isSecure)
        }
        if origin.isSeveral, !request.isAuthorityChanged, let host = origin.host.flatMap({ Authority($0) }) {
            request.setAuthority(host)
        }
        let host = request.isAuthorityChanged ? nil : origin.host
        return UpstreamNames(
            authority: host ?? request.sentHost ?? origin.fallback, basePath: origin.basePath,
            isSecure: origin.isSecure)
    }
}

extension HttpRequest {
    /// The value of the `Host` field if the service does not change it. An absolute target overrides the field: RFC 9112 §3.2.2.
    fileprivate var sentHost: String? {
        if target.form == .absolute, !isAuthorityChanged { return authority?.description }
        return fields[.host] ?? authority?.description
    }
}
