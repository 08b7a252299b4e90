import HttpWare

/// Converts an entry of an archive to an exchange.
struct HarImport {
    private let entry: JsonValue
    private let id: Int
    /// Whether HttpWare wrote the archive, so that it follows the format.
    private let isOwn: Bool
    private(set) var warnings: [String] = []

    init(_ entry: JsonValue, id: Int, isOwn: Bool) {
        self.entry = entry
        self.id = id
        self.isOwn = isOwn
    }

    /// The exchange; `nil` if the entry has no readable request.
    mutating func exchange() -> CapturedExchange? {
        guard let request = entry["request"], let url = request["url"]?.string, !url.isEmpty else {
            warnings.append("it has no request with a URL, and is left out")
            return nil
        }
        guard url.utf8.count <= HarImport.mostBytes else {
            warnings.append("its URL is longer than \(HarImport.mostBytes) bytes, and it is left out")
            return nil
        }
        if request["method"]?.string == nil { warnings.append("the method is missing; GET is assumed") }
        var exchange = CapturedExchange(
            id: id, started: started(), method: method(request["method"]?.string ?? "GET"),
            url: HarImport.httpUrl(isOwn ? entry["_httpware"]?["maskedUrl"]?.string ?? url : url),
            version: HarImport.version(request["httpVersion"]?.string),
            listener: CaptureStore.importListener,
            request: CapturedMessage(fields: fields(request["headers"])))
        exchange.isOpen = false
        exchange.request.trailers = fields(request["_trailers"])
        exchange.request.content = requestContent(request, exchange.request)
        HarImport.addType(request["postData"]?["mimeType"]?.string, to: &exchange.request)
        readResponse(&exchange)
        readTimes(&exchange)
        if let address = entry["serverIPAddress"]?.string, !address.isEmpty {
            let host = address.contains(":") && !address.hasPrefix("[") ? "[\(address)]" : address
            exchange.server = entry["connection"]?.string.flatMap { UInt16($0) }.map { "\(host):\($0)" } ?? host
        }
        exchange.comment = entry["comment"]?.string ?? ""
        exchange.route = entry["_httpware"]?["route"]?.string
        exchange.service = entry["_httpware"]?["service"]?.string
        exchange.operations = (entry["_httpware"]?["operations"]?.elements ?? []).prefix(100).compactMap(\.string)
        let progress = entry["_httpware"]?["progress"]?.elements ?? []
        exchange.progress = progress.prefix(HarImport.mostMessages).compactMap { pair in
            guard let pair = pair.elements, pair.count == 2, let time = pair[0].whole, let size = pair[1].whole,
                time >= 0,
                size >= 0
            else { return nil }
            return ContentProgress(time: time, size: size)
        }
        readMessages(&exchange)
        return exchange
    }

    // MARK: Times

    private mutating func started() -> WallTime {
        if let text = entry["startedDateTime"]?.string, let time = WallTime(iso8601: text) { return time }
        warnings.append("startedDateTime is missing or malformed; 1970 is assumed")
        return WallTime(seconds: 0)
    }

    /// A phase with a negative time or without a number did not happen.
    private mutating func readTimes(_ exchange: inout CapturedExchange) {
        func microseconds(_ name: String) -> Int? {
            guard let value = entry["timings"]?[name]?.looseDouble, value >= 0 else { return nil }
            return CapturedTimings.microseconds(value)
        }
        var timings = CapturedTimings()
        timings.blocked = microseconds("blocked")
        timings.dns = microseconds("dns")
        timings.ssl = microseconds("ssl")
        timings.connect = microseconds("connect")
        // TLS is part of the connection time, but some programs leave it out there.
        if let ssl = timings.ssl { timings.connect = max(timings.connect ?? 0, ssl) }
        timings.send = microseconds("send") ?? 0
        timings.wait = microseconds("wait") ?? 0
        timings.receive = microseconds("receive") ?? 0
        if let time = entry["time"]?.looseDouble, time >= 0, timings.total == 0 {
            timings.wait = CapturedTimings.microseconds(time)
        }
        if entry["timings"]?.members == nil { warnings.append("the timings are missing") }
        exchange.timings = timings
        let (nanoseconds, overflows) = Int64(timings.total).multipliedReportingOverflow(by: 1000)
        exchange.duration = overflows ? .max : nanoseconds
    }

    // MARK: Messages

