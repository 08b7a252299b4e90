// 6–8. The response: response halves, postwares, and its content.

extension ExchangeDriver: ResponseHandler {
    // MARK: 6. From upstream

    func responseInterim(_ response: inout HttpResponse) {
        guard phase == .awaitingResponse else { return }
        sink?.sendInterim(response)
    }

    func responseStarted(_ arrived: inout HttpResponse) {
        swap(&response, &arrived)
        hasUpstreamContent = !response.content.isEmpty
        exchange.responder = .upstream
        exchange.record.firstByte = loop.now.nanoseconds
        startResponse(from: chain.middlewares.count - 1)
        // A ware waits, or needs all of it: the rest stays where it is until then.
        if phase == .responseWares { upstream?.pause() }
    }

    /// A response that did not come from upstream starts its way back at the ware in that place.
    func answer(with response: HttpResponse, from index: Int) {
        self.response = response
        if self.response.content.bytes == nil { self.response.content = .none }
        discardUpstream()
        startResponse(from: index)
    }

    /// The exchange cannot be carried out: the client is told, if it can be.
    func fail(_ error: GatewayError) { fail(error, from: chain.middlewares.count - 1) }

    func fail(_ error: GatewayError, from index: Int) {
        guard phase != .ended else { return }
        if phase == .streaming || phase == .tunnel {
            exchange.failure = error
            return end(.cutOff)
        }
        giveUpWaiting()
        ticket?.giveUp()
        ticket = nil
        upstream?.cancel()
        upstream = nil
        exchange.failure = error
        exchange.responder = .gateway
        answer(with: GatewayResponse.make(for: error), from: min(index, lastPassable))
    }

    /// Halves and postwares that ran already are not asked again.
    private var lastPassable: Int {
        switch phase {
        case .responseWares, .collectingResponse: halfIndex
        default: chain.middlewares.count - 1
        }
    }

    private func discardUpstream() {
        guard let upstream else { return }
        self.upstream = nil
        upstream.discard()
    }

    private func startResponse(from index: Int) {
        if phase != .responseWares && phase != .collectingResponse { postIndex = 0 }
        phase = .responseWares
        halfIndex = index
        runResponseWares()
    }

    // MARK: 6–7. Response halves in reverse, then postwares

    func runResponseWares() {
        let chain = self.chain
        if chain.hasResponseHalves {
            while halfIndex >= 0 {
                let index = halfIndex
                guard passed[index], let half = chain.middlewares[index].responseHalf else {
                    halfIndex = index - 1
                    continue
                }
                guard ask(half, chain.middlewares[index].label, chain.middlewares[index].failsOpen) else { return }
            }
        }
        halfIndex = -1
        while postIndex < chain.postwares.count {
            let index = postIndex
            if let condition = chain.postwares[index].condition, !condition.matches(response, in: exchange) {
                if chain.observesWares {
                    note(chain.postwares[index].label, .skipped, isResponse: true, since: loop.tick())
                }
                postIndex = index + 1
                continue
            }
            if let limit = chain.postwares[index].whole, !takeWholeResponse(upTo: limit) { return }
            guard ask(chain.postwares[index].ware, chain.postwares[index].label, chain.postwares[index].failsOpen)
            else {
                return
            }
        }
        deliver()
    }

    /// Asks one ware; true when the next one's turn has come.
    @inline(__always)
    private func ask(_ ware: any Postware, _ label: String, _ failsOpen: Bool) -> Bool {
        if chain.observesWares { wareStarted = loop.tick().nanoseconds }
        do {
            let answer = try ware.handle(&response, in: exchange)
            if case .pass = answer, !chain.observesWares {
                advance()
                return true
            }
            return decided(answer, label)
        } catch {
            return threw(error, label, failsOpen)
        }
    }

    @inline(__always)
    private func advance() { if halfIndex >= 0 { halfIndex -= 1 } else { postIndex += 1 } }

    private func decided(_ answer: Answer, _ label: String) -> Bool {
        switch answer {
        case .pass:
            if chain.observesWares { note(label, .pass, isResponse: true) }
            advance()
            return true
        case .replace(let other):
            if chain.observesWares { note(label, .replace, isResponse: true) }
            discardUpstream()
            exchange.responseFilters.removeAll()
            response = other
            if response.content.bytes == nil { response.content = .none }
            exchange.responder = .ware(label)
            advance()
            return true
        case .replay(let delay):
            guard halfIndex >= 0, mayReplay(halfIndex) else {
                if chain.observesWares { note(label, .pass, isResponse: true) }
                advance()
                return true
            }
            if chain.observesWares { note(label, .replay, isResponse: true) }
            replay(halfIndex, after: delay)
            return false
        case .wait(let continuing):
            waitForResponse(continuing, label)
            return false
        }
    }

