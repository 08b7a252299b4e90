// CONNECT on a listener that intercepts tunnels, and the tunnels that pass unread after all.

extension ExchangeDriver {
    // MARK: CONNECT

    /// The plan for a CONNECT whose tunnel will be intercepted, or for a request to the proxy's own host; `nil` for any other
    /// request.
    func planIfIntercepted(by rules: InterceptRules) -> ExchangePlan? {
        if isForOwnHost { return rules.plan }
        guard exchange.heldRequest.method == .connect, !exchange.isIntercepted, let host = exchange.heldRequest.host
        else { return nil }
        if let reason = rules.reasonToPass(host, exchange.heldRequest.port ?? 443) {
            exchange.unread = reason
            return nil
        }
        interception = Interception(rules)
        return rules.plan
    }

    /// The wares passed the CONNECT: the tunnel opens, unless its destination is forbidden.
    func acceptTunnel(_ rules: InterceptRules) {
        let host = exchange.heldRequest.host ?? ""
        let port = exchange.heldRequest.port ?? 443
        if let refusal = rules.refusal(ofTunnelTo: host, port, by: server.forward) { return fail(refusal) }
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
        server.interceptor != nil && Int(exchange.heldRequest.target.host.count) == OwnHost.nameBytes.count
            && OwnHost.isNamed(by: exchange.heldRequest.target)
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
        guard let interceptor = server.interceptor else {
            return requestFailed(GatewayError(.gateway, .requestDenied, "tunnels are not read any more"))
        }
        var address: IPAddress?
        if let host {
            address = exchange.heldRequest.host.flatMap { IPAddress(Authority.bare($0)) }
            exchange.heldRequest.target.setHost(host)
        }
        interception = Interception(interceptor, isUnread: true, address: address)
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
}