    /// The most lines and bytes of a header section: those of the largest head that the gateway reads.
    private static let mostLines = 1000
    private static let mostBytes = 1 << 20
    /// The most messages of a WebSocket, events, and times of pieces.
    private static let mostMessages = 10_000

    private static let standardMethods: Set = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
    ]

    /// The method. Some programs write those of the standard in lower case, although case matters. RFC 9110 §9.1.
    private mutating func method(_ text: String) -> String {
        if text.utf8.count > 64 {
            warnings.append("the method is too long; GET is assumed")
            return "GET"
        }
        let upper = text.uppercased()
        return !isOwn && HarImport.standardMethods.contains(upper) ? upper : text
    }

    /// Keeps the media type of the content if no field states one.
    private static func addType(_ type: String?, to message: inout CapturedMessage) {
        guard let type, type != "x-unknown", message.content.size > 0, message.values(of: "content-type").isEmpty,
            !type.isEmpty, type.utf8.count <= 1024, type.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f })
        else { return }
        message.fields.append(CapturedMessage.Field("Content-Type", type))
    }

    /// Replaces `ws` and `wss`, which browsers write for WebSockets, by `http` and `https`.
    private static func httpUrl(_ url: String) -> String { isWebSocket(url) ? "http" + url.dropFirst(2) : url }

    private static func isWebSocket(_ url: String) -> Bool {
        ["ws", "wss"].contains(url.prefix { $0 != ":" }.lowercased())
    }

    /// Normalizes a version: `h2`, `http/2.0` and `HTTP/2` are the same.
    private static func version(_ text: String?) -> String {
        let text = text?.lowercased() ?? ""
        switch text {
        case "h2", "http/2.0", "http/2", "h2c": return "HTTP/2"
        case "http/1.0": return "HTTP/1.0"
        // Drafts have a suffix, as in `h3-29`; older browsers write `http/2+quic/46` and `quic`.
        default:
            return ["h3", "http/3", "quic"].contains { text.hasPrefix($0) } || text.contains("quic")
                ? "HTTP/3" : "HTTP/1.1"
        }
    }

    /// Reads a list of objects, a list of pairs, or one object with all fields. Leaves out the pseudo-fields of HTTP/2, and lines
    /// beyond those of the largest head.
    private mutating func fields(_ value: JsonValue?) -> CapturedFields {
        func text(_ value: JsonValue?) -> String? {
            switch value {
            case .string(let text), .number(let text): text
            case .boolean(let isTrue): "\(isTrue)"
            default: nil
            }
        }
        var fields = CapturedFields()
        var bytes = 0
        var isCut = false
        func add(_ name: String?, _ value: String?, isLatin1: Bool = false) {
            guard let name, let value, !name.isEmpty, !name.hasPrefix(":") else { return }
            var rest = value[...]
            while true {
                // Firefox and others join repeated lines with a line feed.
                let line = rest.prefix { !$0.isNewline }
                bytes += name.utf8.count + line.utf8.count
                guard fields.count < HarImport.mostLines, bytes <= HarImport.mostBytes else {
                    isCut = true
                    return
                }
                if isLatin1, let bytes = String(line).latin1 {
                    fields.append(CapturedMessage.Field(name, bytes: bytes))
                } else {
                    fields.append(CapturedMessage.Field(name, String(line)))
                }
                guard line.endIndex < rest.endIndex else { return }
                rest = rest[rest.index(after: line.endIndex)...]
            }
        }
        for line in value?.elements ?? [] where !isCut {
            if let pair = line.elements {
                add(text(pair.first), text(pair.dropFirst().first))
            } else {
                add(
                    text(line["name"]), text(line["value"]) ?? "",
                    isLatin1: isOwn && line["_charset"]?.string == HarEntry.latin1)
            }
        }
        for member in value?.members ?? [] where !isCut { add(member.name, text(member.value)) }
        if isCut {
            warnings.append(
                "a header section has more than \(HarImport.mostLines) lines or \(HarImport.mostBytes) bytes; the rest is left out"
            )
        }
        return fields
    }

    private mutating func requestContent(_ request: JsonValue, _ message: CapturedMessage) -> CapturedContent {
        guard let data = request["postData"], data != .null else {
            var content = CapturedContent()
            content.size = max(0, request["bodySize"]?.whole ?? 0)
            return content
        }
        let mediaType = data["mimeType"]?.string ?? message.values(of: "content-type").first
        if let text = data["text"]?.string, !text.isEmpty || data["params"]?.elements?.isEmpty ?? true {
            // Firefox writes each byte as one character if the content is not UTF-8.
            if !isOwn, HarImport.encoding(data) == nil, let size = request["bodySize"]?.whole, size != text.utf8.count,
                size == text.unicodeScalars.count, text.unicodeScalars.allSatisfy({ $0.value < 0x100 })
            {
                var content = CapturedContent()
                content.kept = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
                content.size = size
                return content
            }
            return content(text, data, mediaType, size: isOwn ? request["bodySize"]?.whole : nil, message)
        }
        let pairs = (data["params"]?.elements ?? []).map { parameter in
            let parts = [parameter["name"]?.string ?? "", parameter["value"]?.string ?? ""]
            return parts.map(HarImport.formEncoded).joined(separator: "=")
        }
        if let mediaType, mediaType.lowercased().hasPrefix("multipart/") {
            warnings.append("the parts of the form are written as parameters")
        }
        return content(pairs.joined(separator: "&"), .null, mediaType, size: nil, nil)
    }

    private static func formEncoded(_ text: String) -> String {
        PercentText.form(text) {
            PercentText.isUnreserved($0) && $0 != UInt8(ascii: "~") || $0 == UInt8(ascii: "*")
        }
    }

    /// The encoding of a text in JSON. For requests, archives of others have `encoding`, which HAR 1.2 has for responses only.
    private static func encoding(_ entry: JsonValue) -> String? {
        entry["encoding"]?.string ?? entry["_encoding"]?.string
    }

    private mutating func content(
        _ text: String, _ entry: JsonValue, _ mediaType: String?, size: Int?, _ message: CapturedMessage?
    ) -> CapturedContent {
        var content = CapturedContent()
        let encoding = HarImport.encoding(entry)
        let isBase64 = encoding?.lowercased() == "base64"
        if isBase64 {
            if let bytes = HarText.base64(text) {
                content.kept = bytes
            } else {
                warnings.append("content is not base64 although its encoding says so; it is taken as text")
                content.kept = Array(text.utf8)
            }
        } else {
            if let encoding, !encoding.isEmpty {
                warnings.append("the encoding \(encoding.quotedForErrors) is unknown")
            }
            content.kept = HarText.bytes(text, mediaType: mediaType)
        }
        content.size = content.kept.count
        let codings = message?.values(of: "content-encoding") ?? []
        if message == nil || !codings.isEmpty {
            content.isDecoded = true
            if isOwn {
                content.isDecoded = entry["_coded"]?.boolean != true
            } else if message != nil {
                content.isDecoded = !HarImport.isCoded(content, codings, isBase64: isBase64)
            }
        }
        if !content.isDecoded { content.size = max(content.size, size ?? 0) }
        if isOwn, let length = entry["_maskedFrom"]?.whole, length >= 0 {
            content.maskedFrom = length
            if !content.isDecoded { content.size = max(length, size ?? 0) }
        }
        return content
    }

    /// The most bytes that are decoded to see whether content fits its coding.
    private static let mostTried = 4 << 10

    /// Whether content of another program is still coded. Most programs write it decoded.
    private static func isCoded(_ content: CapturedContent, _ codings: [String], isBase64: Bool) -> Bool {
        guard let decoder = ContentDecoder(codings) else {
            // Only browsers can decode with a dictionary, and the result has another beginning. RFC 9842 §4, §5.
            let isWithDictionary = codings.allSatisfy { ["dcb", "dcz"].contains($0.lowercased()) }
            let magic: [[UInt8]] = [[0xff, 0x44, 0x43, 0x42], [0x5e, 0x2a, 0x4d, 0x18]]
            return !isWithDictionary || magic.contains { content.kept.starts(with: $0) }
        }
        guard isBase64, !decoder.isIdentity else { return false }
        var message = CapturedMessage(fields: CapturedFields(codings.map { .init("Content-Encoding", $0) }))
        message.content = content
        message.content.isDecoded = false
        let decoded = DecodedContent(message, limit: mostTried)
        return decoded.fault == nil && !decoded.bytes.isEmpty
    }

    private mutating func readResponse(_ exchange: inout CapturedExchange) {
        guard let response = entry["response"], response != .null else {
            warnings.append("the response is missing")
            return
        }
        let faults = [
            response["_error"], response["_errorMessage"], response["_failureText"], entry["_error"],
            entry["_failureText"],
        ]
        exchange.fault = faults.lazy.compactMap { $0?.string }.first { !$0.isEmpty }
        guard let status = response["status"]?.whole, (100...999).contains(status) else {
            // Browsers write 0 or -1 if there was no response.
            if exchange.fault == nil { exchange.fault = "no response" }
            return
        }
        exchange.status = status
        if let reason = response["statusText"]?.string, !reason.isEmpty, reason.utf8.count <= 1024,
            reason != HttpStatus(status)?.reasonPhrase
        {
            exchange.reason = reason
            exchange.isReasonRaw = isOwn && response["_charset"]?.string == HarEntry.latin1 && reason.latin1 != nil
        }
        // An attempt that failed may have a status, but no content.
        exchange.isCutOff =
            isOwn
            ? entry["_httpware"]?["cutOff"]?.boolean ?? false
            : exchange.fault != nil && response["content"]?["text"]?.string == nil
        var message = CapturedMessage(fields: fields(response["headers"]))
        message.trailers = fields(response["_trailers"])
        if let body = response["content"], let text = body["text"]?.string {
            let mediaType = body["mimeType"]?.string ?? message.values(of: "content-type").first
            message.content = content(text, body, mediaType, size: isOwn ? body["size"]?.whole : nil, message)
        } else {
            // Firefox includes the header section in `bodySize`.
            let sizes = [response["content"]?["size"]?.whole, response["bodySize"]?.whole].compactMap(\.self)
            message.content.size = max(0, sizes.first { $0 >= 0 } ?? 0)
            if message.content.size > 0, entry["_eventSourceMessages"]?.elements == nil {
                warnings.append("the content of the response is missing")
            }
        }
        HarImport.addType(response["content"]?["mimeType"]?.string, to: &message)
        exchange.response = message
    }

    // MARK: Messages of a WebSocket

    private mutating func readMessages(_ exchange: inout CapturedExchange) {
        let type = exchange.response?.values(of: "content-type").first?.lowercased() ?? ""
        if type.hasPrefix("text/event-stream") { exchange.kind = .sse }
        if type.hasPrefix("application/grpc") { exchange.kind = .grpc }
        let events = entry["_eventSourceMessages"]?.elements ?? []
        let messages = entry["_webSocketMessages"]?.elements
        if max(events.count, messages?.count ?? 0) > HarImport.mostMessages {
            warnings.append("it has more than \(HarImport.mostMessages) messages; the rest is left out")
        }
        for message in events.prefix(HarImport.mostMessages) {
            guard exchange.kind == .sse, let data = message["data"]?.string.map({ Array($0.utf8) }) else { continue }
            let (type, id) = (message["eventName"]?.string, message["eventId"]?.string)
            exchange.messages.append(
                CapturedPiece(
                    .receive, .event(type: type == "message" ? nil : type, id: id?.isEmpty ?? true ? nil : id),
                    time: HarTime.epoch(message["time"]?.looseDouble) ?? exchange.started, data: data, size: data.count)
            )
        }
        let isUpgraded = exchange.status == 101 && exchange.request.values(of: "sec-websocket-key").first != nil
        let isNamed = HarImport.isWebSocket(entry["request"]?["url"]?.string ?? "")
        guard messages != nil || isUpgraded || isNamed || entry["_resourceType"]?.string == "websocket" else { return }
        exchange.kind = .websocket
        for message in (messages ?? []).prefix(HarImport.mostMessages) {
            guard let data = message["data"]?.string else { continue }
            // An opcode has four bits. RFC 6455 §5.2.
            let opcode = message["opcode"]?.whole.flatMap { (0...15).contains($0) ? UInt8($0) : nil } ?? 1
            let bytes = (opcode == 2 ? HarText.base64(data) : nil) ?? Array(data.utf8)
            var piece = CapturedPiece(
                message["type"]?.string == "send" ? .send : .receive, .webSocket(opcode: opcode),
                time: HarTime.epoch(message["time"]?.looseDouble) ?? exchange.started, data: bytes, size: bytes.count)
            piece.isMasked = message["_masked"]?.boolean ?? false
            exchange.messages.append(piece)
        }
    }
}
