import HttpWare

/// An exchange as an entry of an archive. HAR 1.2, `entries`.
struct HarEntry {
    private let exchange: CapturedExchange

    init(_ exchange: CapturedExchange) { self.exchange = exchange }

    var json: Json {
        let timings = CapturedTimings(of: exchange)
        let comment = exchange.comment.isEmpty ? nil : Json.text(exchange.comment)
        return .object(given: [
            ("startedDateTime", .text(exchange.started.rfc3339)), ("time", HarEntry.milliseconds(timings.total)),
            ("request", request), ("response", response), ("cache", .object([])),
            ("timings", HarEntry.timings(timings)),
            ("serverIPAddress", address.map(Json.text)), ("connection", port.map(Json.text)), ("comment", comment),
            ("_resourceType", exchange.kind == .websocket ? "websocket" : nil),
            (
                "_webSocketMessages",
                exchange.kind == .websocket ? .list(exchange.messages.compactMap(HarEntry.message)) : nil
            ),
            ("_httpware", own),
        ])
    }

    // MARK: Times and places

    /// Milliseconds with three decimals and without an exponent.
    private static func milliseconds(_ microseconds: Int?) -> Json {
        guard let microseconds else { return .number(-1) }
        return microseconds % 1000 == 0 ? .number(microseconds / 1000) : .decimal(Double(microseconds) / 1000)
    }

    private static func timings(_ timings: CapturedTimings) -> Json {
        .object([
            ("blocked", milliseconds(timings.blocked)), ("dns", milliseconds(timings.dns)),
            ("connect", milliseconds(timings.connect)), ("ssl", milliseconds(timings.ssl)),
            ("send", milliseconds(timings.send)), ("wait", milliseconds(timings.wait)),
            ("receive", milliseconds(timings.receive)),
        ])
    }

    /// The endpoint's address; `nil` if it is a name.
    private var address: String? {
        guard let server = exchange.server, let colon = server.lastIndex(of: ":") else { return nil }
        let host = server[..<colon].drop { $0 == "[" }.prefix { $0 != "]" }
        let isAddress = host.contains(":") || host.utf8.allSatisfy { $0 == 0x2e || (0x30...0x39).contains($0) }
        return isAddress && !host.isEmpty ? String(host) : nil
    }

    private var port: String? {
        guard let server = exchange.server, let colon = server.lastIndex(of: ":") else { return nil }
        let port = server[server.index(after: colon)...]
        return port.isEmpty ? nil : String(port)
    }

    // MARK: Messages

    /// Whether the exchange has a URL that other programs can read.
    static func hasUrl(_ exchange: CapturedExchange) -> Bool {
        exchange.url.hasPrefix("http") ? !exchange.host.isEmpty : exchange.url.utf8.contains(UInt8(ascii: ":"))
    }

    /// The URL; that of a WebSocket has the scheme that browsers write.
    private var url: String {
        let url = MaskedUrl.written(exchange.url)
        let isHttp = ["http", "https"].contains(url.prefix { $0 != ":" }.lowercased())
        return exchange.kind == .websocket && isHttp ? "ws" + url.dropFirst(4) : url
    }

    private var request: Json {
        let message = exchange.request
        return .object(given: [
            ("method", .text(exchange.method)), ("url", .text(url)),
            ("httpVersion", .text(exchange.version)),
            ("cookies", HarCookies.sent(message)), ("headers", HarEntry.fields(message.fields)),
            ("queryString", HarEntry.query(exchange.url)), ("postData", postData), ("headersSize", .number(-1)),
            ("bodySize", .number(message.content.isDecoded ? -1 : message.content.size)),
            ("_trailers", message.trailers.isEmpty ? nil : HarEntry.fields(message.trailers)),
        ])
    }

    private var response: Json {
        guard let message = exchange.response else {
            return .object(given: [
                ("status", .number(exchange.status ?? 0)), ("statusText", .text(reason)), ("httpVersion", ""),
                ("cookies", .list([])),
                ("headers", .list([])), ("content", .object([("size", 0), ("mimeType", "x-unknown")])),
                ("redirectURL", ""),
                ("headersSize", .number(-1)), ("bodySize", .number(-1)), ("_error", exchange.fault.map(Json.text)),
            ])
        }
        return .object(given: [
            ("status", .number(exchange.status ?? 0)), ("statusText", .text(reason)),
            ("_charset", exchange.isReasonRaw ? .text(HarEntry.latin1) : nil),
            ("httpVersion", .text(exchange.version)),
            ("cookies", HarCookies.received(message)), ("headers", HarEntry.fields(message.fields)),
            ("content", HarEntry.content(message)), ("redirectURL", .text(message.values(of: "location").first ?? "")),
            ("headersSize", .number(-1)),
            ("bodySize", .number(message.content.isDecoded ? -1 : message.content.size)),
            ("_trailers", message.trailers.isEmpty ? nil : HarEntry.fields(message.trailers)),
            ("_error", exchange.fault.map(Json.text)),
        ])
    }

    private var reason: String {
        exchange.reason ?? exchange.status.flatMap { HttpStatus($0)?.reasonPhrase } ?? ""
    }

    /// The charset of a value that is not UTF-8: its characters stand for bytes.
    static let latin1 = "iso-8859-1"

