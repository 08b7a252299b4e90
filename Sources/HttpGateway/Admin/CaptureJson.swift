public import Capturing
import HttpWare

/// Captures as JSON.
enum CaptureJson {
    /// A row of a list.
    static func row(_ capture: CapturedExchange) -> Json {
        .object(rowMembers(capture))
    }

    private static func rowMembers(_ capture: CapturedExchange) -> [(String, Json)] {
        [
            ("id", .text(String(capture.id))), ("time", .text(capture.started.rfc3339)),
            ("duration", .decimal(Double(max(0, capture.duration) / 1000) / 1000)), ("url", .text(capture.url)),
            ("method", .text(capture.method)), ("status", capture.status.map(Json.number) ?? .null),
            ("listener", .text(capture.listener)), ("route", .optional(capture.route)),
            ("service", .optional(capture.service)), ("kind", .text(capture.kind.rawValue)),
            ("state", .text(capture.isOpen ? "open" : "ended")), ("pinned", .bool(capture.isPinned)),
            ("comment", .text(capture.comment)), ("fault", .optional(capture.fault)),
            ("operation", .optional(capture.operations.isEmpty ? nil : capture.operations.joined(separator: ", "))),
            ("replayOf", capture.replayOf.map { .text(String($0)) } ?? .null),
            ("rules", .list(capture.rules.map { .text(String($0)) })), ("client", .optional(capture.client)),
            ("server", .optional(capture.server)), ("requestSize", .number(capture.request.content.size)),
            ("responseSize", .number(capture.response?.content.size ?? 0)), ("version", .text(capture.version)),
            (
                "contentType",
                .optional((capture.response ?? capture.receivedResponse)?.values(of: "content-type").first)
            ), ("did", .list(done(capture).map(Json.text))),
        ]
    }

    /// The actions of wares and caches in a few words, except for passing the message on.
    private static func done(_ capture: CapturedExchange) -> [String] {
        guard let report = capture.summaryOfRecord else { return [] }
        var words = report.cache.map { [$0] } ?? []
        for ware in report.wares where ware.decision != "passed" && ware.decision != "skipped" {
            let word = "\(ware.ware): \(ware.decision)"
            if words.last != word, words.count < 4 { words.append(word) }
        }
        if report.attempts > 1 { words.append("\(report.attempts) attempts") }
        return words
    }

    /// All data of a capture except its content and messages.
    static func detail(_ capture: CapturedExchange) -> Json {
        .object(
            rowMembers(capture) + [
                (
                    "request",
                    .object([
                        ("client", message(capture.request)), ("origin", capture.sentRequest.map(message) ?? .null),
                    ])
                ),
                (
                    "response",
                    .object([
                        ("client", capture.response.map(message) ?? .null),
                        ("origin", capture.receivedResponse.map(message) ?? .null),
                    ])
                ), ("messages", .number(capture.messages.count)),
                (
                    "tls",
                    .object([
                        ("client", capture.tls.client.map(tls) ?? .null),
                        ("server", capture.tls.server.map(tls) ?? .null),
                    ])
                ),
                ("record", capture.report.map { Json.raw($0.json) } ?? .null),
            ])
    }

    /// The TLS of a connection. The members of the certificate are those of the server's.
    private static func tls(_ facts: TlsFacts) -> Json {
        .object(
            given: [
                ("version", .text(facts.version)), ("cipher", .text(facts.cipher)),
                ("group", facts.group.map(Json.text)), ("alpn", facts.alpn.map(Json.text)),
                ("name", facts.name.map(Json.text)), ("resumed", .bool(facts.isResumed)),
            ] + (facts.certificate.map(members) ?? []) + [
                ("clientCertificate", facts.clientCertificate.map { .object(given: members($0)) })
            ])
    }

    private static func members(_ certificate: TlsFacts.Certificate) -> [(String, Json?)] {
        [
            ("subject", .text(certificate.subject)), ("issuer", .text(certificate.issuer)),
            ("names", .list(certificate.names.map(Json.text))),
            ("moreNames", certificate.moreNames > 0 ? .number(certificate.moreNames) : nil),
            ("notBefore", .text(certificate.notBefore.rfc3339)), ("notAfter", .text(certificate.notAfter.rfc3339)),
            ("sha256", .text(certificate.sha256)),
        ]
    }

    private static func message(_ message: CapturedMessage) -> Json {
        .object(given: [
            ("headers", fields(message.fields)),
            ("trailers", message.trailers.isEmpty ? nil : fields(message.trailers)),
            (
                "content",
                .object([
                    ("size", .number(message.content.size)), ("kept", .number(message.content.kept.count)),
                    ("whole", .bool(message.content.isWhole)), ("masked", .bool(message.content.maskedFrom != nil)),
                    ("sha256", .optional(message.content.sha256)),
                ])
            ),
        ])
    }

    private static func fields(_ fields: CapturedFields) -> Json {
        .list(fields.map { .object([("name", .text($0.name)), ("value", .text($0.value))]) })
    }

    /// A message inside an exchange.
    static func message(_ piece: CapturedPiece) -> Json {
        var members: [(String, Json)] = []
        switch piece.form {
        case .webSocket(let opcode):
            members = [("type", .text(piece.direction.rawValue)), ("opcode", .number(Int(opcode)))]
            if opcode == 8, piece.data.count >= 2 {
                // RFC 6455 §5.5.1: a status code in network byte order, and a reason.
                let code = Int(piece.data[0]) << 8 | Int(piece.data[1])
                let reason = String(decoding: piece.data.dropFirst(2), as: UTF8.self)
                members.append(("close", .object([("code", .number(code)), ("reason", .text(reason))])))
            }
        case .event(let type, let id):
            members = [("type", .text("sse")), ("event", .optional(type)), ("id", .optional(id))]
        case .grpc: members = [("type", .text("grpc")), ("direction", .text(piece.direction.rawValue))]
        }
        if case .grpc = piece.form, piece.data.count == piece.size, let fields = ProtobufField.read(piece.data) {
            members.append(("fields", .list(fields.map(field))))
        }
        members.append(("time", .text(piece.time.rfc3339)))
        members.append(("size", .number(piece.size)))
        if let text = String(validating: piece.data, as: UTF8.self) {
            members.append(("data", .text(text)))
        } else {
            members += [("data", .text(Base64.encode(piece.data))), ("encoding", .text("base64"))]
        }
        return .object(members)
    }

    /// A field of a protobuf message as it is on the wire. 64-bit numbers are strings, because JSON numbers would lose
    /// digits.
    private static func field(_ field: ProtobufField) -> Json {
        let value: Json =
            switch field.value {
            case .varint(let number), .fixed64(let number): .text(String(number))
            case .fixed32(let number): .number(Int(number))
            case .text(let text): .text(text)
            case .bytes(let bytes): .object([("base64", .text(Base64.encode(bytes)))])
            case .message(let fields): .list(fields.map(CaptureJson.field))
            }
        return .object([("number", .number(field.number)), ("value", value)])
    }

    /// The content without its codings, as far as it can be decoded and is within the limit.
    static func decoded(_ message: CapturedMessage) -> [UInt8] { DecodedContent(message).bytes }
}

extension CapturedExchange {
    /// The exchange as the admin listener lists it: JSON on one line.
    public var rowText: String { CaptureJson.row(self).text }
}
