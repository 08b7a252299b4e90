// One file: the route, the middlewares and the content are steps of one request, and each may end in another.

// 2–4. The request: its route, its middlewares, its content.

extension ExchangeDriver: RequestReceiver {
    // MARK: 3. The route

    func requestStarted() {
        let exchange = self.exchange
        exchange.record.started = loop.now.nanoseconds
        if !exchange.trustedProxies.isEmpty { keepForwardedFor() }
        // Only for a proxy is the scheme of an absolute URI another one than that of the connection. RFC 9110 §7.1.
        if exchange.isSecure, exchange.heldRequest.target.form != .absolute || !server.settings.isForward {
            exchange.heldRequest.target.isSecure = true
        }
        if let error = tunnelError() ?? formError() ?? clientError() ?? pathError() {
            plan = router.listenerPlan
            return failWithoutChain(error)
        }
        do throws(Pattern.LimitReached) {
            if let intercepted = server.interceptor?.plan(for: self) {
                plan = intercepted
            } else {
                plan = try router.plan(for: exchange)
                if let added = server.addedWares, !plan.isOwn { plan = added.plan(with: plan, for: exchange) }
            }
        } catch {
            // The intended route is unknown, and no other route may replace it.
            plan = router.listenerPlan
            return failWithoutChain(
                GatewayError(.gateway, .internalError, "a pattern of a route took too long to decide"))
        }
        runPlan()
    }

    /// The plan is chosen: starts the middlewares.
    func runPlan() {
        beginRecord()
        exchange.route = plan.route
        exchange.serviceNotes = plan.service?.notes
        if plan.isShare { exchange.isShare = true }
        setDeadline()
        if chain.kept > 0 || chain.hasReplays {
            inward.kept = exchange.heldRequest.content.isEmpty || mayReopenContent ? nil : []
        }
        phase = .middlewares
        runMiddlewares()
    }

    /// The fault of a request that does not belong in its tunnel.
    private func tunnelError() -> GatewayError? {
        guard let tunnel = exchange.connection.tunnel else { return nil }
        let isSecure = exchange.isSecure
        return tunnel.take(&exchange.heldRequest, isSecure: isSecure)
    }

    /// Reverse listeners take origin and absolute form, forward listeners absolute form and CONNECT. RFC 9112 §3.2.
    private func formError() -> GatewayError? {
        switch exchange.heldRequest.target.form {
        case .origin, .asterisk:
            server.settings.isForward && !exchange.isIntercepted
                ? .malformed("a proxy needs an absolute URI, such as http://example.com/") : nil
        case .authority:
            server.settings.isForward && !exchange.isIntercepted
                ? nil
                : GatewayError(.downstream, .methodNotAllowed, "CONNECT is for proxies; this is a reverse gateway")
        case .absolute: nil
        }
    }

    /// On a strict listener, refuses a path that the origin server may read differently.
    private func pathError() -> GatewayError? {
        guard server.settings.refusesAmbiguousPaths, let form = exchange.heldRequest.target.ambiguity else {
            return nil
        }
        return .malformed("the path holds \(form), which servers read differently; this listener refuses such paths")
    }

    /// Refuses the request if a trusted proxy names an unreadable client: it must not count as the proxy's own request.
    private func clientError() -> GatewayError? {
        guard !exchange.receivedForwardedFor.isEmpty,
            !ForwardedFor.isReadable(exchange.receivedForwardedFor, trusted: exchange.trustedProxies)
        else { return nil }
        return .malformed("X-Forwarded-For names a client that is not an address")
    }

    private func keepForwardedFor() {
        guard let peer = exchange.peer?.address, exchange.trustedProxies.contains(where: { $0.contains(peer) }) else {
            return
        }
        exchange.heldRequest.fields.removeTwins(of: .xForwardedFor)
        exchange.receivedForwardedFor = exchange.heldRequest.fields.listMembers(of: .xForwardedFor)
    }

    // MARK: 4. Middlewares

    /// Lends the request to the middlewares, so that other events of the exchange cannot change it.
    private func lendRequest() {
        if !exchange.isRequestLent { exchange.handRequestOver() }
    }

    /// Takes the request back from the middlewares.
    func takeRequestBack() {
        if exchange.isRequestLent { exchange.handRequestOver() }
    }

