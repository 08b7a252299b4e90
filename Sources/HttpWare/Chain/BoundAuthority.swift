/// The authority that a request was bound to, and by which ware.
///
/// What a ware puts into a request may be for one place only, such as a token. A later ware that sends the request elsewhere would
/// give it away, so such a request is refused.
struct BoundAuthority {
    /// The place of the ware among the middlewares; `nil` until it has answered.
    var ware: Int?
    /// Shared with the request, so that nothing is copied as long as its target stays.
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

    /// Whether the target leads to the same place: scheme, host and port. RFC 9110 §4.3.1.
    func isAuthority(of target: borrowing RequestTarget) -> Bool {
        isSecure == target.isSecure && port == target.effectivePort
            && bytes[host.range].elementsEqual(target.bytes[target.host.range])
    }

    /// `https://api.example.com`.
    var text: String {
        let name = String(decoding: bytes[host.range], as: UTF8.self)
        return "\(isSecure ? "https" : "http")://\(name)\(port == (isSecure ? 443 : 80) ? "" : ":\(port)")"
    }
}

extension RequestTarget {
    /// The port that is meant, if none is written.
    fileprivate var effectivePort: UInt16 { port ?? (isSecure ? 443 : 80) }
}

extension Exchange {
    /// Binds the request to the authority that it has now: it carries what is for that place only, such as a token. A middleware
    /// further in that gives the request another scheme, host or port has it refused with 500.
    ///
    /// To be called by a middleware whose `bindsAuthority` is true, when it has changed the request. The endpoints of a service
    /// are one place: this matters where the request itself says where it goes, as with the service `passthrough`.
    public func bindAuthority(of request: borrowing HttpRequest) {
        guard goesByTarget || heldServiceNotes?._withUnsafeGuaranteedRef({ $0.isPassthrough }) == true,
            boundAuthority == nil
        else { return }
        boundAuthority = BoundAuthority(request.target)
    }
}
