// One file: halves, replays, postwares and content are steps of one response, and each may end in another.

// 6–8. The response: response halves, postwares, and its content.

extension ExchangeDriver: ResponseReceiver {
    // MARK: 6. From upstream

    func responseInterim(_ response: inout HttpResponse) {
        guard phase == .awaitingResponse else { return }
        let isBare = exchange.tokenSwaps?.scrubs == true
        if isBare, response.status != .continue { return }
        if response.status == .continue {
            // 100 may have been sent already: by the gateway, or for an earlier attempt.
            if inward.hasSentContinue { return }
            inward.hasSentContinue = true
        }
        // An interim response is not searched for tokens, so only its status is forwarded.
        if isBare { sink?.sendInterim(HttpResponse(.continue)) } else { sink?.sendInterim(response) }
    }

    func responseStarted(_ arrived: inout HttpResponse) {
        if exchange.hedging == nil {
            call.attempts.leading.standing = .answered
        } else if answered(call.attempts.leading.number, arrived.status) == .over {
            return
        }
        if call.sent.isKept { call.sent.forget() }
        let asksToAuthenticate = arrived.asksToAuthenticateConnection
        swap(&response, &arrived)
        if asksToAuthenticate { responseAsksToAuthenticate() }
        exchange.responder = .upstream
        exchange.record.steps.firstByte = loop.now.nanoseconds
        if exchange.isIntercepted { response.fields.remove(TunnelFacts.altSvc) }
        if call.attempts.leading.isCounted { endpointAnswered(response.status) }
        if exchange.steering != nil { tellWatcher(.answered(response.status), call.attempts.leading) }
        exchange.heldServiceNotes?._withUnsafeGuaranteedRef {
            if $0.reachability.isDown { $0.reachability.reached() }
        }
        if let swaps = exchange.tokenSwaps, swaps.scrubs {
            do throws(GatewayError) {
                try ResponseScrub.apply(to: &response, swaps, method: exchange.heldRequest.method) {
                    exchange.filterResponseContent(with: $0)
                }
            } catch {
                return fail(error)
            }
        }
        tap?.responseReceived(response)
        if response.fields.mayContain(OriginReferences.fields), let service = plan.service, let endpoint = call.endpoint
        {
            service.rewriteReferences(
                in: &response.fields, from: endpoint, named: hostField(exchange, endpoint, service), of: exchange)
        }
        startResponse(from: chain.middlewares.count - 1)
        // A ware waits, or needs all content: the rest stays in the connection until then.
        if phase == .responseWares { call.stream?.pause() }
    }

    /// Starts the way back of a response that did not come from upstream, at the ware with that index.
    func answerClient(with response: consuming HttpResponse, from index: Int) {
        guard discardUpstream() == .goesOn else {
            response.source?.cancelled()
            return
        }
        self.response = response
        startAnswer(from: index, last: index)
    }

    /// The same for the current response, when there is no upstream stream. `last` is the last ware that ran.
    func startAnswer(from index: Int, last: Int) {
        assert(call.stream == nil)
        call.isForwarding = false
        takeSource()
        present(behind: last)
        startResponse(from: index)
    }

    /// Prepares a new response for the client: a refusal in the form that the client prefers, and the decorations of the wares
    /// behind the ware that made it.
    @inline(__always)
    private func present(behind index: Int) {
        if chain.hasDecorators || exchange.response.problem != nil { presentAnew(behind: index) }
    }

    private func presentAnew(behind index: Int) {
        let exchange = self.exchange
        if exchange.response.problem != nil {
            exchange.response.presentProblem(to: exchange.heldRequest, id: exchange.id)
        }
        for (place, ware, condition) in chain.decorators where place > index {
            if let condition, (try? condition.matchesReceived(exchange.heldRequest, from: exchange)) != true {
                continue
            }
            ware.decorate(&exchange.response, to: exchange.heldRequest, in: exchange)
        }
    }

    /// A response of the gateway carries its content: as bytes, or as a source, which then replaces the origin server.
    private func takeSource() {
        // Almost no response has a source: this first test only compares a pointer.
        guard response.rare != nil, let source = response.source else {
            if response.content.bytes == nil { response.content = .none }
            return
        }
        response.source = nil
        guard response.content.bytes == nil else { return source.cancelled() }
        call.stream = ContentStream(source, extent: response.content.extent, transport: transport, receiver: self)
    }

