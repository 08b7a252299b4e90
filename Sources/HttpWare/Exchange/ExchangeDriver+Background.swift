// Exchanges without a client: started by a ware, or abandoned by the client while other requests wait for the response.

extension ExchangeDriver: BackgroundStarter {
    func startBackground(_ request: HttpRequest, to receiver: any BackgroundReceiver) -> Bool {
        let index = phase == .middlewares ? inward.index : outward.halfIndex
        guard phase == .middlewares || phase == .responseWares, index >= 0, server.mayRunInBackground else {
            return false
        }
        server.backgroundCount += 1
        let driver = ExchangeDriver(server: server)
        let sink = BackgroundSink(driver, receiver)
        driver.prepare(sink: sink, connection: exchange.connection)
        driver.outward.isBackground = true
        driver.plan = plan
        driver.outward.halfFloor = index
        driver.inward.index = index + 1
        let inner = driver.exchange
        inner.heldRequest = request
        inner.route = exchange.route
        inner.serviceNotes = exchange.serviceNotes
        inner.isShare = exchange.isShare
        inner.captures = exchange.captures
        inner.principals = exchange.principals
        inner.takeNamedNotes(of: exchange)
        inner.receivedForwardedFor = exchange.receivedForwardedFor
        inner.isOffline = exchange.isOffline
        inner.boundAuthority = exchange.boundAuthority
        inner.holdsInjection = exchange.holdsInjection
        inner.holdsSecret = exchange.holdsSecret
        if inner.boundAuthority?.ware == nil { inner.boundAuthority?.ware = index }
        inner.record.started = loop.now.nanoseconds
        driver.isObserved = false
        driver.inward.isWhole = true
        driver.phase = .middlewares
        driver.setDeadline()
        transport.inEvent { driver.runMiddlewares() }
        return true
    }

    func startBeside(
        _ request: HttpRequest, to name: String, within limit: Duration, telling receiver: any BackgroundReceiver
    ) -> (any HttpCall)? {
        guard let service = router.service(named: name) else { return nil }
        let call = BesideCall(ExchangePlan(chain: .empty, service: service, route: nil), request, limit, receiver)
        let (server, connection) = (server, exchange.connection)
        loop.later { call.begin(on: server, connection) }
        return call
    }

    var endpointNames: [String] {
        guard let service = plan.service, !service.isPassthrough else { return [] }
        return service.balancer?.members.map(\.endpoint.name) ?? service.endpoints.map(\.name)
    }

    func divert(to name: String) -> Bool {
        guard phase == .middlewares, let service = router.service(named: name), service !== plan.service else {
            return false
        }
        stepTo(plan.diverted(to: service))
        return true
    }

    var keptContent: [UInt8]? {
        guard inward.isWhole, !exchange.record.outgrewKept else { return nil }
        let content = inward.given ?? inward.kept ?? inward.held
        return content.count == exchange.record.requestBytes ? content : nil
    }

    var reopensContent: Bool { mayReopenContent }

    var lateNote: ((String) -> Void)? {
        guard isObserved, let records = server.records else { return nil }
        let id = exchange.id
        let isRequest = exchange.isRequestLent || phase == .middlewares
        let place = isRequest ? inward.index : outward.halfIndex >= 0 ? outward.halfIndex : outward.postIndex
        let side = isRequest ? WareStep.Side.request : outward.halfIndex >= 0 ? .responseHalf : .postware
        return { records.amend(id, side, place: place, with: $0) }
    }

    /// Whether the exchange continues without its client, for the sake of others. If so, it becomes a background exchange.
    func goesOnWithoutClient() -> Bool {
        guard !outward.isBackground, inward.isWhole, exchange.sharer?.outlivesClient == true,
            server.mayRunInBackground,
            // The response of a client's own connection is for that client alone.
            !exchange.isForItsClientAlone
        else { return false }
        switch phase {
        case .middlewares, .connecting, .awaitingResponse, .responseWares, .streaming: break
        default: return false
        }
        server.backgroundCount += 1
        outward.isBackground = true
        outward.hasClientLeft = true
        sink = BackgroundSink(self, nil)
        askForMore(.down)
        return true
    }

    /// Ends an exchange that continued without its client, as soon as nothing needs the rest of its response: the origin server may
    /// never end it.
    func endIfUnwanted() {
        if outward.hasClientLeft, exchange.sharer?.outlivesClient != true { clientLeft() }
    }

    /// Whether the exchange goes on without its client, and is faster than all other clients of its response.
    var isAheadOfOthers: Bool {
        guard outward.hasClientLeft, let sharer = exchange.sharer else { return false }
        return sharer.outlivesClient && !sharer.keepsPace
    }

    /// The response is paused. If others share it, it goes on when one of them has caught up, or has left, also if its own client
    /// takes nothing.
    func waitForOthersIfAhead() {
        guard let sharer = exchange.sharer, sharer.outlivesClient, !sharer.keepsPace else { return }
        let waiting = WaitForOthers(driver: self, serial: serial)
        sharer.whenPaceKept(isAlone: outward.hasClientLeft) { [loop] in loop.execute { waiting.end() } }
    }
}
