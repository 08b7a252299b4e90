import HttpWare

// One file: the notes of an exchange's heads, content and messages share one memory limit.
/// Captures one exchange by noting what passes, without delaying it. Used on its loop only.
final class ExchangeCapture: ExchangeTap {
    private let captures: LoopCaptures
    /// `nil` before and after the exchange is captured.
    private var notes: CaptureNotes?
    /// The place among the loop's captures in progress.
    var place = 0
    /// Reads the messages inside the client's content, and inside the response; `nil` if there are none.
    private var sentMessages: MessageReader?
    private var receivedMessages: MessageReader?
    /// The memory that the store has reserved for the copies.
    private var reserved = 0
    /// The unused part of `reserved`.
    private var left = 0
    private var startedAt: Int64 = 0
    private var hasChanged = true
    /// Whether the filter has decided to capture the exchange. Until then it is not shown.
    private var isWanted = false
    private var hasResponse = false
    /// The masked content of a response with events, while it runs.
    private var events: MaskedEvents?

    /// Of a running exchange, this much of each content is shown.
    private static let mostOpen = 64 << 10

    /// Memory is reserved in steps of this size.
    private static let step = 4 << 10

    init(_ captures: LoopCaptures) { self.captures = captures }

    private var settings: CaptureSettings { captures.store.settings }

    // MARK: The request

    /// Takes the request's head. Returns false if the filter excludes the exchange.
    func begin(_ exchange: Exchange) -> Bool {
        startedAt = exchange.now.nanoseconds
        guard let request = exchange.request else { return false }
        let notes = CaptureNotes(exchange, request, captures.store.rules, in: captures.takeBytes())
        if let replay = exchange.replay {
            notes.id = replay.id
            notes.replayOf = replay.original
            isWanted = true
        } else if let filter = captures.filter {
            switch filter.outcome(notes.capture(), at: .requestHead) {
            case .matches: isWanted = true
            case .differs:
                captures.giveBytes(&notes.bytes)
                return false
            case .undecided, .limitReached: break
            }
        } else {
            isWanted = true
        }
        if notes.id == 0 { notes.id = captures.store.takeNumber() }
        exchange.captureNumber = notes.id
        if ExchangeCapture.mayHaveMessages(request.fields) {
            let message = CapturedMessage(fields: captures.store.rules.redaction.shown(request.fields))
            sentMessages = MessageReader(content: .send, of: message, limit: captures.mostContent)
        }
        self.notes = notes
        // A user who repeats a request looks for its capture immediately.
        if notes.replayOf != nil { show() }
        return true
    }

    func requestStarted(_ exchange: Exchange, tls: TlsFacts?) { notes?.tls.client = tls }

    func requestContent(_ bytes: UnsafeRawBufferPointer) {
        guard let notes else { return }
        copy(bytes, to: &notes.request.content)
        readMessages(bytes, &sentMessages)
    }

    func requestEnded(_ trailers: HttpFields?) {
        guard let notes else { return }
        notes.hasRequest = true
        if let trailers { notes.request.trailers = notes.rules.redaction.shown(trailers) }
        hasChanged = true
    }

    func requestSent(_ exchange: Exchange, host: String?, tls: TlsFacts?) {
        guard let notes, let request = exchange.request else { return }
        notes.hasInjected = notes.hasInjected || !exchange.injectedFields.isEmpty || exchange.hasSwappedTokens
        notes.sentHost = host
        notes.sentRequest = CaptureNotes.Message(
            head: notes.note(request.fields, of: exchange, like: notes.request.head),
            content: ContentCopy(isLikeOther: true))
        notes.route = exchange.route
        notes.service = exchange.service
        notes.server = exchange.upstreamAddress
        notes.tls.server = tls
        hasChanged = true
    }

    func sentContent(_ bytes: UnsafeRawBufferPointer) {
        guard let notes else { return }
        copy(bytes, to: &notes.sentRequest.content, beside: notes.request.content)
    }

    // MARK: The response

    func responseReceived(_ response: HttpResponse) {
        guard let notes else { return }
        notes.receivedResponse = CaptureNotes.Message(head: notes.note(response.fields))
        notes.response.content = ContentCopy(isLikeOther: true)
        hasChanged = true
    }

    func receivedContent(_ bytes: UnsafeRawBufferPointer) {
        guard let notes else { return }
        copy(bytes, to: &notes.receivedResponse.content)
    }

    func responseStarted(_ response: HttpResponse) {
        guard let notes else { return }
        notes.response.head = notes.note(response.fields, like: notes.receivedResponse.head)
        notes.response.trailers = CapturedFields()
        notes.status = response.status.code
        notes.reason = response.receivedReason
        notes.isReasonRaw = notes.reason != nil && response.isReasonRaw
        hasChanged = true
        let isSwitched = response.status == .switchingProtocols
        guard isSwitched || ExchangeCapture.mayHaveMessages(response.fields) else { return }
        let message = CapturedMessage(fields: notes.rules.redaction.shown(response.fields))
        if notes.kind == .http {
            if message.fields.hasMediaType("text/event-stream") { notes.kind = .sse }
            if message.fields.hasMediaType("application/grpc", isPrefix: true) { notes.kind = .grpc }
        }
        let limit = captures.mostContent
        if isSwitched {
            sentMessages = MessageReader(webSocket: .send, response: message, limit: limit)
            receivedMessages = MessageReader(webSocket: .receive, response: message, limit: limit)
        } else {
            receivedMessages = MessageReader(content: .receive, of: message, limit: limit)
        }
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        guard let notes else { return }
        copy(bytes, to: &notes.response.content, beside: notes.receivedResponse.content)
        readMessages(bytes, &receivedMessages)
    }

