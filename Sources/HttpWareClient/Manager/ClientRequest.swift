/// The facts about a client's request that wares can read beside its message: `exchange[ClientRequest.self]`.
public struct ClientRequest: ExchangeKey, Sendable {
    public typealias Value = ClientRequest

    /// The route's type, or the request's name.
    public let route: String
    public let tags: Set<RequestTag>
    public let authentication: RouteAuthentication
}
