// One file: endpoint, connection, content and faults are steps of one call.

// 5. The upstream call: an endpoint, a connection, the request and its content.

extension ExchangeDriver: ConnectionWaiter {
    /// The maximum number of times that a request goes inward.
    static let mostAttempts = 5

    func callUpstream() {
        let exchange = self.exchange
        while let next = plan.fallback, plan.service?.notes.reachability.isDown == true { stepTo(next) }
        guard let service = plan.service else {
            if let interception, !interception.isUnread { return interception.interceptor.accept(self) }
            if let interceptor = server.interceptor, interceptor.answers(self) { return }
            let isConnect = exchange.heldRequest.method == .connect
            return fail(
                isConnect
                    ? GatewayError(.gateway, .requestDenied, "no route takes this CONNECT")
                    : GatewayError(.gateway, .noRoute, "no route matches the request"))
        }
        guard !exchange.isOffline else {
            return fail(GatewayError(.gateway, .destinationUnavailable, "nothing is sent upstream while offline"))
        }
        if let refusal = reasonAgainstUnread() { return fail(refusal) }
        // The method alone is read first: the whole request would be copied.
        if exchange.heldRequest.method.returnsRequest,
            let refusal = exchange.refusal(ofReturned: exchange.heldRequest)
        {
            return fail(refusal)
        }
        if let watch = server.placeholders, searchForPlaceholders(watch) == .over { return }
        callSearched(service)
    }

    /// The request may go upstream: the guard has searched it, if there is one.
    func callSearched(_ service: UpstreamService) {
        let exchange = self.exchange
        if let answer = maxForwardsAnswer() {
            exchange.responder = .gateway
            return answerClient(with: answer, from: chain.middlewares.count - 1)
        }
        if exchange.heldRequest.fields.present & KnownField.via.bit != 0, isLoop() {
            return fail(GatewayError(.gateway, .loopDetected, "the request came through here too often"))
        }
        exchange.heldRequest.fields.removeFramingTwins()
        guard checkLimit() == .goesOn else { return }
        setDeadline()
        if !call.isCounted {
            call.isCounted = true
            exchange.heldServiceNotes?._withUnsafeGuaranteedRef {
                $0.requests.add(all: true, marked: false, at: loop.now)
            }
        }
        call.endpointsTried = 0
        call.tryStarted = loop.now.nanoseconds
        phase = .connecting
        if exchange.hedging != nil { beginHedging() }
        connect(service)
    }

    /// Moves the request to another service. The chain stays; the exchange's facts about its service become those of the new one.
    func stepTo(_ next: ExchangePlan) {
        leaveEndpoint()
        plan = next
        exchange.serviceNotes = next.service?.notes
        call.tried.removeAll(keepingCapacity: true)
        call.endpointsTried = 0
        call.member = nil
        call.isCounted = false
    }

    /// Answers TRACE and OPTIONS if Max-Forwards is 0; otherwise decrements it. RFC 9110 §7.6.2.
    private func maxForwardsAnswer() -> HttpResponse? {
        guard exchange.heldRequest.fields.present & KnownField.maxForwards.bit != 0,
            exchange.heldRequest.method == .trace || exchange.heldRequest.method == .options,
            let text = exchange.heldRequest.fields[.maxForwards], !text.isEmpty, text.utf8.allSatisfy(ByteClass.isDigit)
        else { return nil }
        let number = Int(text) ?? .max
        guard number > 0 else {
            return exchange.heldRequest.method == .trace
                ? GatewayResponse.trace(exchange.heldRequest) : GatewayResponse.options()
        }
        exchange.heldRequest.fields.setOwn(.maxForwards, "\(number - 1)")
        return nil
    }

    /// Whether the request is in a loop: `Via` names gateways of this name 16 times or more. RFC 9110 §7.6.3.
    private func isLoop() -> Bool {
        exchange.heldRequest.fields.occurrences(of: " httpware", in: .via) >= 16
    }

