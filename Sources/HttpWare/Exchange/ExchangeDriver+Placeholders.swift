// The guard: while placeholders of tokens are in use, each request is searched for them before it goes upstream.

extension ExchangeDriver {
    /// The maximum content that is held back until it is known to contain no placeholder.
    private static let mostHeld = 1 << 20
    /// If a client pauses this long, it waits for a response: its content then streams.
    static let pauseOfContent = Duration.milliseconds(50)
    /// Content that arrives without a pause streams after this time.
    private static let longestHold = Duration.seconds(1)
    /// The maximum content that is held after placeholders in it were replaced, and with its coding removed.
    private static let mostReplaced = 16 << 20

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
        if let kept = inward.kept, call.hasSentContent { return (kept, inward.isWhole) }
        return (inward.held, inward.isWhole || content.isEmpty)
    }

    // MARK: The search

    /// Searches the request before it goes upstream. If tokens replace placeholders, makes the request that is sent instead.
    func searchForPlaceholders(_ watch: any PlaceholderWatch) -> Aftermath {
        if awaitContent() == .over { return .over }
        let exchange = self.exchange
        let swaps = exchange.tokenSwaps ?? TokenSwaps()
        swaps.outgoing = nil
        exchange.requestFilters.removeAll { $0 is SearchedContent }
        // The gateway must be able to read any protocol that the two sides could agree on.
        if let upgrade = exchange.heldRequest.upgrade, upgrade.lowercased() != "websocket" {
            exchange.heldRequest.upgrade = nil
        }
        exchange.heldRequest.fields.remove("Sec-WebSocket-Extensions" as FieldName)
        do {
            if RequestSearch.isNeeded(exchange.heldRequest) {
                var search = RequestSearch(swaps.swaps)
                let outgoing = OutgoingRequest(exchange.heldRequest)
                try search.replace(in: &outgoing.request)
                if !search.used.isEmpty {
                    swaps.outgoing = outgoing
                    for placeholder in search.used { swaps.use(placeholder) }
                }
            }
            if let trailers = inward.trailers { try RequestSearch(swaps.swaps).searchTrailers(trailers) }
            if exchange.heldRequest.upgrade != nil {
                swaps.sentFilter = WebSocketFilter(isMasked: true) {
                    SearchedContent(swaps, words: "a WebSocket message")
                }
                exchange.tokenSwaps = swaps
            }
            if !swaps.used.isEmpty { exchange.tokenSwaps = swaps }
            return try searchContent(swaps)
        } catch let fault as PlaceholderFault {
            refuse(fault, watch)
            return .over
        } catch let error as GatewayError {
            inward.isRefused = true
            fail(error)
            return .over
        } catch {
            inward.isRefused = true
            fail(GatewayError(.downstream, .requestMalformed, "\(error)"))
            return .over
        }
    }

    private func searchContent(_ swaps: TokenSwaps) throws -> Aftermath {
        guard !exchange.heldRequest.content.isEmpty else { return .goesOn }
        guard let search = SearchedContent(exchange.heldRequest, swaps) else {
            throw GatewayError(
                .downstream, .contentCodingUnsupported,
                "the content has a coding that cannot be searched for placeholders of tokens; send it as it is, or with "
                    + ContentDecoder.names.joined(separator: ", "))
        }
        let (bytes, isWhole) = contentSoFar
        if isWhole, exchange.requestFilters.isEmpty { return searchWhole(bytes, search, swaps) }
        if search.decodes {
            let outgoing = swaps.outgoing ?? OutgoingRequest(exchange.heldRequest)
            outgoing.request.fields.remove(.contentEncoding as FieldName)
            swaps.outgoing = outgoing
        }
        if !search.keepsLength {
            // A placeholder may still come: then the origin server's response may hold its token.
            for swap in swaps.swaps where !swap.places.isDisjoint(with: .content) { swaps.expect(swap.placeholder) }
        }
        exchange.tokenSwaps = swaps
        exchange.filterRequestContent(with: search)
        return .goesOn
    }

    /// Searches whole content before any part of the request is sent.
    private func searchWhole(_ bytes: [UInt8], _ search: SearchedContent, _ swaps: TokenSwaps) -> Aftermath {
        let used = swaps.used.count
        search.isHeld = true
        return filterInTurns(ContentPath(whole: bytes, [search]), upTo: ExchangeDriver.mostReplaced) {
            driver, searched in
            guard swaps.used.count > used || searched != bytes else { return .goesOn }
            let outgoing = swaps.outgoing ?? OutgoingRequest(driver.exchange.heldRequest)
            outgoing.request.content = .bytes(searched)
            if search.decodes { outgoing.request.fields.remove(.contentEncoding as FieldName) }
            for name in HttpFields.digests { outgoing.request.fields.remove(name) }
            swaps.outgoing = outgoing
            driver.exchange.tokenSwaps = swaps
            return .goesOn
        } then: { driver in
            if let service = driver.plan.service { driver.callSearched(service) }
        }
    }

    /// Whether the trailers of streamed content hold no placeholder; if they do, the request is refused.
    func trailersArePassable() -> Bool {
        guard let watch = server.placeholders, let trailers = inward.trailers else { return true }
        do throws(PlaceholderFault) {
            try RequestSearch(exchange.tokenSwaps?.swaps ?? []).searchTrailers(trailers)
            return true
        } catch {
            refuse(error, watch)
            return false
        }
    }

    // MARK: Refusing

    /// Refuses a request with a placeholder in the wrong place: either no part of it has gone upstream, or it is cut off before the
    /// placeholder.
    func refuse(_ fault: PlaceholderFault, _ watch: any PlaceholderWatch) {
        let host = exchange.heldRequest.host ?? "the host"
        let reason: String
        if let name = watch.credential(of: fault.placeholder) {
            reason =
                fault.isKnown
                    || exchange.placeholdersElsewhere.contains(fault.placeholder)
                ? "\(fault.place) holds the placeholder of \(name), which is not replaced there"
                : "\(fault.place) holds the placeholder of \(name), which is not for \(host)"
        } else {
            reason = "\(fault.place) holds a placeholder that is not in force here"
        }
        inward.isRefused = true
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
            "the tunnel to \(host):\(port) would pass unread, and programs that hold placeholders of tokens must not"
                + " open it; list the host in intercept.allowOpaque to let it pass")
    }
}