    /// Runs the middlewares from `inward.index` on, then calls upstream.
    func runMiddlewares() {
        guard inward.index < chain.middlewares.count else {
            takeRequestBack()
            return callUpstream()
        }
        // Retained once, not for each ware.
        let chain = self.chain
        let exchange = self.exchange
        lendRequest()
        if isObserved { watchRequest() }
        while inward.index < chain.middlewares.count {
            let index = inward.index
            if !chain.middlewares[index].isPlain {
                switch turn(of: index, chain) {
                case .come: break
                case .passedBy: continue
                case .stopped: return
                }
            }
            let verdict: Verdict
            do {
                verdict = try chain.middlewares[index].ware.handle(&exchange.lentRequest, in: exchange)
            } catch {
                let step = threw(error, chain.middlewares[index].label, failsOpen: chain.middlewares[index].failsOpen)
                guard step == .goesOn else { return }
                continue
            }
            if case .pass = verdict {
                guard pass(index, chain, exchange) == .goesOn else { return }
            } else if case .wait(let continuing) = verdict {
                return waitForMiddleware(continuing)
            } else {
                guard decided(verdict, chain) == .goesOn else { return }
            }
        }
        takeRequestBack()
        callUpstream()
    }

    /// The outcome of a middleware's turn before it runs.
    private enum Turn { case come, passedBy, stopped }

    /// Whether a middleware with a condition, or a need for content, runs now.
    private func turn(of index: Int, _ chain: WareChain) -> Turn {
        if let condition = chain.middlewares[index].condition {
            do throws(Pattern.LimitReached) {
                guard try condition.matches(request, in: exchange) else {
                    inward.skipped.insert(index)
                    if isObserved { noteSkipped(exchange, .request, index) }
                    inward.index = index + 1
                    return .passedBy
                }
            } catch {
                let label = chain.middlewares[index].label
                let step = threw(error, label, failsOpen: chain.middlewares[index].failsOpen)
                return step == .goesOn ? .passedBy : .stopped
            }
        }
        if let gate = chain.middlewares[index].gate {
            if gate.needsRequestContent, awaitContent() == .over { return .stopped }
            guard gate.admits(request, in: exchange) else {
                inward.skipped.insert(index)
                if isObserved { noteSkipped(exchange, .request, index) }
                inward.index = index + 1
                return .passedBy
            }
        }
        if let limit = chain.middlewares[index].whole, takeWholeContent(upTo: limit) == .over { return .stopped }
        if chain.middlewares[index].needsBeginning, awaitContent() == .over { return .stopped }
        if let editor = chain.middlewares[index].editor, takeEditableContent(by: editor) == .over { return .stopped }
        return .come
    }

    /// The request passed a ware: it continues inward, or was refused and answered.
    @inline(__always)
    private func pass(_ index: Int, _ chain: WareChain, _ exchange: Exchange, hasWaited: Bool = false) -> Aftermath {
        if isObserved { noteRequest(exchange, .passed, hasWaited: hasWaited) }
        inward.index = index + 1
        return chain.middlewares[index].isMarked ? mark(index, chain, exchange) : .goesOn
    }

    /// Handles what has to follow when the request has passed a ware.
    private func mark(_ index: Int, _ chain: WareChain, _ exchange: Exchange) -> Aftermath {
        if chain.middlewares[index].watchesAuthority, checkAuthority(index, chain, exchange) == .over { return .over }
        if chain.middlewares[index].mayReplay {
            snapshots.takeSnapshot(index, &exchange.lentRequest, filters: exchange.requestFilters.count)
        }
        return .goesOn
    }

    /// Refuses a request whose authority changed after a ware bound it: its credential is not for another authority.
    private func checkAuthority(_ index: Int, _ chain: WareChain, _ exchange: Exchange) -> Aftermath {
        guard let bound = exchange.boundAuthority else { return .goesOn }
        guard let binder = bound.ware else {
            exchange.boundAuthority?.ware = index
            return .goesOn
        }
        if bound.isAuthority(of: exchange.lentRequest.target) { return .goesOn }
        takeRequestBack()
        let (changer, injector) = (chain.middlewares[index].label, chain.middlewares[binder].label)
        // RFC 9209 §2.3.28: an error of the gateway's configuration is 500, for every client.
        fail(
            GatewayError(
                .gateway, .misconfigured,
                "\(changer) sends the request to another place than \(bound.text), for which \(injector) has put a token"
                    + " into it; put \(changer) before \(injector)"), from: index)
        return .over
    }

