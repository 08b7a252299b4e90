/// The names by which a request reaches its origin server: what a signature has to cover.
public struct UpstreamNames: Sendable, Equatable {
    /// The value of the `Host` field, or of `:authority`; empty if neither the request nor the service names one.
    public let authority: String
    /// The path of the service's base URL, which goes before the request's: empty, or `/api`.
    public let basePath: String
    /// Whether the request goes by TLS.
    public let isSecure: Bool
}

/// The names of a service's origin server, as far as its definition fixes them.
struct OriginNames: Sendable {
    /// What goes into the `Host` field; `nil` leaves the client's.
    var host: String?
    /// For requests that name no authority.
    var fallback = ""
    var basePath = ""
    var isSecure = false
    /// The endpoints have different authorities, so a request has to name one.
    var isSeveral = false
}

extension Exchange {
    /// The names by which the request will reach the origin server. If the endpoints of the service have different authorities, the request
    /// is given that of the first one, so that a signature is valid at whichever endpoint gets it.
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
    /// What the `Host` field says if the service does not change it. RFC 9112 §3.2.2: an absolute target comes before the field.
    fileprivate var sentHost: String? {
        if target.form == .absolute, !isAuthorityChanged { return authority?.description }
        return fields[.host] ?? authority?.description
    }
}
