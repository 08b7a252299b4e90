public import HttpWare

/// Writes one access log line for each exchange, including exchanges that the client aborted (status 499).
///
/// Lines are built once, as bytes, and written by a separate thread. If the output is too slow, lines are dropped, and
/// a line reports their number. Each exchange is exactly one line, whatever a peer sends: everything from outside is
/// escaped. In targets and in `Referer`, values of query parameters with names of credentials, and user information
/// before a host, are replaced by `…`.
public struct AccessLog: Postware, WareObserver, ExchangeObserver {
    /// The format of the lines.
    public enum Format: String, OptionWord {
        case json, combined, template
    }

    /// A kind of exchange that is logged regardless of the sample.
    public enum Always: String, OptionWord {
        /// Responses with a 5xx status, faults and cut-off responses.
        case errors
        /// Exchanges of one second or more.
        case slow
    }

    /// The format of the lines.
    public var format = Format.json
    /// The text of a line with placeholders; needed with `format: template`.
    public var template: LogTemplate? { didSet { prepareFields() } }
    /// The place where lines are written.
    public var output: LogOutput
    /// The share of exchanges that are logged.
    public var sample: Ratio = 1.0
    /// The exchanges that are logged regardless of the sample.
    public var always: [Always] = [.errors, .slow]
    /// Request fields that are added to a line.
    public var fields: [FieldName] = [] { didSet { prepareFields() } }
    /// Whether a line contains what each ware did.
    public var wares = false
    /// Request fields whose values are hidden.
    public var redact = Redaction.fields { didSet { prepareFields() } }

    /// Each name with its key as JSON.
    private var preparedFields: [(name: FieldName, key: [UInt8], isRedacted: Bool)] = []
    /// Of the template's segments: those whose values are not shown.
    private var hiddenSegments: Set<Int> = []
    private var sink: LogSink

    public var failsOpen: Bool { true }
    public var observesWares: Bool { wares }

    /// The place where lines are written, unless the ware is told otherwise.
    public static let usualOutput = LogOutput.stdout

    /// Writes JSON to this output.
    public init(output: LogOutput = usualOutput) {
        self.output = output
        sink = LogWriter.shared.sink(for: output, notice: AccessLog.jsonNotice)
    }

