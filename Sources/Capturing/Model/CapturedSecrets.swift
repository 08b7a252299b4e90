public import HttpWare

/// The masked values of an exchange, and a target that is not UTF-8, as the client sent and received them. They serve to repeat the request, and to
/// write archives with secrets on request. They are only in memory, with their capture.
public final class CapturedSecrets: Sendable {
    /// The value of a field line.
    struct Value: Sendable, Equatable {
        /// The index of the line in the header section.
        let place: Int
        let bytes: [UInt8]
    }

    /// The target URI, if parts of it are masked.
    let url: String?
    /// The target URI in the bytes that were received, if they are not UTF-8.
    let target: [UInt8]?
    let request: [Value]
    let response: [Value]
    /// Contents before values in them were masked.
    let requestContent: CapturedContent?
    let responseContent: CapturedContent?
    /// How the request arrived at its listener.
    public let entry: ExchangeEntry?

    /// `nil` if there is nothing to keep.
    init?(url: String?, target: [UInt8]? = nil, request: [Value], entry: ExchangeEntry?) {
        guard url != nil || target != nil || !request.isEmpty || entry != nil else { return nil }
        self.url = url
        self.target = target
        self.request = request
        self.entry = entry
        response = []
        (requestContent, responseContent) = (nil, nil)
    }

    /// A copy with additional values.
    init(
        _ other: CapturedSecrets?, response: [Value]? = nil, requestContent: CapturedContent? = nil,
        responseContent: CapturedContent? = nil
    ) {
        url = other?.url
        target = other?.target
        request = other?.request ?? []
        entry = other?.entry
        self.response = response ?? other?.response ?? []
        self.requestContent = requestContent ?? other?.requestContent
        self.responseContent = responseContent ?? other?.responseContent
    }

    /// The approximate memory in bytes.
    var memory: Int {
        (request + response).reduce(
            128 + (url?.utf8.count ?? 0) + (target?.count ?? 0) + (entry?.memory ?? 0)
                + (requestContent?.kept.count ?? 0)
                + (responseContent?.kept.count ?? 0)
        ) { $0 + 64 + $1.bytes.count }
    }
}

extension CapturedExchange {
    /// Whether a text is, or ends with, the mark of a masked value.
    static func isMasked(_ value: String) -> Bool { value == Redaction.mark || value.hasSuffix(" " + Redaction.mark) }

    /// The exchange with its masked values restored as far as they are known, and the number of unknown values.
    public var restored: (exchange: CapturedExchange, missing: Int) {
        var copy = self
        if let url = secrets?.url { copy.url = url }
        for value in secrets?.request ?? [] { copy.request.fields.restore(value) }
        for value in secrets?.response ?? [] { copy.response?.fields.restore(value) }
        if let content = secrets?.requestContent { copy.request.content = content }
        if let content = secrets?.responseContent { copy.response?.content = content }
        for place in copy.messages.indices {
            guard let original = copy.messages[place].original else { continue }
            copy.messages[place].data = original
            copy.messages[place].isMasked = false
        }
        let contents = [copy.request.content, copy.response?.content].compactMap(\.self)
        var missing = contents.count { $0.maskedFrom != nil } + copy.url.components(of: Redaction.mark) - 1
        for field in copy.request.fields + (copy.response?.fields ?? []) where CapturedExchange.isMasked(field.value) {
            missing += 1
        }
        // The content contains the events, so masked events are not counted again.
        for case .webSocket in copy.messages.lazy.filter(\.isMasked).map(\.form) { missing += 1 }
        return (copy, missing)
    }
}

extension CapturedExchange {
    /// The exchange for a user who asks for its secrets: masked values are restored on both sides of the chain as far as they are
    /// known. On the origin server's side, a value is that of the client's side if no ware has changed the field; the gateway's own
    /// credentials are never known. Reads the record, so it is not for use on a loop that serves requests.
    public var revealed: CapturedExchange {
        var copy = restored.exchange
        guard let report else { return copy }
        func changed(_ isRequest: Bool) -> Set<String>? {
            var names: Set<String> = []
            for ware in report.wares where (ware.side == "request") == isRequest {
                if ware.replacedFields == true { return nil }
                for name in (ware.added ?? []) + (ware.removed ?? []) + (ware.rewritten ?? []) {
                    names.insert(name.lowercased())
                }
            }
            return names
        }
        if let names = changed(true), var sent = copy.sentRequest {
            sent.reveal(masked: request, shown: copy.request, except: names)
            copy.sentRequest = sent
        }
        if let names = changed(false), let masked = response, let shown = copy.response,
            var received = copy.receivedResponse
        {
            received.reveal(masked: masked, shown: shown, except: names)
            copy.receivedResponse = received
        }
        return copy
    }
}

extension CapturedMessage {
    /// Takes the values of another side of the chain, on which they were equal when they were masked.
    fileprivate mutating func reveal(masked: CapturedMessage, shown: CapturedMessage, except names: Set<String>) {
        if content.maskedFrom != nil, content == masked.content { content = shown.content }
        guard masked.fields.count == shown.fields.count else { return }
        var used: Set<Int> = []
        for place in fields.indices where CapturedExchange.isMasked(fields[place].value) {
            let (field, name) = (fields[place], fields[place].name.lowercased())
            guard !names.contains(name) else { continue }
            let other = masked.fields.indices.first { index in
                !used.contains(index) && masked.fields[index].value == field.value
                    && masked.fields[index].name.lowercased() == name
            }
            guard let other else { continue }
            used.insert(other)
            fields[place] = Field(field.name, bytes: shown.fields[other].bytes)
        }
    }
}

extension CapturedFields {
    fileprivate mutating func restore(_ value: CapturedSecrets.Value) {
        guard indices.contains(value.place) else { return }
        self[value.place] = CapturedMessage.Field(self[value.place].name, bytes: value.bytes)
    }
}

extension String {
    /// The number of pieces into which a text divides this one.
    fileprivate func components(of other: String) -> Int {
        var count = 1
        var rest = utf8[...]
        let other = Array(other.utf8)
        while let first = rest.firstIndex(of: other[0]) {
            rest = rest[first...]
            if rest.starts(with: other) {
                count += 1
                rest = rest.dropFirst(other.count)
            } else {
                rest = rest.dropFirst()
            }
        }
        return count
    }
}
