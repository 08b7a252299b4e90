extension LoopListener {
    /// The rules for intercepted tunnels; `nil` if none are intercepted.
    public var intercept: InterceptRules? { interceptor as? InterceptRules }

    /// A listener that intercepts tunnels by these rules; `nil` for none.
    public convenience init(
        name: String, transport: LoopTransport, settings: ServerSettings = ServerSettings(),
        forward: ForwardRules = ForwardRules(), intercept: InterceptRules?, trustedProxies: [IPNetwork] = [],
        bindAddress: SocketAddress? = nil, router: any ExchangeRouter
    ) {
        self.init(
            name: name, transport: transport, settings: settings, forward: forward, trustedProxies: trustedProxies,
            bindAddress: bindAddress, router: router)
        interceptor = intercept
    }

    /// Uses the new settings for all following requests, and the rules for all following tunnels.
    public func update(
        name: String, settings: ServerSettings, forward: ForwardRules, intercept: InterceptRules?,
        trustedProxies: [IPNetwork], router: any ExchangeRouter
    ) {
        update(name: name, settings: settings, forward: forward, trustedProxies: trustedProxies, router: router)
        interceptor = intercept
    }

    /// Takes over a connection that a client made to a host itself, and that was led here: it is handled like the inside of a tunnel to
    /// that host. The connection is closed if the listener intercepts no tunnels, or if the destination is not a host. Call this on the loop's
    /// thread.
    public func accept(_ descriptor: Int32, from peer: SocketAddress?, to direct: DirectDestination) {
        guard let rules = intercept, !isDraining, Authority.isCertifiable(direct.host),
            let request = try? HttpRequest(.connect, "\(direct.host):\(direct.port)")
        else { return Socket.reset(descriptor) }
        let socket = SocketEvents(loop: transport.loop, descriptor: descriptor)
        let connection = ConnectionFacts(peer: peer, mayHaveBelongings: true)
        let tunnel = InterceptedTunnel(self, rules, to: direct, request, connection)
        let opening = TunnelOpening(tunnel, transport: transport, socket: socket)
        counters?.accepted += 1
        hold(opening)
        opening.start([])
    }
}
