import Glibc
import HttpWare

/// The rules by which captures are made of notes.
final class CaptureRules: Sendable {
    /// The masking rules of the settings.
    let redaction: CaptureRedaction
    /// The most bytes that are kept of a content.
    let mostContent: Int

    init(_ settings: CaptureSettings) {
        redaction = CaptureRedaction(settings)
        mostContent = settings.content.bytes
    }
}

/// The notes of a loop about an exchange: the bytes that passed, and its facts. The capture is made of them when it is read, so that a
/// loop neither searches for credentials nor makes texts.
///
/// Unchecked: used only on its loop until a `KeptCapture` has it. From then on it does not change.
final class CaptureNotes: @unchecked Sendable {
    /// One side of a message.
    struct Message {
        var head = Head.missing
        var trailers = CapturedFields()
        var content = ContentCopy()

        var isMissing: Bool {
            if case .missing = head { true } else { false }
        }
    }

    /// A header section.
    enum Head {
        case missing
        /// A range of `bytes`, in the form of `HttpFields.appendPacked`.
        case packed(start: Int, end: Int)
        /// A section that is already masked.
        case made(MadeHead)

        /// Whether both are the same notes.
        func isSame(as other: Head) -> Bool {
            guard case .packed(let start, let end) = self, case .packed(let otherStart, let otherEnd) = other else {
                return false
            }
            return start == otherStart && end == otherEnd
        }
    }

    let rules: CaptureRules
    var id = 0
    var kind = CapturedExchange.Kind.http
    var isOpen = true
    var isCutOff = false
    /// Whether the request has arrived.
    var hasRequest = false
    /// Whether the gateway's own credentials were put into the request.
    var hasInjected = false
    let started: WallTime
    /// The duration in nanoseconds.
    var duration: Int64 = 0
    let method: String
    let version: String
    let listener: String
    var route: String?
    var service: String?
    var server: String?
    let peer: SocketAddress?
    var tls = CapturedTls()
    var status: Int?
    var reason: String?
    var isReasonRaw = false
    var fault: GatewayError.Fault?
    var replayOf: Int?
    var rulesOfExchange: [Int] = []
    var entry: ExchangeEntry?
    var record: RecordedExchange?
    /// The target URI, and the packed header sections.
    var bytes: [UInt8]
    private var urlEnd = 0
    /// The `Host` that was sent.
    var sentHost: String?
    var request = Message()
    var sentRequest = Message()
    var receivedResponse = Message()
    var response = Message()
    var messages: [CapturedPiece] = []
    /// The pin and the comment of a user.
    var isPinned = false
    var comment = ""

    /// Notes of an exchange that begins. `bytes` is empty memory for them, to which `url` appends the target URI.
    init(
        started: WallTime, method: String, version: String, listener: String, peer: SocketAddress?,
        _ rules: CaptureRules, in bytes: [UInt8], url: (inout [UInt8]) -> Void
    ) {
        self.rules = rules
        self.bytes = bytes
        self.started = started
        self.method = method
        self.version = version
        self.listener = listener
        self.peer = peer
        url(&self.bytes)
        urlEnd = self.bytes.count
    }

    /// Notes of an exchange and its received head.
    convenience init(_ exchange: Exchange, _ request: HttpRequest, _ rules: CaptureRules, in bytes: [UInt8]) {
        self.init(
            started: exchange.wallNow, method: request.receivedMethod.name, version: request.version.name,
            listener: exchange.listener, peer: exchange.peer, rules, in: bytes
        ) { exchange.appendWrittenUri(of: request, to: &$0) }
        route = exchange.route
        entry = exchange.entry
        if request.upgrade?.lowercased() == "websocket" { kind = .websocket }
        self.request.head = head(exchange) {
            request.fields.appendPackedReceived(to: &$0)
        } otherwise: {
            $0.fields(request.fields.received)
        }
    }

    // MARK: Noting heads

    /// Notes a header section. With `like`, an equal section is not noted twice.
    func note(_ fields: HttpFields, of exchange: Exchange? = nil, like other: Head = .missing) -> Head {
        let head = head(exchange) {
            fields.appendPacked(to: &$0)
        } otherwise: {
            $0.fields(fields, host: exchange == nil ? nil : sentHost)
        }
        guard case .packed(let start, let end) = head, case .packed(let otherStart, let otherEnd) = other,
            end - start == otherEnd - otherStart
        else { return head }
        let isLike = bytes.withUnsafeBytes {
            guard let base = $0.baseAddress else { return true }
            return memcmp(base + start, base + otherStart, end - start) == 0
        }
        guard isLike else { return head }
        bytes.removeLast(end - start)
        return other
    }

