import HttpWare

/// Which redirects of a service are followed. One that is not is a response like any other. RFC 9110 §15.4.
///
/// A number stands for a policy that follows so many: `redirects: 5`. Redirects from `https` to `http` are never followed; a request
/// that leaves the service's origin carries none of its credentials.
public struct RedirectPolicy: Sendable, ExpressibleByIntegerLiteral {
    /// The maximum number of redirects of one request.
    public var most: Int
    private let decide: (@Sendable (HttpResponse, HttpRequest) -> Bool)?

    /// Follows at most that many redirects: those for which the closure answers true, which is given the response and the request
    /// that it answers.
    public init(most: Int, where decide: (@Sendable (HttpResponse, HttpRequest) -> Bool)? = nil) {
        self.most = max(0, most)
        self.decide = decide
    }

    public init(integerLiteral value: Int) { self.init(most: value) }

    /// Follows none.
    public static let never = RedirectPolicy(most: 0)

    /// Follows redirects that stay on the origin of their request.
    public static func sameOrigin(most: Int = 5) -> RedirectPolicy {
        RedirectPolicy(most: most) { response, request in
            guard let location = response.fields[.location], let next = request.resolve(location) else { return false }
            return OriginRouter.isSame(next, request)
        }
    }

    func follows(_ response: HttpResponse, to request: HttpRequest) -> Bool {
        most > 0 && (decide?(response, request) ?? true)
    }
}
