import Glibc
import HttpWare

// One file: the copies of an exchange's heads, content and messages share one memory limit.
/// Captures one exchange by copying what passes, without delaying it. Used on its loop only.
final class ExchangeCapture: ExchangeTap {
    private let captures: LoopCaptures
    private var captured: CapturedExchange?
    private var request = ContentCopy()
    private var sentRequest = ContentCopy()
    private var receivedResponse = ContentCopy()
    private var response = ContentCopy()
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
    private var hasRequest = false
    private var hasResponse = false
    /// The masked content of a response with events.
    private var events = MaskedEvents()
    /// Whether the gateway's own credentials were put into the request.
    private var hasInjected = false

    /// Of a running exchange, this much of each content is shown.
    private static let mostOpen = 64 << 10

    private static func shorten(_ message: inout CapturedMessage) {
        let kept = message.content.kept
        if kept.count > mostOpen { message.content.kept = Array(kept.prefix(mostOpen)) }
    }

    private static func shortened(_ message: CapturedMessage) -> CapturedMessage {
        var message = message
        shorten(&message)
        return message
    }

    /// Memory is reserved in steps of this size.
    private static let step = 4 << 10

    init(_ captures: LoopCaptures) { self.captures = captures }

    private var settings: CaptureSettings { captures.store.settings }

    // MARK: The request

    /// Takes the request's head. Returns false if the filter excludes the exchange.
    func begin(_ exchange: Exchange) -> Bool {
        startedAt = exchange.now.nanoseconds
        guard let request = exchange.request else { return false }
        let redaction = captures.redaction.with(exchange)
        let url = exchange.writtenUri(of: request)
        let fields = redaction.fields(request.fields.received)
        var captured = CapturedExchange(
            id: 0, started: exchange.wallNow,
            method: request.receivedMethod.name, url: redaction.url(url),
            version: request.version.name,
            listener: exchange.listener, request: CapturedMessage(fields: fields.shown))
        captured.peer = exchange.peer
        captured.route = exchange.route
        if request.upgrade?.lowercased() == "websocket" { captured.kind = .websocket }
        captured.secrets = CapturedSecrets(
            url: captured.url == url ? nil : url, request: fields.secrets, entry: exchange.entry)
        if let replay = exchange.replay {
            captured.id = replay.id
            captured.replayOf = replay.original
            isWanted = true
        } else if let filter = settings.filter {
            switch filter.outcome(captured, at: .requestHead) {
            case .matches: isWanted = true
            case .differs: return false
            case .undecided, .limitReached: break
            }
        } else {
            isWanted = true
        }
        if captured.id == 0 { captured.id = captures.store.takeNumber() }
        exchange.captureNumber = captured.id
        sentMessages = MessageReader(content: .send, of: captured.request, limit: captures.mostContent)
        self.captured = captured
        // A user who repeats a request looks for its capture immediately.
        if captured.replayOf != nil { show() }
        return true
    }

    func requestStarted(_ exchange: Exchange, tls: TlsFacts?) { captured?.tls.client = tls }

    func requestContent(_ bytes: UnsafeRawBufferPointer) {
        copy(bytes, to: &request)
        readMessages(bytes, &sentMessages)
    }

    func requestEnded(_ trailers: HttpFields?) {
        hasRequest = true
        if let trailers { captured?.request.trailers = captures.redaction.fields(trailers).shown }
        hasChanged = true
        guard let captured,
            GraphQLOperations.mayBeThere(method: captured.method, url: captured.url, content: request.kept)
        else { return }
        self.captured?.operations = GraphQLOperations.names(
            method: captured.method, url: captured.url,
            mediaType: captured.request.values(of: "content-type").first, content: request.kept)
    }

