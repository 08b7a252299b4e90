/// The maker of a response.
public enum Responder: Sendable, Equatable {
    /// The origin server.
    case upstream
    /// A stored response.
    case cache
    /// The ware with this label.
    case ware(String)
    /// The gateway itself: after an error, or without a route.
    case gateway
    /// The gateway, which accepted a CONNECT and intercepts its tunnel.
    case interception

    /// The name in conditions and logs.
    public var name: String {
        switch self {
        case .upstream: "upstream"
        case .cache: "cache"
        case .ware(let label): label
        case .gateway: "gateway"
        case .interception: "intercepted"
        }
    }
}

/// How an exchange ended.
public enum ExchangeEnd: Sendable, Equatable {
    /// The response was sent whole.
    case completed
    /// The response was cut off after its head had gone out.
    case cutOff
    /// The client left before it had the response.
    case clientLeft
}
