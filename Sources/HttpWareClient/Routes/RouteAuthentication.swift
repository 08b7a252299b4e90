/// Whether the requests of a route carry the service's credentials.
public enum RouteAuthentication: Sendable, Hashable {
    /// The token wares add them, and wait for a token where there is none.
    case required
    /// The token wares pass the request by: a login, or what is public.
    case none
}