    func requestSent(_ exchange: Exchange, host: String?, tls: TlsFacts?) {
        guard let request = exchange.request else { return }
        let redaction = captures.redaction.with(exchange)
        var fields = redaction.fields(request.fields, host: host).shown
        hasInjected = hasInjected || !exchange.injectedFields.isEmpty || exchange.hasSwappedTokens
        // If the fields are unchanged, they share the memory of the received ones.
        if fields == captured?.request.fields { fields = captured?.request.fields ?? fields }
        captured?.sentRequest = CapturedMessage(fields: fields)
        captured?.route = exchange.route
        captured?.service = exchange.service
        captured?.server = exchange.upstreamAddress
        captured?.tls.server = tls
        sentRequest = ContentCopy(isLikeOther: true)
        hasChanged = true
    }

    func sentContent(_ bytes: UnsafeRawBufferPointer) { copy(bytes, to: &sentRequest, beside: request) }

    // MARK: The response

    func responseReceived(_ response: HttpResponse) {
        captured?.receivedResponse = CapturedMessage(
            fields: captures.redaction.fields(response.fields).shown)
        receivedResponse = ContentCopy()
        self.response = ContentCopy(isLikeOther: true)
        hasChanged = true
    }

    func receivedContent(_ bytes: UnsafeRawBufferPointer) { copy(bytes, to: &receivedResponse) }

    func responseStarted(_ response: HttpResponse) {
        let masked = captures.redaction.fields(response.fields)
        var fields = masked.shown
        if let received = captured?.receivedResponse, received.fields == fields { fields = received.fields }
        // A response to the gateway's own credential may contain that credential.
        if !masked.secrets.isEmpty, !hasInjected {
            let former = captured?.secrets
            captured?.secrets = CapturedSecrets(former, response: masked.secrets)
        }
        captured?.response = CapturedMessage(fields: fields)
        captured?.status = response.status.code
        captured?.reason = response.receivedReason
        if captured?.kind == .http {
            if fields.hasMediaType("text/event-stream") { captured?.kind = .sse }
            if fields.hasMediaType("application/grpc", isPrefix: true) { captured?.kind = .grpc }
        }
        if let message = captured?.response {
            let limit = captures.mostContent
            if response.status == .switchingProtocols {
                sentMessages = MessageReader(webSocket: .send, response: message, limit: limit)
                receivedMessages = MessageReader(webSocket: .receive, response: message, limit: limit)
            } else {
                receivedMessages = MessageReader(content: .receive, of: message, limit: limit)
            }
        }
        hasChanged = true
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        copy(bytes, to: &response, beside: receivedResponse)
        readMessages(bytes, &receivedMessages)
    }

    func responseEnded(_ trailers: HttpFields?) {
        hasResponse = true
        if let trailers { captured?.response?.trailers = captures.redaction.fields(trailers).shown }
    }

    func tunnelled(_ bytes: UnsafeRawBufferPointer, isSent: Bool) {
        // Of a WebSocket only the messages are kept, because values in frames cannot be masked.
        let isKept = captures.redaction.showsAll || captured?.kind != .websocket
        hasChanged = true
        if isSent {
            if isKept { copy(bytes, to: &request) } else { request.pass(bytes.count) }
            readMessages(bytes, &sentMessages)
        } else {
            if isKept { copy(bytes, to: &response, beside: receivedResponse) } else { response.pass(bytes.count) }
            readMessages(bytes, &receivedMessages)
        }
    }

    // MARK: The copies

    /// Adds to the content of one side. It takes no memory while it equals the content of the other side, which arrived
    /// first.
    private func copy(
        _ bytes: UnsafeRawBufferPointer, to copy: inout ContentCopy, beside other: ContentCopy = ContentCopy()
    ) {
        guard captured != nil else { return }
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
        guard reader != nil, captured != nil else { return }
        for piece in reader?.read(bytes, at: captures.loop.wallNow()) ?? [] {
            // If the gateway added a credential, the origin server's messages may contain it, so their originals are
            // not kept.
            let keepsOriginal = !hasInjected || piece.direction == .send
            let masked = captures.redaction.masked(piece, keepsOriginal: keepsOriginal)
            if take(masked.memory) { captured?.messages.append(masked) }
        }
    }

    // MARK: Showing

