import Capturing
import HttpWare
import Synchronization

/// The exchanges of an archive, which are found by their requests. Safe to use from any thread.
///
/// A recorded value with a mark in place of a secret equals every value that is the same apart from the secret.
final class RecordedResponses: Sendable {
    /// The parts of requests that are compared.
    struct Matching: Sendable {
        var method = true
        var url = true
        var body = true
        var headers: [FieldName] = []
        var ignoredParameters: Set<String> = []
    }

    /// The compared parts of a request.
    struct Question: Sendable {
        var method: String
        /// The origin, such as `http://127.0.0.1:8080`.
        var origin: String
        var path: String
        var query: String
        /// The values of the compared fields.
        var values: [[String]] = []
        /// The content; `nil` if it is not complete.
        var body: [UInt8]?
        /// Whether only a response of the same origin matches.
        var isForward = false
    }

    private struct Recorded: Sendable {
        let exchange: CapturedExchange
        let origin: String
        let query: String
        let values: [[String]]
        let body: [UInt8]?
    }

    private let matching: Matching
    private let recorded: [Recorded]
    private let places: [String: [Int]]
    private let used: Mutex<[Bool]>

    var count: Int { recorded.count }

    init(_ exchanges: [CapturedExchange], _ matching: Matching) {
        self.matching = matching
        var recorded: [Recorded] = []
        var places: [String: [Int]] = [:]
        for exchange in exchanges {
            guard let status = exchange.status, (200...999).contains(status), exchange.kind != .websocket,
                !exchange.isCutOff,
                exchange.method == "HEAD" || [204, 304].contains(status) || exchange.response?.content.isWhole != false
                    || exchange.response?.content.isDecoded == true,
                let request = RecordedResponses.request(exchange)
            else { continue }
            let query = RecordedResponses.query(request, ignoring: matching.ignoredParameters)
            let content = exchange.request.content
            let one = Recorded(
                exchange: exchange, origin: RecordedResponses.origin(request), query: query,
                values: matching.headers.map { exchange.request.values(of: $0.text) },
                body: content.isWhole || content.isDecoded ? DecodedContent(exchange.request).bytes : nil)
            let path = RecordedResponses.path(request)
            let key = RecordedResponses.key(exchange.method, path, query, matching)
            places[key, default: []].append(recorded.count)
            recorded.append(one)
        }
        self.recorded = recorded
        self.places = places
        used = Mutex([Bool](repeating: false, count: recorded.count))
    }

    /// The recorded request without its fields and content; its URL is as it is sent, with marks in place of secrets. A URL without a
    /// path is that of `OPTIONS *`, too. RFC 9112 §3.2.4.
    private static func request(_ exchange: CapturedExchange) -> HttpRequest? {
        let url = SentUrl.encoded(exchange.url).replacing("%E2%80%A6", with: Redaction.mark)
        return try? HttpRequest(exchange.method == "OPTIONS" ? .options : .get, received: Array(url.utf8))
    }

    static func origin(_ request: HttpRequest) -> String {
        "\(request.scheme)://\((request.host ?? "").lowercased()):\(request.port ?? (request.scheme == "https" ? 443 : 80))"
    }

    /// The path in the form in which paths are compared.
    static func path(_ request: HttpRequest) -> String { normal(request.path) }

    /// The query without the ignored parameters.
    static func query(_ request: HttpRequest, ignoring names: Set<String>) -> String {
        guard let received = request.query else { return "" }
        let query = normal(received)
        if names.isEmpty { return query }
        return query.split(separator: "&", omittingEmptySubsequences: false).filter { part in
            let name = part.prefix { $0 != "=" }
            return !names.contains(String(decoding: QueryParameters.decoded(name.utf8), as: UTF8.self))
        }.joined(separator: "&")
    }

    /// A path or a query in the form in which they are compared: unreserved characters are not encoded, digits are in upper case, and so
    /// are the encodings of the bytes that some clients encode and others send as they are. RFC 3986 §6.2.2, URL Standard §4.4.
    private static func normal(_ text: String) -> String {
        let pieces = text.split(separator: Redaction.mark, omittingEmptySubsequences: false)
        return pieces.map { String(decoding: normal(Array($0.utf8)[...]), as: UTF8.self) }.joined(
            separator: Redaction.mark)
    }