    /// The gateway's own credentials are masked at once, and so are sections that cannot be packed.
    private func head(
        _ exchange: Exchange?, pack: (inout [UInt8]) -> Bool,
        otherwise make: (CaptureRedaction) -> (shown: CapturedFields, secrets: [CapturedSecrets.Value])
    ) -> Head {
        if let exchange, !exchange.injectedFields.isEmpty {
            return .made(MadeHead(make(rules.redaction.with(exchange))))
        }
        let start = bytes.count
        return pack(&bytes) ? .packed(start: start, end: bytes.count) : .made(MadeHead(make(rules.redaction)))
    }

    /// Completes the notes of an exchange that has ended.
    func finish() {
        request.content.finish()
        sentRequest.content.finish()
        receivedResponse.content.finish()
        response.content.finish()
    }

    // MARK: Facts

    /// The memory of the object, and of what is added when the capture is made.
    private static let ownMemory = 1024

    /// The approximate memory in bytes. A capture that is made of the notes seldom takes more.
    var memory: Int {
        var memory =
            CaptureNotes.ownMemory + bytes.capacity + (record?.bytes ?? 0) + (entry?.memory ?? 0) + comment.utf8.count
        memory += request.memory + sentRequest.memory + receivedResponse.memory + response.memory
        for message in messages { memory += message.memory }
        return memory + tls.memory(for: id)
    }
}

extension CaptureNotes.Message {
    fileprivate var memory: Int {
        var memory = trailers.memory + content.memory
        if case .made(let made) = head { memory += made.memory }
        return memory
    }
}

/// A masked header section, and the masked values.
final class MadeHead: Sendable {
    let shown: CapturedFields
    let secrets: [CapturedSecrets.Value]

    init(_ made: (shown: CapturedFields, secrets: [CapturedSecrets.Value])) {
        (shown, secrets) = made
    }

    fileprivate var memory: Int { secrets.reduce(64 + shown.memory) { $0 + 64 + $1.bytes.count } }
}

// MARK: Making

extension CaptureNotes {
    /// The capture, masked. `mostShown` limits each content, except events, which are masked up to the last complete one by
    /// `events`.
    func capture(mostShown: Int? = nil, events: inout MaskedEvents) -> CapturedExchange {
        var captured = unmaskedCapture()
        mask(&captured, mostShown: mostShown, events: &events)
        return captured
    }

    /// The capture of an exchange that has ended, as a row of a list: without content and messages.
    func row() -> CapturedExchange {
        var captured = unmaskedCapture()
        captured.messages = []
        captured.request.content.kept = []
        captured.sentRequest = nil
        captured.receivedResponse?.content.kept = []
        captured.response?.content.kept = []
        return captured
    }

    /// The capture, whose contents are not masked yet.
    private func unmaskedCapture() -> CapturedExchange {
        let redaction = rules.redaction
        let plainUrl = ReceivedText.target(Array(bytes[..<urlEnd]))
        let head = made(request.head)
        var captured = CapturedExchange(
            id: id, started: started, method: method, url: redaction.url(plainUrl), version: version,
            listener: listener, request: CapturedMessage(fields: head.shown))
        captured.kind = kind
        captured.isOpen = isOpen
        captured.isCutOff = isCutOff
        captured.duration = duration
        captured.peer = peer
        captured.route = route
        captured.service = service
        captured.server = server
        captured.tls = tls
        captured.status = status
        captured.reason = reason
        captured.isReasonRaw = isReasonRaw
        captured.fault = fault.map { "\($0)" }
        captured.replayOf = replayOf
        captured.rules = rulesOfExchange
        captured.record = record.map { CapturedRecord(.recorded($0)) }
        captured.messages = messages
        captured.isPinned = isPinned
        captured.comment = comment
        captured.secrets = CapturedSecrets(
            url: captured.url == plainUrl ? nil : plainUrl, target: rawTarget, request: head.secrets, entry: entry)
        addMessages(to: &captured)
        if hasRequest,
            GraphQLOperations.mayBeThere(method: method, url: captured.url, content: request.content.kept)
        {
            captured.operations = GraphQLOperations.names(
                method: method, url: captured.url, mediaType: captured.request.values(of: "content-type").first,
                content: request.content.kept)
        }
        return captured
    }