    /// Chooses the next endpoint, and asks for a connection to it.
    private func connect(_ service: UpstreamService) {
        var endpoint: Endpoint
        do throws(GatewayError) {
            endpoint = try choose(service)
        } catch {
            call.endpoint = nil
            return fail(error)
        }
        let exchange = self.exchange
        if exchange.tokenSwaps != nil, let refusal = reasonAgainstSwap(at: endpoint) { return fail(refusal) }
        if exchange.heldRequest.method.returnsRequest,
            let refusal = exchange.refusal(ofReturned: exchange.heldRequest, by: endpoint)
        {
            return fail(refusal)
        }
        if endpoint.key.proxyProtocol != nil {
            let facts = exchange.connection
            endpoint = endpoint.introducing(ProxiedClient(facts.peer, to: facts.local))
        }
        endpoint = owned(endpoint)
        if exchange.record.steps.haveBegun { keepAttempt() }
        call.endpoint = endpoint
        exchange.record.steps.connectAsked = loop.now.nanoseconds
        call.endpointAsked = loop.now.nanoseconds
        var timeout = exchange.timeouts.connect ?? service.connectTimeout
        if exchange.timeouts.perTry != nil { timeout = .nanoseconds(withinTry(timeout.nanoseconds)) }
        let ticket = server.connector.connect(
            to: endpoint, need: connectionNeed(exchange), timeout: timeout, waiter: self)
        // Without a ticket, the waiter was already answered; it may even have asked the next endpoint and set that ticket.
        if let ticket, phase == .connecting { call.ticket = ticket }
    }

    /// The given limit, or the rest of the time for this try if that is shorter.
    func withinTry(_ nanoseconds: Int64) -> Int64 {
        guard let limit = exchange.timeouts.perTry else { return nanoseconds }
        return min(nanoseconds, max(1, limit.nanoseconds - (loop.now.nanoseconds - call.tryStarted)))
    }

    func connectionNeed(_ exchange: Exchange) -> ConnectionNeed {
        if exchange.heldRequest.method == .connect { return .new }
        if exchange.heldRequest.upgrade != nil { return ConnectionNeed(freshness: .sure, version: .http1) }
        let isSafeToRepeat = exchange.heldRequest.method.isIdempotent && exchange.heldRequest.content.isEmpty
        // A pooled connection may be as dead as the first one: a second try takes a new connection.
        return ConnectionNeed(
            freshness: call.resends.hasRetried ? .new : isSafeToRepeat ? .usual : .sure,
            version: exchange.heldRequest.needsHttp2 ? .http2 : .any)
    }

    private func choose(_ service: UpstreamService) throws(GatewayError) -> Endpoint {
        if !service.isPassthrough {
            guard !service.endpoints.isEmpty else {
                throw GatewayError(.upstream, .destinationUnavailable, "\(service.name) has no endpoint")
            }
            guard let balancer = service.balancer else { return service.endpoints[0] }
            return try choose(balancer, service)
        }
        let address = interception?.address ?? exchange.connection.tunnel?.address
        return try server.forward.endpoint(for: exchange, service, at: address, among: &transport.passing)
    }

    // MARK: The endpoint

    /// Chooses the next endpoint by the service's rule, avoiding endpoints that were tried while others are left.
    private func choose(
        _ balancer: Balancer, _ service: UpstreamService
    ) throws(GatewayError) -> Endpoint {
        leaveEndpoint()
        let seat = server.seat(of: balancer)
        if let kept = service.sticky?.member(for: exchange, among: seat, excluding: call.tried, at: loop.now) {
            return take(kept)
        }
        var key: UInt64 = 0
        if case .hash(let part) = balancer.rules.rule { key = part.stableNumber(exchange.heldRequest, exchange) }
        if let steering = exchange.steering {
            guard let chosen = steered(steering, seat, key) else {
                throw GatewayError(.upstream, .destinationUnavailable, "no endpoint may be asked at the moment")
            }
            return take(chosen)
        }
        var chosen = seat.choose(key: key, excluding: call.tried, at: loop.now)
        if chosen == nil {
            // All endpoints were tried: any may be chosen.
            call.tried.removeAll(keepingCapacity: true)
            chosen = seat.choose(key: key, excluding: call.tried, at: loop.now)
        }
        guard let chosen else { return service.endpoints[0] }
        return take(chosen)
    }

    private func take(_ chosen: EndpointMember) -> Endpoint {
        chosen.beginRequest()
        call.isAtEndpoint = true
        call.member = chosen
        return chosen.endpoint
    }

