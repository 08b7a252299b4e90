/// An exchange for display to people and programs: texts and milliseconds, with credentials hidden.
///
/// Only this type makes JSON of a record: the admin listener serves it, `httpware trace` reads it.
public struct ExchangeReport: Sendable, Equatable, Codable {
    /// The number of the exchange in this process, for finding it.
    public var id: String
    /// The exchange's own id, if a ware made one.
    public var exchange: String?
    /// The start: RFC 3339 in UTC, with microseconds.
    public var time: String
    /// The time from the request's head to the end of the response, in milliseconds, like all times below.
    public var duration: Double
    public var listener: String
    public var route: String?
    public var service: String?
    /// The endpoint of the last attempt.
    public var endpoint: String?
    /// The address of the client.
    public var client: String?
    /// The intercepted tunnel that carried the request.
    public var tunnel: Tunnel?
    /// Why the tunnel that the exchange opened passes unread on a listener that intercepts tunnels: `notListed`, `excepted`, `pinned` or
    /// `opaque`.
    public var unread: String?
    /// The scheme that the client used, `http` or `https`; `nil` for CONNECT.
    public var scheme: String?
    /// The group of the key exchange of the client's connection, such as `X25519MLKEM768`; `nil` without TLS.
    public var keyExchange: String?
    /// `-` if the request line could not be read that far; the same for `target` and `protocol`.
    public var method: String
    /// The target as received, with the values of parameters hidden that are named like credentials. Bytes that are not UTF-8 are
    /// percent-encoded.
    public var target: String
    /// The host that the request named, or else that of its tunnel.
    public var host: String?
    public var `protocol`: String
    /// The status of the response; 499 if the client left before it had one.
    public var status: Int
    /// `completed`, `cutOff` or `clientLeft`.
    public var end: String
    /// `upstream`, `cache`, `gateway`, or the label of a ware.
    public var responder: String
    /// The result of a cache: `hit`, `stale`, `collapsed`, `validated`, `miss` or `bypass`; `nil` without a cache.
    public var cache: String?
    /// The ids of the temporary rules that acted on it; `nil` without any.
    public var rules: [RuleId]?
    /// The fault, and its details in words.
    public var fault: String?
    public var reason: String?
    /// The number of upstream connections used, and how many times the request was sent inward again.
    public var attempts: Int
    public var replays: Int
    /// Whether the last connection had served an earlier request.
    public var reused: Bool
    /// Bytes of content received from the client, and sent to it.
    public var requestBytes: Int
    public var responseBytes: Int
    /// Bytes of the response's content before filters such as `compress`; `nil` if equal to `responseBytes`.
    public var unfilteredBytes: Int?
    /// The phases of all attempts, in order.
    public var phases: [Phase]
    public var wares: [Ware]
    /// Whether the wares did more than the record could hold.
    public var cut: Bool

    /// A tunnel that a client opened by CONNECT or SOCKS5.
    public struct Tunnel: Sendable, Equatable, Codable {
        /// The destination: the host that its requests go to.
        public var host: String
        public var port: UInt16
        /// The address that the client named, if the host comes from its TLS handshake.
        public var address: String?
        /// The name of the principal that opened the tunnel.
        public var principal: String?
    }

    /// The id of a temporary rule.
    public struct RuleId: Sendable, Equatable, Codable {
        public let text: String

        public init(_ number: Int) { text = String(number) }

        public init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            // Captures of earlier versions have numbers.
            text = try (try? value.decode(Int.self)).map { String($0) } ?? value.decode(String.self)
        }