    private static func normal(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var normal: [UInt8] = []
        var at = 0
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "%"), let encoded = Hex.byte(bytes, at: at + 1) {
                if PercentText.isUnreserved(encoded) {
                    normal.append(encoded)
                } else {
                    PercentText.append(encoded, to: &normal)
                }
                at += 3
                continue
            }
            if byte > 0x20 && byte < 0x7f && !oftenEncoded.contains(byte) {
                normal.append(byte)
            } else {
                PercentText.append(byte, to: &normal)
            }
            at += 1
        }
        return normal
    }

    /// Characters in URLs that browsers encode, although other clients do not.
    private static let oftenEncoded: Set<UInt8> = Set("\"'<>^`{|}".utf8)

    /// A key that is the same for all requests that may match each other; secrets are masked in it.
    private static func key(_ method: String, _ path: String, _ query: String, _ matching: Matching) -> String {
        (matching.method ? method : "") + " " + (matching.url ? Redaction.target(path + "?" + query) : "")
    }

    /// The next exchange for a request; `nil` if there is none.
    func take(_ question: Question, order: Replay.Order) -> CapturedExchange? {
        let key = RecordedResponses.key(question.method, question.path, question.query, matching)
        var found = (places[key] ?? []).filter { isMatch(recorded[$0], question) }
        let same = found.filter { recorded[$0].origin == question.origin }
        if !same.isEmpty || question.isForward && matching.url { found = same }
        guard let last = found.last else { return nil }
        let place = used.withLock { used -> Int? in
            if let next = found.first(where: { !used[$0] }) {
                used[next] = true
                return next
            }
            switch order {
            case .once: return nil
            case .last: return last
            case .loop:
                for place in found.dropFirst() { used[place] = false }
                return found[0]
            }
        }
        return place.map { recorded[$0].exchange }
    }

    private func isMatch(_ one: Recorded, _ question: Question) -> Bool {
        if matching.url, !RecordedResponses.equals(Array(one.query.utf8), Array(question.query.utf8)) { return false }
        for (recorded, asked) in zip(one.values, question.values) {
            guard recorded.count == asked.count,
                zip(recorded, asked).allSatisfy({ RecordedResponses.equals(Array($0.utf8), Array($1.utf8)) })
            else { return false }
        }
        guard matching.body else { return true }
        guard let recorded = one.body, let asked = question.body else { return false }
        return RecordedResponses.equals(recorded, asked)
    }

    private static let mark = Array(Redaction.mark.utf8)

    /// Whether two values are equal, with a mark in the recorded one standing for any bytes. Takes linear time.
    static func equals(_ recorded: [UInt8], _ asked: [UInt8]) -> Bool {
        if recorded == asked { return true }
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        while let place = find(mark, in: recorded, from: start) {
            pieces.append(recorded[start..<place])
            start = place + mark.count
        }
        guard !pieces.isEmpty else { return false }
        pieces.append(recorded[start...])
        guard let first = pieces.first, let last = pieces.last, asked.count >= first.count + last.count,
            asked.starts(with: first), asked.suffix(last.count).elementsEqual(last)
        else { return false }
        let end = asked.count - last.count
        var from = first.count
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let place = find(Array(piece), in: asked, from: from), place + piece.count <= end else {
                return false
            }
            from = place + piece.count
        }
        return true
    }

    private static func find(_ piece: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        // Knuth, Morris and Pratt: linear time for any bytes.
        guard !piece.isEmpty, bytes.count - start >= piece.count else { return nil }
        var falls = [0]
        var length = 0
        for index in piece.indices.dropFirst() {
            while length > 0, piece[index] != piece[length] { length = falls[length - 1] }
            if piece[index] == piece[length] { length += 1 }
            falls.append(length)
        }
        length = 0
        for index in start..<bytes.count {
            while length > 0, bytes[index] != piece[length] { length = falls[length - 1] }
            if bytes[index] == piece[length] { length += 1 }
            if length == piece.count { return index - piece.count + 1 }
        }
        return nil
    }
}