    /// Shows the current state of the exchange, if it has changed. Returns false if the exchange is not shown.
    @discardableResult
    func show() -> Bool {
        guard var captured else { return false }
        guard hasChanged else { return isWanted }
        hasChanged = false
        fill(&captured)
        guard isWanted || isDecided(captured) else { return false }
        captures.store.put(captured)
        return true
    }

    /// Whether the known parts make the filter match. If they make it differ, capturing stops.
    private func isDecided(_ captured: CapturedExchange) -> Bool {
        let phase: CapturePhase =
            !hasRequest
            ? .requestHead
            : captured.response == nil ? .requestContent : hasResponse ? .responseContent : .responseHead
        switch settings.filter?.outcome(captured, at: phase) {
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
        captured = nil
        (request, sentRequest, receivedResponse, response) = (
            ContentCopy(), ContentCopy(), ContentCopy(), ContentCopy()
        )
        (sentMessages, receivedMessages) = (nil, nil)
    }

    func ended(_ exchange: Exchange, record: RecordedExchange?) {
        captures.ended(self)
        guard var captured = captured.take() else { return }
        captured.isOpen = false
        captured.isCutOff = exchange.end != .completed
        captured.route = exchange.route
        captured.service = exchange.service
        captured.fault = exchange.failure.map { "\($0.fault)" }
        captured.rules = exchange.rules
        captured.record = record.map { CapturedRecord(.recorded($0)) }
        captured.duration = exchange.now.nanoseconds - startedAt
        fill(&captured, isLast: true)
        guard isWanted || settings.filter?.matches(captured) ?? true else { return drop() }
        captures.giveBack(reserved)
        captures.store.put(captured)
    }

    private func fill(_ captured: inout CapturedExchange, isLast: Bool = false) {
        if !isLast { captured.duration = captures.loop.now.nanoseconds - startedAt }
        captured.request.content = request.content(isLast: isLast)
        if captured.sentRequest != nil {
            captured.sentRequest?.content = sentRequest.content(isLast: isLast, beside: request)
        }
        if captured.receivedResponse != nil {
            captured.receivedResponse?.content = receivedResponse.content(isLast: isLast)
        }
        if captured.response != nil {
            captured.response?.content = response.content(isLast: isLast, beside: receivedResponse)
        }
        maskContents(&captured, isLast: isLast)
    }

    /// Masks credential-like values on both sides, only once if both are equal.
    private func maskContents(_ captured: inout CapturedExchange, isLast: Bool) {
        let redaction = captures.redaction
        // While an exchange runs, it is masked again at each look.
        let limit = isLast ? captures.mostContent : min(captures.mostContent, ExchangeCapture.mostOpen)
        if !isLast, !redaction.showsAll {
            ExchangeCapture.shorten(&captured.request)
            captured.sentRequest = captured.sentRequest.map(ExchangeCapture.shortened)
            if captured.kind != .sse {
                captured.response = captured.response.map(ExchangeCapture.shortened)
                captured.receivedResponse = captured.receivedResponse.map(ExchangeCapture.shortened)
            }
        }
        func mask(_ message: inout CapturedMessage, _ other: inout CapturedMessage?) -> CapturedContent? {
            let original = redaction.maskContent(&message, limit: limit)
            if let original, other?.content.kept == original.kept {
                other?.content = message.content
            } else if var rest = other {
                _ = redaction.maskContent(&rest, limit: limit)
                other = rest
            }
            return original
        }
        if let content = mask(&captured.request, &captured.sentRequest) {
            captured.secrets = CapturedSecrets(captured.secrets, requestContent: content)
        }
        guard var response = captured.response else { return }
        if captured.kind == .sse, !redaction.showsAll, maskEvents(&captured, isLast: isLast) { return }
        if let content = mask(&response, &captured.receivedResponse) {
            captured.response = response
            if !hasInjected { captured.secrets = CapturedSecrets(captured.secrets, responseContent: content) }
        }
    }
}

extension ExchangeCapture {
    /// Masks the events of a response while they arrive. Returns false if the whole content must be masked at once.
    private func maskEvents(_ captured: inout CapturedExchange, isLast: Bool) -> Bool {
        guard let original = captured.response?.content else { return true }
        let isCoded = captured.response.map { !$0.values(of: "content-encoding").isEmpty } ?? false
        if isCoded, isLast { return false }
        let isSame = captured.receivedResponse?.content.kept == original.kept
        // Coded content is not decoded repeatedly. Until it ends, only its messages are shown.
        captured.response?.content.kept = isCoded ? [] : events.update(original.kept, isLast: isLast)
        if events.hasMarks { captured.response?.content.maskedFrom = original.kept.count }
        if isSame, let content = captured.response?.content {
            captured.receivedResponse?.content = content
        } else if var received = captured.receivedResponse {
            if isLast {
                _ = captures.redaction.maskContent(&received, limit: captures.mostContent)
            } else {
                received.content.kept = []
            }
            captured.receivedResponse = received
        }
        if isLast, events.hasMarks, !hasInjected {
            captured.secrets = CapturedSecrets(captured.secrets, responseContent: original)
        }
        return true
    }
}

/// A copy of content, as far as it is kept.
private struct ContentCopy {
    private(set) var kept: [UInt8] = []
    private(set) var size = 0
    /// The number of bytes that equal the beginning of the other side; nothing is kept here. `nil` if this copy keeps its own
    /// bytes.
    private var likeOther: Int?
    /// The number of bytes that were not kept for lack of memory.
    var dropped = 0
    /// The digest of content that is longer than its kept part.
    private var digest: RunningDigest256?

