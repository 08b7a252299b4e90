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
    /// What went wrong, and in words.
    public var fault: String?
    public var reason: String?
    /// How many connections upstream were used, and how often the request was sent inward again.
    public var attempts: Int
    public var replays: Int
    /// The last connection had served another request before.
    public var reused: Bool
    /// Bytes of content.
    public var requestBytes: Int
    public var responseBytes: Int
    /// Of the last attempt.
    public var phases: [Phase]
    public var wares: [Ware]
    /// The wares did more than is kept.
    public var cut: Bool

    /// A phase of the last attempt.
    public struct Phase: Sendable, Equatable, Codable {
        /// `dns`, `connect`, `send`, `firstByte` or `content`.
        public var phase: String
        /// Since the exchange began.
        public var start: Double
        public var duration: Double
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
        time = ExchangeReport.stamp(record.startedAt)
        duration = milliseconds(record.ended - record.started)
        listener = recorded.listener
        route = recorded.route
        service = recorded.service
        endpoint = recorded.endpoint
        client = recorded.client.map { "\($0)" }
        method = recorded.method.name
        target = text(recorded.target).map(Redaction.target) ?? ""
        host = text(recorded.host)
        `protocol` =
            switch recorded.version {
            case .http10: "HTTP/1.0"
            case .http11: "HTTP/1.1"
            case .http2: "HTTP/2"
            }
        status = recorded.end == .clientLeft ? 499 : recorded.status?.code ?? 0
        end =
            switch recorded.end {
            case .completed, nil: "completed"
            case .cutOff: "cutOff"
            case .clientLeft: "clientLeft"
            }
        responder = recorded.responder.name
        fault = recorded.failure.map { "\($0.fault)" }
        reason = recorded.failure?.reason
        attempts = record.attempts
        replays = record.replays
        reused = record.isReused
        requestBytes = record.requestBytes
        responseBytes = record.responseBytes
        phases = record.phases.map {
            Phase(
                phase: $0.name, start: milliseconds($0.started - record.started), duration: milliseconds($0.duration))
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
    public var json: String {
        var object = JsonObject()
        object.add("id", id)
        object.add("exchange", exchange)
        object.add("time", time)
        object.add("duration", duration)
        object.add("listener", listener)
        object.add("route", route)
        object.add("service", service)
        object.add("endpoint", endpoint)
        object.add("client", client)
        object.add("method", method)
        object.add("target", target)
        object.add("host", host)
        object.add("protocol", `protocol`)
        object.add("status", status)
        object.add("end", end)
        object.add("responder", responder)
        object.add("fault", fault)
        object.add("reason", reason)
        object.add("attempts", attempts)
        object.add("replays", replays)
        object.add("reused", reused)
        object.add("requestBytes", requestBytes)
        object.add("responseBytes", responseBytes)
        object.add("phases", objects: phases.map(\.json))
        object.add("wares", objects: wares.map(\.json))
        object.add("cut", cut)
        return object.text
    }

    /// `2026-11-21T05:20:11.123456Z`. RFC 3339.
    private static func stamp(_ time: WallTime) -> String {
        func padded(_ number: Int, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        let days = time.seconds >= 0 ? time.seconds / 86_400 : (time.seconds - 86_399) / 86_400
        let inDay = Int(time.seconds - days * 86_400)
        let (year, month, day) = HttpDate.civil(days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(inDay / 3600, 2)):"
            + "\(padded(inDay / 60 % 60, 2)):\(padded(inDay % 60, 2)).\(padded(Int(time.nanoseconds) / 1000, 6))Z"
    }
}

extension ExchangeReport.Phase {
    fileprivate var json: String {
        var object = JsonObject()
        object.add("phase", phase)
        object.add("start", start)
        object.add("duration", duration)
        return object.text
    }
}

extension ExchangeReport.Ware {
    /// As one JSON object.
    fileprivate var json: String {
        var object = JsonObject()
        object.add("ware", ware)
        object.add("side", side)
        object.add("attempt", attempt)
        object.add("decision", decision)
        object.add("text", text)
        object.add("start", start)
        object.add("duration", duration)
        object.add("added", added)
        object.add("removed", removed)
        object.add("rewritten", rewritten)
        object.add("replacedFields", replacedFields)
        object.add("method", method)
        object.add("target", target)
        object.add("status", status)
        return object.text
    }
}

extension ExchangeRecord {
    /// What the wares did, as a JSON array: for a log.
    public var waresJson: String {
        let started = self.started
        return "["
            + wares.map { step in
                var object = JsonObject()
                object.add("ware", step.label)
                object.add("side", step.side.rawValue)
                object.add("decision", step.text)
                object.add("start", Double(max(0, step.started - started) / 1000) / 1000)
                object.add("duration", Double(max(0, step.duration) / 1000) / 1000)
                return object.text
            }.joined(separator: ",") + "]"
    }
}

/// A JSON object (RFC 8259) in the making; members that are `nil` are left out.
private struct JsonObject {
    private var members = ""

    var text: String { "{" + members + "}" }

    mutating func add(_ key: StaticString, _ value: String?) { if let value { put(key, value.jsonString) } }
    mutating func add(_ key: StaticString, _ value: Int?) { if let value { put(key, String(value)) } }
    mutating func add(_ key: StaticString, _ value: Bool?) { if let value { put(key, String(value)) } }
    mutating func add(_ key: StaticString, _ value: [String]?) {
        if let value { add(key, objects: value.map(\.jsonString)) }
    }

    /// Of three decimals.
    mutating func add(_ key: StaticString, _ value: Double) {
        let thousandths = Int((min(max(value, 0), 1e12) * 1000).rounded())
        let rest = String(thousandths % 1000)
        put(key, "\(thousandths / 1000)." + String(repeating: "0", count: 3 - rest.utf8.count) + rest)
    }

    mutating func add(_ key: StaticString, objects: [String]) {
        put(key, "[" + objects.joined(separator: ",") + "]")
    }

    private mutating func put(_ key: StaticString, _ json: String) {
        members += (members.isEmpty ? "\"" : ",\"") + "\(key)\":" + json
    }
}