    /// The endpoint that a ware prefers, or one that it does not avoid; `nil` if none is left.
    private func steered(_ steering: EndpointSteering, _ seat: BalancerSeat, _ key: UInt64) -> EndpointMember? {
        if let name = steering.preferred,
            let member = seat.table.places.first(where: { $0.member.endpoint.name == name })?.member,
            !call.tried.contains(where: { $0 === member })
        {
            return member
        }
        let avoided = seat.table.places.map(\.member).filter { steering.avoided.contains($0.endpoint.name) }
        if let chosen = seat.choose(key: key, excluding: call.tried + avoided, at: loop.now) { return chosen }
        // All other endpoints were tried: any of them may be chosen.
        call.tried.removeAll(keepingCapacity: true)
        return seat.choose(key: key, excluding: avoided, at: loop.now)
    }

    /// Reports the outcome of the attempt to the ware that watches endpoints.
    func tellWatcher(_ outcome: EndpointOutcome, at endpoint: Endpoint?, since asked: Int64) {
        guard let steering = exchange.steering, let endpoint else { return }
        steering.watcher.ended(
            endpoint.name, outcome, after: .nanoseconds(loop.now.nanoseconds - asked), in: exchange)
    }

    /// Ends the request's count at the endpoint.
    func leaveEndpoint() {
        guard call.isAtEndpoint, let member = call.member else { return }
        call.isAtEndpoint = false
        member.endRequest()
    }

    /// The endpoint did not answer the request. This exchange avoids it from now on; after too many failures, all exchanges do.
    func endpointFailed(_ error: GatewayError, isItsFault: Bool = true) {
        guard call.isAtEndpoint, let member = call.member else { return }
        call.tried.append(member)
        if isItsFault { plan.service?.balancer?.failed(member, error.proxyStatusName, at: loop.now) }
        leaveEndpoint()
    }

    /// The endpoint answered. The statuses of a gateway in trouble (RFC 9110 §15.6.3 to §15.6.5) count as failures of the endpoint.
    func endpointAnswered(_ status: HttpStatus) {
        guard let member = call.member else { return }
        plan.service?.sticky?.answered(by: member, to: exchange)
        switch status {
        case .badGateway, .serviceUnavailable, .gatewayTimeout:
            plan.service?.balancer?.failed(member, "status \(status.code)", at: loop.now)
        default: member.succeeded()
        }
    }

    /// No endpoint accepted a connection. If a ware waits for the service, a probe detects when it is reachable again.
    private func noteUnreachable(_ service: UpstreamService, _ error: GatewayError) {
        guard error.side == .upstream, error.fault.isUnreachable, server.connector === transport,
            service.notes.reachability.failed()
        else { return }
        RecoveryProbe.start(service, transport)
    }

