/// The plans of a client in process: one for its service's origin, and one for requests to other origins.
///
/// Requests to other origins must skip the wares of the service's origin, for instance wares that add its credentials.
/// RFC 9110 §4.3.1.
public struct OriginRouter: ExchangeRouter {
    private let host: [UInt8]
    private let port: UInt16
    private let isSecure: Bool
    private let own: ExchangePlan
    private let others: ExchangePlan

    public var listenerPlan: ExchangePlan { own }

    /// Makes a router for the request's origin. The request must have been made from an absolute URI.
    public init(originOf request: HttpRequest, own: ExchangePlan, others: ExchangePlan) {
        host = Array(request.target.bytes[request.target.host.range])
        isSecure = request.target.isSecure
        port = request.target.port ?? (isSecure ? 443 : 80)
        self.own = own
        self.others = others
    }

    /// Whether two requests, made from absolute URIs, have the same origin.
    public static func isSame(_ one: HttpRequest, _ other: HttpRequest) -> Bool {
        let isSecure = one.target.isSecure
        return isSecure == other.target.isSecure && one.host == other.host
            && one.port ?? (isSecure ? 443 : 80) == other.port ?? (isSecure ? 443 : 80)
    }

    /// Whether the request, made from an absolute URI, goes to the origin: its scheme, host and port are equal.
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
