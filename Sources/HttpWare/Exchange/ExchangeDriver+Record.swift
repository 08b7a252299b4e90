// 10. The record: what each ware did is noted while it happens, if anybody wants to know.

extension ExchangeDriver {
    /// Settles with the chain whether the exchange is observed.
    @inline(__always)
    func beginRecord() {
        isObserved = server.records != nil || chain.observesWares
        if isObserved { exchange.record.trail.beginNotes(chain.labels) }
        if isObserved || !chain.observers.isEmpty { exchange.record.startedAt = loop.wallNow() }
        if let taps = server.taps, !outward.isBackground { beginTap(taps) }
        if chain.showsMessages { exchange.isTapped = true }
    }

    private func beginTap(_ taps: any ExchangeTapSource) {
        tap = taps.makeTap(for: exchange)
        exchange.isTapped = tap != nil
        tap?.requestStarted(exchange, tls: sink?.tls?.facts)
    }

    /// Content that a token took its placeholder's place in is shown as the client sent it.
    var showsSentContent: Bool { exchange.tokenSwaps == nil }

    /// Wares are asked about the request from now on.
    func watchRequest() {
        watch.begin(&request)
        exchange.record.trail.forgetSayings()
        wareStarted = loop.tick().nanoseconds
    }

    /// Wares are asked about the response from now on.
    func watchResponse() {
        watch.begin(&response)
        exchange.record.trail.forgetSayings()
        wareStarted = loop.tick().nanoseconds
    }

    /// The middleware whose turn it is has answered.
    func noteRequest(
        _ exchange: Exchange, _ decision: WareStep.Decision, status: Int = 0, hasWaited: Bool = false
    ) {
        watch.look(at: &request, &exchange.record.trail)
        note(exchange, decision, .request, inward.index, status, hasWaited)
    }

    /// The response half or postware whose turn it is has answered.
    func noteResponse(
        _ exchange: Exchange, _ decision: WareStep.Decision, status: Int = 0, hasWaited: Bool = false
    ) {
        watch.look(at: &response, &exchange.record.trail)
        let isHalf = outward.halfIndex >= 0
        note(
            exchange, decision, isHalf ? .responseHalf : .postware, isHalf ? outward.halfIndex : outward.postIndex,
            status,
            hasWaited)
    }

    /// Its condition does not hold; that takes no time worth a look at the clock.
    func noteSkipped(_ exchange: Exchange, _ side: WareStep.Side, _ place: Int) {
        exchange.record.trail.add(
            .skipped, side, place: place, status: 0, started: wareStarted, ended: wareStarted,
            replays: exchange.record.replays, hasWaited: false)
    }

    /// A ware that is waited for will not be heard any more.
    func noteGivenUp() {
        guard waiting.task != nil || waiting.hold != nil else { return }
        switch phase {
        case .middlewares: note(exchange, .gaveUp, .request, inward.index, 0, true)
        case .responseWares:
            let isHalf = outward.halfIndex >= 0
            note(
                exchange, .gaveUp, isHalf ? .responseHalf : .postware, isHalf ? outward.halfIndex : outward.postIndex,
                0, true)
        default: break
        }
    }

    /// The attempt under way is over, by a fault or because its response is not wanted; so is a pause before the next one.
    func endAttempt(_ fault: GatewayError.Fault? = nil) {
        let now = loop.now.nanoseconds
        exchange.record.endAttempt(at: now, fault, isSending: call.isForwarding)
        exchange.record.endPause(at: now, fault)
    }

    /// Another attempt may follow the one under way, whose phases are noted.
    func keepAttempt() {
        exchange.record.keepAttempt(at: loop.now.nanoseconds, endpoint: call.endpoint?.name)
    }

    @inline(__always)
    private func note(
        _ exchange: Exchange, _ decision: WareStep.Decision, _ side: WareStep.Side, _ place: Int, _ status: Int,
        _ hasWaited: Bool
    ) {
        let now = loop.tick().nanoseconds
        exchange.record.trail.add(
            decision, side, place: place, status: status, started: wareStarted, ended: now,
            replays: exchange.record.replays, hasWaited: hasWaited)
        // The next one's turn begins where this one's ends.
        wareStarted = now
    }
}

extension ExchangeRecord {
    /// The attempt has a connection: one that was made with these times, or one that was there.
    mutating func connectionReady(_ times: Connector.Times?, at now: Int64) {
        guard let times else { return endQueue(at: now) }
        endQueue(at: times.resolveStarted > 0 ? times.resolveStarted : times.connectStarted)
        resolveStarted = times.resolveStarted
        connectStarted = times.connectStarted
        connected = times.connected
        secured = times.secured
    }
}
