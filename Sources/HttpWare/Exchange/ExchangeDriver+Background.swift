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
        let content = inward.kept ?? inward.held
        return content.count == exchange.record.requestBytes ? content : nil
    }

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
    fileprivate func endIfUnwanted() {
        if outward.hasClientLeft, exchange.sharer?.outlivesClient != true { clientLeft() }
    }

    /// Whether the exchange goes on without its client, and is faster than all other clients of its response.
    fileprivate var isAheadOfOthers: Bool { outward.hasClientLeft && exchange.sharer?.keepsPace == false }

    /// Goes on when one of the others has caught up.
    fileprivate func waitForOthers() {
        let waiting = WaitForOthers(driver: self, serial: serial)
        exchange.sharer?.whenPaceKept { [loop] in loop.execute { waiting.end() } }
    }
}

/// A driver that waits for the other clients of its response. Used on its loop only.
private struct WaitForOthers: @unchecked Sendable {
    weak var driver: ExchangeDriver?
    let serial: Int

    func end() {
        guard let driver, driver.serial == serial, driver.phase != .ended else { return }
        driver.transport.inEvent {
            driver.endIfUnwanted()
            if driver.phase != .ended { driver.downstreamDrained() }
        }
    }
}

/// Replaces the client's connection. It keeps the driver alive until the exchange has ended.
private final class BackgroundSink: ResponseSink {
    private var driver: ExchangeDriver?
    private var receiver: (any BackgroundReceiver)?

    init(_ driver: ExchangeDriver, _ receiver: (any BackgroundReceiver)?) {
        self.driver = driver
        self.receiver = receiver
    }

    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        var response = exchange.response
        response.content = HttpContent(extent: extent)
        receiver?.responseStarted(response, in: exchange)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        receiver?.responseContent(bytes)
        driver?.endIfUnwanted()
        if isBlocked { driver?.waitForOthers() }
    }

    func sendEnd(_ trailers: HttpFields?) { end(isWhole: true) }
    func cutOff() { end(isWhole: false) }

    private func end(isWhole: Bool) {
        driver = nil
        let receiver = self.receiver
        self.receiver = nil
        receiver?.responseEnded(isWhole: isWhole)
    }

    func startTunnel() {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pauseRequest() {}
    func resumeRequest() {}
    var isBlocked: Bool { driver?.isAheadOfOthers == true }
}

/// A request to another service, sent beside an exchange. Used on its loop's thread only.
private final class BesideCall: HttpCall {
    private let plan: ExchangePlan
    private let request: HttpRequest
    private let limit: Duration
    private var receiver: (any BackgroundReceiver)?
    private weak var driver: ExchangeDriver?
    /// The driver's serial number while it carries this request.
    private var serial = 0

    init(_ plan: ExchangePlan, _ request: HttpRequest, _ limit: Duration, _ receiver: any BackgroundReceiver) {
        self.plan = plan
        self.request = request
        self.limit = limit
        self.receiver = receiver
    }

    func begin(on server: LoopListener, _ connection: ConnectionFacts) {
        guard let receiver = receiver.take() else { return }
        let driver = ExchangeDriver(server: server)
        driver.prepare(sink: BackgroundSink(driver, receiver), connection: connection)
        driver.outward.isBackground = true
        driver.outward.isBeside = true
        driver.plan = plan
        driver.exchange.heldRequest = request
        driver.exchange.serviceNotes = plan.service?.notes
        driver.exchange.timeouts.total = limit
        driver.exchange.record.started = driver.loop.now.nanoseconds
        driver.isObserved = false
        driver.inward.isWhole = true
        driver.phase = .middlewares
        driver.setDeadline()
        self.driver = driver
        serial = driver.serial
        server.transport.inEvent { driver.runMiddlewares() }
    }

    func cancel() {
        receiver = nil
        guard let driver, driver.serial == serial, driver.phase != .ended else { return }
        driver.transport.inEvent { driver.clientLeft() }
    }
}
