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
}
