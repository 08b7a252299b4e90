// CONNECT on a listener that intercepts tunnels, and the requests in them.

extension ExchangeDriver {
    // MARK: CONNECT

    /// The plan for a CONNECT whose tunnel will be intercepted, or for a request to the proxy's own host; `nil` for any other
    /// request.
    @inline(__always)
    func interceptPlan() -> ExchangePlan? { server.intercept == nil ? nil : planIfIntercepted() }

    private func planIfIntercepted() -> ExchangePlan? {
        if isForOwnHost { return server.intercept?.plan }
        guard let rules = server.intercept, exchange.heldRequest.method == .connect, !exchange.isIntercepted,
            let host = exchange.heldRequest.host
        else { return nil }
        let port = exchange.heldRequest.port ?? 443
        // The handshake may name a host even if the CONNECT names only an address.
        let isIntercepted =
            switch rules.decision(host, port) {
            case .intercepted: true
            case .notListed: rules.namesHosts && IPAddress(Authority.bare(host)) != nil
            case .excepted: false
            }
        guard isIntercepted else {
            exchange.unread = rules.decision(host, port) == .excepted ? .excepted : .notListed
            return nil
        }
        interception = Interception(rules)
        return rules.plan
    }

    /// The wares passed the CONNECT: the tunnel opens, unless its destination is forbidden.
    func acceptTunnel(_ rules: InterceptRules) {
        let host = exchange.heldRequest.host ?? ""
        let port = exchange.heldRequest.port ?? 443
        guard Authority.isCertifiable(host) else {
            return fail(.malformed("\(host.quotedForErrors) is neither an address nor the name of one host"))
        }
        guard server.forward.connectPorts.contains(port) else {
            return fail(GatewayError(.downstream, .requestDenied, "CONNECT to port \(port) is not allowed"))
        }
        if server.forward.deniesPrivate {
            if Authority.isLocal(host) || IPAddress(Authority.bare(host))?.isPrivate == true {
                return fail(
                    GatewayError(.upstream, .destinationProhibited, "\(host) is a private address, which is denied"))
            }
        }
        if server.forward.deniesMetadata, IPAddress(Authority.bare(host))?.isMetadata == true {
            return fail(
                GatewayError(
                    .downstream, .destinationProhibited,
                    "\(host) is the address of a cloud's metadata service, which is denied"))
        }
        guard rules.reaches(host, port) else {
            return fail(GatewayError(.gateway, .requestDenied, "no route takes requests to \(host):\(port)"))
        }
        judgeName(host, port)
    }

    /// Refuses the tunnel if all addresses of its host are denied: after an answer of success, the client would learn that too late. If
    /// a name cannot be resolved, a ware may still answer for it.
    private func judgeName(_ host: String, _ port: UInt16) {
        guard server.forward.deniesPrivate, IPAddress(Authority.bare(host)) == nil, let resolver = transport.resolver
        else {
            return accept()
        }
        waitNumber &+= 1
        let number = waitNumber
        var isLate = false
        resolver.resolve(host, port: port) { [weak self] result in
            guard let self, waitNumber == number, phase == .middlewares else { return }
            let isDenied = (try? result.get())?.allSatisfy(\.isPrivate) ?? false
            let step = {
                isDenied
                    ? self.fail(
                        GatewayError(
                            .downstream, .destinationProhibited, "\(host) has a private address, which is denied"))
                    : self.accept()
            }
            if isLate { transport.inEvent(step) } else { step() }
        }
        isLate = true
    }

    private func accept() {
        exchange.responder = .interception
        answerClient(with: HttpResponse(.ok), from: chain.middlewares.count - 1)
    }

    /// Ends the exchange of the CONNECT with its response. The first bytes in the tunnel decide how it is handled.
    func openTunnel(_ rules: InterceptRules, _ sink: any ResponseSink) {
        let tunnel = InterceptedTunnel(server, rules, exchange, exchange.connection)
        guard sendHead(.none, to: sink, via: false) == .goesOn else { return }
        self.sink = nil
        end(.completed)
        sink.passTunnel(to: tunnel)
    }

    // MARK: The proxy's own host