    // MARK: The connection

    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        guard phase == .connecting, let service = plan.service else { return stream.cancel() }
        call.ticket = nil
        let exchange = self.exchange
        exchange.record.steps.connectionReady(times, isReused: stream.isReused, at: loop.now.nanoseconds)
        exchange.record.attempts += 1
        exchange.upstreamAddress = call.endpoint?.name
        call.stream = stream
        if stream.isFinal { call.resends.leaveToConnection() }
        transport.inEvent {
            if exchange.heldRequest.method == .connect {
                openTunnel(stream, service)
            } else {
                sendRequest(stream, service)
            }
        }
    }

    private func sendRequest(_ connection: any UpstreamStream, _ service: UpstreamService) {
        let exchange = self.exchange
        phase = .awaitingResponse
        exchange.record.steps.sendStarted = loop.now.nanoseconds
        var options = HeadEncoder.RequestOptions()
        setOptions(&options, service, call.endpoint)
        let outgoing = exchange.tokenSwaps?.outgoing
        options.outgoing = outgoing
        if exchange.tokenSwaps != nil { exchange.tokenSwaps?.wasSent = true }
        let extent = outgoing?.request.content.extent ?? exchange.heldRequest.content.extent
        let isAtHand = (outgoing?.request.content.bytes ?? exchange.heldRequest.content.bytes) != nil
        let isStreamed = !isAtHand && extent != .none
        if exchange.heldRequest.expectsContinue, !isStreamed || inward.hasSentContinue {
            // The content is sent at once, or there is none, so there is nothing to wait for. RFC 9110 §10.1.1.
            exchange.heldRequest.fields.remove(.expect as FieldName)
            outgoing?.request.fields.remove(.expect as FieldName)
            exchange.heldRequest.expectsContinue = false
        }
        options.framing = .ofRequest(
            sending: extent, method: exchange.heldRequest.method,
            statesLength: exchange.heldRequest.fields.statesLength,
            keepsLength: exchange.requestFilters.allSatisfy { $0.keepsLength })
        var stated: Int?
        if case .length(let length) = extent, case .length = options.framing { stated = length }
        tap?.requestSent(exchange, host: options.host, tls: connection.tls?.facts)
        connection.send(
            requestOf: exchange, options, receiver: self,
            responseTimeout: withinTry(exchange.timeouts.response?.nanoseconds ?? service.responseNanoseconds),
            idleTimeout: exchange.timeouts.idle?.nanoseconds ?? service.idleNanoseconds)
        guard aftermath == .goesOn else { return }
        exchange.record.steps.requestSent = loop.now.nanoseconds
        guard extent != .none || !inward.isWhole else { return }
        call.isForwarding = true
        let isResent = call.sent.isKept && call.hasSentContent
        // The filters have seen the content that is sent again: they continue behind it.
        if !isResent, call.path != nil || !exchange.requestFilters.isEmpty || exchange.intervention != nil {
            makeRequestPath(stated: stated)
        }
        if isResent {
            guard sendAgain(on: connection) == .goesOn, call.isForwarding else { return }
        } else if connection.mayRefuseUnseen {
            call.sent.begin()
        }
        if isStreamed {
            let isBegun = call.hasSentContent && !isResent
            let waiting = isBegun ? inward.kept ?? inward.given ?? [] : inward.held
            inward.held = []
            if !waiting.isEmpty, waiting.withUnsafeBytes({ forward($0) }) == .over { return }
            if inward.isWhole, call.isForwarding { _ = forwardEnd() } else { askForMore(.up) }
        } else {
            // A ware has the whole content, or replaced it: the rest from the client does not go upstream.
            inward.held = []
            if let bytes = outgoing?.request.content.bytes ?? exchange.heldRequest.content.bytes {
                if !isResent, bytes.withUnsafeBytes({ forward($0) }) == .over { return }
                if call.isForwarding, forwardEnd() == .over { return }
            }
            call.isForwarding = false
            if !inward.isWhole { sink?.resumeRequest() }
        }
    }

    /// Sends once more what an earlier attempt sent of the content, behind the filters.
    private func sendAgain(on connection: any UpstreamStream) -> Aftermath {
        let (sent, isEnded) = call.sent.takeAgain()
        if isEnded {
            call.isForwarding = false
            inward.held = []
            if !inward.isWhole { sink?.resumeRequest() }
        }
        if let path = call.path {
            path.putBack(sent)
            move(.up)
            return aftermath
        }
        if !sent.isEmpty, sent.withUnsafeBytes({ forward($0) }) == .over { return .over }
        guard isEnded else { return aftermath }
        call.sent.end()
        return endUp(connection)
    }

    /// Sets the parts of a request's head that depend on the gateway and the endpoint. In place: returned options would be copied.
    @inline(__always)
    func setOptions(_ options: inout HeadEncoder.RequestOptions, _ service: UpstreamService, _ endpoint: Endpoint?) {
        // They may be credentials, which the response to TRACE would show.
        if !service.defaults.isEmpty, !exchange.heldRequest.method.returnsRequest {
            options.defaults = service.defaults
        }
        if server.settings.addsVia { options.via = exchange.heldRequest.version }
        options.upgrade = exchange.heldRequest.upgrade
        if let endpoint {
            options.host = hostField(exchange, endpoint, service)
            if !endpoint.basePath.isEmpty {
                options.basePath = endpoint.basePath
                if let line = endpoint.key.hop?.credentials { options.defaults += [line] }
            }
        }
    }

    /// The value of the `Host` field; `nil` keeps the request's own.
    func hostField(_ exchange: Exchange, _ endpoint: Endpoint, _ service: UpstreamService) -> String? {
        if exchange.heldRequest.isAuthorityChanged { return nil }
        if service.isPassthrough { return endpoint.authority }  // RFC 9112 §3.2.2: the target's authority
        switch service.host {
        case .upstream: return endpoint.authority
        case .value(let value): return value
        case .preserve:
            if exchange.heldRequest.target.form == .absolute { return exchange.heldRequest.authority?.description }
            return exchange.heldRequest.target.host.count == 0 ? endpoint.authority : nil
        }
    }

    /// Forwards a piece of the request's content.
    func forward(_ bytes: UnsafeRawBufferPointer) -> Aftermath {
        guard let upstream = call.stream else { return aftermath }
        call.hasSentContent = true
        if let path = call.path {
            feed(.up, path) { try $0.take(bytes) }
            return aftermath
        }
        call.sent.append(bytes)
        if let tap, showsSentContent { tap.sentContent(bytes) }
        upstream.sendContent(bytes)
        if upstream.isBlocked { sink?.pauseRequest() }
        return aftermath
    }

    /// Ends the request's content, after the bytes that its path holds.
    func forwardEnd() -> Aftermath {
        guard let upstream = call.stream else { return aftermath }
        call.isForwarding = false
        if let path = call.path {
            call.hasSentContent = true
            feed(.up, path) { try $0.end() }
            return aftermath
        }
        call.sent.end()
        return endUp(upstream)
    }

    /// All of the request's content went upstream: sends its end.
    func endUp(_ upstream: any UpstreamStream) -> Aftermath {
        if exchange.isRequestContentChanged {
            for name in HttpFields.digests { inward.trailers?.remove(name) }
        }
        if inward.trailers != nil, !trailersArePassable() { return .over }
        upstream.sendEnd(inward.trailers)
        guard aftermath == .goesOn else { return .over }
        if exchange.record.firstByte == 0 { exchange.record.steps.requestSent = loop.now.nanoseconds }
        return .goesOn
    }

    /// The content cannot continue: the client gets an error, unless a response has already begun.
    func filterFailed(_ error: any Error) {
        if let fault = error as? PlaceholderFault, let watch = server.placeholders { return refuse(fault, watch) }
        inward.isRefused = true
        fail(.ofRequestFilter(error))
    }

    func upstreamDrained() {
        askForMore(.up)
    }

    // MARK: Faults

    func connectionFailed(_ error: GatewayError) {
        call.ticket = nil
        guard phase == .connecting, let service = plan.service else { return }
        call.endpointsTried += 1
        exchange.record.steps.connectFailed(error.fault, at: loop.now.nanoseconds)
        // A full pool is a limit of the gateway; it says nothing about the endpoint.
        endpointFailed(error, isItsFault: error.fault != .connectionLimitReached)
        if exchange.steering != nil { tellWatcher(.failed(error), at: call.endpoint, since: call.endpointAsked) }
        settleHedge(.failed)
        if let next = call.hedges.first {
            _ = adopt(next)
            return
        }
        // Nothing was sent, so any request may go to another endpoint.
        if let balancer = service.balancer, error.mayRetry, hasOtherEndpoint(server.seat(of: balancer)) {
            connect(service)
        } else {
            noteUnreachable(service, error)
            guard error.mayRetry, let next = plan.fallback, let other = next.service else {
                return transport.inEvent { fail(error) }
            }
            stepTo(next)
            connect(other)
        }
    }

    /// Whether a failed connect may be repeated at another endpoint: each is tried once. A name may have got new addresses meanwhile.
    private func hasOtherEndpoint(_ seat: BalancerSeat) -> Bool {
        call.endpointsTried < seat.count
            || exchange.steering == nil && call.endpointsTried < 2 * seat.count
                && seat.hasOther(than: call.tried, at: loop.now)
    }

    func upstreamFailed(_ error: GatewayError) {
        endAttempt(error.fault)
        call.stream = nil
        call.isForwarding = false
        switch phase {
        case .awaitingResponse:
            if error.isUnprocessed { exchange.record.refusals += 1 }
            let decision = call.resends.decide(after: error, resendFacts)
            switch decision {
            case .again:
                // The endpoint takes requests, on another connection. After more than two refusals, others are asked.
                if call.resends.refusals > 2, let member = call.member { call.tried.append(member) }
                leaveEndpoint()
            case .byHttp1: _ = call.endpoint?.requireHttp1()
            case .onNewConnection, .fail:
                // If a pooled connection was closed, that says nothing about the endpoint.
                endpointFailed(error, isItsFault: !(exchange.record.isReused && error.fault == .connectionTerminated))
            }
            if exchange.steering != nil, !decision.isSameEndpoint {
                tellWatcher(.failed(error), at: call.endpoint, since: call.endpointAsked)
            }
            settleHedge(.failed)
            if let next = call.hedges.first {
                _ = adopt(next)
                return
            }
            guard decision != .fail, let service = plan.service else { return fail(error) }
            if !hasSentContentAtHand { startContentOver() }
            phase = .connecting
            connect(service)
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

    /// The facts about the request that `ResendRule` needs.
    private var resendFacts: ResendRule.Facts {
        let isForHttp1 = !exchange.heldRequest.needsHttp2 && exchange.heldRequest.upgrade == nil
        return ResendRule.Facts(
            isIdempotent: exchange.heldRequest.method.isIdempotent,
            hasContent: !inward.isRefused && (hasSentContentAtHand || mayStartContentOver),
            mayUseHttp1: isForHttp1 && call.endpoint?.negotiates == true)
    }

    /// Whether everything that was sent of the content is here, to be sent once more.
    private var hasSentContentAtHand: Bool {
        let content = exchange.heldRequest.content
        if content.isEmpty || !call.hasSentContent || call.sent.isKept { return true }
        guard exchange.requestFilters.isEmpty else { return false }
        return content.bytes != nil || inward.given != nil || inward.kept != nil && inward.isWhole
            || exchange.tokenSwaps?.outgoing?.request.content.bytes != nil
    }

    /// Whether the client can supply the content again, and nothing else has seen it.
    private var mayStartContentOver: Bool {
        inward.mayStartOver && exchange.requestFilters.isEmpty && exchange.heldRequest.content.bytes == nil
            && tap == nil
    }

    /// Asks the client for the content from its beginning.
    private func startContentOver() {
        inward.isWhole = false
        inward.held = []
        inward.trailers = nil
        if inward.kept != nil { inward.kept = [] }
        exchange.record.requestBytes = 0
        call.hasSentContent = false
        sink?.startRequestOver()
    }

    // MARK: Tunnels

    private func openTunnel(_ connection: any UpstreamStream, _ service: UpstreamService) {
        connection.startTunnel(
            receiver: self, idleTimeout: exchange.timeouts.idle?.nanoseconds ?? service.idleNanoseconds)
        connection.pause()
        exchange.responder = .upstream
        var opened = HttpResponse(.ok)
        responseStarted(&opened)
    }

    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) {
        guard phase == .tunnel, let sink else { return }
        exchange.record.responseBytes += bytes.count
        exchange.record.unfilteredBytes += bytes.count
        if let path = outward.path { return feed(.down, path) { try $0.take(bytes) } }
        tap?.tunnelled(bytes, isSent: false)
        sink.sendTunnel(bytes)
        transport.output.flush()
        if sink.isBlocked { call.stream?.pause() }
    }

    func tunnelReceivedFromClient(_ bytes: UnsafeRawBufferPointer) {
        guard phase == .tunnel, let upstream = call.stream else { return }
        exchange.record.requestBytes += bytes.count
        tap?.tunnelled(bytes, isSent: true)
        if let path = call.path { return feed(.up, path) { try $0.take(bytes) } }
        upstream.sendTunnel(bytes)
        transport.output.flush()
        if upstream.isBlocked { sink?.pauseRequest() }
    }

    func tunnelReceivedEnd() {
        outward.upstreamEndedTunnel = true
        guard phase == .tunnel else { return }
        limitHalfTunnel()
        endTunnel(.down)
    }

    func tunnelEndedByClient() {
        outward.clientEndedTunnel = true
        guard phase == .tunnel else { return }
        limitHalfTunnel()
        endTunnel(.up)
    }

    /// One side has ended: the other side gets a shorter idle timeout than in a tunnel with both.
    private func limitHalfTunnel() {
        guard let service = plan.service, service.idleNanoseconds < service.tunnelIdleNanoseconds else { return }
        call.stream?.setTunnelIdle(service.idleNanoseconds)
        sink?.setTunnelIdle(service.idleNanoseconds)
    }
}