        public func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            try value.encode(text)
        }
    }

    /// A phase of an attempt to get a response from upstream.
    public struct Phase: Sendable, Equatable, Codable {
        /// `queue` for the wait for a connection, `dns`, `connect`, `tls`, `send`, `firstByte`, `content`, or `backoff` for the pause
        /// before the request is sent again.
        public var phase: String
        /// The number of the try, from 1; for a pause, the try that follows it.
        public var attempt: Int
        /// The endpoint of the attempt.
        public var endpoint: String?
        /// The start, counted from the start of the exchange.
        public var start: Double
        public var duration: Double
        /// The fault that ended it before it was complete.
        public var fault: String?
    }

    /// The actions of one ware.
    public struct Ware: Sendable, Equatable, Codable {
        public var ware: String
        /// `request`, `responseHalf` or `postware`.
        public var side: String
        /// The number of the try, from 1.
        public var attempt: Int
        /// The decision as one word: `passed`, `held`, `aborted`, `replaced`, `replayed`, `skipped`, `failed`, `gaveUp`, or the ware's own.
        public var decision: String
        /// The decision for people: `held 212ms behind refresh 7`.
        public var text: String
        public var start: Double
        public var duration: Double
        /// The names of changed fields.
        public var added: [String]?
        public var removed: [String]?
        public var rewritten: [String]?
        /// Whether the ware replaced all fields.
        public var replacedFields: Bool?
        /// The method, target and status if the ware changed them.
        public var method: String?
        public var target: String?
        public var status: Int?
    }
}

extension ExchangeReport {
    /// Converts a record into texts. Not for use on a loop that serves requests.
    public init(_ recorded: RecordedExchange) {
        let record = recorded.record
        func milliseconds(_ nanoseconds: Int64) -> Double { Double(max(0, nanoseconds) / 1000) / 1000 }
        func text(_ text: WareTrail.Text) -> String? { text.count == 0 ? nil : record.trail.string(text) }
        func names(_ names: [String]) -> [String]? { names.isEmpty ? nil : names }

        id = String(recorded.number)
        exchange = recorded.id
        time = record.startedAt.rfc3339
        duration = milliseconds(record.ended - record.started)
        listener = recorded.listener
        route = recorded.route
        service = recorded.service
        endpoint = recorded.endpoint
        client = recorded.client.map { "\($0)" }
        tunnel = recorded.tunnel.map {
            Tunnel(host: $0.host, port: $0.port, address: $0.address.map { "\($0)" }, principal: $0.principal)
        }
        unread = recorded.unread?.rawValue
        scheme = recorded.method == .connect ? nil : recorded.isSecure ? "https" : "http"
        keyExchange = recorded.keyExchange?.name
        method = recorded.method.name
        target = recorded.target.count == 0 ? "-" : Redaction.target(record.trail.target(recorded.target))
        host = text(recorded.host) ?? recorded.tunnel?.host
        `protocol` =
            switch recorded.version {
            case .http10: "HTTP/1.0"
            case .http11: "HTTP/1.1"
            case .http2: "HTTP/2"
            case nil: "-"
            }
        status = recorded.end == .clientLeft ? 499 : recorded.status?.code ?? 0
        end = recorded.endName
        responder = recorded.responderName
        cache = recorded.cacheName
        rules = recorded.rules.isEmpty ? nil : recorded.rules.map { RuleId($0) }
        fault = recorded.failure.map { "\($0.fault)" }
        reason = recorded.failure?.reason
        attempts = record.attempts
        replays = record.replays
        reused = record.isReused
        requestBytes = record.requestBytes
        responseBytes = record.responseBytes
        unfilteredBytes = record.unfilteredBytes == record.responseBytes ? nil : record.unfilteredBytes
        let last = recorded.endpoint
        phases = record.phases.map { phase in
            Phase(
                phase: phase.name, attempt: phase.attempt,
                endpoint: phase.name == WareTrail.Phase.Name.backoff.rawValue ? nil : phase.endpoint ?? last,
                start: milliseconds(phase.started - record.started), duration: milliseconds(phase.duration),
                fault: phase.fault.map { "\($0)" })
        }
        wares = record.wares.map { step in
            Ware(
                ware: step.label, side: step.side.rawValue, attempt: step.attempt, decision: step.word, text: step.text,
                start: milliseconds(step.started - record.started), duration: milliseconds(step.duration),
                added: names(step.added), removed: names(step.removed), rewritten: names(step.rewritten),
                replacedFields: step.replacedFields ? true : nil, method: step.newMethod, target: step.newTarget,
                status: step.newStatus)
        }
        cut = record.trail.isCut
    }

