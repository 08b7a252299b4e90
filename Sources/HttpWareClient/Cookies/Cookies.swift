public import HttpWare

/// Sends the cookies of a jar, and stores the cookies that origin servers set. Without this ware, a client has no cookies.
///
/// ```swift
/// HttpManager(service: api, middlewares: [Cookies()])
/// ```
///
/// A request with its own `Cookie` field is sent unchanged. A request that leaves the service's origin passes no middlewares, so
/// it carries no cookies, and cookies in its response are not stored.
public struct Cookies: Middleware, Postware {
    /// The jar with the cookies.
    public let jar: CookieJar

    public init(_ jar: CookieJar = CookieJar()) { self.jar = jar }

    /// The jars of the manager, with the account that each had when the request was made.
    enum Owners: ExchangeKey { typealias Value = [(jar: CookieJar, account: String)] }

    private func owner(_ exchange: Exchange) -> String? { exchange[Owners.self]?.first { $0.jar === jar }?.account }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        // While the request waited, another account may have logged in. Its response would be stored for the former
        // account.
        if let owner = owner(exchange), owner != jar.account { throw AccountChanged(credential: "of the cookies") }
        if !request.fields.contains(.cookie), let line = jar.line(for: request) {
            try request.fields.set(.cookie, to: line)
        }
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        // A stored response set its cookies when it arrived.
        guard exchange.responder != .cache, let request = exchange.request else { return .pass }
        for line in response.fields.values(of: .setCookie) {
            jar.take(line, from: request, of: owner(exchange))
        }
        return .pass
    }
}