    /// Carries out a verdict: the request continues inward, or ends here.
    private func decided(_ verdict: consuming Verdict, _ chain: WareChain, hasWaited: Bool = false) -> Aftermath {
        let index = inward.index
        switch consume verdict {
        case .pass:
            return pass(index, chain, exchange, hasWaited: hasWaited)
        case .abort(let response):
            if isObserved { noteRequest(exchange, .aborted, status: response.status.code, hasWaited: hasWaited) }
            takeRequestBack()
            exchange.responder = response.isStored ? .cache : .ware(chain.middlewares[index].label)
            let mustCount = mustCountContent(before: response.status)
            // Moved directly into its place: each intermediate variable would copy the response.
            self.response = response
            if mustCount { countContent() } else { startAnswer(from: index - 1, last: index) }
            return .over
        case .wait(let continuing):
            waitForMiddleware(continuing)
            return .over
        }
    }

    private func waitForMiddleware(_ continuing: Continuing<HttpRequest, Verdict>) {
        takeRequestBack()
        if let hold = continuing.hold { return wait(for: hold) }
        wait(continuing, exchange.heldRequest) { driver, message, result in
            driver.lendRequest()
            driver.request = message
            driver.goOn(result)
        }
    }

    /// The hold of the request has ended.
    func holdEnded(_ then: (inout HttpRequest, Exchange) throws -> Verdict) {
        let exchange = self.exchange
        lendRequest()
        goOn(Result { try then(&exchange.lentRequest, exchange) })
    }

    /// The waiting middleware has decided.
    private func goOn(_ result: Result<Verdict, any Error>) {
        let chain = self.chain
        switch result {
        case .success(let verdict):
            if decided(verdict, chain, hasWaited: true) == .goesOn { runMiddlewares() }
        case .failure(let error):
            let step = chain.middlewares[inward.index]
            if threw(error, step.label, failsOpen: step.failsOpen) == .goesOn { runMiddlewares() }
        }
    }

    /// A ware threw: the request continues unchanged, or is answered with the error.
    private func threw(_ error: any Error, _ label: String, failsOpen: Bool) -> Aftermath {
        if isObserved { noteRequest(exchange, .failed) }
        if failsOpen {
            let index = inward.index
            inward.skipped.insert(index)
            inward.index += 1
            return chain.middlewares[index].watchesAuthority ? checkAuthority(index, chain, exchange) : .goesOn
        }
        takeRequestBack()
        // A GatewayError already carries its own fault, such as content that is too large.
        exchange[ThrownByWare.self] = ThrownByWare(label: label, error: error)
        let fault = error as? GatewayError ?? GatewayError(.gateway, .wareFailed, "\(label) failed: \(error)")
        fail(fault, from: inward.index - 1)
        return .over
    }

    // MARK: Content

    /// Collects all content into `request.content.bytes`, waiting for the missing part.
    private func takeWholeContent(upTo limit: Int) -> Aftermath {
        if request.content.isEmpty { return .goesOn }
        if request.content.bytes == nil {
            request.content.limit(to: limit)
            if inward.isWhole { takeHeld(into: &request.content) }
        }
        let count = request.content.bytes?.count ?? max(request.content.length ?? 0, inward.held.count)
        guard count <= limit else {
            contentTooLarge(limit)
            return .over
        }
        if request.content.isEmpty || request.content.bytes != nil { return .goesOn }
        takeRequestBack()
        phase = .collectingRequest
        setDeadline()
        if askForContent() == .goesOn { sink?.resumeRequest() }
        return .over
    }

    /// Collects the content into `request.content.bytes` if the ware edits it and its size is within the limit.
    private func takeEditableContent(by editor: any ContentEditor) -> Aftermath {
        guard !request.content.isEmpty, request.upgrade == nil,
            let limit = editor.contentLimit(of: request, in: exchange)
        else { return .goesOn }
        if request.content.bytes != nil { return settleRequestFilters() }
        guard inward.triedEditor != inward.index else { return .goesOn }
        inward.triedEditor = inward.index
        guard request.content.length ?? 0 <= limit, inward.held.count <= limit else { return .goesOn }
        if inward.isWhole {
            takeHeld(into: &request.content)
            return settleRequestFilters()
        }
        inward.wantedByEditor = limit
        takeRequestBack()
        phase = .collectingRequest
        setDeadline()
        if askForContent() == .goesOn { sink?.resumeRequest() }
        return .over
    }

