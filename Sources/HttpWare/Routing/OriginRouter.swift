/// The plans of a client in process: one for its service's origin, and one for requests that go elsewhere.
///
/// What leaves the origin must not pass what was meant for it, such as wares that add its credentials. RFC 9110 §4.3.1.
public struct OriginRouter: ExchangeRouter {
    private let host: [UInt8]
    private let port: UInt16
    private let isSecure: Bool
    private let own: ExchangePlan
    private let others: ExchangePlan

    public var listenerPlan: ExchangePlan { own }

    /// Makes one for the origin that the request, made of an absolute URI, goes to.
    public init(originOf request: HttpRequest, own: ExchangePlan, others: ExchangePlan) {
        host = Array(request.target.bytes[request.target.host.range])
        isSecure = request.target.isSecure
        port = request.target.port ?? (isSecure ? 443 : 80)
        self.own = own
        self.others = others
    }

    /// Whether two requests, made of absolute URIs, go to the same origin.
    public static func isSame(_ one: HttpRequest, _ other: HttpRequest) -> Bool {
        let isSecure = one.target.isSecure
        return isSecure == other.target.isSecure && one.host == other.host
            && one.port ?? (isSecure ? 443 : 80) == other.port ?? (isSecure ? 443 : 80)
    }

    /// Whether the request, made of an absolute URI, goes to the origin: scheme, host and port are its.
    public func isOrigin(of request: borrowing HttpRequest) -> Bool {
        let target = request.target
        guard target.isSecure == isSecure, (target.port ?? (target.isSecure ? 443 : 80)) == port else { return false }
        return target.bytes[target.host.range].elementsEqual(host)
    }

    public func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)])
        -> ExchangePlan
    {
        isOrigin(of: request) ? own : others
    }

    public func plan(for exchange: Exchange) -> ExchangePlan { isOrigin(of: exchange.heldRequest) ? own : others }
}
