// 5. The attempts: endpoints, connections and their faults. `UpstreamAttempts` decides, for the first attempt, retries after failures,
// and further ones beside it: other endpoints are asked while the request has no response, and the first response wins.

extension ExchangeDriver: ConnectionWaiter {
    // MARK: The endpoint

    /// Chooses the next endpoint, and asks for a connection to it.
    func connect(_ service: UpstreamService) {
        let chosen: (endpoint: Endpoint, member: EndpointMember?)
        do throws(GatewayError) {
            chosen = try choose(service)
        } catch {
            call.endpoint = nil
            return fail(error)
        }
        let exchange = self.exchange
        if exchange.tokenSwaps != nil, let refusal = reasonAgainstSwap(at: chosen.endpoint) { return fail(refusal) }
        if exchange.heldRequest.method.returnsRequest,
            let refusal = exchange.refusal(ofReturned: exchange.heldRequest, by: chosen.endpoint)
        {
            return fail(refusal)
        }
        let endpoint = owned(introduced(chosen.endpoint))
        if exchange.record.steps.haveBegun { keepAttempt() }
        call.attempts.started(at: endpoint, chosen.member, loop.now.nanoseconds, &exchange.record.steps)
        ask(endpoint, service, call.attempts.leading.number, self)
    }

    /// Asks for a connection for the attempt with that number.
    @inline(__always)
    private func ask(
        _ endpoint: Endpoint, _ service: UpstreamService, _ number: Int, _ waiter: any ConnectionWaiter
    ) {
        var timeout = exchange.timeouts.connect ?? service.connectTimeout
        if exchange.timeouts.perTry != nil { timeout = .nanoseconds(withinTry(timeout.nanoseconds)) }
        let ticket = server.connector.connect(
            to: endpoint, need: connectionNeed(exchange), timeout: timeout, waiter: waiter)
        // Without a ticket, the waiter was already answered; it may even have asked the next endpoint and set that ticket.
        if let ticket { call.attempts.queued(number, ticket) }
    }

    /// The given limit, or the rest of the time for this try if that is shorter.
    func withinTry(_ nanoseconds: Int64) -> Int64 {
        guard let limit = exchange.timeouts.perTry else { return nanoseconds }
        return min(nanoseconds, max(1, limit.nanoseconds - (loop.now.nanoseconds - call.tryStarted)))
    }

    private func connectionNeed(_ exchange: Exchange) -> ConnectionNeed {
        if exchange.heldRequest.method == .connect { return .new }
        if exchange.heldRequest.upgrade != nil { return ConnectionNeed(freshness: .sure, version: .http1) }
        let isSafeToRepeat = exchange.heldRequest.method.isIdempotent && exchange.heldRequest.content.isEmpty
        // A pooled connection may be as dead as the first one: a second try takes a new connection.
        return ConnectionNeed(
            freshness: call.attempts.resends.hasRetried ? .new : isSafeToRepeat ? .usual : .sure,
            version: exchange.heldRequest.needsHttp2 ? .http2 : .any)
    }

    /// The endpoint, or the same endpoint with connections that begin with the client's address.
    @inline(__always)
    private func introduced(_ endpoint: Endpoint) -> Endpoint {
        guard endpoint.key.proxyProtocol != nil else { return endpoint }
        let facts = exchange.connection
        return endpoint.introducing(ProxiedClient(facts.peer, to: facts.local))
    }

    private func choose(
        _ service: UpstreamService
    ) throws(GatewayError) -> (endpoint: Endpoint, member: EndpointMember?) {
        if service.isPassthrough {
            let address = interception?.address ?? exchange.connection.tunnel?.address
            return (try server.forward.endpoint(for: exchange, service, at: address, among: &transport.passing), nil)
        }
        guard !service.endpoints.isEmpty else {
            throw GatewayError(.upstream, .destinationUnavailable, "\(service.name) has no endpoint")
        }
        guard let balancer = service.balancer else { return (service.endpoints[0], nil) }
        call.attempts.leading.leave()
        let seat = server.seat(of: balancer)
        let kept = service.sticky?.member(for: exchange, among: seat, excluding: call.attempts.tried, at: loop.now)
        if let member = kept ?? call.attempts.choose(among: seat, for: exchange, at: loop.now) {
            return (member.endpoint, member)
        }
        if service.findsEndpoints, call.attempts.tried.isEmpty {
            throw GatewayError(.upstream, .noEndpoint, "no program of \(service.name) takes requests at the moment")
        }
        guard exchange.steering == nil, !service.findsEndpoints else {
            throw GatewayError(.upstream, .destinationUnavailable, "no endpoint may be asked at the moment")
        }
        return (service.endpoints[0], nil)
    }

