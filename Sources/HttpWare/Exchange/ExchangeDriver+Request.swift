// 2–4. The request: its route, its middlewares, its content.

extension ExchangeDriver: RequestHandler {
    // MARK: 3. The route

    func requestStarted() {
        exchange.record.started = loop.now.nanoseconds
        if !exchange.trustedProxies.isEmpty { keepForwardedFor() }
        if let error = formError() {
            plan = server.router.listenerPlan
            return failWithoutChain(error)
        }
        plan = server.router.plan(for: exchange.request, captures: &exchange.captures)
        if !chain.observers.isEmpty { exchange.record.startedAt = loop.wallNow() }
        exchange.route = plan.route
        exchange.service = plan.service?.name
        if let total = plan.service?.timeouts.total { startTotalTimer(total) }
        if chain.kept > 0 || chain.hasReplays { kept = exchange.request.content.isEmpty ? nil : [] }
        if passed.count != chain.middlewares.count { passed = [Bool](repeating: false, count: chain.middlewares.count) }
        phase = .middlewares
        runMiddlewares()
    }

    /// Reverse listeners take origin and absolute form, forward listeners absolute form and CONNECT. RFC 9112 §3.2.
    private func formError() -> GatewayError? {
        switch exchange.request.target.form {
        case .origin, .asterisk:
            server.settings.isForward
                ? .malformed("a proxy needs an absolute URI, such as http://example.com/") : nil
        case .authority:
            server.settings.isForward
                ? nil
                : GatewayError(.downstream, .methodNotAllowed, "CONNECT is for proxies; this is a reverse gateway")
        case .absolute: nil
        }
    }

    private func keepForwardedFor() {
        guard let peer = exchange.peer?.address, exchange.trustedProxies.contains(where: { $0.contains(peer) }) else {
            return
        }
        exchange.receivedForwardedFor = exchange.request.fields.listMembers(of: .xForwardedFor)
    }

    func startTotalTimer(_ total: Duration) {
        totalTimer?.cancel()
        totalTimer = loop.schedule(after: total) { [weak self] in
            guard let self else { return }
            self.totalTimer = nil
            self.transport.inEvent { self.totalTimeout() }
        }
    }

    // MARK: 4. Middlewares

    /// Asks the middlewares from `requestIndex` on, then goes upstream.
    func runMiddlewares() {
        let chain = self.chain
        guard requestIndex < chain.middlewares.count else { return callUpstream() }
        swap(&request, &exchange.request)
        while requestIndex < chain.middlewares.count {
            let index = requestIndex
            if let condition = chain.middlewares[index].condition, !condition.matches(request) {
                passed[index] = false
                if chain.observesWares {
                    note(chain.middlewares[index].label, .skipped, isResponse: false, since: loop.tick())
                }
                requestIndex = index + 1
                continue
            }
            if let limit = chain.middlewares[index].whole, !takeWholeContent(upTo: limit) { return }
            if chain.observesWares { wareStarted = loop.tick().nanoseconds }
            let verdict: Verdict
            do {
                verdict = try chain.middlewares[index].ware.handle(&request, in: exchange)
            } catch {
                if threw(error, chain.middlewares[index].label, failsOpen: chain.middlewares[index].failsOpen) {
                    continue
                }
                return
            }
            if case .wait(let continuing) = verdict { return waitForMiddleware(continuing) }
            guard decided(verdict, chain) else { return }
        }
        swap(&request, &exchange.request)
        callUpstream()
    }

    /// Takes a verdict; true when the request goes on inward.
    private func decided(_ verdict: Verdict, _ chain: WareChain) -> Bool {
        let index = requestIndex
        switch verdict {
        case .pass:
            if chain.observesWares { note(chain.middlewares[index].label, .pass, isResponse: false) }
            passed[index] = true
            if chain.middlewares[index].mayReplay { snapshot(index) }
            requestIndex = index + 1
            return true
        case .abort(let response):
            if chain.observesWares { note(chain.middlewares[index].label, .abort, isResponse: false) }
            swap(&request, &exchange.request)
            exchange.responder = .ware(chain.middlewares[index].label)
            answer(with: response, from: index - 1)
            return false
        case .wait(let continuing):
            waitForMiddleware(continuing)
            return false
        }
    }

    private func snapshot(_ index: Int) {
        snapshots.removeAll { $0.index >= index }
        snapshots.append((index, request))
    }

    private func waitForMiddleware(_ continuing: Continuing<HttpRequest, Verdict>) {
        let message = request
        wait(continuing, message) { driver, message, result in
            driver.request = message
            let chain = driver.chain
            switch result {
            case .success(let verdict):
                if driver.decided(verdict, chain) {
                    swap(&driver.request, &driver.exchange.request)
                    driver.runMiddlewares()
                }
            case .failure(let error):
                let step = chain.middlewares[driver.requestIndex]
                if driver.threw(error, step.label, failsOpen: step.failsOpen) {
                    swap(&driver.request, &driver.exchange.request)
                    driver.runMiddlewares()
                }
            }
        }
    }