    /// Passes complete content through the filters of earlier wares, which must not see later changes.
    private func settleRequestFilters() -> Aftermath {
        guard !exchange.requestFilters.isEmpty, let bytes = request.content.bytes else { return .goesOn }
        takeRequestBack()
        let isDone = filterInTurns(ContentPath(whole: bytes, exchange.requestFilters), upTo: .max) { driver, filtered in
            driver.exchange.requestFilters.removeAll()
            // A filter must not see the content twice: the request cannot be replayed from a ware further out.
            driver.call.hasSentContent = true
            driver.exchange.heldRequest.content.bytes = filtered
            driver.exchange.heldRequest.content.extent = .length(filtered.count)
            return .goesOn
        } then: {
            $0.runMiddlewares()
        }
        guard isDone == .goesOn else { return .over }
        lendRequest()
        return .goesOn
    }

    /// Passes whole content of the request through filters, each step in a turn of the loop, so that long content does not keep the
    /// loop busy. `body` gets the output, of at most `limit` bytes. If it takes more than one turn, `.over` is returned, and after
    /// `body` has returned `.goesOn`, `then` continues.
    func filterInTurns(
        _ whole: ContentPath, upTo limit: Int, _ body: @escaping (ExchangeDriver, [UInt8]) -> Aftermath,
        then: @escaping (ExchangeDriver) -> Void
    ) -> Aftermath {
        inward.filtered = nil
        do {
            try whole.step()
        } catch {
            filterFailed(error)
            return .over
        }
        guard whole.heldCount <= limit else {
            contentTooLarge(limit)
            return .over
        }
        if whole.isFiltered { return body(self, whole.takeOutput()) }
        inward.filtered = whole
        transport.patience.add { [weak self] in
            guard let self, inward.filtered === whole, phase == .middlewares else { return }
            transport.inEvent {
                if self.filterInTurns(whole, upTo: limit, body, then: then) == .goesOn { then(self) }
            }
        }
        return .over
    }

    /// The content exceeds the editor's limit: the ware runs without it, and the content streams on.
    private func editableOutgrew() {
        inward.wantedByEditor = nil
        phase = .middlewares
        if inward.held.count >= 65536 { sink?.pauseRequest() }
        runMiddlewares()
    }

    /// Whether the rest of the content decides if the client gets that response: a ware limits the content, its length is unknown, and no
    /// other code reads it. A client that waits for 100 (Continue) sends none, and a refusal does not wait.
    private func mustCountContent(before status: HttpStatus) -> Bool {
        guard exchange.heldRequest.content.limit != nil, exchange.heldRequest.content.extent == .unknown,
            status.code < 400, !outward.isBackground
        else { return false }
        return !exchange.heldRequest.expectsContinue || inward.hasSentContinue || exchange.record.requestBytes > 0
    }

    /// Holds the response until all content is counted.
    private func countContent() {
        guard checkLimit() == .goesOn else { return }
        inward.held = []
        inward.kept = nil
        phase = .countingRequest
        if inward.isWhole { return contentCounted() }
        setDeadline()
        sink?.resumeRequest()
    }

    /// All content has arrived and is within its limit.
    private func contentCounted() { startAnswer(from: inward.index - 1, last: inward.index) }

    /// Uses the held bytes as the content.
    private func takeHeld(into content: inout HttpContent) {
        content.bytes = inward.held.isEmpty ? nil : inward.held
        content.extent = inward.held.isEmpty ? .none : .length(inward.held.count)
        inward.held = []
    }

    /// Sends 100 (Continue) to a client that waits for it, because the content is needed here. RFC 9110 §10.1.1.
    func askForContent() -> Aftermath {
        guard exchange.heldRequest.expectsContinue, !inward.hasSentContinue, !inward.isWhole else { return .goesOn }
        inward.hasSentContinue = true
        sink?.sendInterim(HttpResponse(.continue))
        return aftermath
    }