    /// The target URI in its bytes, if they are not UTF-8.
    private var rawTarget: [UInt8]? {
        let target = bytes[..<urlEnd]
        guard target.contains(where: { $0 >= 0x80 }), String(validating: target, as: UTF8.self) == nil else {
            return nil
        }
        return Array(target)
    }

    /// The capture of an exchange that has ended.
    func capture() -> CapturedExchange {
        var events = MaskedEvents()
        return capture(events: &events)
    }

    private func made(_ head: Head, host: String? = nil) -> (shown: CapturedFields, secrets: [CapturedSecrets.Value]) {
        switch head {
        case .missing: (CapturedFields(), [])
        case .made(let made): (made.shown, made.secrets)
        case .packed(let start, let end):
            bytes.withUnsafeBytes {
                rules.redaction.fields(packed: UnsafeRawBufferPointer(rebasing: $0[start..<end]), host: host)
            }
        }
    }

    /// Adds the heads and contents. Equal heads share their memory.
    private func addMessages(to captured: inout CapturedExchange) {
        captured.request.trailers = request.trailers
        captured.request.content = request.content.content()
        if !sentRequest.isMissing {
            let fields = made(sentRequest.head, host: sentHost).shown
            var message = CapturedMessage(fields: fields == captured.request.fields ? captured.request.fields : fields)
            message.content = sentRequest.content.content(beside: request.content)
            captured.sentRequest = message
        }
        let received = made(receivedResponse.head)
        if !receivedResponse.isMissing {
            var message = CapturedMessage(fields: received.shown)
            message.content = receivedResponse.content.content()
            captured.receivedResponse = message
        }
        guard !response.isMissing else { return }
        let head = response.head.isSame(as: receivedResponse.head) ? received : made(response.head)
        var message = CapturedMessage(fields: head.shown)
        if let received = captured.receivedResponse, received.fields == head.shown { message.fields = received.fields }
        // A response to the gateway's own credential may contain that credential.
        if !head.secrets.isEmpty, !hasInjected {
            captured.secrets = CapturedSecrets(captured.secrets, response: head.secrets)
        }
        message.trailers = response.trailers
        message.content = response.content.content(beside: receivedResponse.content)
        captured.response = message
    }

    private static func shorten(_ message: inout CapturedMessage, to most: Int) {
        let kept = message.content.kept
        if kept.count > most { message.content.kept = Array(kept.prefix(most)) }
    }

    /// Masks credential-like values on both sides, only once if both are equal.
    private func mask(_ captured: inout CapturedExchange, mostShown: Int?, events: inout MaskedEvents) {
        let redaction = rules.redaction
        let limit = min(rules.mostContent, mostShown ?? .max)
        if let mostShown, !redaction.showsAll {
            func shortened(_ message: CapturedMessage) -> CapturedMessage {
                var message = message
                CaptureNotes.shorten(&message, to: mostShown)
                return message
            }
            CaptureNotes.shorten(&captured.request, to: mostShown)
            captured.sentRequest = captured.sentRequest.map(shortened)
            if captured.kind != .sse {
                captured.response = captured.response.map(shortened)
                captured.receivedResponse = captured.receivedResponse.map(shortened)
            }
        }
        func mask(_ message: inout CapturedMessage, _ other: inout CapturedMessage?) -> CapturedContent? {
            // Equal parts share their memory, so that most sides are compared without reading them.
            let isLike = other.map { $0.content.kept == message.content.kept } ?? false
            let isReadAlike = other.map { message.fields.isReadLike($0.fields) } ?? false
            let original = redaction.maskContent(&message, limit: limit)
            if let original, other?.content.kept == original.kept {
                other?.content = message.content
            } else if !(isLike && isReadAlike), var rest = other {
                _ = redaction.maskContent(&rest, limit: limit)
                other = rest
            }
            return original
        }
        if let content = mask(&captured.request, &captured.sentRequest) {
            captured.secrets = CapturedSecrets(captured.secrets, requestContent: content)
        }
        guard var response = captured.response else { return }
        if captured.kind == .sse, !redaction.showsAll, maskEvents(&captured, isLast: mostShown == nil, &events) {
            return
        }
        if let content = mask(&response, &captured.receivedResponse) {
            captured.response = response
            if !hasInjected { captured.secrets = CapturedSecrets(captured.secrets, responseContent: content) }
        }
    }

    /// Masks the events of a response while they arrive. Returns false if the whole content must be masked at once.
    private func maskEvents(_ captured: inout CapturedExchange, isLast: Bool, _ events: inout MaskedEvents) -> Bool {
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
                _ = rules.redaction.maskContent(&received, limit: rules.mostContent)
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
