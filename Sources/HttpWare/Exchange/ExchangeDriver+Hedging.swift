// 5. Further attempts: other endpoints are asked while the request has no response. The first response wins.
//
// The driver's own call is always one of the attempts: if it fails, the oldest of the others takes its place.

extension ExchangeDriver {
    /// The request goes upstream: starts the timer for the next endpoint.
    func beginHedging() {
        exchange.hedging?.begin(at: loop.now.nanoseconds)
        setHedgeTimer()
    }

    private func setHedgeTimer() {
        guard let hedging = exchange.hedging, let after = hedging.after, hedging.asked < hedging.most else { return }
        let timer = hedgeTimer ?? LoopTimer(loop: loop, handler: self)
        hedgeTimer = timer
        timer.set(after: after)
    }

    /// No response came in time: asks another endpoint, if one is available, the request can be sent twice, and the ware permits it.
    func hedge() {
        guard phase == .connecting || phase == .awaitingResponse, let keeper = exchange.hedging?.keeper,
            let service = plan.service, let balancer = service.balancer, mayBeSentTwice,
            let member = anotherMember(balancer), keeper.mayHedge(exchange)
        else { return }
        var endpoint = member.endpoint
        if endpoint.key.proxyProtocol != nil {
            let facts = exchange.connection
            endpoint = endpoint.introducing(ProxiedClient(facts.peer, to: facts.local))
        }
        exchange.hedging?.asked += 1
        member.beginRequest()
        let attempt = HedgeAttempt(self, member, endpoint)
        call.hedges.append(attempt)
        setHedgeTimer()
        var timeout = exchange.timeouts.connect ?? service.connectTimeout
        if exchange.timeouts.perTry != nil { timeout = .nanoseconds(withinTry(timeout.nanoseconds)) }
        let ticket = server.connector.connect(
            to: endpoint, need: connectionNeed(exchange), timeout: timeout, waiter: attempt)
        if let ticket, attempt.isConnecting { attempt.ticket = ticket }
    }

    /// Whether the whole request is available as it was sent, and needs nothing but a response.
    private var mayBeSentTwice: Bool {
        let request = exchange.heldRequest
        // If a token replaced a placeholder, it is allowed for that endpoint only.
        guard request.upgrade == nil, request.method != .connect, !request.expectsContinue, exchange.tokenSwaps == nil,
            // A client's own connection is never asked beside another one.
            !exchange.isForItsClientAlone
        else { return false }
        if request.content.isEmpty { return inward.isWhole }
        return exchange.requestFilters.isEmpty && exchange.intervention == nil && contentForHedges != nil
    }

    private var contentForHedges: [UInt8]? {
        exchange.heldRequest.content.bytes ?? (inward.isWhole ? inward.kept : nil)
    }

    /// An endpoint that takes requests and was not asked yet.
    private func anotherMember(_ balancer: Balancer) -> EndpointMember? {
        // Only the client's own endpoint knows its session.
        guard exchange.endpointKeep?.isHeld != true else { return nil }
        var asked = call.tried
        if let member = call.member { asked.append(member) }
        if let avoided = exchange.steering?.avoided {
            asked += server.seat(of: balancer).table.places.map(\.member).filter { avoided.contains($0.endpoint.name) }
        }
        for attempt in call.hedges { asked.append(attempt.member) }
        var key: UInt64 = 0
        if case .hash(let part) = balancer.rules.rule { key = part.stableNumber(exchange.heldRequest, exchange) }
        return server.seat(of: balancer).chooseOpen(key: key, excluding: asked, at: loop.now)
    }

    /// The attempt has a connection: sends the request.
    func send(_ attempt: HedgeAttempt, on stream: any UpstreamStream) {
        guard let service = plan.service else { return stream.cancel() }
        exchange.record.attempts += 1
        attempt.steps.sendStarted = loop.now.nanoseconds
        var options = HeadEncoder.RequestOptions()
        setOptions(&options, service, attempt.endpoint)
        let content = contentForHedges
        options.framing = .ofRequest(
            sending: exchange.heldRequest.content.extent, method: exchange.heldRequest.method,
            statesLength: exchange.heldRequest.fields.statesLength)
        stream.send(
            requestOf: exchange, options, receiver: attempt,
            responseTimeout: withinTry(exchange.timeouts.response?.nanoseconds ?? service.responseNanoseconds),
            idleTimeout: exchange.timeouts.idle?.nanoseconds ?? service.idleNanoseconds)
        if !exchange.heldRequest.content.isEmpty, let content {
            guard attempt.isWaiting else { return }
            content.withUnsafeBytes { stream.sendContent($0) }
            guard attempt.isWaiting else { return }
            stream.sendEnd(inward.trailers)
        }
        attempt.steps.requestSent = loop.now.nanoseconds
    }

