// 5. The upstream call: the request and its content. `+Attempts` chooses endpoints and connections.

extension ExchangeDriver {
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
        call.attempts.goUpstream()
        call.tryStarted = loop.now.nanoseconds
        phase = .connecting
        if exchange.hedging != nil { beginHedging() }
        connect(service)
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

    // MARK: The request

    func sendRequest(_ connection: any UpstreamStream, _ service: UpstreamService) {
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
        if exchange.heldRequest.fields.present & KnownField.expect.bit != 0, !isStreamed || inward.hasSentContinue {
            // The content is sent at once, or there is none, so there is nothing to wait for. RFC 9110 §10.1.1.
            exchange.heldRequest.fields.removeContinue()
            outgoing?.request.fields.removeContinue()
            exchange.heldRequest.expectsContinue = false
        }
        options.framing = .ofRequest(
            sending: extent, method: exchange.heldRequest.method,
            statesLength: exchange.heldRequest.fields.statesLength,
            keepsLength: exchange.requestFilters.allSatisfy { $0.keepsLength })
        var stated: Int?
        if case .length(let length) = extent, case .length = options.framing { stated = length }
        tap?.requestSent(exchange, host: options.host, tls: connection.tls?.facts)
        send(options, on: connection, service, to: self)
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

    /// Sends the head of the request.
    @inline(__always)
    func send(
        _ options: HeadEncoder.RequestOptions, on stream: any UpstreamStream, _ service: UpstreamService,
        to receiver: any ResponseReceiver
    ) {
        stream.send(
            requestOf: exchange, options, receiver: receiver,
            responseTimeout: withinTry(exchange.timeouts.response?.nanoseconds ?? service.responseNanoseconds),
            idleTimeout: exchange.timeouts.idle?.nanoseconds ?? service.idleNanoseconds)
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

    // MARK: The content once more

    /// The facts about the request that `ResendRule` needs.
    var resendFacts: ResendRule.Facts {
        let isForHttp1 = !exchange.heldRequest.needsHttp2 && exchange.heldRequest.upgrade == nil
        return ResendRule.Facts(
            isIdempotent: exchange.heldRequest.method.isIdempotent,
            hasContent: !inward.isRefused && (hasSentContentAtHand || mayStartContentOver),
            mayUseHttp1: isForHttp1 && call.endpoint?.negotiates == true)
    }

    /// Whether everything that was sent of the content is here, to be sent once more.
    var hasSentContentAtHand: Bool {
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

    /// Whether a ware can have the request sent again with its content from the beginning, though nothing of it is kept.
    var mayReopenContent: Bool { inward.mayStartOver && tap == nil }

    /// Asks the client for the content from its beginning.
    func startContentOver() {
        inward.isWhole = false
        inward.held = []
        inward.trailers = nil
        if inward.kept != nil { inward.kept = [] }
        exchange.record.requestBytes = 0
        call.hasSentContent = false
        sink?.startRequestOver()
    }

    // MARK: Tunnels

    func openTunnel(_ connection: any UpstreamStream, _ service: UpstreamService) {
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