    /// The exchange failed: the client gets an error response, if possible, and the wares that the request passed handle it.
    func fail(_ error: GatewayError) {
        switch phase {
        case .middlewares, .collectingRequest, .awaitingContent, .countingRequest: fail(error, from: inward.index - 1)
        // The half that requested the replay has answered.
        case .replaying: fail(error, from: outward.halfIndex - 1)
        default: fail(error, from: chain.middlewares.count - 1)
        }
    }

    func fail(_ error: GatewayError, from index: Int) {
        guard phase != .ended else { return }
        if isObserved { noteGivenUp() }
        endAttempt(error.fault)
        if phase == .streaming || phase == .tunnel {
            exchange.failure = error
            return end(.cutOff)
        }
        giveUpWaiting()
        takeRequestBack()
        guard cancelUpstream() == .goesOn else { return }
        inward.held = []
        exchange.responseFilters.removeAll()
        outward.filtered = nil
        exchange.failure = error
        exchange.responder = .gateway
        let response = GatewayResponse.make(
            for: error, late: exchange.timeouts.status, isForward: server.settings.isForward)
        answerClient(with: response, from: min(index, lastPassable))
    }

    /// The outermost middleware whose response half may still run: halves that already ran must not run again.
    private var lastPassable: Int {
        switch phase {
        case .responseWares, .collectingResponse: outward.halfIndex
        case .replaying: outward.halfIndex - 1
        default: chain.middlewares.count - 1
        }
    }

    /// Abandons the connection, or the wait for one.
    private func cancelUpstream() -> Aftermath {
        call.isForwarding = false
        if exchange.hedging != nil { dropOthers() }
        call.attempts.giveUp()
        guard let upstream = call.stream else { return aftermath }
        call.stream = nil
        upstream.cancel()
        return aftermath
    }

    /// Discards the response from upstream; its connection may be reused.
    func discardUpstream() -> Aftermath {
        call.isForwarding = false
        guard let upstream = call.stream else { return .goesOn }
        call.stream = nil
        upstream.discard()
        return aftermath
    }

    private func startResponse(from index: Int) {
        if phase != .responseWares && phase != .collectingResponse { outward.postIndex = 0 }
        phase = .responseWares
        outward.halfIndex = index
        runResponseWares()
    }

    // MARK: 6–7. Response halves in reverse, then postwares

    func runResponseWares() {
        guard isObserved ? chain.seesAnyResponse : chain.seesResponses(response.status) else {
            outward.halfIndex = -1
            return deliver()
        }
        // Retained once, not for each ware.
        let chain = self.chain
        let exchange = self.exchange
        if isObserved { watchResponse() }
        if chain.hasResponseHalves {
            while outward.halfIndex > outward.halfFloor {
                let index = outward.halfIndex
                guard let half = chain.middlewares[index].responseHalf, !inward.skipped.contains(index),
                    isAsked(chain.middlewares[index].asked, exchange)
                else {
                    outward.halfIndex = index - 1
                    continue
                }
                if let limit = chain.middlewares[index].halfWhole, takeWholeResponse(upTo: limit) == .over { return }
                if let editor = chain.middlewares[index].editor, takeEditable(by: editor) == .over { return }
                guard ask(half, exchange) == .goesOn else { return }
            }
        }
        outward.halfIndex = -1
        if outward.isBackground { return deliver() }
        while outward.postIndex < chain.postwares.count {
            let index = outward.postIndex
            var isConcerned = isAsked(chain.postwares[index].asked, exchange)
            if isConcerned, !chain.postwares[index].isUnconditional, let condition = chain.postwares[index].condition {
                do throws(Pattern.LimitReached) {
                    isConcerned = try condition.matches(response, in: exchange)
                } catch {
                    let step = threw(error, chain.postwares[index].label, chain.postwares[index].failsOpen)
                    guard step == .goesOn else { return }
                    continue
                }
            }
            if isConcerned, !chain.postwares[index].isUnconditional, let gate = chain.postwares[index].gate {
                isConcerned = gate.admits(response, in: exchange)
            }
            if !isConcerned {
                if isObserved { noteSkipped(exchange, .postware, index) }
                outward.postIndex = index + 1
                continue
            }
            if let limit = chain.postwares[index].whole, takeWholeResponse(upTo: limit) == .over { return }
            if let limit = chain.postwares[index].ifWhole, takeSmallResponse(upTo: limit) == .over { return }
            if let editor = chain.postwares[index].editor, takeEditable(by: editor) == .over { return }
            guard ask(chain.postwares[index].ware, exchange) == .goesOn else { return }
        }
        deliver()
    }

