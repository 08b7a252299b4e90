// 5–8. What wares do to an exchange beyond its messages: a pace, of tunnels too, a cut. And content that is collected only if it is small.

extension ExchangeDriver {
    // MARK: The request at a pace

    /// Sends filtered content upstream, at once or at its pace.
    func sendUp(_ bytes: UnsafeRawBufferPointer, to upstream: any UpstreamStream) {
        if exchange.intervention?.requestPace != nil {
            call.paced.add(bytes)
            return sendPacedRequest()
        }
        if let tap, showsSentContent { tap.sentContent(bytes) }
        upstream.sendContent(bytes)
    }

    /// Sends what may go now, and comes again for the rest.
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
        } else if !inward.isWhole, !upstream.isBlocked {
            sink?.resumeRequest()
        }
    }

    // MARK: The response at a pace, or cut

    /// Takes a piece of the response's content that does not simply pass.
    func pace(_ bytes: UnsafeRawBufferPointer) {
        do {
            if exchange.responseFilters.isEmpty {
                outward.paced.add(bytes)
            } else {
                let filtered = try filter(bytes, exchange.responseFilters)
                try ExchangeDriver.count(filtered.count, of: &outward.lengthLeft)
                outward.paced.add(filtered)
            }
        } catch {
            return fail(GatewayError(.gateway, .wareFailed, "a content filter failed: \(error)"))
        }
        sendPacedResponse()
        guard aftermath == .goesOn else { return }
        watchPause()
        if outward.paced.isLeft { call.stream?.pause() }
    }

    /// Sends what may go now, and comes again for the rest. Ends the exchange behind the last byte, or at a cut.
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
        if sink?.isBlocked == false { call.stream?.resume() }
    }

    /// Breaks the response off when what went before has left: a reset would overtake it.
    private func endAtCut() {
        outward.paced.isTimed = true
        call.stream?.pause()
        let number = serial
        loop.later { [weak self] in
            guard let self, serial == number, phase == .streaming else { return }
            transport.inEvent { self.end(.cutOff) }
        }
    }

    /// Whether the cut is where the content ends anyway.
    private var isCutAtEnd: Bool {
        outward.paced.isEnded || response.content.length == exchange.record.responseBytes
    }

    // MARK: A tunnel at a pace

    /// Whether the bytes of the tunnel in that direction do not simply pass.
    func pacesTunnel(isSent: Bool) -> Bool {
        guard let intervention = exchange.intervention else { return false }
        return (isSent ? intervention.requestPace : intervention.responsePace) != nil
    }

    /// Takes bytes of a tunnel that do not simply pass.
    func paceTunnel(_ bytes: UnsafeRawBufferPointer, isSent: Bool) {
        if isSent { call.paced.add(bytes) } else { outward.paced.add(bytes) }
        sendPacedTunnel(isSent: isSent)
        guard phase == .tunnel, (isSent ? call.paced : outward.paced).isLeft else { return }
        if isSent { sink?.pauseRequest() } else { call.stream?.pause() }
    }

    /// Sends what may go now, and comes again for the rest. Behind the last byte the end of its direction goes on.
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

    /// One side sends no more into the tunnel. If bytes of it wait for their time, the other side is told behind them.
    func endTunnel(isSent: Bool) {
        if isSent, call.paced.isLeft { return call.paced.isEnded = true }
        if !isSent, outward.paced.isLeft { return outward.paced.isEnded = true }
        let isOver = outward.upstreamEndedTunnel && outward.clientEndedTunnel
        if isOver, !call.paced.isLeft, !outward.paced.isLeft { return end(.completed) }
        if isSent { call.stream?.endTunnel() } else { sink?.endTunnel() }
    }

    /// How many of these bytes may go now; `nil` if they wait for their time, when `then` is called.
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

    // MARK: Content that is wanted if it is small

    /// A response whose content comes with such a pause is not waited for.
    private static let pauseOfSmall = Duration.milliseconds(50)

    /// Puts all content into `response.content.bytes` if there is no more than `limit` of it and it comes without a pause.
    func takeSmallResponse(upTo limit: Int) -> Aftermath {
        if response.content.bytes != nil, exchange.responseFilters.first?.comesFirst == true { return settleFilters() }
        guard outward.triedIfWhole != outward.postIndex else { return .goesOn }
        outward.triedIfWhole = outward.postIndex
        guard call.stream != nil, response.content.bytes == nil, !response.content.isEmpty, outward.early.isEmpty,
            response.content.length ?? 0 <= limit, response.status != .switchingProtocols, !isEventStream
        else { return .goesOn }
        phase = .collectingResponse
        outward.collected = []
        outward.wantedIfWhole = limit
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

    /// Puts all content into `response.content.bytes` if the ware edits it and there is not too much of it.
    func takeEditable(by editor: any ContentEditor) -> Aftermath {
        guard exchange.responder != .gateway, !response.content.isEmpty, response.status != .switchingProtocols,
            let limit = editor.contentLimit(of: response, in: exchange)
        else { return .goesOn }
        if response.content.bytes != nil { return settleFilters() }
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

    /// Lets content that is whole pass the filters of wares that were asked before: they must not see what is made of it now.
    func settleFilters() -> Aftermath {
        guard !exchange.responseFilters.isEmpty, let bytes = response.content.bytes else { return .goesOn }
        do {
            var filtered = try bytes.withUnsafeBytes { try filter($0, exchange.responseFilters) }
            filtered += try finish(exchange.responseFilters)
            exchange.responseFilters.removeAll()
            response.content.bytes = filtered
            response.content.extent = .length(filtered.count)
            return .goesOn
        } catch {
            fail(error as? GatewayError ?? GatewayError(.upstream, .wareFailed, "a content filter failed: \(error)"))
            return .over
        }
    }

    /// More of it came.
    func smallResponseCame() {
        if let limit = outward.wantedIfWhole, outward.collected.count > limit {
            smallResponseEnded()
        } else if !outward.isWantedByEditor {
            watchSmallResponse()
        }
    }

    /// It is too large, or too slow: the wares are asked without it, and what came goes out behind the head.
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

    /// Sends what came before the wares had answered.
    func sendEarly() -> Aftermath {
        let early = outward.early
        outward.early = []
        early.withUnsafeBytes { responseContent($0, isSeen: true) }
        return aftermath
    }
}