    /// The line is written when the exchange has ended.
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }

    public func ended(_ exchange: Exchange) {
        guard sample.value >= 1 || isChosen(exchange) else { return }
        sink.append(exchange.loopIdentity) { line, time in
            switch format {
            case .json: writeJson(exchange, &line, &time)
            case .combined: AccessLog.writeCombined(exchange, &line, &time)
            case .template: template?.write(exchange, &line, &time, hiding: hiddenSegments)
            }
            line.byte(0x0a)
        }
    }

    // MARK: Which exchanges

    private func isChosen(_ exchange: Exchange) -> Bool {
        if always.contains(.errors),
            exchange.loggedStatus >= 500 || exchange.failure != nil || exchange.end == .cutOff
        {
            return true
        }
        if always.contains(.slow), exchange.loggedNanoseconds >= 1_000_000_000 { return true }
        // A share of exchanges that nobody can choose: the mixed bits of the start's nanoseconds.
        var bits = UInt64(bitPattern: exchange.record.started) &+ 0x9e37_79b9_7f4a_7c15
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        bits ^= bits >> 31
        return Double(bits >> 11) < sample.value * Double(1 << 53)
    }

    // MARK: Formats

    private func writeJson(_ exchange: Exchange, _ line: inout LogLine, _ time: inout LogTime) {
        guard let request = exchange.request else { return }
        line.raw("{\"time\":\"")
        time.write(exchange.wallNow, to: &line)
        line.byte(0x22)
        if let client = exchange.client {
            line.raw(",\"client\":\"")
            line.address(client)
            line.byte(0x22)
        }
        line.raw(",\"method\":")
        line.json(request.receivedMethod.name)
        line.raw(",\"target\":")
        request.withShownTarget { line.json($0) }
        request.fields.withReceivedValue(of: .host) { host in
            line.raw(",\"host\":")
            line.json(host)
        }
        line.raw(",\"protocol\":\"")
        line.raw(request.receivedVersion.logged)
        line.raw("\",\"status\":")
        line.number(exchange.loggedStatus)
        line.raw(",\"bytes\":")
        line.number(exchange.record.responseBytes)
        if exchange.record.unfilteredBytes != exchange.record.responseBytes {
            line.raw(",\"unfilteredBytes\":")
            line.number(exchange.record.unfilteredBytes)
        }
        line.raw(",\"duration\":")
        line.milliseconds(nanoseconds: exchange.loggedNanoseconds)
        if let principal = exchange.principal { AccessLog.member(",\"principal\":", principal.name, &line) }
        if let upstream = exchange.upstreamAddress { AccessLog.member(",\"upstream\":", upstream, &line) }
        if let route = exchange.route { AccessLog.member(",\"route\":", route, &line) }
        if let service = exchange.service { AccessLog.member(",\"service\":", service, &line) }
        AccessLog.member(",\"responder\":", exchange.responder.name, &line)
        request.fields.withReceivedValue(of: .userAgent) { value in
            line.raw(",\"userAgent\":")
            line.json(value)
        }
        request.fields.withReceivedValue(of: .referer) { value in
            line.raw(",\"referer\":")
            Redaction.withTarget(value) { line.json($0) }
        }
        if let id = exchange.idIfMade { AccessLog.member(",\"id\":", id, &line) }
        if let trace = exchange.traceId { AccessLog.member(",\"traceId\":", trace.description, &line) }
        if let failure = exchange.failure { AccessLog.member(",\"fault\":", failure.fault.logged, &line) }
        if let end = exchange.end, end != .completed {
            line.raw(end == .cutOff ? ",\"end\":\"cutOff\"" : ",\"end\":\"clientLeft\"")
        }
        if !preparedFields.isEmpty { writeFields(request, &line) }
        if wares {
            line.raw(",\"wares\":")
            line.raw(Array(exchange.record.waresJson.utf8))
        }
        line.byte(0x7d)
    }

    @inline(__always)
    private static func member(_ key: StaticString, _ value: String, _ line: inout LogLine) {
        line.raw(key)
        line.json(value)
    }

    private func writeFields(_ request: HttpRequest, _ line: inout LogLine) {
        var isFirst = true
        for (name, key, isRedacted) in preparedFields {
            request.fields.withReceivedValue(of: name) { value in
                if isFirst { line.raw(",\"fields\":{") } else { line.byte(0x2c) }
                isFirst = false
                line.raw(key)
                if isRedacted { line.raw("\"…\"") } else { line.json(value) }
            }
        }
        if !isFirst { line.byte(0x7d) }
    }

    private static func writeCombined(_ exchange: Exchange, _ line: inout LogLine, _ time: inout LogTime) {
        guard let request = exchange.request else { return }
        if let client = exchange.client { line.address(client) } else { line.byte(0x2d) }
        line.raw(" - ")
        if let name = exchange.principal?.name, !name.isEmpty { line.word(name) } else { line.byte(0x2d) }
        line.raw(" [")
        time.writeCombined(exchange.wallNow, to: &line)
        line.raw("] \"")
        line.plain(request.receivedMethod.name)
        line.byte(0x20)
        request.withShownTarget { line.plain($0) }
        line.byte(0x20)
        line.raw(request.receivedVersion.logged)
        line.raw("\" ")
        line.number(exchange.loggedStatus)
        line.byte(0x20)
        line.number(exchange.record.responseBytes)
        for name in [FieldName.referer, .userAgent] {
            var isThere = false
            line.raw(" \"")
            request.fields.withReceivedValue(of: name) { value in
                if name == .referer { Redaction.withTarget(value) { line.plain($0) } } else { line.plain(value) }
                isThere = true
            }
            if !isThere { line.byte(0x2d) }
            line.byte(0x22)
        }
    }

    private mutating func prepareFields() {
        preparedFields = fields.map { name in
            (name, Array("\"\(name.lowercased)\":".utf8), redact.contains(name))
        }
        hiddenSegments = template?.hiddenSegments(redact) ?? []
    }

    @Sendable
    private static func jsonNotice(_ count: Int) -> String {
        Json.object([
            ("level", "warning"), ("message", .text(dropped(count))), ("dropped", .number(count)),
        ]).text
    }

    @Sendable
    private static func textNotice(_ count: Int) -> String { "# " + dropped(count) }

    private static func dropped(_ count: Int) -> String {
        count == 1 ? "1 line was dropped" : "\(count) lines were dropped"
    }
}

extension Exchange {
    /// The status of the response, 499 when the client left before it had one.
    var loggedStatus: Int { end == .clientLeft ? 499 : finalStatus?.code ?? 0 }

    var loggedNanoseconds: Int64 {
        (record.ended == 0 ? now.nanoseconds : record.ended) &- record.started
    }
}