    /// Whether a ware handles the response. If the exchange is observed, all wares run.
    @inline(__always)
    private func isAsked(_ statuses: ClosedRange<Int>?, _ exchange: Exchange) -> Bool {
        isObserved || statuses?.contains(exchange.response.status.code) ?? false
    }

    /// Runs one ware: then the next one follows, or the response ends here.
    @inline(__always)
    private func ask(_ ware: PostwareCall, _ exchange: Exchange) -> Aftermath {
        do {
            let answer = try ware.handle(&exchange.response, in: exchange)
            if case .pass = answer {
                if isObserved { noteResponse(exchange, .passed) }
                advance()
                return .goesOn
            }
            return decided(answer, asked.label)
        } catch {
            return threw(error, asked.label, asked.failsOpen)
        }
    }

    /// The label and failure mode of the current ware; needed only if it does more than pass.
    private var asked: (label: String, failsOpen: Bool) {
        outward.halfIndex >= 0
            ? (chain.middlewares[outward.halfIndex].label, chain.middlewares[outward.halfIndex].failsOpen)
            : (chain.postwares[outward.postIndex].label, chain.postwares[outward.postIndex].failsOpen)
    }

    @inline(__always)
    private func advance() { if outward.halfIndex >= 0 { outward.halfIndex -= 1 } else { outward.postIndex += 1 } }

    private func decided(_ answer: Answer, _ label: String, hasWaited: Bool = false) -> Aftermath {
        switch answer {
        case .pass:
            if isObserved { noteResponse(exchange, .passed, hasWaited: hasWaited) }
            advance()
            return .goesOn
        case .replace(let other):
            if isObserved { noteResponse(exchange, .replaced, status: other.status.code, hasWaited: hasWaited) }
            endAttempt()
            guard discardUpstream() == .goesOn else {
                other.source?.cancelled()
                return .over
            }
            exchange.responseFilters.removeAll()
            response = other
            takeSource()
            present(behind: outward.halfIndex)
            exchange.responder = other.isStored ? .cache : .ware(label)
            if isObserved { watch.begin(&response) }
            advance()
            return .goesOn
        case .replay(let delay):
            guard outward.halfIndex >= 0, mayReplay(outward.halfIndex) else {
                if isObserved {
                    exchange.note("could not replay")
                    noteResponse(exchange, .passed, hasWaited: hasWaited)
                }
                advance()
                return .goesOn
            }
            if isObserved { noteResponse(exchange, .replayed, status: response.status.code, hasWaited: hasWaited) }
            replay(outward.halfIndex, after: delay)
            return .over
        case .wait(let continuing):
            waitForResponse(continuing, label)
            return .over
        }
    }

    private func waitForResponse(_ continuing: Continuing<HttpResponse, Answer>, _ label: String) {
        wait(continuing, response) { driver, message, result in
            driver.response = message
            // The content waited for the ware.
            if driver.call.stream != nil { driver.exchange.record.steps.contentStarted = driver.loop.now.nanoseconds }
            let step: Aftermath
            switch result {
            case .success(let answer): step = driver.decided(answer, label, hasWaited: true)
            case .failure(let error): step = driver.threw(error, label, driver.failsOpenNow)
            }
            if step == .goesOn { driver.runResponseWares() }
        }
    }

    private var failsOpenNow: Bool {
        outward.halfIndex >= 0
            ? chain.middlewares[outward.halfIndex].failsOpen : chain.postwares[outward.postIndex].failsOpen
    }

