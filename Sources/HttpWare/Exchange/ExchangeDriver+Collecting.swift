// 6. Content of a response that is collected for a ware: only if it is small, or up to the ware's limit.

extension ExchangeDriver {
    // MARK: Content that is collected only if it is small

    /// A response whose content pauses this long is not collected.
    private static let pauseOfSmall = Duration.milliseconds(50)
    /// Content that arrives without a pause streams after this time.
    private static let longestSmall = Duration.seconds(1)

    /// Collects the content into `response.content.bytes` if it has at most `limit` bytes and comes without a pause.
    func takeSmallResponse(upTo limit: Int) -> Aftermath {
        if response.content.bytes != nil, exchange.responseFilters.first?.comesFirst == true {
            return settleFilters(upTo: max(limit, ExchangeDriver.mostSettled))
        }
        guard outward.triedIfWhole != outward.warePlace else { return .goesOn }
        outward.triedIfWhole = outward.warePlace
        guard call.stream != nil, response.content.bytes == nil, !response.content.isEmpty, outward.early.isEmpty,
            response.content.length ?? 0 <= limit, response.status != .switchingProtocols, !isEventStream
        else { return .goesOn }
        phase = .collectingResponse
        outward.collected = []
        outward.wantedIfWhole = limit
        outward.collectedSince = loop.now.nanoseconds
        watchSmallResponse()
        call.stream?.resume()
        return .over
    }

    private var isEventStream: Bool {
        response.fields[.contentType]?.prefix { $0 != ";" }.lowercased() == "text/event-stream"
    }

    private func watchSmallResponse() {
        let timer = pauseTimer ?? LoopTimer(loop: loop, handler: self)
        pauseTimer = timer
        timer.set(after: ExchangeDriver.pauseOfSmall)
    }

    /// Collects the content into `response.content.bytes` if the ware edits it and its size is within the limit.
    func takeEditable(by editor: any ContentEditor) -> Aftermath {
        guard exchange.responder != .gateway, !response.content.isEmpty, response.status != .switchingProtocols,
            let limit = editor.contentLimit(of: response, in: exchange)
        else { return .goesOn }
        if response.content.bytes != nil { return settleFilters(upTo: max(limit, ExchangeDriver.mostSettled)) }
        guard outward.triedIfWhole != outward.warePlace, call.stream != nil else { return .goesOn }
        outward.triedIfWhole = outward.warePlace
        let most = min(limit, response.content.limit ?? .max)
        guard response.content.length ?? 0 <= most, outward.early.count <= most else { return .goesOn }
        phase = .collectingResponse
        outward.collected = outward.early
        outward.early = []
        outward.wantedIfWhole = most
        outward.isWantedByEditor = true
        call.stream?.resume()
        return .over
    }

    /// The maximum output of filters that is held for a ware which also runs without the content.
    private static let mostSettled = 16 << 20

    /// Passes complete content through the filters of earlier wares, which must not see later changes. Their output is
    /// at most `limit` bytes. Long content takes several turns of the loop; the wares run afterwards.
    func settleFilters(upTo limit: Int) -> Aftermath {
        guard !exchange.responseFilters.isEmpty, let bytes = response.content.bytes else { return .goesOn }
        return settle(ContentPath(whole: bytes, exchange.responseFilters), upTo: limit)
    }

    private func settle(_ whole: ContentPath, upTo limit: Int) -> Aftermath {
        outward.filtered = nil
        do {
            try whole.step()
        } catch {
            fail(.ofResponseFilter(error))
            return .over
        }
        guard whole.heldCount <= limit else {
            fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            return .over
        }
        if whole.isFiltered {
            phase = .responseWares
            exchange.responseFilters.removeAll()
            response.content.extent = .length(whole.heldCount)
            response.content.bytes = whole.takeOutput()
            return .goesOn
        }
        // The rest from the origin server, if any, is not needed.
        guard discardUpstream() == .goesOn else { return .over }
        phase = .collectingResponse
        outward.filtered = whole
        transport.patience.add { [weak self] in
            guard let self, self.outward.filtered === whole, self.phase == .collectingResponse else { return }
            self.transport.inEvent { if self.settle(whole, upTo: limit) == .goesOn { self.runResponseWares() } }
        }
        return .over
    }

    /// More content of a small response has arrived.
    func smallResponseCame() {
        if let limit = outward.wantedIfWhole, outward.collected.count > limit { return smallResponseEnded() }
        if outward.isWantedByEditor { return }
        let time = loop.now.nanoseconds - outward.collectedSince
        if time > ExchangeDriver.longestSmall.nanoseconds { smallResponseEnded() } else { watchSmallResponse() }
    }

    /// The content is too large or too slow: the wares run without it, and the collected part follows the head.
    func smallResponseEnded() {
        guard phase == .collectingResponse, outward.wantedIfWhole != nil else { return }
        pauseTimer?.clear()
        outward.wantedIfWhole = nil
        outward.isWantedByEditor = false
        call.stream?.pause()
        outward.early = outward.collected
        outward.collected = []
        phase = .responseWares
        runResponseWares()
    }

    /// Sends the content that arrived before the wares had answered.
    func sendEarly() -> Aftermath {
        let early = outward.early
        outward.early = []
        early.withUnsafeBytes { responseContent($0, isSeen: true) }
        return aftermath
    }
}
