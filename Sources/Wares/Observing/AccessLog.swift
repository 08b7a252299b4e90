public import HttpWare

// One file: the three formats write the same members, by the same rules for escaping and masking.
/// Writes one access log line for each exchange, including exchanges that the client aborted (status 499).
///
/// Lines are built once, as bytes. Everything from outside is escaped.
public struct AccessLog: Postware, WareObserver, ExchangeObserver, CountingWare {
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
    /// The members of a JSON line, in order; empty for the default members.
    public var members: [LogMember] = [] { didSet { prepareFields() } }
    /// Whether a line contains what each ware did.
    public var wares = false
    /// Request fields whose values are hidden.
    public var redact = Redaction.fields { didSet { prepareFields() } }

    /// The field names, each with its key as JSON.
    private var preparedFields: [(name: FieldName, key: [UInt8], isRedacted: Bool)] = []
    private var preparedMembers: [(member: LogMember, key: [UInt8])] = []
    /// The indices of template segments whose values are hidden.
    private var hiddenSegments: Set<Int> = []
    private var sink: LogSink

    public var failsOpen: Bool { true }
    public var observesWares: Bool { wares || members.contains(.item(.wares)) }
    public var counter: any WareCounter { sink }

    /// The maximum number of members.
    private static let mostMembers = 64

    /// The default output of the lines.
    public static let usualOutput = LogOutput.stdout

    /// Writes JSON to this output.
    public init(output: LogOutput = usualOutput) {
        self.output = output
        sink = LogWriter.shared.sink(for: output, notice: AccessLog.jsonNotice)
    }

    /// Passes every response; the line is written when the exchange has ended.
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

    // MARK: Selecting exchanges

    private func isChosen(_ exchange: Exchange) -> Bool {
        if always.contains(.errors),
            exchange.loggedStatus >= 500 || exchange.failure != nil || exchange.end == .cutOff
        {
            return true
        }
        if always.contains(.slow), exchange.loggedNanoseconds >= 1_000_000_000 { return true }
        // Chooses a share of the exchanges that no client can influence, by the mixed bits of the start time in
        // nanoseconds.
        let bits = SplitMix64.spread(UInt64(bitPattern: exchange.record.started) &+ SplitMix64.step)
        return Double(bits >> 11) < sample.value * Double(1 << 53)
    }

    // MARK: Formats

    private func writeJson(_ exchange: Exchange, _ line: inout LogLine, _ time: inout LogTime) {
        guard let request = exchange.request else { return }
        line.byte(0x7b)
        if !members.isEmpty {
            for (member, key) in preparedMembers { write(member, key, request, exchange, &line, &time) }
            return line.byte(0x7d)
        }
        for item in LogMember.Item.usual { AccessLog.write(item, request, exchange, &line, &time) }
        if !preparedFields.isEmpty { writeFields(request, &line) }
        if wares { AccessLog.write(.wares, request, exchange, &line, &time) }
        line.byte(0x7d)
    }

    /// Writes a member, if it has a value.
    private func write(
        _ member: LogMember, _ key: [UInt8], _ request: HttpRequest, _ exchange: Exchange, _ line: inout LogLine,
        _ time: inout LogTime
    ) {
        switch member {
        case .item(let item): AccessLog.write(item, request, exchange, &line, &time)
        case .requestField(let name):
            request.fields.withReceivedValue(of: name) { value in
                line.member(key)
                if redact.contains(name) { line.raw("\"…\"") } else { line.json(value) }
            }
        case .note(let name):
            guard let value = exchange.note(named: name) else { return }
            line.member(key)
            line.json(value)
        case .responseField(let name):
            guard let value = exchange.responseFieldValue(name) else { return }
            line.member(key)
            if redact.contains(name) { line.raw("\"…\"") } else { value.withUnsafeBufferPointer { line.json($0) } }
        }
    }

    // Takes the item only, not the member, because every log line calls this 21 times.
    private static func write(
        _ item: LogMember.Item, _ request: HttpRequest, _ exchange: Exchange, _ line: inout LogLine,
        _ time: inout LogTime
    ) {
        switch item {
        case .time:
            line.member("\"time\":\"")
            time.write(exchange.wallNow, to: &line)
            line.byte(0x22)
        case .client:
            guard let client = exchange.client else { return }
            line.member("\"client\":\"")
            line.address(client)
            line.byte(0x22)
        case .method: line.member("\"method\":", request.receivedMethod.name)
        case .target:
            line.member("\"target\":")
            request.withShownTarget { line.json(target: $0) }
        case .host:
            request.fields.withReceivedValue(of: .host) { host in
                line.member("\"host\":")
                line.json(host)
            }
        case .protocol:
            line.member("\"protocol\":\"")
            line.raw(request.receivedVersion.logged)
            line.byte(0x22)
        case .status: line.member("\"status\":", exchange.loggedStatus)
        case .bytes: line.member("\"bytes\":", exchange.record.responseBytes)
        case .unfilteredBytes:
            guard exchange.record.unfilteredBytes != exchange.record.responseBytes else { return }
            line.member("\"unfilteredBytes\":", exchange.record.unfilteredBytes)
        case .duration:
            line.member("\"duration\":")
            line.milliseconds(nanoseconds: exchange.loggedNanoseconds)
        case .principal: line.member("\"principal\":", exchange.principal?.name)
        case .upstream: line.member("\"upstream\":", exchange.upstreamAddress)
        case .route: line.member("\"route\":", exchange.route)
        case .service: line.member("\"service\":", exchange.service)
        case .responder: line.member("\"responder\":", exchange.responder.name)
        case .userAgent:
            request.fields.withReceivedValue(of: .userAgent) { value in
                line.member("\"userAgent\":")
                line.json(value)
            }
        case .referer:
            request.fields.withReceivedValue(of: .referer) { value in
                line.member("\"referer\":")
                Redaction.withTarget(value) { line.json($0) }
            }
        case .id: line.member("\"id\":", exchange.idIfMade)
        case .traceId: line.member("\"traceId\":", exchange.traceId?.description)
        case .fault: line.member("\"fault\":", exchange.failure?.fault.logged)
        case .end:
            guard let end = exchange.end, end != .completed else { return }
            line.member("\"end\":", end == .cutOff ? "cutOff" : "clientLeft")
        case .wares:
            line.member("\"wares\":")
            line.raw(Array(exchange.record.waresJson.utf8))
        }
    }

