/// A ware's choice of endpoints for a request, within its service. Set on the way inward.
public struct EndpointSteering {
    /// The endpoint to try first; `nil` leaves the choice to the balancing.
    public var preferred: String?
    /// Endpoints that the request must not go to.
    public var avoided: [String]
    /// Receives the outcome of each attempt.
    public let watcher: any EndpointWatcher

    public init(preferred: String? = nil, avoiding avoided: [String] = [], watcher: any EndpointWatcher) {
        self.preferred = preferred
        self.avoided = avoided
        self.watcher = watcher
    }
}

/// Receives the outcomes of attempts at endpoints. Called on the loop of the exchange.
public protocol EndpointWatcher: AnyObject, Sendable {
    /// The endpoint answered with a status, or failed; `time` is counted from the start of the attempt.
    func ended(_ endpoint: String, _ outcome: EndpointOutcome, after time: Duration, in exchange: Exchange)
}

/// The outcome of an attempt at an endpoint.
public enum EndpointOutcome: Sendable {
    case answered(HttpStatus)
    case failed(GatewayError)
}

extension Exchange {
    /// The names of the service's endpoints as in the record; empty without a service, or where clients choose the origin server.
    public var endpointNames: [String] { starter?.endpointNames ?? [] }

    /// Sends the request to another service of the configuration. Returns false if no service has that name. Call this from a
    /// middleware that is running.
    public func divert(to service: String) -> Bool {
        // A credential that was put into the request for one authority must not reach another.
        boundAuthority == nil ? starter?.divert(to: service) ?? false : false
    }
}
