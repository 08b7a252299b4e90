// 5–8. Effects of wares beyond the messages: a pace, also for tunnels, and a cut. And content that is collected only if it is small.

extension ExchangeDriver {
    // MARK: The request at a limited pace

    /// Sends filtered content upstream, at once or at the pace that a ware set.
    func sendUp(_ bytes: UnsafeRawBufferPointer, to upstream: any UpstreamStream) {
        if exchange.intervention?.requestPace != nil {
            call.paced.add(bytes)
            return sendPacedRequest()
        }
        if let tap, showsSentContent { tap.sentContent(bytes) }
        upstream.sendContent(bytes)
    }

    /// Sends as much as the pace allows now, and continues later with the rest.
    func sendPacedRequest() {
        guard let pace = exchange.intervention?.requestPace else { return }
        while call.paced.isLeft, !call.paced.isTimed {
            guard let upstream = call.stream else {
                call.paced = PacedContent()
                return
            }
            if upstream.isBlocked { return }
            guard let count = grant(call.paced.left, of: \.call.paced, by: pace, then: { $0.sendPacedRequest() })
            else { return }
            let piece = call.paced.take(count)
            piece.withUnsafeBytes { piece in
                if let tap, showsSentContent { tap.sentContent(piece) }
                upstream.sendContent(piece)
            }
            guard aftermath == .goesOn else { return }
        }
        guard !call.paced.isLeft, let upstream = call.stream else { return }
        if call.paced.isEnded {
            call.paced.isEnded = false
            _ = endUp(upstream)
        } else if !upstream.isBlocked {
            askForMoreOfRequest()
        }
    }

    // MARK: The response at a limited pace, or cut

    /// Sends as much as the pace allows now, and continues later with the rest. Ends the exchange after the last byte, or at a cut.
    func sendPacedResponse() {
        while phase == .streaming, outward.paced.isLeft, !outward.paced.isTimed {
            guard let sink, let intervention = exchange.intervention else { return }
            if sink.isBlocked { return }
            var count = outward.paced.left
            if let cut = intervention.cut {
                count = min(count, cut - exchange.record.responseBytes)
                if count <= 0 { return endAtCut() }
            }
            if let pace = intervention.responsePace {
                guard let granted = grant(count, of: \.outward.paced, by: pace, then: { $0.sendPacedResponse() })
                else { return }
                count = min(count, granted)
            }
            let piece = outward.paced.take(count)
            exchange.record.responseBytes += piece.count
            piece.withUnsafeBytes {
                tap?.responseContent($0)
                sink.sendContent($0)
            }
            guard aftermath == .goesOn else { return }
            transport.output.flush()
        }
        guard phase == .streaming, !outward.paced.isLeft else { return }
        if let cut = exchange.intervention?.cut, exchange.record.responseBytes >= cut, !isCutAtEnd {
            return endAtCut()
        }
        if outward.paced.isEnded { return end(.completed) }
        if sink?.isBlocked == false { askForMoreContent() }
    }

    /// Cuts the response after the earlier bytes have left: a reset would overtake them.
    private func endAtCut() {
        outward.paced.isTimed = true
        call.stream?.pause()
        let number = serial
        loop.later { [weak self] in
            guard let self, serial == number, phase == .streaming else { return }
            transport.inEvent { self.end(.cutOff) }
        }
    }

    /// Whether the cut falls at the end of the content.
    private var isCutAtEnd: Bool {
        outward.paced.isEnded || response.content.length == exchange.record.responseBytes
    }

    // MARK: A tunnel at a limited pace

    /// Whether a pace limits that direction of the tunnel.
    func pacesTunnel(isSent: Bool) -> Bool {
        guard let intervention = exchange.intervention else { return false }
        return (isSent ? intervention.requestPace : intervention.responsePace) != nil
    }

    /// Takes bytes of a tunnel whose direction is paced.
    func paceTunnel(_ bytes: UnsafeRawBufferPointer, isSent: Bool) {
        if isSent { call.paced.add(bytes) } else { outward.paced.add(bytes) }
        sendPacedTunnel(isSent: isSent)
        guard phase == .tunnel, (isSent ? call.paced : outward.paced).isLeft else { return }
        if isSent { sink?.pauseRequest() } else { call.stream?.pause() }
    }

