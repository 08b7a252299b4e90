// The guard: while placeholders of tokens are in use, each request is searched for them before it goes upstream.

extension ExchangeDriver {
    /// The maximum content that is held back until it is known to contain no placeholder.
    private static let mostHeld = 1 << 20
    /// If a client pauses this long, it waits for a response: its content then streams.
    static let pauseOfContent = Duration.milliseconds(50)
    /// Content that arrives without a pause streams after this time.
    private static let longestHold = Duration.seconds(1)

    // MARK: The start of the content

    /// Waits until the content is complete, exceeds the limit for held content, or pauses. Once per exchange.
    func awaitContent() -> Aftermath {
        let content = exchange.isRequestLent ? request.content : exchange.heldRequest.content
        guard !inward.hasAwaited, !inward.isWhole, !content.isEmpty, content.bytes == nil,
            inward.held.count < ExchangeDriver.mostHeld
        else { return .goesOn }
        takeRequestBack()
        phase = .awaitingContent
        inward.awaitedSince = loop.now.nanoseconds
        setDeadline()
        watchPauseOfContent()
        if askForContent() == .goesOn { sink?.resumeRequest() }
        return .over
    }

    private func watchPauseOfContent() {
        let timer = requestPauseTimer ?? LoopTimer(loop: loop, handler: self)
        requestPauseTimer = timer
        timer.set(after: ExchangeDriver.pauseOfContent)
    }

    /// More awaited content has arrived.
    func awaitedContentCame() {
        let hasWaited = loop.now.nanoseconds - inward.awaitedSince > ExchangeDriver.longestHold.nanoseconds
        if inward.held.count >= ExchangeDriver.mostHeld || hasWaited { return contentAwaited() }
        watchPauseOfContent()
    }

    /// The wait has ended: the content is complete, reached the limit, or paused.
    func contentAwaited() {
        guard phase == .awaitingContent else { return }
        requestPauseTimer?.clear()
        inward.hasAwaited = true
        phase = .middlewares
        if !inward.isWhole, inward.held.count >= 65536 { sink?.pauseRequest() }
        runMiddlewares()
    }

    /// The request content received so far, and whether it is complete.
    var contentSoFar: (bytes: [UInt8], isWhole: Bool) {
        let content = exchange.isRequestLent ? request.content : exchange.heldRequest.content
        if let bytes = content.bytes { return (bytes, true) }
        if let kept = inward.kept ?? inward.given, call.hasSentContent { return (kept, inward.isWhole) }
        return (inward.held, inward.isWhole || content.isEmpty)
    }

    // MARK: The search

    /// Asks the guard about the request, before it goes upstream.
    func searchForPlaceholders(_ watch: any PlaceholderWatch) -> Aftermath {
        if awaitContent() == .over { return .over }
        let exchange = self.exchange
        let judge = RequestGuard(exchange.tokenSwaps)
        exchange.requestFilters.removeAll { $0 is SearchedContent }
        let hasFilters = !exchange.requestFilters.isEmpty
        let content = contentSoFar
        let decision: RequestGuard.Decision
        do {
            decision = try judge.judge(
                &exchange.heldRequest, trailers: inward.trailers, isWhole: content.isWhole && !hasFilters)
        } catch {
            refuse(error, watch)
            return .over
        }
        let swaps = judge.swaps
        if !swaps.used.isEmpty || swaps.sentFilter != nil { exchange.tokenSwaps = swaps }
        switch decision {
        case .passes(nil): return .goesOn
        case .passes(let search?):
            exchange.tokenSwaps = swaps
            exchange.filterRequestContent(with: search)
            return .goesOn
        case .searches(let search):
            let used = swaps.used.count
            return filterInTurns(ContentPath(whole: content.bytes, [search]), upTo: RequestGuard.mostReplaced) {
                driver, searched in
                guard swaps.used.count > used || searched != content.bytes else { return .goesOn }
                judge.settle(searched, from: search, of: driver.exchange.heldRequest)
                driver.exchange.tokenSwaps = swaps
                return .goesOn
            } then: { driver in
                if let service = driver.plan.service { driver.callSearched(service) }
            }
        }
    }

    /// Whether the trailers of streamed content hold no placeholder; if they do, the request is refused.
    func trailersArePassable() -> Bool {
        guard let watch = server.placeholders, let trailers = inward.trailers else { return true }
        do {
            try RequestSearch(exchange.tokenSwaps?.swaps ?? []).searchTrailers(trailers)
            return true
        } catch {
            refuse(error, watch)
            return false
        }
    }

    // MARK: Refusing

    /// Refuses a request with a placeholder in the wrong place, or one that cannot be searched: either no part of it has gone upstream,
    /// or it is cut off before the placeholder.
    func refuse(_ error: any Error, _ watch: any PlaceholderWatch) {
        inward.isRefused = true
        guard let fault = error as? PlaceholderFault else {
            let known = error as? GatewayError
            return fail(known ?? GatewayError(.downstream, .requestMalformed, "\(error)"))
        }
        let reason = fault.reason(
            of: watch.credential(of: fault.placeholder),
            isElsewhere: exchange.placeholdersElsewhere.contains(fault.placeholder),
            host: exchange.heldRequest.host ?? "the host")
        watch.refused(fault.placeholder, reason, exchange)
        fail(GatewayError(.downstream, .requestDenied, reason))
    }

    /// The reason why a request with a token must not go to that endpoint: it would cross a network without TLS. `nil` if it may.
    func reasonAgainstSwap(at endpoint: Endpoint) -> GatewayError? {
        guard let watch = server.placeholders, let swaps = exchange.tokenSwaps else { return nil }
        swaps.isOpenToOthers = endpoint.key.tls == nil && !endpoint.isOnThisHost
        guard swaps.isOpenToOthers, let used = swaps.used.first else { return nil }
        let name = watch.credential(of: used) ?? "the credential"
        let reason = "the token of \(name) would go to \(endpoint.name) without TLS"
        watch.refused(used, reason, exchange)
        return GatewayError(.downstream, .requestDenied, reason)
    }

    // MARK: Tunnels

    /// The reason why a CONNECT must not pass unread; `nil` if it may.
    func reasonAgainstUnread() -> GatewayError? {
        guard let hosts = server.forward.unreadHosts, exchange.heldRequest.method == .connect else { return nil }
        let host = interception?.address.map { "\($0)" } ?? exchange.heldRequest.host ?? ""
        let port = exchange.heldRequest.port ?? 443
        if hosts.contains(host, port) { return nil }
        return GatewayError(
            .downstream, .requestDenied,
            "the tunnel to \(host):\(port) would pass unread, so a program with placeholders of tokens, or behind a wall,"
                + " must not open it; list the host in intercept.allowOpaque to let it pass")
    }
}