    private func writeFields(_ request: HttpRequest, _ line: inout LogLine) {
        var isFirst = true
        for (name, key, isRedacted) in preparedFields {
            request.fields.withReceivedValue(of: name) { value in
                if isFirst { line.member("\"fields\":{") } else { line.byte(0x2c) }
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
        preparedMembers = members.map { ($0, Array("\"\($0.optionText)\":".utf8)) }
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
    /// The status of the response; 499 if the client left before the response had a status.
    var loggedStatus: Int { end == .clientLeft ? 499 : finalStatus?.code ?? 0 }

    var loggedNanoseconds: Int64 {
        (record.ended == 0 ? now.nanoseconds : record.ended) &- record.started
    }
}

extension HttpRequest {
    /// Passes the target as received, without credentials; `-` if it could not be read.
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
    /// The version as written in a start line; `-` if it could not be read.
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
            - accessLog: { output: "tcp:logs.example.com:6514", members: [time, status, principal, response.header.X-Cache] }
            """#,
        details: #"""
            With `json`, a line is an object with `time` (the end of the exchange, RFC 3339), `client`, `method`,
            `target`, `host`, `protocol`, `status`, `bytes` (content sent) and `duration` (milliseconds). These members
            are present if they have a value: `unfilteredBytes` (content before filters such as `compress`, if they
            changed its length), `principal` (the client's name from an authenticating ware, or else the subject of its
            certificate), `upstream`, `route`, `service`, `responder`, `userAgent`, `referer`, `id`, `traceId` (after
            `traceparent`), `fault`, `end` (`cutOff` or `clientLeft`), `fields` and `wares` (what each ware did).
            `members` chooses others, in any order: these names, `trace.id` (the same as `traceId`), `request.header.NAME`,
            `response.header.NAME` and `note.NAME`, a text that a ware such as `script` has kept.
            Values of the fields in `redact` are hidden there, too.

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

            `udp:HOST:PORT` and `tcp:HOST:PORT` send the lines to another machine. With `framing: rfc5424`, each line is a message
            of the syslog protocol; by TCP its length stands before it (RFC 6587). With `framing: lines`, each line ends with a
            line feed. Nothing is encrypted. While the machine cannot be reached, lines are buffered for 30 seconds, up to
            16 MiB; then they are dropped. The metric `httpware_log_lines_dropped_total` counts lines that were dropped.
            """#,
        otherNames: ["log", "logger", "logging", "accesslogs"])

    public init(options: inout OptionsReader) {
        output = AccessLog.usualOutput
        options.read(
            "format", into: &format,
            doc:
                "format of the lines: JSON objects, the combined format of Apache, or text made from the option template"
        )
        options.read(
            "output", into: &output,
            doc: "place where lines are written: stdout, stderr, syslog, file:PATH, udp:HOST:PORT or tcp:HOST:PORT")
        var framing = LogOutput.Framing.rfc5424
        options.read(
            "framing", into: &framing,
            doc: "form of lines sent by udp or tcp: messages of the syslog protocol (rfc5424), or the lines alone")
        if case .network(var target) = output {
            target.framing = framing
            output = .network(target)
        } else if options.isGiven("framing") {
            options.fail(at: "framing", "has no effect without an output such as udp:logs.example.com:514")
        }
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
            "members", into: &members,
            doc: "members of each line, in this order, in place of the usual ones; only with format: json")
        options.read(
            "wares", into: &wares, doc: "adds what each ware did and how long it took; only with format: json")
        options.read(
            "redact", into: &redact,
            doc: "request fields whose values are replaced by … in fields and in template")
        prepareFields()
        options.require(
            "template", with: "format", format, is: .template,
            hint: "; write such as template: \"{client.ip} {status}\"")
        options.only("template", with: "format", format, is: .template)
        options.only("fields", "members", with: "format", format, is: .json)
        if wares { options.only("wares", with: "format", format, is: .json) }
        options.useless(
            "fields", "wares", with: "members", hint: "write it there, such as request.header.NAME or wares")
        options.refuseEmpty("members", "write such as [time, status, response.header.X-Cache]")
        if members.count > AccessLog.mostMembers {
            options.fail(at: "members", "are \(members.count); write at most \(AccessLog.mostMembers)")
        }
        if !options.isDescribing, let problem = output.problem { options.fail(at: "output", problem) }
    }
}
