/// Intercepts the tunnels of a listener's clients, and answers requests for the proxy's own host: what a driver asks of it. Any loop may use it.
protocol TunnelInterceptor: AnyObject, Sendable {
    /// The plan for a CONNECT whose tunnel will be intercepted, or for a request to the proxy's own host; `nil` for any other request.
    func plan(for driver: ExchangeDriver) -> ExchangePlan?
    /// The wares passed a CONNECT whose tunnel will be intercepted: answers it.
    func accept(_ driver: ExchangeDriver)
    /// The wares passed a request that no service takes. If it is for the proxy's own host, answers it and returns true.
    func answers(_ driver: ExchangeDriver) -> Bool
    /// The CONNECT was accepted, and its response is ready: sends it, ends the exchange and takes the tunnel.
    func takeTunnel(of driver: ExchangeDriver, _ sink: any ResponseSink)
}