    /// A ware threw: the response continues, unchanged or as a 502.
    private func threw(_ error: any Error, _ label: String, _ failsOpen: Bool) -> Aftermath {
        if isObserved { noteResponse(exchange, .failed) }
        if !failsOpen {
            endAttempt()
            guard discardUpstream() == .goesOn else { return .over }
            let fault = error as? GatewayError ?? GatewayError(.upstream, .wareFailed, "\(label) failed: \(error)")
            exchange[ThrownByWare.self] = ThrownByWare(label: label, error: error)
            exchange.failure = fault
            exchange.responder = .gateway
            exchange.responseFilters.removeAll()
            response = GatewayResponse.make(for: fault)
            present(behind: outward.halfIndex)
            if isObserved { watch.begin(&response) }
        }
        advance()
        return .goesOn
    }

    // MARK: Replay

    /// Whether the request can be sent again from that ware: it was kept, and the limit of attempts is not reached.
    private func mayReplay(_ index: Int) -> Bool {
        guard exchange.record.replays < ExchangeDriver.mostAttempts - 1, !inward.isRefused,
            let snapshot = snapshots[index], snapshot.isAtHand(exchange.heldRequest)
        else { return false }
        if snapshot.content.isEmpty { return true }
        // A filter from further out has seen the content, and must not see it twice.
        if call.hasSentContent, snapshot.filters > 0 { return false }
        return snapshot.content.bytes != nil || inward.kept != nil || mayReopenContent
    }

    private func replay(_ index: Int, after delay: Duration) {
        phase = .replaying
        outward.halfIndex = index
        outward.replayDelay = delay
        outward.isReplayTimed = false
        // The rest of the request after an early response was not sent upstream, so nothing more may be.
        call.isForwarding = false
        endAttempt()
        if isReplayComplete { return startReplay() }
        // The response is held until the rest of the request has arrived. If that exceeds the limit, the response continues.
        call.stream?.pause()
        guard askForContent() == .goesOn else { return }
        setDeadline()
        sink?.resumeRequest()
    }

    /// Whether the replay needs nothing more from the client.
    private var isReplayComplete: Bool {
        guard let snapshot = snapshots[outward.halfIndex] else { return true }
        return inward.isWhole || snapshot.content.isEmpty || snapshot.content.bytes != nil || mayReopenContent
    }

    /// The rest of the request has arrived.
    func replayWhenWhole() {
        if isReplayComplete { startReplay() }
    }

    /// The content exceeded the limit for kept content: the current response continues.
    func giveUpReplay() {
        guard !outward.isReplayTimed else { return }
        exchange.record.resumeAttempt(at: loop.now.nanoseconds)
        phase = .responseWares
        advance()
        runResponseWares()
    }

    /// The replay can begin: discards the response, and sends the request again after the delay.
    private func startReplay() {
        keepAttempt()
        exchange.record.replays += 1
        guard discardUpstream() == .goesOn else { return }
        call.attempts.replayed()
        exchange.responseFilters.removeAll()
        exchange.failure = nil
        guard outward.replayDelay > .zero else { return sendAgain() }
        outward.isReplayTimed = true
        exchange.record.pauseStarted = loop.now.nanoseconds
        waitNumber &+= 1
        let number = waitNumber
        setDeadline()
        // Meanwhile the rest of the client's request is read, unless it comes again.
        if !inward.mayStartOver { sink?.resumeRequest() }
        loop.schedule(after: outward.replayDelay) { [weak self] in
            guard let self, waitNumber == number, self.phase == .replaying else { return }
            self.transport.inEvent { self.sendAgain() }
        }
    }

    private func sendAgain() {
        waitNumber &+= 1
        exchange.record.endPause(at: loop.now.nanoseconds)
        // `mayReplay` has checked that the snapshot exists, and the request is not changed meanwhile.
        guard let snapshot = snapshots[outward.halfIndex], snapshot.restore(&exchange.heldRequest) else { return }
        let needsContent = !snapshot.content.isEmpty && snapshot.content.bytes == nil
        if needsContent, let whole = inward.given ?? inward.kept { inward.held = whole }
        if exchange.requestFilters.count > snapshot.filters {
            exchange.requestFilters.removeSubrange(snapshot.filters...)
        }
        inward.index = outward.halfIndex + 1
        inward.skipped.forget(from: inward.index)
        inward.triedEditor = -1
        // The restored request no longer holds a credential that a ware further in added.
        if let bound = exchange.boundAuthority, bound.ware ?? .max > outward.halfIndex { exchange.boundAuthority = nil }
        call.sent.forget()
        phase = .middlewares
        if needsContent, inward.given == nil, inward.kept == nil { startContentOver() }
        runMiddlewares()
    }

