/// The authority that a request was bound to, and the ware that bound it.
///
/// A ware may put something into a request that only one origin server may see, such as a token. If a later ware sent the request
/// elsewhere, it would leak the token, so such a request is refused.
struct BoundAuthority {
    /// The ware's position among the middlewares; `nil` until it has answered.
    var ware: Int?
    /// Shared with the request, so that nothing is copied while its target is unchanged.
    private let bytes: [UInt8]
    private let host: RequestTarget.Part
    private let port: UInt16
    private let isSecure: Bool

    init(_ target: borrowing RequestTarget) {
        bytes = target.bytes
        host = target.host
        port = target.effectivePort
        isSecure = target.isSecure
    }

    /// Whether the target has the same scheme, host and port. RFC 9110 §4.3.1.
    func isAuthority(of target: borrowing RequestTarget) -> Bool {
        isSecure == target.isSecure && port == target.effectivePort
            && bytes[host.range].elementsEqual(target.bytes[target.host.range])
    }

    /// The authority with its scheme: `https://api.example.com`.
    var text: String {
        let name = String(decoding: bytes[host.range], as: UTF8.self)
        return "\(isSecure ? "https" : "http")://\(name)\(port == (isSecure ? 443 : 80) ? "" : ":\(port)")"
    }
}

extension RequestTarget {
    /// The explicit port, or the scheme's default port.
    fileprivate var effectivePort: UInt16 { port ?? (isSecure ? 443 : 80) }
}

extension Exchange {
    /// Binds the request to its current authority, because it now carries something for that authority only, such as a token. If a
    /// later middleware changes the scheme, host or port, the request is refused with 500.
    ///
    /// Call this from a middleware whose `bindsAuthority` is true, after it has changed the request. The endpoints of a service count
    /// as one place: the binding matters where the request itself says where it goes, as with the service `passthrough`.
    public func bindAuthority(of request: borrowing HttpRequest) {
        guard goesByTarget || heldServiceNotes?._withUnsafeGuaranteedRef({ $0.isPassthrough }) == true,
            boundAuthority == nil
        else { return }
        boundAuthority = BoundAuthority(request.target)
    }
}
