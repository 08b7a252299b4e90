import HttpWare

/// A captured request to send again, edited or not. Masked values are restored if they are known and go to the same place.
public struct RequestRepetition: Sendable, Equatable {
    /// The changes to the request; `nil` keeps the captured value.
    public struct Edits: Sendable, Equatable {
        public var method: String?
        public var url: String?
        public var fields: [CapturedMessage.Field]?
        public var content: [UInt8]?

        public init() {}
    }

    /// The reason for not repeating a request.
    public enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        /// Too little of the request was captured.
        case impossible(String)
        /// The edits are invalid.
        case invalid(String)

        public var description: String {
            switch self {
            case .impossible(let text), .invalid(let text): text
            }
        }
    }

    public let method: String
    /// The absolute URL.
    public let url: String
    /// The same in the bytes that are sent: an unedited URL has those of the captured request, also if they are not UTF-8.
    public let target: [UInt8]
    /// The fields, except those of one connection and those derived from the URL and the content.
    public let fields: [CapturedMessage.Field]
    public let content: [UInt8]
    /// The fields behind the content as it was captured. Masked ones are left out.
    public let trailers: [CapturedMessage.Field]

    /// The request of a captured exchange with these edits.
    public init(_ captured: CapturedExchange, _ edits: Edits = Edits()) throws(Refusal) {
        guard captured.kind != .websocket else { throw .impossible("a WebSocket cannot be repeated") }
        method = edits.method ?? captured.method
        guard method != "CONNECT" else { throw .impossible("CONNECT cannot be repeated") }
        let edited = edits.url == captured.url ? nil : edits.url
        let isSamePlace =
            try edited.map { url throws(Refusal) in try RequestRepetition.isSamePlace(url, captured.url) } ?? true
        let named = try RequestRepetition.url(edited, of: captured, isSamePlace)
        // A URL as people and browsers write it is not always the one that is sent.
        let isSent = edited == nil && captured.listener != CaptureStore.importListener
        url = isSent ? named : SentUrl.encoded(named)
        target = isSent ? captured.secrets?.target ?? Array(url.utf8) : Array(url.utf8)

        // Masked values are sent as they were.
        let former = captured.secrets?.requestContent ?? captured.request.content
        let isCoded = edits.content == nil && !former.isDecoded
        var fields: [CapturedMessage.Field] = []
        var used: Set<Int> = []
        for (index, field) in (edits.fields ?? Array(captured.request.fields)).enumerated() {
            let name = field.name.lowercased()
            if RequestRepetition.ownNames.contains(name)
                || name == "content-encoding" && !isCoded && edits.fields == nil
            {
                continue
            }
            guard CapturedExchange.isMasked(field.value) else {
                // An unedited value is sent with its own bytes.
                let received = captured.request.fields.first {
                    $0.isRaw && $0.value == field.value && $0.name.lowercased() == name
                }
                fields.append(received ?? field)
                continue
            }
            // Credentials are sent only to the place that they belong to, and are otherwise left out.
            guard isSamePlace else { continue }
            let place =
                edits.fields == nil
                ? index
                : captured.request.fields.indices.first { place in
                    !used.contains(place) && captured.request.fields[place].value == field.value
                        && captured.request.fields[place].name.lowercased() == name
                }
            guard let place, let secret = captured.secrets?.request.first(where: { $0.place == place }) else {
                throw .impossible("the value of \(field.name) was masked and is no longer in memory; write it")
            }
            used.insert(place)
            fields.append(CapturedMessage.Field(field.name, bytes: secret.bytes))
        }
        self.fields = fields

        if let content = edits.content {
            self.content = content
            trailers = []
        } else {
            var content = captured.request.content
            if content.maskedFrom != nil {
                guard isSamePlace, let original = captured.secrets?.requestContent else {
                    throw .impossible(
                        isSamePlace
                            ? "values in the content were masked and are no longer in memory; write the content"
                            : "values in the content were masked, and are for another place; write the content")
                }
                content = original
            }
            guard content.isWhole else {
                throw .impossible(
                    "only the first \(content.kept.count) of \(content.size) bytes of the content were captured; write the content"
                )
            }
            self.content = content.kept
            trailers = captured.request.trailers.filter { !CapturedExchange.isMasked($0.value) }
        }
    }

    /// The fields that belong to one connection, or are derived from the URL and the content. RFC 9110 §7.6.1.
    private static let ownNames: Set = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection",
        "proxy-authorization", "te", "trailer", "upgrade", "expect", "http2-settings",
    ]

    // MARK: The URL

    private static func isSamePlace(_ url: String, _ captured: String) throws(Refusal) -> Bool {
        guard let request = read(url), request.host != nil else {
            throw .invalid("url is not an absolute http or https URL")
        }
        guard let former = read(captured) else { return false }
        func port(_ request: HttpRequest) -> UInt16 { request.port ?? (request.scheme == "https" ? 443 : 80) }
        return request.scheme == former.scheme && request.host == former.host && port(request) == port(former)
    }

    /// The mark is not a valid character of a URL.
    private static func read(_ url: String) -> HttpRequest? {
        let sent = SentUrl.encoded(MaskedUrl.written(url))
        return try? HttpRequest(.get, received: Array(sent.utf8))
    }

    private static func url(
        _ edited: String?, of captured: CapturedExchange, _ isSamePlace: Bool
    ) throws(Refusal) -> String {
        guard let edited else {
            // The user information is not sent.
            let url = SentUrl.withoutUser(captured.url)
            guard url.contains(Redaction.mark) else { return url }
            guard let url = captured.secrets?.url else {
                throw .impossible("a value in the URL was masked and is no longer in memory; write the URL")
            }
            return url
        }
        let url = MaskedUrl.read(edited)
        guard url.contains(Redaction.mark) else { return edited }
        guard isSamePlace else {
            throw .invalid("the URL contains a masked value, which is restored only for the same scheme and authority")
        }
        guard let original = captured.secrets?.url, let restored = restored(url, captured.url, original) else {
            throw .impossible("the URL contains a masked value that is not in memory; write it")
        }
        return restored
    }

    /// The URL with its masked segments and parameters replaced by those of the original.
    private static func restored(_ url: String, _ masked: String, _ original: String) -> String? {
        let (shown, former) = (pieces(masked), pieces(original))
        guard shown.count == former.count else { return nil }
        var isUsed = [Bool](repeating: false, count: shown.count)
        var result = ""
        for piece in pieces(url) {
            guard piece.contains(Redaction.mark) else {
                result += piece
                continue
            }
            // The delimiter before it may differ.
            let found = shown.indices.first { !isUsed[$0] && shown[$0].dropFirst() == piece.dropFirst() }
            guard let found else { return nil }
            isUsed[found] = true
            result += piece.prefix(1) + former[found].dropFirst()
        }
        return result
    }

    /// The segments of the path and the parameters of the query, each with the delimiter before it.
    private static func pieces(_ url: String) -> [Substring] {
        var pieces: [Substring] = []
        var start = url.startIndex
        var isQuery = false
        for index in url.utf8.indices {
            let byte = url.utf8[index]
            let isDelimiter =
                isQuery ? byte == UInt8(ascii: "&") : byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?")
            guard isDelimiter else { continue }
            if byte == UInt8(ascii: "?") { isQuery = true }
            pieces.append(url[start..<index])
            start = index
        }
        pieces.append(url[start...])
        return pieces
    }
}
