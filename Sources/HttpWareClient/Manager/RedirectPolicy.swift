import HttpWare

/// The redirects of a service that are followed. Any other redirect is returned as a response. RFC 9110 §15.4.
///
/// A number stands for a policy with that maximum: `redirects: 5`. Redirects from `https` to `http` are never followed. A request
/// that leaves the service's origin carries none of its credentials.
public struct RedirectPolicy: Sendable, ExpressibleByIntegerLiteral {
    /// The maximum number of redirects of one request.
    public var most: Int
    private let decide: (@Sendable (HttpResponse, HttpRequest) -> Bool)?

    /// Follows at most `most` redirects for which the closure returns true. The closure is given the response and the request
    /// that it answers.
    public init(most: Int, where decide: (@Sendable (HttpResponse, HttpRequest) -> Bool)? = nil) {
        self.most = max(0, most)
        self.decide = decide
    }

    public init(integerLiteral value: Int) { self.init(most: value) }

    /// Follows no redirects.
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
