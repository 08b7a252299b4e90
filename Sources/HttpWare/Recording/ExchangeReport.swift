/// An exchange as it is shown to people and programs: texts and milliseconds, credentials hidden.
///
/// This is the one place that makes JSON of a record: the admin listener serves it, `httpware trace` reads it.
public struct ExchangeReport: Sendable, Equatable, Codable {
    /// Its number in this process, by which it is found.
    public var id: String
    /// The exchange's own id, if a ware made one.
    public var exchange: String?
    /// When it began: RFC 3339 in UTC, with microseconds.
    public var time: String
    /// From the request's head to the end of the response, in milliseconds; so are all times below.
    public var duration: Double
    public var listener: String
    public var route: String?
    public var service: String?
    /// The endpoint that was asked last.
    public var endpoint: String?
    /// The address of the client.
    public var client: String?
    /// The tunnel that the request came in, where the gateway reads it.
    public var tunnel: Tunnel?
    /// `-` where the request line could not be read so far; the same for `target` and `protocol`.
    public var method: String
    /// As received, the values of parameters that are named like credentials hidden.
    public var target: String
    public var host: String?
    public var `protocol`: String
    /// The status of the response; 499 when the client left before it had one.
    public var status: Int
    /// `completed`, `cutOff` or `clientLeft`.
    public var end: String
    /// `upstream`, `cache`, `gateway`, or the label of a ware.
    public var responder: String
    /// What a cache did with the request: `hit`, `stale`, `collapsed`, `validated`, `miss` or `bypass`; `nil` where none saw it.
    public var cache: String?
    /// The numbers of the rules for a while that acted on it; `nil` without any.
    public var rules: [Int]?
    /// What went wrong, and in words.
    public var fault: String?
    public var reason: String?
    /// How many connections upstream were used, and how often the request was sent inward again.
    public var attempts: Int
    public var replays: Int
    /// The last connection had served another request before.
    public var reused: Bool
    /// Bytes of content that came from the client, and that were sent to it.
    public var requestBytes: Int
    public var responseBytes: Int
    /// Bytes of the response's content before filters such as `compress`; `nil` where that is `responseBytes`.
    public var unfilteredBytes: Int?
    /// Of all attempts, in order.
    public var phases: [Phase]
    public var wares: [Ware]
    /// The wares did more than is kept.
    public var cut: Bool

    /// A tunnel that a client opened by CONNECT or SOCKS5.
    public struct Tunnel: Sendable, Equatable, Codable {
        /// Where it leads: the host that its requests go to.
        public var host: String
        public var port: UInt16
        /// The address that the client named, where the host is the one of its TLS handshake.
        public var address: String?
        /// The name of the principal that opened it.
        public var principal: String?
    }

    /// A phase of an attempt to get a response from upstream.
    public struct Phase: Sendable, Equatable, Codable {
        /// `dns`, `connect`, `tls`, `send`, `firstByte`, `content`, or `backoff` for the pause before the request is sent again.
        public var phase: String
        /// Which time the request went inward, from 1; of a pause, the time that it comes before.
        public var attempt: Int
        /// Where the attempt went.
        public var endpoint: String?
        /// Since the exchange began.
        public var start: Double
        public var duration: Double
        /// What ended it before it was complete.
        public var fault: String?
    }

    /// What one ware did.
    public struct Ware: Sendable, Equatable, Codable {
        public var ware: String
        /// `request`, `responseHalf` or `postware`.
        public var side: String
        /// Which time the request went inward, from 1.
        public var attempt: Int
        /// In a word: `passed`, `held`, `aborted`, `replaced`, `replayed`, `skipped`, `failed`, `gaveUp`, or the ware's own.
        public var decision: String
        /// For people: `held 212ms behind refresh 7`.
        public var text: String
        public var start: Double
        public var duration: Double
        /// Names of fields.
        public var added: [String]?
        public var removed: [String]?
        public var rewritten: [String]?
        /// It put other fields in place of all.
        public var replacedFields: Bool?
        /// What it made of the method, the target and the status.
        public var method: String?
        public var target: String?
        public var status: Int?
    }
}

extension ExchangeReport {
    /// Makes texts of what was recorded. Not on a loop that carries requests.
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
        method = recorded.method.name
        target = text(recorded.target).map(Redaction.target) ?? "-"
        host = text(recorded.host)
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
        rules = recorded.rules.isEmpty ? nil : recorded.rules
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

    /// As one JSON object (RFC 8259) without line ends. What is not known is not there.
    public var json: String { value.text }

    private var value: Json {
        .object(given: [
            ("id", .text(id)), ("exchange", exchange.map(Json.text)), ("time", .text(time)),
            ("duration", .decimal(duration)), ("listener", .text(listener)), ("route", route.map(Json.text)),
            ("service", service.map(Json.text)), ("endpoint", endpoint.map(Json.text)),
            ("client", client.map(Json.text)), ("tunnel", tunnel?.value), ("method", .text(method)),
            ("target", .text(target)),
            ("host", host.map(Json.text)), ("protocol", .text(`protocol`)), ("status", .number(status)),
            ("end", .text(end)), ("responder", .text(responder)),
            ("cache", cache.map(Json.text)), ("rules", rules.map { .list($0.map(Json.number)) }),
            ("fault", fault.map(Json.text)),
            ("reason", reason.map(Json.text)), ("attempts", .number(attempts)), ("replays", .number(replays)),
            ("reused", .bool(reused)), ("requestBytes", .number(requestBytes)),
            ("responseBytes", .number(responseBytes)), ("unfilteredBytes", unfilteredBytes.map(Json.number)),
            ("phases", .list(phases.map(\.value))),
            ("wares", .list(wares.map(\.value))), ("cut", .bool(cut)),
        ])
    }
}

extension ExchangeReport.Tunnel {
    fileprivate var value: Json {
        .object(given: [
            ("host", .text(host)), ("port", .number(Int(port))), ("address", address.map(Json.text)),
            ("principal", principal.map(Json.text)),
        ])
    }
}

extension ExchangeReport.Phase {
    fileprivate var value: Json {
        .object(given: [
            ("phase", .text(phase)), ("attempt", .number(attempt)), ("endpoint", endpoint.map(Json.text)),
            ("start", .decimal(start)), ("duration", .decimal(duration)), ("fault", fault.map(Json.text)),
        ])
    }
}

extension ExchangeReport.Ware {
    fileprivate var value: Json {
        func names(_ names: [String]?) -> Json? { names.map { .list($0.map(Json.text)) } }
        return .object(given: [
            ("ware", .text(ware)), ("side", .text(side)), ("attempt", .number(attempt)),
            ("decision", .text(decision)), ("text", .text(text)), ("start", .decimal(start)),
            ("duration", .decimal(duration)), ("added", names(added)), ("removed", names(removed)),
            ("rewritten", names(rewritten)), ("replacedFields", replacedFields.map(Json.bool)),
            ("method", method.map(Json.text)), ("target", target.map(Json.text)), ("status", status.map(Json.number)),
        ])
    }
}

extension RecordedExchange {
    /// How it ended, who answered and what a cache did, in the words of `ExchangeReport`.
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
    /// The labels of the wares with their decisions in a word, in the order in which they were asked.
    public var decisions: [(ware: String, decision: String)] {
        trail.steps.map { step in
            (trail.label(step), WareStep.word(step.decision, step.hasWaited, trail.decision(step)))
        }
    }

    /// What the wares did, as a JSON array: for a log.
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
