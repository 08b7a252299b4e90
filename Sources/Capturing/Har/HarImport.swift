import HttpWare

/// Converts an entry of an archive to an exchange.
struct HarImport {
    private let entry: JsonTree
    private let id: Int
    /// Whether HttpWare wrote the archive, so that it follows the format.
    private let isOwn: Bool
    private(set) var warnings: [String] = []

    init(_ entry: JsonTree, id: Int, isOwn: Bool) {
        self.entry = entry
        self.id = id
        self.isOwn = isOwn
    }

    /// The exchange; `nil` if the entry has no readable request.
    mutating func exchange() -> CapturedExchange? {
        guard let request = entry["request"], let url = request["url"]?.text, !url.isEmpty else {
            warnings.append("it has no request with a URL, and is left out")
            return nil
        }
        let method = request["method"]?.text ?? "GET"
        if request["method"]?.text == nil { warnings.append("the method is missing; GET is assumed") }
        var exchange = CapturedExchange(
            id: id, started: started(), method: method,
            url: isOwn ? entry["_httpware"]?["maskedUrl"]?.text ?? url : HarImport.httpUrl(url),
            version: HarImport.version(request["httpVersion"]?.text),
            listener: CaptureStore.importListener,
            request: CapturedMessage(fields: HarImport.fields(request["headers"])))
        exchange.isOpen = false
        exchange.request.content = requestContent(request, exchange.request)
        readResponse(&exchange)
        readTimes(&exchange)
        if let address = entry["serverIPAddress"]?.text, !address.isEmpty {
            let host = address.contains(":") && !address.hasPrefix("[") ? "[\(address)]" : address
            exchange.server = entry["connection"]?.text.flatMap { UInt16($0) }.map { "\(host):\($0)" } ?? host
        }
        exchange.comment = entry["comment"]?.text ?? ""
        exchange.route = entry["_httpware"]?["route"]?.text
        exchange.service = entry["_httpware"]?["service"]?.text
        exchange.operations = (entry["_httpware"]?["operations"]?.list ?? []).compactMap(\.text)
        exchange.progress = (entry["_httpware"]?["progress"]?.list ?? []).compactMap { pair in
            guard let pair = pair.list, pair.count == 2, let time = pair[0].whole, let size = pair[1].whole, time >= 0,
                size >= 0
            else { return nil }
            return ContentProgress(time: time, size: size)
        }
        readMessages(&exchange)
        return exchange
    }

    // MARK: Times

    private mutating func started() -> WallTime {
        if let text = entry["startedDateTime"]?.text, let time = WallTime(iso8601: text) { return time }
        warnings.append("startedDateTime is missing or malformed; 1970 is assumed")
        return WallTime(seconds: 0)
    }

    /// A phase with a negative time or without a number did not happen.
    private mutating func readTimes(_ exchange: inout CapturedExchange) {
        func microseconds(_ name: String) -> Int? {
            guard let value = entry["timings"]?[name]?.number, value >= 0 else { return nil }
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
        if let time = entry["time"]?.number, time >= 0, timings.total == 0 {
            timings.wait = CapturedTimings.microseconds(time)
        }
        if entry["timings"]?.members == nil { warnings.append("the timings are missing") }
        exchange.timings = timings
        let (nanoseconds, overflows) = Int64(timings.total).multipliedReportingOverflow(by: 1000)
        exchange.duration = overflows ? .max : nanoseconds
    }

    // MARK: Messages

    /// Replaces `ws` and `wss`, which browsers write for WebSockets, by `http` and `https`.
    private static func httpUrl(_ url: String) -> String {
        let scheme = url.prefix { $0 != ":" }
        return ["ws", "wss"].contains(scheme.lowercased()) ? "http" + url.dropFirst(2) : url
    }

    /// Normalizes a version: `h2`, `http/2.0` and `HTTP/2` are the same.
    private static func version(_ text: String?) -> String {
        switch text?.lowercased() {
        case "h2", "http/2.0", "http/2", "h2c": "HTTP/2"
        case "h3", "http/3.0", "http/3": "HTTP/3"
        case "http/1.0": "HTTP/1.0"
        default: "HTTP/1.1"
        }
    }

    /// Reads a list of objects, a list of pairs, or one object with all fields. Leaves out the pseudo-fields of HTTP/2.
    private static func fields(_ value: JsonTree?) -> CapturedFields {
        func text(_ value: JsonTree?) -> String? {
            switch value {
            case .text(let text): text
            case .number(let number): Int(exactly: number).map { "\($0)" } ?? "\(number)"
            case .bool(let isTrue): "\(isTrue)"
            default: nil
            }
        }
        var pairs: [(String?, String?)] = []
        if let list = value?.list {
            for line in list {
                if let pair = line.list {
                    pairs.append((text(pair.first), text(pair.dropFirst().first)))
                } else {
                    pairs.append((text(line["name"]), text(line["value"]) ?? ""))
                }
            }
        } else {
            pairs = (value?.members ?? []).map { ($0.name, text($0.value)) }
        }
        var fields = CapturedFields()
        for (name, value) in pairs {
            guard let name, let value, !name.isEmpty, !name.hasPrefix(":") else { continue }
            // Firefox and others join repeated lines with a line feed.
            for line in value.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
                fields.append(CapturedMessage.Field(name, String(line)))
            }
        }
        return fields
    }