    private func waitForResponse(_ continuing: Continuing<HttpResponse, Answer>, _ label: String) {
        wait(continuing, response) { driver, message, result in
            driver.response = message
            let goesOn: Bool
            switch result {
            case .success(let answer): goesOn = driver.decided(answer, label)
            case .failure(let error): goesOn = driver.threw(error, label, driver.failsOpenNow)
            }
            if goesOn { driver.runResponseWares() }
        }
    }

    private var failsOpenNow: Bool {
        halfIndex >= 0 ? chain.middlewares[halfIndex].failsOpen : chain.postwares[postIndex].failsOpen
    }

    /// A ware could not do its work; the response goes on, as it is or as a 502.
    private func threw(_ error: any Error, _ label: String, _ failsOpen: Bool) -> Bool {
        if chain.observesWares { note(label, .failed, isResponse: true) }
        if !failsOpen {
            discardUpstream()
            let fault = error as? GatewayError ?? GatewayError(.upstream, .wareFailed, "\(label) failed: \(error)")
            exchange.failure = fault
            exchange.responder = .gateway
            exchange.responseFilters.removeAll()
            response = GatewayResponse.make(for: fault)
        }
        advance()
        return true
    }

    // MARK: Replay

    /// Whether the request can be sent inward again from that ware: it was kept, and not too often.
    private func mayReplay(_ index: Int) -> Bool {
        exchange.record.replays < ExchangeDriver.mostAttempts - 1 && snapshots.contains { $0.index == index }
            && (exchange.request.content.isEmpty || exchange.request.content.bytes != nil || kept != nil)
    }

    private func replay(_ index: Int, after delay: Duration) {
        exchange.record.replays += 1
        discardUpstream()
        exchange.responseFilters.removeAll()
        exchange.requestFilters.removeAll()
        exchange.failure = nil
        phase = .replaying
        halfIndex = index
        if delay > .zero {
            waitNumber &+= 1
            let number = waitNumber
            loop.schedule(after: delay) { [weak self] in
                guard let self, self.waitNumber == number, self.phase == .replaying else { return }
                self.waitNumber &+= 1
                self.transport.inEvent { self.replayWhenWhole() }
            }
        } else {
            waitNumber &+= 1
            replayWhenWhole()
        }
    }

    /// Sends the request inward again once its content is whole.
    func replayWhenWhole() {
        guard let snapshot = snapshots.first(where: { $0.index == halfIndex }) else { return }
        if !snapshot.request.content.isEmpty, snapshot.request.content.bytes == nil {
            guard isRequestWhole else {
                sink?.resumeRequest()
                return
            }
            guard let kept else {
                return fail(
                    GatewayError(.gateway, .internalError, "the content was too large to be sent again"),
                    from: halfIndex - 1)
            }
            held = kept
        }
        exchange.request = snapshot.request
        requestIndex = halfIndex + 1
        hasRetried = false
        phase = .middlewares
        runMiddlewares()
    }

    // MARK: 8. The response goes out

    /// Whether all content is in `response.content.bytes`; if not, it is waited for.
    private func takeWholeResponse(upTo limit: Int) -> Bool {
        guard upstream != nil || hasUpstreamEnded, response.content.bytes == nil, !response.content.isEmpty else {
            return true
        }
        if let length = response.content.length, length > limit {
            fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            return false
        }
        phase = .collectingResponse
        collected = []
        response.content.limit(to: limit)
        upstream?.resume()
        return false
    }

    private func deliver() {
        guard let sink else { return }
        exchange.finalStatus = response.status
        phase = .streaming
        if response.status == .switchingProtocols || isTunnelOpening { return deliverTunnel(sink) }
        if let bytes = response.content.bytes {
            discardUpstream()
            return deliverWhole(bytes, sink)
        }
        // A ware emptied it: what the origin server still sends is not wanted.
        if response.content.isEmpty, hasUpstreamContent { discardUpstream() }
        let extent: HttpContent.Extent
        switch response.content.extent {
        case .length(let length): extent = exchange.responseFilters.allSatisfy(\.keepsLength) ? .length(length) : .unknown
        case .none: extent = .none
        case .unknown: extent = .unknown
        }
        sink.send(response, extent: extent, via: exchange.responder == .upstream)
        guard phase == .streaming else { return }
        if upstream == nil || hasUpstreamEnded { return end(.completed) }
        upstream?.resume()
    }