    // MARK: JSON

    /// The report as one JSON object (RFC 8259) without line ends. Unknown values are left out.
    public var json: String { String(decoding: jsonBytes, as: UTF8.self) }

    /// The same in UTF-8.
    public var jsonBytes: [UInt8] {
        var writer = JsonWriter(reserving: 1536)
        writer.object { write(to: &$0) }
        return writer.bytes
    }

    private func write(to object: inout JsonWriter) {
        object.text("id", id)
        object.text("exchange", exchange)
        object.text("time", time)
        object.decimal("duration", duration)
        object.text("listener", listener)
        object.text("route", route)
        object.text("service", service)
        object.text("endpoint", endpoint)
        object.text("client", client)
        if let tunnel { object.object("tunnel") { tunnel.write(to: &$0) } }
        object.text("unread", unread)
        object.text("method", method)
        object.text("scheme", scheme)
        object.text("keyExchange", keyExchange)
        object.text("target", target)
        object.text("host", host)
        object.text("protocol", `protocol`)
        object.number("status", status)
        object.text("end", end)
        object.text("responder", responder)
        object.text("cache", cache)
        object.texts("rules", rules?.map(\.text))
        object.text("fault", fault)
        object.text("reason", reason)
        object.number("attempts", attempts)
        object.number("replays", replays)
        object.flag("reused", reused)
        object.number("requestBytes", requestBytes)
        object.number("responseBytes", responseBytes)
        object.number("unfilteredBytes", unfilteredBytes)
        object.list("phases") { list in for phase in phases { list.object { phase.write(to: &$0) } } }
        object.list("wares") { list in for ware in wares { list.object { ware.write(to: &$0) } } }
        object.flag("cut", cut)
    }
}

extension ExchangeReport.Tunnel {
    fileprivate func write(to object: inout JsonWriter) {
        object.text("host", host)
        object.number("port", Int(port))
        object.text("address", address)
        object.text("principal", principal)
    }
}

extension ExchangeReport.Phase {
    fileprivate func write(to object: inout JsonWriter) {
        object.text("phase", phase)
        object.number("attempt", attempt)
        object.text("endpoint", endpoint)
        object.decimal("start", start)
        object.decimal("duration", duration)
        object.text("fault", fault)
    }
}

extension ExchangeReport.Ware {
    fileprivate func write(to object: inout JsonWriter) {
        object.text("ware", ware)
        object.text("side", side)
        object.number("attempt", attempt)
        object.text("decision", decision)
        object.text("text", text)
        object.decimal("start", start)
        object.decimal("duration", duration)
        object.texts("added", added)
        object.texts("removed", removed)
        object.texts("rewritten", rewritten)
        object.flag("replacedFields", replacedFields)
        object.text("method", method)
        object.text("target", target)
        object.number("status", status)
    }
}

extension RecordedExchange {
    /// The end, the responder and the cache result, in the words of `ExchangeReport`.
    public var endName: String {
        switch end {
        case .completed, nil: "completed"
        case .cutOff: "cutOff"
        case .clientLeft: "clientLeft"
        }
    }
    public var responderName: String { responder.name }
    public var cacheName: String? { cacheResult?.name }
}

extension ExchangeRecord {
    /// The labels of the wares with their decisions as one word, in the order in which they ran.
    public var decisions: [(ware: String, decision: String)] {
        trail.steps.map { step in
            (trail.label(step), WareStep.word(step.decision, step.hasWaited, trail.decision(step)))
        }
    }

    /// The actions of the wares, as a JSON array: for a log.
    public var waresJson: String {
        func milliseconds(_ nanoseconds: Int64) -> Json { .decimal(Double(max(0, nanoseconds) / 1000) / 1000) }
        return Json.list(
            wares.map { step in
                .object([
                    ("ware", .text(step.label)), ("side", .text(step.side.rawValue)), ("decision", .text(step.text)),
                    ("start", milliseconds(step.started - started)), ("duration", milliseconds(step.duration)),
                ])
            }
        ).text
    }
}