    // MARK: 8. The response goes out

    /// Collects all content into `response.content.bytes`, waiting for the missing part.
    private func takeWholeResponse(upTo limit: Int) -> Aftermath {
        // An error response of the gateway is in memory and short; refusing it would make another error.
        if response.content.isEmpty || exchange.responder == .gateway { return .goesOn }
        if let length = response.content.bytes?.count ?? response.content.length, length > limit {
            fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            return .over
        }
        if response.content.bytes != nil, exchange.responseFilters.first?.comesFirst == true {
            guard settleFilters(upTo: limit) == .goesOn else { return .over }
            return takeWholeResponse(upTo: limit)
        }
        if response.content.bytes != nil || call.stream == nil { return .goesOn }
        phase = .collectingResponse
        outward.collected = []
        response.content.limit(to: limit)
        call.stream?.resume()
        return .over
    }

    private func deliver() {
        guard let sink else { return }
        let exchange = self.exchange
        if call.stream == nil, response.content.bytes == nil, !response.content.isEmpty {
            // If the content of a response is lost, the client must not get its head.
            return fail(GatewayError(.upstream, .responseIncomplete, "the response's content is gone"))
        }
        if exchange.intervention?.isBrokenOff == true { return end(.cutOff) }
        exchange.finalStatus = response.status
        if response.status.code >= 300, takeGrpcForm() == .over { return }
        phase = .streaming
        if response.status == .switchingProtocols || isTunnelOpening { return deliverTunnel(sink) }
        if exchange.responder == .interception, let interception {
            return interception.interceptor.takeTunnel(of: self, sink)
        }
        if let bytes = response.content.bytes {
            guard discardUpstream() == .goesOn else { return }
            return deliverWhole(bytes, sink)
        }
        var extent = response.content.extent
        if case .length = extent, !exchange.responseFilters.allSatisfy(\.keepsLength) { extent = .unknown }
        let endsWithHead =
            extent == .none || response.status.hasNoContent(to: exchange.heldRequest.method)
        if endsWithHead { release() }
        guard sendHead(extent, to: sink, via: exchange.responder == .upstream) == .goesOn else { return }
        // Without content, nothing that may still come from upstream is for the client.
        if endsWithHead, discardUpstream() == .over { return }
        if call.stream == nil { return end(.completed) }
        if !exchange.responseFilters.isEmpty || exchange.intervention != nil {
            var stated: Int?
            if case .length(let length) = extent { stated = length }
            makeResponsePath(exchange.responseFilters, stated: stated)
        }
        if !outward.early.isEmpty, sendEarly() == .over { return }
        if outward.path?.isHolding != true { call.stream?.resume() }
    }

    /// Gives a refusal its form for a client of gRPC. The status of the record stays.
    private func takeGrpcForm() -> Aftermath {
        guard !exchange.goesByTarget,
            GrpcRefusal.concerns(exchange.response, by: exchange.responder, to: exchange.heldRequest)
        else { return .goesOn }
        guard discardUpstream() == .goesOn else { return .over }
        exchange.responseFilters.removeAll()
        outward.early = []
        outward.trailers = nil
        response = GrpcRefusal.form(of: exchange.response)
        return .goesOn
    }

    /// Sends the head of the response.
    @inline(__always)
    func sendHead(_ extent: HttpContent.Extent, to sink: any ResponseSink, via: Bool) -> Aftermath {
        if let mark = exchange.shareMark { mark.add(to: &exchange.response.fields) }
        if let mark = exchange.endpointKeep?.mark { mark.add(to: &exchange.response.fields) }
        tap?.responseStarted(exchange.response)
        sink.send(responseOf: exchange, extent: extent, via: via)
        return aftermath
    }