    // MARK: The connection

    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        ready(call.attempts.leading.number, stream, times)
    }

    /// The connection for the attempt was made: sends the request.
    @inline(__always)
    func ready(
        _ number: Int, _ stream: any UpstreamStream, _ times: Connector.Times?, beside further: FurtherAttempt? = nil
    ) {
        let exchange = self.exchange
        guard let service = plan.service,
            call.attempts.ready(number, stream, times, loop.now.nanoseconds, &exchange.record.steps)
        else { return stream.cancel() }
        exchange.record.attempts += 1
        if let further, !call.attempts.leads(number) {
            return transport.inEvent { sendBeside(further, stream, service) }
        }
        exchange.upstreamAddress = call.endpoint?.name
        if stream.isFinal { call.attempts.resends.leaveToConnection() }
        transport.inEvent {
            if exchange.heldRequest.method == .connect {
                openTunnel(stream, service)
            } else {
                sendRequest(stream, service)
            }
        }
    }

    func connectionFailed(_ error: GatewayError) { refused(call.attempts.leading.number, error) }

    /// The connection for the attempt was not made.
    func refused(_ number: Int, _ error: GatewayError) {
        guard let service = plan.service, let attempt = call.attempts[number], attempt.standing == .connecting else {
            return
        }
        // A full pool is a limit of the gateway; it says nothing about the endpoint.
        blame(attempt, error, isItsFault: error.fault != .connectionLimitReached)
        var others = UpstreamAttempts.Others(hasService: plan.fallback?.service != nil)
        if let balancer = service.balancer {
            let seat = server.seat(of: balancer)
            others.endpoints = seat.count
            others.hasUntried = exchange.steering == nil && seat.hasOther(than: call.attempts.asked, at: loop.now)
        }
        switch call.attempts.refused(number, error, others, loop.now.nanoseconds, &exchange.record.steps) {
        case .connect: connect(service)
        case .goDown:
            noteUnreachable(service, error)
            if let next = plan.fallback { stepTo(next) }
            if let next = plan.service { connect(next) }
        case .fail:
            noteUnreachable(service, error)
            transport.inEvent { fail(error) }
        case let action: _ = perform(action, error.fault)
        }
    }

    /// Moves the request to another service. The chain stays; the exchange's facts about its service become those of the new one.
    func stepTo(_ next: ExchangePlan) {
        plan = next
        exchange.serviceNotes = next.service?.notes
        call.attempts.goDown()
        call.isCounted = false
    }

    /// No endpoint accepted a connection. If a ware waits for the service, a probe detects when it is reachable again.
    private func noteUnreachable(_ service: UpstreamService, _ error: GatewayError) {
        guard error.side == .upstream, error.fault.isUnreachable,
            server.connector === transport || transport.standInRefuses != nil,
            service.notes.reachability.failed()
        else { return }
        RecoveryProbe.start(service, transport)
    }

    // MARK: The response

    func upstreamFailed(_ error: GatewayError) {
        endAttempt(error.fault)
        call.stream = nil
        call.isForwarding = false
        switch phase {
        case .awaitingResponse: failed(call.attempts.leading.number, error)
        case .collectingResponse, .responseWares, .streaming: fail(error)
        case .replaying:
            // The response was about to be discarded; without it, the exchange cannot fall back to it.
            break
        case .tunnel: end(.completed)
        case .awaitingRequest, .middlewares, .collectingRequest, .awaitingContent, .countingRequest, .connecting,
            .ended:
            break
        }
    }

    /// The attempt got no response.
    func failed(_ number: Int, _ error: GatewayError) {
        guard let attempt = call.attempts[number] else { return }
        var decision = ResendRule.Decision.fail
        if call.attempts.leads(number) {
            if error.isUnprocessed { exchange.record.refusals += 1 }
            decision = call.attempts.resends.decide(after: error, resendFacts)
        }
        if !decision.isSameEndpoint {
            // If a pooled connection was closed, that says nothing about the endpoint.
            let steps = call.attempts.steps(of: number) ?? exchange.record.steps
            blame(attempt, error, isItsFault: !(steps.isReused && error.fault == .connectionTerminated))
        }
        switch call.attempts.failed(number, decision) {
        case .again:
            guard let service = plan.service else { return fail(error) }
            if !hasSentContentAtHand { startContentOver() }
            phase = .connecting
            connect(service)
        case .fail: fail(error)
        case let action: _ = perform(action, error.fault)
        }
    }

    /// The response of an attempt begins, and there may be several attempts: whether it goes to the client.
    func answered(_ number: Int, _ status: HttpStatus) -> Aftermath {
        guard let attempt = call.attempts[number] else { return .over }
        if call.attempts.leads(number) { hedgeTimer?.clear() }
        let action = call.attempts.answered(number, status)
        guard case .respond = action else {
            guard status.isOfGatewayInTrouble else { return perform(action) }
            if let member = attempt.member {
                plan.service?.balancer?.failed(member, "status \(status.code)", at: loop.now)
            }
            tellWatcher(.answered(status), attempt)
            // A response that the client does not get makes no session stay at its endpoint.
            _ = perform(action)
            return .over
        }
        dropOthers()
        guard aftermath == .goesOn else { return .over }
        if call.attempts.wins() { exchange.hedging?.isWon = true }
        if let started = exchange.hedging?.started {
            exchange.hedging?.responseTime = .nanoseconds(loop.now.nanoseconds - started)
        }
        return .goesOn
    }

    /// The endpoint answered. The statuses of a gateway in trouble (RFC 9110 §15.6.3 to §15.6.5) count as failures of the endpoint.
    func endpointAnswered(_ status: HttpStatus) {
        guard let member = call.attempts.leading.member else { return }
        plan.service?.sticky?.answered(by: member, to: exchange)
        if status.isOfGatewayInTrouble {
            plan.service?.balancer?.failed(member, "status \(status.code)", at: loop.now)
        } else {
            member.succeeded()
        }
    }

    /// The attempt got no response. After too many such failures, all exchanges avoid the endpoint.
    func blame(_ attempt: UpstreamAttempt, _ error: GatewayError, isItsFault: Bool = true) {
        if isItsFault, attempt.isCounted, let member = attempt.member {
            plan.service?.balancer?.failed(member, error.proxyStatusName, at: loop.now)
        }
        tellWatcher(.failed(error), attempt)
    }

    /// Reports the outcome of the attempt to the ware that watches endpoints.
    func tellWatcher(_ outcome: EndpointOutcome, _ attempt: UpstreamAttempt) {
        guard let steering = exchange.steering, let endpoint = attempt.endpoint else { return }
        steering.watcher.ended(
            endpoint.name, outcome, after: .nanoseconds(loop.now.nanoseconds - attempt.asked), in: exchange)
    }

    // MARK: Further attempts

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
            let member = call.attempts.chooseOther(among: server.seat(of: balancer), for: exchange, at: loop.now),
            keeper.mayHedge(exchange)
        else { return }
        exchange.hedging?.asked += 1
        let endpoint = introduced(member.endpoint)
        let number = call.attempts.startedBeside(at: endpoint, member, loop.now.nanoseconds, by: keeper)
        setHedgeTimer()
        ask(endpoint, service, number, FurtherAttempt(self, number))
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
        return exchange.requestFilters.isEmpty && exchange.intervention == nil && wholeContent != nil
    }

    private var wholeContent: [UInt8]? {
        exchange.heldRequest.content.bytes ?? (inward.isWhole ? inward.given ?? inward.kept : nil)
    }

    /// Sends the whole request for an attempt that does not lead.
    private func sendBeside(_ further: FurtherAttempt, _ stream: any UpstreamStream, _ service: UpstreamService) {
        let number = further.number
        let content = exchange.heldRequest.content.isEmpty ? nil : wholeContent
        var options = HeadEncoder.RequestOptions()
        setOptions(&options, service, call.attempts[number]?.endpoint)
        options.framing = .ofRequest(
            sending: exchange.heldRequest.content.extent, method: exchange.heldRequest.method,
            statesLength: exchange.heldRequest.fields.statesLength)
        send(options, on: stream, service, to: further)
        if let content {
            guard call.attempts.steps(of: number) != nil else { return }
            content.withUnsafeBytes { stream.sendContent($0) }
            guard call.attempts.steps(of: number) != nil else { return }
            stream.sendEnd(inward.trailers)
        }
        call.attempts.sent(number, loop.now.nanoseconds)
    }

    /// Performs the end of an attempt while others run: of a further one, or of the leading one, which another replaces.
    private func perform(_ action: UpstreamAttempts.Action, _ fault: GatewayError.Fault? = nil) -> Aftermath {
        let now = loop.now.nanoseconds
        switch action {
        case .drop(let attempt, let steps):
            exchange.record.keep(steps, endedAt: now, fault, endpoint: attempt.endpoint?.name)
            attempt.endStream()
        case .adopt(let former, let steps):
            exchange.record.keepAttempt(at: now, endpoint: former.endpoint?.name)
            exchange.record.steps = steps
            call.isForwarding = false
            phase = call.stream == nil ? .connecting : .awaitingResponse
            former.endStream()
            guard aftermath == .goesOn, let stream = call.stream, let endpoint = call.endpoint,
                let service = plan.service
            else { break }
            exchange.upstreamAddress = endpoint.name
            tap?.requestSent(exchange, host: hostField(exchange, endpoint, service), tls: stream.tls?.facts)
        default: return .over
        }
        return aftermath
    }

    /// Ends all further attempts.
    func dropOthers() {
        hedgeTimer?.clear()
        while let action = call.attempts.dropOther() { _ = perform(action) }
    }
}