    // MARK: The end of attempts

    /// A further attempt failed.
    func hedgeFailed(_ attempt: HedgeAttempt, _ error: GatewayError, isItsFault: Bool) {
        if isItsFault { plan.service?.balancer?.failed(attempt.member, error.proxyStatusName, at: loop.now) }
        tellWatcher(.failed(error), at: attempt.endpoint, since: attempt.asked)
        drop(attempt, .failed, error.fault)
    }

    /// A further attempt got a status that another attempt may improve on.
    func hedgeRefused(_ attempt: HedgeAttempt, _ status: HttpStatus) {
        plan.service?.balancer?.failed(attempt.member, "status \(status.code)", at: loop.now)
        tellWatcher(.answered(status), at: attempt.endpoint, since: attempt.asked)
        drop(attempt, .failed, nil)
    }

    private func drop(_ attempt: HedgeAttempt, _ outcome: HedgeOutcome, _ fault: GatewayError.Fault?) {
        guard let index = call.hedges.firstIndex(where: { $0 === attempt }) else { return }
        call.hedges.remove(at: index)
        call.tried.append(attempt.member)
        attempt.member.endRequest()
        exchange.record.keep(attempt.steps, endedAt: loop.now.nanoseconds, fault, endpoint: attempt.endpoint.name)
        exchange.hedging?.keeper.hedgeEnded(outcome)
    }

    /// Abandons all further attempts.
    func dropHedges() {
        hedgeTimer?.clear()
        while let attempt = call.hedges.last {
            drop(attempt, .lost, nil)
            attempt.giveUp()
        }
    }

    /// Reports the outcome of the driver's own call, if it was a further attempt before.
    func settleHedge(_ outcome: HedgeOutcome) {
        guard call.isHedge else { return }
        call.isHedge = false
        if outcome == .won { exchange.hedging?.isWon = true }
        exchange.hedging?.keeper.hedgeEnded(outcome)
    }

    /// A response began while other attempts are running: either they are abandoned, or the oldest of them replaces it.
    func chooseAmongAttempts(_ status: HttpStatus) -> Aftermath {
        guard status.isOfGatewayInTrouble, let next = call.hedges.first else {
            dropHedges()
            return aftermath
        }
        endpointAnswered(status)
        tellWatcher(.answered(status), at: call.endpoint, since: call.endpointAsked)
        if let member = call.member { call.tried.append(member) }
        settleHedge(.failed)
        let stream = call.stream.take()
        stream?.discard()
        guard aftermath == .goesOn else { return .over }
        _ = adopt(next)
        return .over
    }

    /// Replaces the driver's own call by the attempt; the own call is abandoned.
    func adopt(_ attempt: HedgeAttempt) -> Aftermath {
        guard let index = call.hedges.firstIndex(where: { $0 === attempt }) else { return .over }
        call.hedges.remove(at: index)
        settleHedge(.lost)
        call.isHedge = true
        keepAttempt()
        exchange.record.steps = attempt.steps
        call.ticket?.giveUp()
        leaveEndpoint()
        let former = call.stream.take()
        call.isForwarding = false
        call.stream = attempt.stream
        call.ticket = attempt.ticket
        call.endpoint = attempt.endpoint
        call.endpointAsked = attempt.asked
        call.member = attempt.member
        call.isAtEndpoint = true
        phase = attempt.stream == nil ? .connecting : .awaitingResponse
        attempt.adopt()
        former?.cancel()
        guard aftermath == .goesOn else { return .over }
        guard let stream = call.stream else { return .goesOn }
        exchange.upstreamAddress = attempt.endpoint.name
        if let tap, let service = plan.service {
            tap.requestSent(
                exchange, host: hostField(exchange, attempt.endpoint, service), tls: stream.tls?.facts)
        }
        return .goesOn
    }
}
