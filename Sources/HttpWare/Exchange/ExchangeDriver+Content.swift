// 5–8. Content on its path, in both directions: through filters, at a pace, up to a cut. Also the content of tunnels.

extension ExchangeDriver {
    /// The direction of content.
    enum Direction {
        /// From the client to the origin server.
        case up
        /// From the origin server to the client.
        case down
    }

    /// The path of the content in that direction; `nil` if nothing acts on it.
    private func path(_ direction: Direction) -> ContentPath? { direction == .up ? call.path : outward.path }

    // MARK: Making paths

    /// Makes the path of the request's content, if filters or a pace act on it. `stated` is the length that goes into its head.
    func makeRequestPath(stated: Int?) {
        let pace = exchange.intervention?.requestPace
        let filters = exchange.requestFilters
        call.path =
            filters.isEmpty && pace == nil
            ? nil : ContentPath(filters, pace: pace, stated: stated, isPromised: stated != nil && !filters.isEmpty)
    }

    /// Makes the path of the response's content, if filters, a pace or a cut act on it. `stated` is the length in its head.
    func makeResponsePath(_ filters: [any ContentFilter], stated: Int?) {
        let intervention = exchange.intervention
        outward.path =
            filters.isEmpty && intervention?.changesResponse != true
            ? nil
            : ContentPath(
                filters, pace: intervention?.responsePace, cut: intervention?.cut, stated: stated,
                isPromised: stated != nil && !filters.isEmpty)
    }

    /// Makes the paths of both directions of a tunnel.
    func makeTunnelPaths() {
        let swaps = exchange.tokenSwaps
        let intervention = exchange.intervention
        func make(_ filter: (any ContentFilter)?, _ pace: (any ContentPace)?) -> ContentPath? {
            filter == nil && pace == nil ? nil : ContentPath(filter.map { [$0] } ?? [], pace: pace)
        }
        if call.path != nil || swaps != nil || intervention != nil {
            call.path = make(swaps?.sentFilter, intervention?.requestPace)
        }
        if outward.path != nil || swaps != nil || intervention != nil {
            outward.path = make(swaps?.receivedFilter, intervention?.responsePace)
        }
    }

    // MARK: In

    /// Puts content into its path, or ends it, and sends what may go on.
    func feed(_ direction: Direction, _ path: ContentPath, _ body: (ContentPath) throws -> Void) {
        do {
            try body(path)
        } catch {
            return contentFailed(direction, error)
        }
        move(direction)
    }

    /// The content cannot continue.
    private func contentFailed(_ direction: Direction, _ error: any Error) {
        if phase == .tunnel {
            if let fault = error as? PlaceholderFault, let watch = server.placeholders { return refuse(fault, watch) }
            return fail(
                GatewayError(
                    direction == .up ? .downstream : .upstream,
                    direction == .up ? .requestMalformed : .responseMalformed, "\(error)"))
        }
        // After the head was sent, the client must not take the content for complete.
        if direction == .up { filterFailed(error) } else { fail(.ofResponseFilter(error)) }
    }

    // MARK: Out

    /// Sends all that may go on now, and arranges the rest. With `resumes`, the sender is asked for more when nothing is left: for
    /// calls that do not come from its own content.
    func move(_ direction: Direction, resumes: Bool = false) {
        while let path = path(direction), isOpen(direction) {
            if isBlocked(direction) { return pause(direction) }
            switch path.next(at: loop.now) {
            case .passOn(let bytes):
                pass(bytes, direction)
                guard phase != .ended else { return }
                if path.isHolding { transport.output.flush() }
            case .waits(let time):
                pause(direction)
                return schedule(after: time) { driver in
                    path.wake()
                    if driver.path(direction) === path { driver.move(direction, resumes: true) }
                }
            case .isWaiting: return pause(direction)
            case .needsStep:
                pause(direction)
                return stepLater(direction, path)
            case .isEmpty: return moved(direction, resumes: resumes)
            case .isCut: return endAtCut()
            case .isOver: return isOver(direction)
            }
        }
    }

    private func isOpen(_ direction: Direction) -> Bool {
        direction == .down ? (phase == .streaming || phase == .tunnel) && sink != nil : call.stream != nil
    }

    /// Whether the receiver takes no more at the moment. A response that others share goes on without its client.
    func isBlocked(_ direction: Direction) -> Bool {
        if direction == .up { return call.stream?.isBlocked == true }
        return sink?.isBlocked == true && exchange.sharer?.keepsPace != true
    }

