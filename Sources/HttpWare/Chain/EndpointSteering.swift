/// Which endpoints of its service a request may go to, by the word of a ware. Set on the way inward.
public struct EndpointSteering {
    /// The endpoint that the request goes to first; `nil` leaves that to the balancing.
    public var preferred: String?
    /// Endpoints that it does not go to.
    public var avoided: [String]
    /// Is told what came of each attempt.
    public let watcher: any EndpointWatcher

    public init(preferred: String? = nil, avoiding avoided: [String] = [], watcher: any EndpointWatcher) {
        self.preferred = preferred
        self.avoided = avoided
        self.watcher = watcher
    }
}

/// What a ware that watches endpoints is told. Called on the loop of the exchange.
public protocol EndpointWatcher: AnyObject, Sendable {
    /// The endpoint answered with this status, or failed, so long after it was asked.
    func ended(_ endpoint: String, _ outcome: EndpointOutcome, after time: Duration, in exchange: Exchange)
}

/// What came of an attempt at an endpoint.
public enum EndpointOutcome: Sendable {
    case answered(HttpStatus)
    case failed(GatewayError)
}

extension Exchange {
    /// The endpoints of the service, as the record names them; empty without a service, or where clients choose the origin server.
    public var endpointNames: [String] { starter?.endpointNames ?? [] }

    /// Sends the request to another service of the configuration, if there is one of that name. To be called by a middleware that is at
    /// work.
    public func divert(to service: String) -> Bool {
        // What was put into the request for one place is for no other one.
        boundAuthority == nil ? starter?.divert(to: service) ?? false : false
    }
}