    /// A ware could not do its work; true when the request goes on all the same.
    private func threw(_ error: any Error, _ label: String, failsOpen: Bool) -> Bool {
        if chain.observesWares { note(label, .failed, isResponse: false) }
        if failsOpen {
            passed[requestIndex] = false
            requestIndex += 1
            return true
        }
        swap(&request, &exchange.request)
        // A GatewayError says itself what it is, such as content that is too large.
        let fault = error as? GatewayError ?? GatewayError(.gateway, .wareFailed, "\(label) failed: \(error)")
        fail(fault, from: requestIndex - 1)
        return false
    }

    /// Records what a ware did.
    func note(_ label: String, _ decision: ExchangeRecord.Decision, isResponse: Bool, since: LoopInstant? = nil) {
        let now = loop.tick().nanoseconds
        exchange.record.wares.append(
            ExchangeRecord.WareStep(
                label: label, isResponse: isResponse, decision: decision,
                duration: now - (since?.nanoseconds ?? wareStarted)))
    }

    // MARK: Content

    /// Whether all of the content is in `request.content.bytes`; if not, it is waited for.
    private func takeWholeContent(upTo limit: Int) -> Bool {
        if request.content.isEmpty || request.content.bytes != nil { return true }
        request.content.limit(to: limit)
        if isRequestWhole {
            request.content.bytes = held
            request.content.extent = held.isEmpty ? .none : .length(held.count)
            held = []
            return true
        }
        let length = request.content.length ?? 0
        swap(&request, &exchange.request)
        guard length <= limit else {
            fail(
                GatewayError(.downstream, .contentTooLarge, "the content is larger than \(limit) bytes"),
                from: requestIndex - 1)
            return false
        }
        phase = .collectingRequest
        if exchange.request.expectsContinue {
            exchange.request.expectsContinue = false
            sink?.sendInterim(HttpResponse(.continue))
        }
        sink?.resumeRequest()
        return false
    }

    func requestContent(_ bytes: UnsafeRawBufferPointer) {
        exchange.record.requestBytes += bytes.count
        let isWithMiddlewares = phase == .middlewares
        if let limit = isWithMiddlewares ? request.content.limit : exchange.request.content.limit,
            exchange.record.requestBytes > limit
        {
            return contentTooLarge(limit)
        }
        if kept != nil { keep(bytes) }
        switch phase {
        case .awaitingResponse, .responseWares, .collectingResponse, .streaming:
            if upstream != nil { forward(bytes) }
        case .middlewares, .collectingRequest, .connecting:
            held.append(contentsOf: bytes)
            if phase != .collectingRequest, held.count >= 65536 { sink?.pauseRequest() }
        case .replaying, .awaitingRequest, .tunnel, .ended: break
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        guard let count = kept?.count, count + bytes.count <= chain.kept else {
            kept = nil
            return
        }
        kept?.append(contentsOf: bytes)
    }

    private func contentTooLarge(_ limit: Int) {
        switch phase {
        case .streaming, .responseWares, .collectingResponse:
            // The response is under way: the request cannot go on, and its response cannot be trusted.
            end(.cutOff)
        case .ended: break
        default:
            if phase == .middlewares { swap(&request, &exchange.request) }
            let passedTo =
                phase == .middlewares || phase == .collectingRequest ? requestIndex - 1 : chain.middlewares.count - 1
            fail(
                GatewayError(.downstream, .contentTooLarge, "the content is larger than \(limit) bytes"), from: passedTo
            )
        }
    }

    func requestEnded(_ trailers: HttpFields?) {
        isRequestWhole = true
        requestTrailers = trailers
        switch phase {
        case .collectingRequest:
            phase = .middlewares
            exchange.request.content.bytes = held
            exchange.request.content.extent = held.isEmpty ? .none : .length(held.count)
            held = []
            runMiddlewares()
        case .awaitingResponse, .responseWares, .collectingResponse, .streaming:
            if upstream != nil { forwardEnd() }
        case .replaying: replayWhenWhole()
        case .middlewares, .connecting, .awaitingRequest, .tunnel, .ended: break
        }
    }

    // MARK: Faults of the client

    /// The head could not be read, or the rest of the request cannot be: only the listener's postwares run for a head.
    func requestFailed(_ error: GatewayError) {
        switch phase {
        case .awaitingRequest:
            exchange.record.started = loop.now.nanoseconds
            plan = server.router.listenerPlan
            failWithoutChain(error)
        case .ended: break
        case .streaming, .tunnel: end(.cutOff)
        case .middlewares:
            if task != nil {
                giveUpWaiting()
            }
            swap(&request, &exchange.request)
            fail(error, from: requestIndex - 1)
        default: fail(error)
        }
    }

    private func failWithoutChain(_ error: GatewayError) {
        if passed.count != chain.middlewares.count { passed = [Bool](repeating: false, count: chain.middlewares.count) }
        fail(error, from: -1)
    }

    func clientLeft() {
        sink = nil
        exchange.failure = exchange.failure ?? GatewayError(.downstream, .clientLeft, "the client left")
        end(.clientLeft)
    }
}
