/// The content of a source, in the form that the driver handles: a stream that can be paused, resumed, discarded and cancelled.
///
/// It starts paused. Used on its loop's thread only.
final class ContentStream: ReceivingStream {
    private let transport: LoopTransport
    private let feed: ContentFeed
    private var source: (any ContentSource)?
    private var receiver: (any ResponseReceiver)?
    /// The rest of the length that the source declared; `nil` if it declared none.
    private var left: Int?
    private var isPaused = true
    /// Whether the source was asked and has not answered.
    private var isAsked = false
    private var isAsking = false
    private var bytesThisTurn = 0
    private var rest: LoopTimer?

    /// The bytes that a source which always has a piece ready may send before other sockets are served.
    private static let bytesPerTurn = 1 << 20
    private static let piecesPerTurn = 64

    init(
        _ source: any ContentSource, extent: HttpContent.Extent, transport: LoopTransport,
        receiver: any ResponseReceiver
    ) {
        self.source = source
        self.transport = transport
        self.receiver = receiver
        feed = ContentFeed(loop: transport.loop)
        switch extent {
        case .none: left = 0
        case .length(let length): left = length
        case .unknown: left = nil
        }
        feed.take = { [weak self] in self?.answered($0) }
    }

    var isReused: Bool { false }
    var isBlocked: Bool { false }

    // MARK: Asking

    func pause() { isPaused = true }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        ask()
    }

    /// Asks repeatedly, while the source answers at once and the client accepts more.
    private func ask() {
        guard !isAsking else { return }
        isAsking = true
        defer { isAsking = false }
        bytesThisTurn = 0
        var pieces = 0
        while !isPaused, !isAsked, let source {
            guard bytesThisTurn < ContentStream.bytesPerTurn, pieces < ContentStream.piecesPerTurn else {
                return takeTurns()
            }
            if pieces == 0, let pages = source.pages, send(pages.memory, pages.range) { return }
            pieces += 1
            if let file = source.fileSource, send(file) { continue }
            isAsked = true
            source.next(feed)
        }
    }

    /// Sends all content directly from memory, unread, if the connection can.
    private func send(_ memory: PageMemory, _ range: Range<Int>) -> Bool {
        guard let receiver, range.count == left, let target = receiver.responseRelay,
            target.send(memory, range, sending: { receiver.responseEnding() })
        else {
            return false
        }
        letGo()
        receiver.responseRelayed(range.count)
        receiver.responseEnded(nil)
        return true
    }

    /// Sends the next part of a file unread, if the connection can and the part is in memory.
    private func send(_ file: FileSource) -> Bool {
        guard let receiver, let left, let target = receiver.responseRelay, target.sendsUnseen, let part = file.sendable
        else { return false }
        let isLast = part.count == left
        guard part.count <= left, target.send(file.file, part, sending: { if isLast { receiver.responseEnding() } })
        else { return false }
        // Sending may end the exchange.
        guard self.receiver != nil else { return true }
        file.passed(part.count)
        self.left = left - part.count
        bytesThisTurn += part.count
        receiver.responseRelayed(part.count)
        guard isLast else {
            // Other connections get a turn; then the driver resumes, as after output has drained.
            if !isPaused, bytesThisTurn >= ContentStream.bytesPerTurn {
                isPaused = true
                target.takeTurns()
            }
            return true
        }
        letGo()
        receiver.responseEnded(nil)
        return true
    }

    /// Gives other connections a turn before the next piece: the timer is not due in the current round of the loop.
    private func takeTurns() {
        rest = transport.loop.schedule(after: .nanoseconds(1)) { [weak self] in
            guard let self else { return }
            self.rest = nil
            self.transport.inEvent { self.ask() }
        }
    }

    // MARK: Answers

    private func answered(_ piece: ContentFeed.Piece) {
        guard let receiver else { return }
        transport.inEvent {
            guard isAsked else { return fail("a source brought content that was not asked for") }
            isAsked = false
            switch piece {
            case .bytes(let bytes):
                if let left {
                    guard bytes.count <= left else { return fail("a source brought more than the length it said") }
                    self.left = left - bytes.count
                }
                bytesThisTurn += bytes.count
                if !bytes.isEmpty { bytes.withUnsafeBytes { receiver.responseContent($0) } }
                ask()
            case .end:
                if let left, left > 0 { return fail("a source ended \(left) bytes before the length it said") }
                letGo()
                receiver.responseEnded(nil)
            case .failed(let reason):
                letGo()
                receiver.upstreamFailed(GatewayError(.gateway, .wareFailed, reason))
            }
        }
    }

    /// Ends the exchange after a fatal mistake of the source.
    private func fail(_ reason: String) {
        let receiver = self.receiver
        cancel()
        receiver?.upstreamFailed(GatewayError(.gateway, .wareFailed, reason))
    }

    // MARK: Ending

    func cancel() {
        let source = self.source
        letGo()
        source?.cancelled()
    }

    func discard() { cancel() }

    private func letGo() {
        source = nil
        receiver = nil
        feed.take = nil
        rest?.cancel()
        rest = nil
    }

    // MARK: A source receives nothing

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {}
}
