/// Whether the requests of a route carry the service's credentials.
public enum RouteAuthentication: Sendable, Hashable {
    /// The token wares add credentials, and wait for a token if there is none.
    case required
    /// The token wares skip the request: a login, or a public resource.
    case none
}