    func responseEnded(_ trailers: HttpFields?) {
        hasResponse = true
        if let trailers, let notes { notes.response.trailers = notes.rules.redaction.shown(trailers) }
    }

    func tunnelled(_ bytes: UnsafeRawBufferPointer, isSent: Bool) {
        guard let notes else { return }
        // Of a WebSocket only the messages are kept, because values in frames cannot be masked.
        let isKept = notes.rules.redaction.showsAll || notes.kind != .websocket
        hasChanged = true
        if isSent {
            if isKept { copy(bytes, to: &notes.request.content) } else { notes.request.content.pass(bytes.count) }
            readMessages(bytes, &sentMessages)
        } else {
            if isKept {
                copy(bytes, to: &notes.response.content, beside: notes.receivedResponse.content)
            } else {
                notes.response.content.pass(bytes.count)
            }
            readMessages(bytes, &receivedMessages)
        }
    }

    /// Whether content with these fields may consist of messages.
    private static func mayHaveMessages(_ fields: HttpFields) -> Bool {
        fields.withFirstValue(of: .contentType) { value in
            ["text/event-stream", "application/grpc"].contains { (type: StaticString) in
                CapturedFields.isSame(UnsafeRawBufferPointer(rebasing: value.prefix(type.utf8CodeUnitCount)), type)
            }
        } ?? false
    }

    // MARK: The copies

    /// Adds to the content of one side. It takes no memory while it equals the content of the other side, which arrived
    /// first.
    private func copy(
        _ bytes: UnsafeRawBufferPointer, to copy: inout ContentCopy, beside other: ContentCopy = ContentCopy()
    ) {
        hasChanged = true
        var count = min(bytes.count, max(0, captures.mostContent - copy.count))
        if copy.dropped > 0 { count = 0 }
        if copy.isLikeOther {
            if copy.add(bytes, keeping: count, ifLike: other) { return }
            copy.part(from: other, keeps: take(copy.count))
            if copy.dropped > 0 { count = 0 }
        }
        if !take(count) {
            copy.dropped += count - left
            count = left
            left = 0
        }
        copy.add(bytes, keeping: count)
    }

    /// Takes memory; returns false if there is not enough.
    private func take(_ count: Int) -> Bool {
        if count > left {
            let more = (count - left + ExchangeCapture.step - 1) / ExchangeCapture.step * ExchangeCapture.step
            guard captures.take(more) else { return false }
            reserved += more
            left += more
        }
        left -= count
        return true
    }

    private func readMessages(_ bytes: UnsafeRawBufferPointer, _ reader: inout MessageReader?) {
        guard reader != nil, let notes else { return }
        for piece in reader?.read(bytes, at: captures.loop.wallNow()) ?? [] {
            // If the gateway added a credential, the origin server's messages may contain it, so their originals are
            // not kept.
            let keepsOriginal = !notes.hasInjected || piece.direction == .send
            let masked = notes.rules.redaction.masked(piece, keepsOriginal: keepsOriginal)
            if take(masked.memory) { notes.messages.append(masked) }
        }
    }

    // MARK: Showing

    /// Shows the current state of the exchange, if it has changed. Returns false if the exchange is not shown.
    @discardableResult
    func show() -> Bool {
        guard let notes else { return false }
        guard hasChanged else { return isWanted }
        hasChanged = false
        notes.duration = captures.loop.now.nanoseconds - startedAt
        // While an exchange runs, it is masked again at each look.
        var events = events.take() ?? MaskedEvents()
        let captured = notes.capture(mostShown: ExchangeCapture.mostOpen, events: &events)
        self.events = events
        guard isWanted || isDecided(captured) else { return false }
        captures.store.put(captured)
        return true
    }

    /// Whether the known parts make the filter match. If they make it differ, capturing stops.
    private func isDecided(_ captured: CapturedExchange) -> Bool {
        let phase: CapturePhase =
            !(notes?.hasRequest ?? false)
            ? .requestHead
            : captured.response == nil ? .requestContent : hasResponse ? .responseContent : .responseHead
        switch captures.filter?.outcome(captured, at: phase) {
        case .matches, nil: isWanted = true
        case .differs: drop()
        case .undecided, .limitReached: break
        }
        return isWanted
    }

    /// Stops capturing the exchange.
    private func drop() {
        captures.ended(self)
        captures.giveBack(reserved)
        (reserved, left) = (0, 0)
        if let notes = notes.take() { captures.giveBytes(&notes.bytes) }
        (sentMessages, receivedMessages) = (nil, nil)
    }

    func ended(_ exchange: Exchange, record: RecordedExchange?) {
        guard let notes = notes.take() else { return }
        captures.ended(self)
        notes.isOpen = false
        notes.isCutOff = exchange.end != .completed
        notes.route = exchange.route
        notes.service = exchange.service
        notes.fault = exchange.failure?.fault
        notes.rulesOfExchange = exchange.rules
        notes.record = record
        notes.duration = exchange.now.nanoseconds - startedAt
        notes.finish()
        if !isWanted, let filter = captures.filter, !filter.matches(notes.capture()) {
            self.notes = notes
            return drop()
        }
        captures.giveBack(reserved)
        captures.pack(&notes.bytes)
        captures.store.put(KeptCapture(notes))
    }
}