    private var isTunnelOpening: Bool {
        exchange.heldRequest.method == .connect && exchange.responder == .upstream && response.status.code / 100 == 2
    }

    private func deliverTunnel(_ sink: any ResponseSink) {
        guard let upstream = call.stream else {
            return fail(GatewayError(.upstream, .upgradeFailed, "the connection for the tunnel is gone"))
        }
        guard sendHead(.none, to: sink, via: exchange.heldRequest.method != .connect) == .goesOn else { return }
        phase = .tunnel
        if let service = plan.service {
            sink.setTunnelIdle(service.tunnelIdleNanoseconds)
            upstream.setTunnelIdle(service.tunnelIdleNanoseconds)
        }
        makeTunnelPaths()
        sink.startTunnel()
        guard phase == .tunnel else { return }
        upstream.resume()
        if outward.upstreamEndedTunnel { sink.endTunnel() }
    }

    private func deliverWhole(_ bytes: [UInt8], _ sink: any ResponseSink) {
        if response.rare != nil, let trailers = response.trailers { outward.trailers = trailers }
        dropUntrueTrailers()
        if exchange.responseFilters.isEmpty { return sendWhole(bytes, unfiltered: bytes.count, to: sink) }
        let intervention = exchange.intervention
        filterWhole(
            ContentPath(
                whole: bytes, exchange.responseFilters, pace: intervention?.responsePace, cut: intervention?.cut))
    }

    /// The maximum output of filters that is held because its length goes into the head, beyond the length of their input.
    private static let mostGrowth = 4 << 20

    /// Takes the next step of whole content through the filters. Each step has a turn of the loop, so that long content does not
    /// keep the loop busy; the head waits, because the length of the result is in it.
    private func filterWhole(_ whole: ContentPath) {
        guard let sink else { return }
        outward.filtered = nil
        do {
            try whole.step()
            if whole.isFiltered {
                phase = .streaming
                return sendWhole(whole.takeOutput(), unfiltered: whole.taken, to: sink)
            }
        } catch {
            let fault = GatewayError.ofResponseFilter(error)
            exchange.failure = fault
            exchange.responder = .gateway
            response = GatewayResponse.make(for: fault)
            present(behind: -1)
            exchange.finalStatus = response.status
            guard takeGrpcForm() == .goesOn else { return }
            phase = .streaming
            let bytes = response.content.bytes ?? []
            return sendWhole(bytes, unfiltered: bytes.count, to: sink)
        }
        if whole.heldCount > whole.taken + ExchangeDriver.mostGrowth { return streamWhole(whole, to: sink) }
        phase = .collectingResponse
        outward.filtered = whole
        transport.patience.add { [weak self] in
            guard let self, self.outward.filtered === whole, self.phase == .collectingResponse else { return }
            self.transport.inEvent { self.filterWhole(whole) }
        }
    }

    /// The output of the filters is too long to be held: it streams, and its length stays unknown.
    private func streamWhole(_ whole: ContentPath, to sink: any ResponseSink) {
        phase = .streaming
        outward.path = whole
        response.content.bytes = nil
        exchange.record.unfilteredBytes += whole.taken
        let hasContent = !response.status.hasNoContent(to: exchange.heldRequest.method)
        if !hasContent { release() }
        guard sendHead(.unknown, to: sink, via: exchange.responder == .upstream) == .goesOn else { return }
        guard hasContent else { return end(.completed) }
        move(.down)
    }

    private func sendWhole(_ bytes: [UInt8], unfiltered: Int, to sink: any ResponseSink) {
        let extent =
            response.rare == nil || response.trailers == nil ? HttpContent.Extent.length(bytes.count) : .unknown
        release()
        guard sendHead(extent, to: sink, via: exchange.responder == .upstream) == .goesOn else { return }
        if !response.status.hasNoContent(to: exchange.heldRequest.method) {
            exchange.record.unfilteredBytes += unfiltered
            if exchange.intervention?.changesResponse == true {
                makeResponsePath([], stated: bytes.count)
                guard let path = outward.path else { return }
                return feed(.down, path) { path in
                    try bytes.withUnsafeBytes { try path.take($0) }
                    try path.end()
                }
            }
            exchange.record.responseBytes += bytes.count
            bytes.withUnsafeBytes {
                tap?.responseContent($0)
                sink.sendContent($0)
            }
        }
        transport.output.flush()
        end(.completed)
    }