    var requestRelay: SocketConnection? {
        // Taps, filters and limits do not see relayed bytes.
        guard tap == nil,
            phase == .tunnel && call.path == nil
                || call.isForwarding && inward.kept == nil && call.path == nil && !inward.isRefused
                    && exchange.heldRequest.content.limit == nil
        else { return nil }
        return call.stream?.relayTarget
    }

    func requestRelayed(_ count: Int) {
        exchange.record.requestBytes += count
        call.hasSentContent = true
        call.stream?.contentRelayed()
        if call.stream?.isBlocked == true { sink?.pauseRequest() }
    }

    func requestContent(_ bytes: UnsafeRawBufferPointer) {
        if inward.isRefused { return }
        exchange.record.requestBytes += bytes.count
        tap?.requestContent(bytes)
        if let limit = exchange.isRequestLent ? request.content.limit : exchange.heldRequest.content.limit,
            exchange.record.requestBytes > limit
        {
            return contentTooLarge(limit)
        }
        if inward.kept != nil { keep(bytes) }
        switch phase {
        case .awaitingResponse, .responseWares, .collectingResponse, .streaming:
            if call.isForwarding { _ = forward(bytes) }
        case .middlewares, .collectingRequest, .connecting:
            inward.held.append(contentsOf: bytes)
            if let limit = inward.wantedByEditor, inward.held.count > limit { return editableOutgrew() }
            if phase != .collectingRequest, inward.held.count >= 65536 { sink?.pauseRequest() }
        case .awaitingContent:
            inward.held.append(contentsOf: bytes)
            awaitedContentCame()
        case .replaying:
            if inward.kept == nil { giveUpReplay() }
        case .countingRequest, .awaitingRequest, .tunnel, .ended: break
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        guard let count = inward.kept?.count, count + bytes.count <= chain.kept else {
            inward.kept = nil
            exchange.record.outgrewKept = true
            return
        }
        inward.kept?.append(contentsOf: bytes)
    }

    func contentTooLarge(_ limit: Int) {
        inward.isRefused = true
        fail(GatewayError(.downstream, .contentTooLarge, "the content is larger than \(limit) bytes"))
    }

    /// Refuses content that has already arrived if it exceeds a limit that a ware set later.
    func checkLimit() -> Aftermath {
        guard let limit = exchange.heldRequest.content.limit, !exchange.heldRequest.content.isEmpty,
            exchange.heldRequest.content.bytes?.count ?? exchange.record.requestBytes > limit
        else { return .goesOn }
        contentTooLarge(limit)
        return .over
    }

    func requestEnded(_ trailers: HttpFields?) {
        inward.isWhole = true
        tap?.requestEnded(trailers)
        if trailers != nil || inward.trailers != nil { inward.trailers = trailers }
        switch phase {
        case .collectingRequest:
            phase = .middlewares
            inward.wantedByEditor = nil
            takeHeld(into: &exchange.heldRequest.content)
            runMiddlewares()
        case .awaitingContent: contentAwaited()
        case .countingRequest: contentCounted()
        case .awaitingResponse, .responseWares, .collectingResponse, .streaming:
            if call.isForwarding { _ = forwardEnd() }
        case .replaying: if !outward.isReplayTimed { replayWhenWhole() }
        case .middlewares, .connecting, .awaitingRequest, .tunnel, .ended: break
        }
    }

    // MARK: Faults of the client

    /// The head or the rest of the request is unreadable. For a head, only the listener's postwares run, and only for a response.
    func requestFailed(_ error: GatewayError, isAnswered: Bool) {
        guard phase != .ended else { return }
        if phase == .awaitingRequest {
            exchange.record.started = loop.now.nanoseconds
            plan = router.listenerPlan
            if isAnswered { return failWithoutChain(error) }
            beginRecord()
            phase = .responseWares
        } else {
            inward.isRefused = true
            if isAnswered { return fail(error) }
        }
        sink = nil
        exchange.failure = error
        end(.cutOff)
    }

    func failWithoutChain(_ error: GatewayError) {
        beginRecord()
        fail(error, from: -1)
    }

    func clientLeft() {
        guard phase != .ended, !goesOnWithoutClient() else { return }
        sink = nil
        exchange.failure = exchange.failure ?? GatewayError(.downstream, .clientLeft, "the client left")
        end(.clientLeft)
    }
}