    /// Whether the request is for the host name of the proxy itself, on a listener that intercepts tunnels.
    var isForOwnHost: Bool {
        // Almost all hosts have another length; no copy is made for them.
        guard server.intercept != nil, Int(exchange.heldRequest.target.host.count) == OwnHost.nameBytes.count else {
            return false
        }
        let target = exchange.heldRequest.target
        guard target.form != .authority, target.bytes[target.host.range].elementsEqual(OwnHost.nameBytes) else {
            return false
        }
        return target.port == nil || target.port == (target.isSecure ? 443 : 80)
    }

    /// The wares passed a request to the proxy's own host: answers it.
    func answerForOwnHost(_ rules: InterceptRules) {
        guard exchange.heldRequest.method == .get || exchange.heldRequest.method == .head else {
            return fail(GatewayError(.downstream, .methodNotAllowed, "the proxy's own pages are read with GET"))
        }
        exchange.responder = .gateway
        answerClient(
            with: OwnHost.answer(to: exchange.heldRequest.path, rules.authority, proxy: exchange.local),
            from: chain.middlewares.count - 1)
    }

    // MARK: Tunnels that pass unread after all

    /// Connects to the host of a tunnel whose CONNECT was answered, or to the host that the client named since, at the same
    /// address.
    func startUnread(_ router: any ExchangeRouter, host: String?, _ reason: UnreadReason, isSure: Bool) {
        exchange.record.started = loop.now.nanoseconds
        exchange.unread = reason
        if !isSure {
            server.backgroundCount += 1
            outward.isBackground = true
        }
        guard let rules = server.intercept else {
            return requestFailed(GatewayError(.gateway, .requestDenied, "tunnels are not read any more"))
        }
        var address: IPAddress?
        if let host {
            address = exchange.heldRequest.host.flatMap { IPAddress(Authority.bare($0)) }
            exchange.heldRequest.target.setHost(host)
        }
        interception = Interception(rules, isUnread: true, address: address)
        do throws(Pattern.LimitReached) {
            plan = try router.plan(for: exchange)
        } catch {
            plan = self.router.listenerPlan
            return failWithoutChain(
                GatewayError(.gateway, .internalError, "a pattern of a route took too long to decide"))
        }
        inward.isWhole = true
        runPlan()
    }

    /// The tunnel certainly passes unread: from now on, observers see the exchange.
    func isSure() {
        guard outward.isBackground else { return }
        outward.isBackground = false
        server.backgroundCount -= 1
    }

    /// The client speaks a protocol that is intercepted after all: the connection is dropped, and the exchange is not counted.
    func dropUnread() {
        if !outward.isBackground {
            server.backgroundCount += 1
            outward.isBackground = true
        }
        end(.cutOff)
    }

    // MARK: Requests in a tunnel

    /// The fault of a request that does not belong in its tunnel; `nil` if it does. RFC 9110 §15.5.20.
    func tunnelError() -> GatewayError? {
        guard let tunnel = exchange.connection.tunnel else { return nil }
        exchange.heldRequest.proxyAuthorization = tunnel.proxyAuthorization
        exchange.heldRequest.hasSeveralProxyAuthorizations = tunnel.hasSeveralProxyAuthorizations
        let target = exchange.heldRequest.target
        if target.form == .authority { return nil }
        guard target.host.count > 0 else {
            // An HTTP/1.0 request may name no host.
            exchange.heldRequest.target.setHost(tunnel.host)
            exchange.heldRequest.target.port = tunnel.port
            return nil
        }
        guard target.isSecure == exchange.isSecure, (target.port ?? (target.isSecure ? 443 : 80)) == tunnel.port,
            target.bytes[target.host.range].elementsEqual(tunnel.hostBytes)
        else {
            return GatewayError(
                .downstream, .misdirected,
                "the tunnel leads to \(tunnel.host):\(tunnel.port), the request to another host")
        }
        return nil
    }

    /// The field that offers other ways to the host, which would bypass the gateway. RFC 7838.
    static let altSvc: FieldName = "Alt-Svc"

    /// The only address that the request may go to; `nil` if the name is resolved.
    var tunnelAddress: IPAddress? { interception?.address ?? exchange.connection.tunnel?.address }
}