extension HttpRequest {
    /// Gives the target as it was received, without credentials; `-` where it could not be read.
    @inline(__always)
    func withShownTarget(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        withReceivedTarget { target in
            if target.isEmpty {
                withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1) { dash in
                    dash.initialize(repeating: 0x2d)
                    body(UnsafeBufferPointer(dash))
                }
            } else {
                Redaction.withTarget(target, body)
            }
        }
    }
}

extension HttpVersion? {
    /// As it stands in a start line; `-` where that could not be read.
    var logged: StaticString {
        switch self {
        case nil: "-"
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2"
        }
    }
}

extension GatewayError.Fault {
    /// The fault's name, in lowerCamelCase.
    var logged: String { "\(self)" }
}

extension AccessLog: ConfigurableWare {
    public static let name: WareName = "accessLog"
    public static let chainPlace: ChainPlace? = .accessLog
    public static let about = WareAbout(
        "Writes one access log line for each exchange, including exchanges that the client aborted (status 499).",
        source: "nginx, Envoy; RFC 3339, RFC 8259",
        example: #"""
            - accessLog: { format: json, output: stdout, sample: 10%, fields: [Accept-Language] }
            - accessLog:
                format: template
                template: "{time} {client.ip} {request.method} {target} {status} {duration}"
                output: stderr
            """#,
        details: #"""
            With `json`, a line is an object with `time` (the end of the exchange, RFC 3339), `client`, `method`,
            `target`, `host`, `protocol`, `status`, `bytes` (content sent) and `duration` (milliseconds). These members
            are present if they have a value: `unfilteredBytes` (content before filters such as `compress`, if they
            changed its length), `principal` (the client's name from an authenticating ware, or else the subject of its
            certificate), `upstream`, `route`, `service`, `responder`, `userAgent`, `referer`, `id`, `traceId` (after
            `traceparent`), `fault`, `end` (`cutOff` or `clientLeft`), `fields` and `wares` (what each ware did).
            `combined` is the format of Apache and nginx, with the principal as the user. `template` accepts all
            placeholders of other templates, and `{time}`, `{target}`, `{protocol}`, `{status}`, `{bytes}`,
            `{unfilteredBytes}`, `{duration}`, `{upstream}`, `{route}`, `{service}`, `{responder}` and `{fault}`. A
            placeholder without a value becomes `-`.

            No line contains credentials. In targets, in `Referer` and in `{request.query.NAME}`, the values of
            parameters with names such as `token`, `secret`, `password`, `code` or `…key` are replaced by `…`, and so is
            user information before a host. If a request could not be read, its method, target and protocol are `-`.

            A separate thread writes the lines, every 100 ms or when 64 KiB have collected. If the output is too slow,
            up to 16 MiB are buffered; further lines are dropped, and a line reports their number. Each exchange is
            exactly one line, whatever a peer sends. A log file is created with mode 0640. It is reopened after SIGHUP,
            and when it was renamed or removed. A relative path is relative to the configuration file that contains it.
            """#,
        otherNames: ["log", "logger", "logging", "accesslogs"])

    public init(options: inout OptionsReader) {
        output = AccessLog.usualOutput
        options.read(
            "format", into: &format,
            doc:
                "format of the lines: JSON objects, the combined format of Apache, or text made from the option template"
        )
        options.read("output", into: &output, doc: "place where lines are written: stdout, stderr, syslog or file:PATH")
        sink =
            options.isDescribing
            ? LogSink(output, writer: .shared)
            : LogWriter.shared.sink(
                for: output, notice: format == .json ? AccessLog.jsonNotice : AccessLog.textNotice)
        options.read("template", into: &template, doc: "text of a line with placeholders; needed with format: template")
        options.read(
            "sample", into: &sample, doc: "share of exchanges to log, chosen at random; the option always adds others")
        options.read(
            "always", into: &always,
            doc: "exchanges logged regardless of sample: errors (5xx, faults, cut-offs), slow (one second or more)")
        options.read(
            "fields", into: &fields, doc: "request fields to add to each line, as received; only with format: json")
        options.read(
            "wares", into: &wares, doc: "adds what each ware did and how long it took; only with format: json")
        options.read(
            "redact", into: &redact,
            doc: "request fields whose values are replaced by … in fields and in template")
        prepareFields()
        if format == .template && template == nil {
            options.fail(at: "format", "needs the option template; write such as template: \"{client.ip} {status}\"")
        }
        if format != .template && template != nil {
            options.fail(at: "template", "has no effect without format: template")
        }
        if format != .json && !fields.isEmpty { options.fail(at: "fields", "has no effect without format: json") }
        if format != .json && wares { options.fail(at: "wares", "has no effect without format: json") }
        if !options.isDescribing, let problem = output.problem { options.fail(at: "output", problem) }
    }
}