    private static func fields(_ fields: CapturedFields) -> Json {
        .list(
            fields.map { field in
                .object(given: [
                    ("name", .text(field.name)), ("value", .text(field.value)),
                    ("_charset", field.isRaw ? .text(latin1) : nil),
                ])
            })
    }

    /// The most elements of a list that is made of one value.
    static let mostParts = 1000

    private static func query(_ url: String) -> Json {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return .list([]) }
        let query = url.utf8[url.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") }
        func decoded(_ text: some Sequence<UInt8>) -> Json {
            .text(String(decoding: QueryParameters.decoded(text), as: UTF8.self))
        }
        return .list(
            query.split(separator: UInt8(ascii: "&"), maxSplits: mostParts).prefix(mostParts).map { pair in
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                return .object([("name", decoded(name)), ("value", decoded(pair.dropFirst(name.count + 1)))])
            })
    }

    // MARK: Content

    private static func mediaType(_ message: CapturedMessage) -> String? { message.values(of: "content-type").first }

    private var postData: Json? {
        guard exchange.request.content.size > 0 else { return nil }
        let decoded = DecodedContent(exchange.request)
        let text = HarText(decoded.bytes, mediaType: HarEntry.mediaType(exchange.request))
        return .object(given: [
            ("mimeType", .text(HarEntry.mediaType(exchange.request) ?? "")), ("text", .text(text.text)),
            ("_encoding", text.isBase64 ? "base64" : nil), ("_coded", decoded.isCoded ? .bool(true) : nil),
            ("_maskedFrom", exchange.request.content.maskedFrom.map(Json.number)),
            ("comment", HarEntry.lack(exchange.request, decoded).map(Json.text)),
        ])
    }

    private static func content(_ message: CapturedMessage) -> Json {
        let decoded = DecodedContent(message)
        let text = HarText(decoded.bytes, mediaType: mediaType(message))
        let isCoded = !message.content.isDecoded && !message.values(of: "content-encoding").isEmpty
        let isKept = !message.content.kept.isEmpty || message.content.size == 0
        // Without a coding, content that was not captured counts too; the decoded length of other content is unknown.
        // A mask may be longer than the value that it hides.
        let isMasked = message.content.maskedFrom != nil && !message.content.isDecoded
        let size = isCoded ? decoded.bytes.count : max(message.content.size, isMasked ? 0 : decoded.bytes.count)
        let saved = isCoded && decoded.isWhole ? Json.number(size - message.content.size) : nil
        return .object(given: [
            ("size", .number(size)), ("compression", saved), ("mimeType", .text(mediaType(message) ?? "x-unknown")),
            ("text", isKept ? .text(text.text) : nil), ("encoding", isKept && text.isBase64 ? "base64" : nil),
            ("_coded", isKept && decoded.isCoded ? .bool(true) : nil),
            ("_maskedFrom", message.content.maskedFrom.map(Json.number)),
            ("comment", lack(message, decoded).map(Json.text)),
        ])
    }

    /// Describes the missing parts of the content.
    private static func lack(_ message: CapturedMessage, _ decoded: DecodedContent) -> String? {
        let content = message.content
        if content.isWhole, content.maskedFrom != nil { return "values were masked" }
        if !content.isWhole { return "the first \(content.kept.count) of \(content.size) bytes were captured" }
        return decoded.fault
    }

    /// A WebSocket message in Chrome's form. Like Chrome, it leaves out control frames.
    private static func message(_ piece: CapturedPiece) -> Json? {
        guard case .webSocket(let opcode) = piece.form, opcode == 1 || opcode == 2 else { return nil }
        let data = opcode == 1 ? String(decoding: piece.data, as: UTF8.self) : Base64.encode(piece.data)
        let microseconds = String(max(0, piece.time.nanoseconds) / 1000)
        let time =
            "\(piece.time.seconds).\(String(repeating: "0", count: max(0, 6 - microseconds.utf8.count)))\(microseconds)"
        return .object(given: [
            ("type", .text(piece.direction.rawValue)), ("time", .digits(time)), ("opcode", .number(Int(opcode))),
            ("data", .text(data)), ("_masked", piece.isMasked ? .bool(true) : nil),
        ])
    }

    // MARK: Extensions

    private var own: Json {
        let decisions = (exchange.report?.wares ?? []).map { ware in
            Json.object([
                ("ware", .text(ware.ware)), ("side", .text(ware.side)), ("decision", .text(ware.decision)),
                ("text", .text(ware.text)),
            ])
        }
        return .object(given: [
            ("id", .number(exchange.id)), ("route", .optional(exchange.route)),
            ("service", exchange.service.map(Json.text)), ("decisions", .list(decisions)),
            ("operations", exchange.operations.isEmpty ? nil : .list(exchange.operations.map(Json.text))),
            ("maskedUrl", MaskedUrl.written(exchange.url) == exchange.url ? nil : .text(exchange.url)),
            ("replayOf", exchange.replayOf.map(Json.number)), ("cutOff", exchange.isCutOff ? .bool(true) : nil),
            (
                "progress",
                exchange.progress.isEmpty
                    ? nil : .list(exchange.progress.map { .list([.number($0.time), .number($0.size)]) })
            ),
            ("rules", exchange.rules.isEmpty ? nil : .list(exchange.rules.map(Json.number))),
        ])
    }
}