    /// Sends as much as the pace allows now, and continues later with the rest. After the last byte, the end of the direction is forwarded.
    func sendPacedTunnel(isSent: Bool) {
        let place = isSent ? \ExchangeDriver.call.paced : \ExchangeDriver.outward.paced
        while phase == .tunnel, self[keyPath: place].isLeft {
            guard !self[keyPath: place].isTimed, let sink, let upstream = call.stream,
                let pace = isSent ? exchange.intervention?.requestPace : exchange.intervention?.responsePace,
                !(isSent ? upstream.isBlocked : sink.isBlocked),
                let count = grant(
                    self[keyPath: place].left, of: place, by: pace, then: { $0.sendPacedTunnel(isSent: isSent) })
            else { return }
            self[keyPath: place].take(count).withUnsafeBytes {
                if isSent { upstream.sendTunnel($0) } else { sink.sendTunnel($0) }
            }
            guard aftermath == .goesOn else { return }
            transport.output.flush()
        }
        guard phase == .tunnel else { return }
        if self[keyPath: place].isEnded {
            self[keyPath: place].isEnded = false
            endTunnel(isSent: isSent)
        } else if isSent {
            if call.stream?.isBlocked == false { sink?.resumeRequest() }
        } else if sink?.isBlocked == false {
            call.stream?.resume()
        }
    }

    /// One side has ended its direction of the tunnel. If paced bytes are pending, the end is forwarded after them.
    func endTunnel(isSent: Bool) {
        if isSent, call.paced.isLeft { return call.paced.isEnded = true }
        if !isSent, outward.paced.isLeft { return outward.paced.isEnded = true }
        let isOver = outward.upstreamEndedTunnel && outward.clientEndedTunnel
        if isOver, !call.paced.isLeft, !outward.paced.isLeft { return end(.completed) }
        if isSent { call.stream?.endTunnel() } else { sink?.endTunnel() }
    }

    /// The number of these bytes that may go now; `nil` if they must wait: `then` is called after the wait.
    private func grant(
        _ count: Int, of place: ReferenceWritableKeyPath<ExchangeDriver, PacedContent>, by pace: any ContentPace,
        then body: @escaping (ExchangeDriver) -> Void
    ) -> Int? {
        if self[keyPath: place].granted == 0 {
            let (granted, wait) = pace.reserve(count, at: loop.now)
            self[keyPath: place].granted = max(1, granted)
            if wait > .zero {
                self[keyPath: place].isTimed = true
                schedule(after: wait) { driver in
                    driver[keyPath: place].isTimed = false
                    body(driver)
                }
                return nil
            }
        }
        defer { self[keyPath: place].granted = 0 }
        return self[keyPath: place].granted
    }

    private func schedule(after wait: Duration, _ body: @escaping (ExchangeDriver) -> Void) {
        let number = serial
        loop.schedule(after: wait) { [weak self] in
            guard let self, serial == number, phase != .ended else { return }
            transport.inEvent { body(self) }
        }
    }

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
        guard outward.triedIfWhole != outward.postIndex else { return .goesOn }
        outward.triedIfWhole = outward.postIndex
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
        guard outward.triedIfWhole != outward.postIndex, call.stream != nil else { return .goesOn }
        outward.triedIfWhole = outward.postIndex
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
        return settle(FilteredWhole(bytes, exchange.responseFilters), upTo: limit)
    }

    private func settle(_ whole: FilteredWhole, upTo limit: Int) -> Aftermath {
        outward.filtered = nil
        do {
            try whole.step()
        } catch {
            fail(.ofResponseFilter(error))
            return .over
        }
        guard whole.output.count <= limit else {
            fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            return .over
        }
        if whole.path.isDone {
            phase = .responseWares
            exchange.responseFilters.removeAll()
            response.content.bytes = whole.output
            response.content.extent = .length(whole.output.count)
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