    init(isLikeOther: Bool = false) { likeOther = isLikeOther ? 0 : nil }

    var isLikeOther: Bool { likeOther != nil }
    /// The number of bytes that are kept, here or on the other side.
    var count: Int { likeOther ?? kept.count }

    mutating func add(_ bytes: UnsafeRawBufferPointer, keeping count: Int) {
        digest(bytes, keeping: count, behind: kept)
        kept.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
    }

    /// Adds bytes without keeping them if they equal the other side's. Otherwise adds nothing and returns false.
    mutating func add(_ bytes: UnsafeRawBufferPointer, keeping count: Int, ifLike other: ContentCopy) -> Bool {
        guard let likeOther, other.kept.count - likeOther >= count else { return false }
        let isLike = other.kept.withUnsafeBytes { kept in
            count == 0 || memcmp(kept.baseAddress! + likeOther, bytes.baseAddress!, count) == 0
        }
        guard isLike else { return false }
        digest(bytes, keeping: count, behind: other.kept[..<likeOther])
        self.likeOther = likeOther + count
        return true
    }

    /// Separates the copy from the other side. With `keeps`, the equal bytes are copied here; otherwise they count as
    /// dropped.
    mutating func part(from other: ContentCopy, keeps: Bool) {
        guard let likeOther else { return }
        if keeps { kept = Array(other.kept[..<likeOther]) } else { dropped += likeOther }
        self.likeOther = nil
    }

    private mutating func digest(
        _ bytes: UnsafeRawBufferPointer, keeping count: Int, behind kept: some Collection<UInt8>
    ) {
        size += bytes.count
        if count < bytes.count, digest == nil {
            digest = RunningDigest256()
            Array(kept).withUnsafeBytes { digest?.add($0) }
        }
        digest?.add(bytes)
    }

    /// Counts bytes that are not kept.
    mutating func pass(_ more: Int) { size += more }

    /// The content for a capture; `other` is the other side, for a copy that equals it.
    mutating func content(isLast: Bool, beside other: ContentCopy = ContentCopy()) -> CapturedContent {
        var content = CapturedContent()
        content.kept = kept
        if let likeOther {
            content.kept = likeOther == other.kept.count ? other.kept : Array(other.kept.prefix(likeOther))
        }
        content.size = size
        content.dropped = dropped
        if isLast {
            content.sha256 = digest?.finish()
            digest = nil
        }
        return content
    }
}