    // MARK: Content

    var responseRelay: SocketConnection? {
        // Taps and filters do not see relayed bytes.
        if tap != nil { return nil }
        return switch phase {
        case .tunnel: outward.path == nil ? sink?.relayTarget : nil
        case .streaming: outward.path == nil && response.content.limit == nil ? sink?.relayTarget : nil
        default: nil
        }
    }

    func responseEnding() { release() }

    func responseRelayed(_ count: Int) {
        exchange.record.unfilteredBytes += count
        exchange.record.responseBytes += count
        if sink?.isBlocked == true { call.stream?.pause() }
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) { responseContent(bytes, isSeen: false) }

    /// Takes response content. `isSeen` means that taps have already seen it.
    func responseContent(_ bytes: UnsafeRawBufferPointer, isSeen: Bool) {
        switch phase {
        case .streaming:
            guard let sink else { return }
            exchange.record.unfilteredBytes += bytes.count
            if let limit = response.content.limit, exchange.record.unfilteredBytes > limit {
                return fail(
                    GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            }
            if response.content.length == exchange.record.unfilteredBytes { release() }
            if let tap, !isSeen, exchange.tokenSwaps?.scrubs != true { tap.receivedContent(bytes) }
            if let path = outward.path { return feed(.down, path) { try $0.take(bytes) } }
            exchange.record.responseBytes += bytes.count
            tap?.responseContent(bytes)
            sink.sendContent(bytes)
            if bytes.count > OutputBatch.smallPiece { transport.output.flush() }
            if sink.isBlocked, exchange.sharer?.keepsPace != true {
                call.stream?.pause()
                waitForOthersIfAhead()
            }
        case .collectingResponse where outward.filtered == nil:
            if let tap, exchange.tokenSwaps?.scrubs != true { tap.receivedContent(bytes) }
            outward.collected.append(contentsOf: bytes)
            if outward.wantedIfWhole != nil { return smallResponseCame() }
            if let limit = response.content.limit, outward.collected.count > limit {
                fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            }
        case .responseWares where !outward.early.isEmpty:
            outward.early.append(contentsOf: bytes)
        default: break
        }
    }

    /// Removes digests that followed content which a filter changed: they describe other bytes. RFC 9530 §2.
    private func dropUntrueTrailers() {
        guard outward.trailers != nil,
            exchange.isResponseContentChanged || exchange.responseFilters.contains(where: { !$0.keepsLength })
        else { return }
        for name in HttpFields.digests { outward.trailers?.remove(name) }
    }

    func responseEnded(_ trailers: HttpFields?) {
        call.stream = nil
        call.isForwarding = false
        call.attempts.leading.leave()
        if trailers != nil || outward.trailers != nil { outward.trailers = trailers }
        if response.rare != nil, let own = response.trailers { outward.trailers = own }
        if outward.trailers != nil {
            dropUntrueTrailers()
            if let swaps = exchange.tokenSwaps, var trailers = outward.trailers {
                ResponseScrub.scrub(&trailers, swaps)
                outward.trailers = trailers
            }
        }
        tap?.responseEnded(outward.trailers)
        switch phase {
        case .streaming:
            if let path = outward.path { feed(.down, path) { try $0.end() } } else { end(.completed) }
        case .responseWares where !outward.early.isEmpty:
            response.content.bytes = outward.early
            response.content.extent = .length(outward.early.count)
            outward.early = []
        case .collectingResponse where outward.filtered == nil:
            if outward.wantedIfWhole != nil {
                outward.wantedIfWhole = nil
                outward.isWantedByEditor = false
                pauseTimer?.clear()
            }
            phase = .responseWares
            endAttempt()
            response.content.bytes = outward.collected.isEmpty ? nil : outward.collected
            response.content.extent = outward.collected.isEmpty ? .none : .length(outward.collected.count)
            outward.collected = []
            runResponseWares()
        default: break
        }
    }

    func downstreamDrained() {
        // While wares run, the content waits for them, not for the client.
        if phase == .streaming || phase == .tunnel { askForMore(.down) }
    }
}