    private mutating func requestContent(_ request: JsonTree, _ message: CapturedMessage) -> CapturedContent {
        guard let data = request["postData"], data != .null else {
            var content = CapturedContent()
            content.size = max(0, request["bodySize"]?.whole ?? 0)
            return content
        }
        let mediaType = data["mimeType"]?.text ?? message.values(of: "content-type").first
        if let text = data["text"]?.text, !text.isEmpty || data["params"]?.list?.isEmpty ?? true {
            // Firefox writes each byte as one character if the content is not UTF-8.
            if !isOwn, data["encoding"]?.text == nil, let size = request["bodySize"]?.whole, size != text.utf8.count,
                size == text.unicodeScalars.count, text.unicodeScalars.allSatisfy({ $0.value < 0x100 })
            {
                var content = CapturedContent()
                content.kept = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
                content.size = size
                return content
            }
            return content(
                text, data, mediaType, size: isOwn ? request["bodySize"]?.whole : nil,
                isCoded: !message.values(of: "content-encoding").isEmpty)
        }
        let pairs = (data["params"]?.list ?? []).map { parameter in
            let parts = [parameter["name"]?.text ?? "", parameter["value"]?.text ?? ""]
            return parts.map(HarImport.formEncoded).joined(separator: "=")
        }
        if let mediaType, mediaType.lowercased().hasPrefix("multipart/") {
            warnings.append("the parts of the form are written as parameters")
        }
        return content(pairs.joined(separator: "&"), .null, mediaType, size: nil, isCoded: true)
    }

    private static func formEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2a, 0x2d, 0x2e, 0x5f:
                result.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x20: result += "+"
            default: result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    private mutating func content(
        _ text: String, _ entry: JsonTree, _ mediaType: String?, size: Int?, isCoded: Bool
    ) -> CapturedContent {
        var content = CapturedContent()
        let encoding = entry["encoding"]?.text
        if let encoding, encoding.lowercased() == "base64" {
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
        content.isDecoded = isCoded
        content.size = max(content.kept.count, isCoded ? 0 : size ?? 0)
        if isOwn, let length = entry["_maskedFrom"]?.whole, length >= 0 {
            content.maskedFrom = length
            if !isCoded { content.size = max(length, size ?? 0) }
        }
        return content
    }

    private mutating func readResponse(_ exchange: inout CapturedExchange) {
        guard let response = entry["response"], response != .null else {
            warnings.append("the response is missing")
            return
        }
        exchange.fault = [response["_error"], response["_errorMessage"], entry["_error"]].lazy.compactMap { $0?.text }
            .first { !$0.isEmpty }
        guard let status = response["status"]?.whole, (100...999).contains(status) else {
            // Browsers write 0 or -1 if there was no response.
            if exchange.fault == nil { exchange.fault = "no response" }
            return
        }
        exchange.status = status
        var message = CapturedMessage(fields: HarImport.fields(response["headers"]))
        if let body = response["content"], let text = body["text"]?.text {
            let mediaType = body["mimeType"]?.text ?? message.values(of: "content-type").first
            message.content = content(
                text, body, mediaType, size: isOwn ? body["size"]?.whole : nil,
                isCoded: !message.values(of: "content-encoding").isEmpty)
        } else {
            // Firefox includes the header section in `bodySize`.
            let sizes = [response["content"]?["size"]?.whole, response["bodySize"]?.whole].compactMap(\.self)
            message.content.size = max(0, sizes.first { $0 >= 0 } ?? 0)
            if message.content.size > 0, entry["_eventSourceMessages"]?.list == nil {
                warnings.append("the content of the response is missing")
            }
        }
        exchange.response = message
    }

    // MARK: Messages of a WebSocket

    private mutating func readMessages(_ exchange: inout CapturedExchange) {
        let type = exchange.response?.values(of: "content-type").first?.lowercased() ?? ""
        if type.hasPrefix("text/event-stream") { exchange.kind = .sse }
        if type.hasPrefix("application/grpc") { exchange.kind = .grpc }
        for message in entry["_eventSourceMessages"]?.list ?? [] {
            guard exchange.kind == .sse, let data = message["data"]?.text.map({ Array($0.utf8) }) else { continue }
            let (type, id) = (message["eventName"]?.text, message["eventId"]?.text)
            exchange.messages.append(
                CapturedPiece(
                    .receive, .event(type: type == "message" ? nil : type, id: id?.isEmpty ?? true ? nil : id),
                    time: HarTime.epoch(message["time"]?.number) ?? exchange.started, data: data, size: data.count))
        }
        let messages = entry["_webSocketMessages"]?.list
        let isUpgraded = exchange.status == 101 && exchange.request.values(of: "sec-websocket-key").first != nil
        guard messages != nil || isUpgraded || entry["_resourceType"]?.text == "websocket" else { return }
        exchange.kind = .websocket
        for message in messages ?? [] {
            guard let data = message["data"]?.text else { continue }
            // An opcode has four bits. RFC 6455 §5.2.
            let opcode = message["opcode"]?.whole.flatMap { (0...15).contains($0) ? UInt8($0) : nil } ?? 1
            let bytes = (opcode == 2 ? HarText.base64(data) : nil) ?? Array(data.utf8)
            var piece = CapturedPiece(
                message["type"]?.text == "send" ? .send : .receive, .webSocket(opcode: opcode),
                time: HarTime.epoch(message["time"]?.number) ?? exchange.started, data: bytes, size: bytes.count)
            piece.isMasked = message["_masked"]?.flag ?? false
            exchange.messages.append(piece)
        }
    }
}
