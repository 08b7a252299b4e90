// 10. The record: the actions of wares are recorded as they happen, if the exchange is observed.

extension ExchangeDriver {
    /// Decides by the chain whether the exchange is observed.
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

    var trailers: (request: HttpFields?, response: HttpFields?) { (inward.trailers, outward.trailers) }

    func showCapture() -> Bool { tap?.show() ?? false }

    /// Whether taps see the content as it is sent. If tokens replace placeholders, they see it as the client sent it.
    var showsSentContent: Bool { exchange.tokenSwaps == nil }

    /// Prepares the record for wares that handle the request.
    func watchRequest() {
        watch.begin(&request)
        exchange.record.trail.forgetSayings()
        wareStarted = loop.tick().nanoseconds
    }

    /// Prepares the record for wares that handle the response.
    func watchResponse() {
        watch.begin(&response)
        exchange.record.trail.forgetSayings()
        wareStarted = loop.tick().nanoseconds
    }

    /// Records the answer of the current middleware.
    func noteRequest(
        _ exchange: Exchange, _ decision: WareStep.Decision, status: Int = 0, hasWaited: Bool = false
    ) {
        watch.look(at: &request, &exchange.record.trail)
        note(exchange, decision, .request, inward.index, status, hasWaited)
    }

    /// Records the answer of the current response half or postware.
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

    /// Records that a ware's condition is not met. This takes too little time to read the clock.
    func noteSkipped(_ exchange: Exchange, _ side: WareStep.Side, _ place: Int) {
        exchange.record.trail.add(
            .skipped, side, place: place, status: 0, started: wareStarted, ended: wareStarted,
            replays: exchange.record.replays, hasWaited: false)
    }

    /// Records that a wait for a ware was given up.
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

    /// Ends the current attempt, by a fault or because its response is not needed, and a pause before the next one.
    func endAttempt(_ fault: GatewayError.Fault? = nil) {
        let now = loop.now.nanoseconds
        exchange.record.steps.end(at: now, fault, isSending: call.isForwarding)
        exchange.record.endPause(at: now, fault)
    }

    /// Records the phases of the current attempt; another may follow.
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
        // The next ware's turn begins where this one's ends.
        wareStarted = now
    }
}