    private func pass(_ bytes: [UInt8], _ direction: Direction) {
        switch (direction, phase == .tunnel) {
        case (.down, false):
            exchange.record.responseBytes += bytes.count
            if let tap { bytes.withUnsafeBytes { tap.responseContent($0) } }
            sink?.sendContent(bytes)
        case (.down, true):
            bytes.withUnsafeBytes {
                tap?.tunnelled($0, isSent: false)
                sink?.sendTunnel($0)
            }
        case (.up, false):
            bytes.withUnsafeBytes {
                call.sent.append($0)
                if let tap, showsSentContent { tap.sentContent($0) }
                call.stream?.sendContent($0)
            }
        case (.up, true): bytes.withUnsafeBytes { call.stream?.sendTunnel($0) }
        }
    }

    /// All that could go on has gone on.
    private func moved(_ direction: Direction, resumes: Bool) {
        watchPause(direction)
        // Only the end follows, usually in the same event: then everything goes out together.
        let isLast =
            direction == .down && phase == .streaming && call.stream != nil
            && response.content.length == exchange.record.unfilteredBytes
        if !isLast, direction == .down || phase == .tunnel || resumes { transport.output.flush() }
        if isBlocked(direction) { return pause(direction) }
        if resumes { resume(direction) }
    }

    /// The content has ended, and all of it went on.
    private func isOver(_ direction: Direction) {
        if phase == .tunnel { return tunnelEnded(direction) }
        if direction == .down { return end(.completed) }
        call.sent.end()
        if let upstream = call.stream { _ = endUp(upstream) }
    }

    private func pause(_ direction: Direction) {
        guard direction == .down else {
            sink?.pauseRequest()
            return
        }
        call.stream?.pause()
        waitForOthersIfAhead()
    }

    private func resume(_ direction: Direction) {
        if direction == .down {
            call.stream?.resume()
        } else if phase == .tunnel || !inward.isWhole {
            sink?.resumeRequest()
        }
    }

    /// The filters have more output: takes it in a later turn of the loop.
    private func stepLater(_ direction: Direction, _ path: ContentPath) {
        guard !path.isStepDue else { return }
        path.isStepDue = true
        transport.patience.add { [weak self] in
            guard let self, self.path(direction) === path else { return }
            path.isStepDue = false
            self.transport.inEvent {
                guard self.isOpen(direction), !self.isBlocked(direction) else { return }
                do {
                    try path.step()
                } catch {
                    return self.contentFailed(direction, error)
                }
                self.move(direction, resumes: true)
                if self.phase != .ended { self.transport.output.flush() }
            }
        }
    }

    /// Cuts the response after the earlier bytes have left: a reset would overtake them.
    private func endAtCut() {
        call.stream?.pause()
        schedule(after: .zero) { $0.end(.cutOff) }
    }

    private func schedule(after wait: Duration, _ body: @escaping (ExchangeDriver) -> Void) {
        let number = serial
        let step = { [weak self] in
            guard let self, serial == number, phase != .ended else { return }
            transport.inEvent { body(self) }
        }
        if wait > .zero { loop.schedule(after: wait, step) } else { loop.later(step) }
    }

    /// There is room for more content in that direction: from its path, or else from its sender.
    func askForMore(_ direction: Direction) {
        if path(direction) != nil { move(direction, resumes: true) } else { resume(direction) }
    }

    // MARK: Pauses

    /// The longest time that filters may hold content of a response back while no more arrives.
    private static let longestHold = Duration.milliseconds(10)

    /// Starts the timer after which filters release what they hold back, unless more content comes.
    private func watchPause(_ direction: Direction) {
        guard path(direction)?.holdsBack == true else { return }
        let place = direction == .up ? \ExchangeDriver.requestPauseTimer : \ExchangeDriver.pauseTimer
        let timer = self[keyPath: place] ?? LoopTimer(loop: loop, handler: self)
        self[keyPath: place] = timer
        timer.set(after: direction == .up ? ExchangeDriver.pauseOfContent : ExchangeDriver.longestHold)
    }

    /// No content came for a while.
    func contentPaused(_ direction: Direction) {
        guard let path = path(direction), path.holdsBack else { return }
        feed(direction, path) { try $0.flush() }
        if phase != .ended { transport.output.flush() }
    }

    // MARK: Tunnels

    /// One side has ended its direction of the tunnel. The end follows the bytes that are held.
    func endTunnel(_ direction: Direction) {
        if let path = path(direction) { feed(direction, path) { try $0.end() } } else { tunnelEnded(direction) }
    }

    private func tunnelEnded(_ direction: Direction) {
        let isOver = outward.upstreamEndedTunnel && outward.clientEndedTunnel
        if isOver, call.path?.isHolding != true, outward.path?.isHolding != true { return end(.completed) }
        if direction == .up { call.stream?.endTunnel() } else { sink?.endTunnel() }
    }
}