    private var isTunnelOpening: Bool {
        exchange.request.method == .connect && exchange.responder == .upstream && response.status.code / 100 == 2
    }

    private func deliverTunnel(_ sink: any ResponseSink) {
        guard let upstream else {
            return fail(GatewayError(.upstream, .upgradeFailed, "the connection for the tunnel is gone"))
        }
        sink.send(response, extent: .none, via: exchange.request.method != .connect)
        phase = .tunnel
        sink.startTunnel()
        guard phase == .tunnel else { return }
        upstream.resume()
        if upstreamEndedTunnel { sink.endTunnel() }
    }

    private func deliverWhole(_ bytes: [UInt8], _ sink: any ResponseSink) {
        var bytes = bytes
        if !exchange.responseFilters.isEmpty {
            do {
                bytes = try bytes.withUnsafeBytes { try filter($0, exchange.responseFilters) }
                bytes += try finish(exchange.responseFilters)
            } catch {
                return end(.cutOff)
            }
        }
        let extent = HttpContent.Extent.length(bytes.count)
        sink.send(response, extent: extent, via: exchange.responder == .upstream)
        guard phase == .streaming else { return }
        if exchange.request.method != .head, !response.status.neverHasContent {
            exchange.record.responseBytes += bytes.count
            bytes.withUnsafeBytes { sink.sendContent($0) }
        }
        transport.output.flush()
        end(.completed)
    }

    // MARK: Content

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .streaming:
            guard let sink else { return }
            exchange.record.responseBytes += bytes.count
            if let limit = response.content.limit, exchange.record.responseBytes > limit {
                exchange.failure = GatewayError(
                    .upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes")
                return end(.cutOff)
            }
            if exchange.responseFilters.isEmpty {
                sink.sendContent(bytes)
            } else {
                do {
                    let filtered = try filter(bytes, exchange.responseFilters)
                    filtered.withUnsafeBytes { sink.sendContent($0) }
                    transport.output.flush()
                } catch {
                    return end(.cutOff)
                }
            }
            if bytes.count > OutputBatch.smallPiece { transport.output.flush() }
            if sink.isBlocked { upstream?.pause() }
        case .collectingResponse:
            collected.append(contentsOf: bytes)
            if let limit = response.content.limit, collected.count > limit {
                fail(GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"))
            }
        default: break
        }
    }

    func responseEnded(_ trailers: HttpFields?) {
        upstream = nil
        hasUpstreamEnded = true
        responseTrailers = trailers
        switch phase {
        case .streaming:
            if !exchange.responseFilters.isEmpty {
                do {
                    let rest = try finish(exchange.responseFilters)
                    rest.withUnsafeBytes { sink?.sendContent($0) }
                    transport.output.flush()
                } catch {
                    return end(.cutOff)
                }
            }
            end(.completed)
        case .collectingResponse:
            phase = .responseWares
            response.content.bytes = collected
            response.content.extent = collected.isEmpty ? .none : .length(collected.count)
            collected = []
            runResponseWares()
        default: break
        }
    }

    func downstreamDrained() {
        upstream?.resume()
    }

    // MARK: Filters

    func filter(_ bytes: UnsafeRawBufferPointer, _ filters: [any ContentFilter]) throws -> [UInt8] {
        var output: [UInt8] = []
        guard let first = filters.first else { return Array(bytes) }
        try first.filter(bytes, into: &output)
        for next in filters.dropFirst() {
            var further: [UInt8] = []
            try output.withUnsafeBytes { try next.filter($0, into: &further) }
            output = further
        }
        return output
    }

    func finish(_ filters: [any ContentFilter]) throws -> [UInt8] {
        var rest: [UInt8] = []
        for filter in filters {
            var further: [UInt8] = []
            if !rest.isEmpty { try rest.withUnsafeBytes { try filter.filter($0, into: &further) } }
            try filter.finish(into: &further)
            rest = further
        }
        return rest
    }
}
