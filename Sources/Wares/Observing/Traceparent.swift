public import HttpWare

/// Gives every request its place in a trace, and tells a collector how long it took. W3C Trace Context level 2, W3C Baggage, OTLP.
///
/// | option        | type                                | default                      | allowed |
/// |---------------|-------------------------------------|------------------------------|---------|
/// | `propagators` | list of `tracecontext`, `baggage`   | both                         |         |
/// | `ratio`       | ratio                               | `1.0`                        | 0 … 1   |
/// | `export`      | `none`, `otlp`                      | `none`                       |         |
/// | `endpoint`    | URL                                 | `http://127.0.0.1:4318/v1/traces` | with otlp |
/// | `service`     | text                                | `httpware`                   | with otlp |
/// | `exportHeaders` | map of field names to secret texts | none                        | with otlp |
/// | `timeout`     | duration                            | `10s`                        | 10ms … 5m, with otlp |
public struct Traceparent: Middleware, ExchangeObserver, CountingWare, FinishingWare {
    /// A set of fields that are passed on.
    public enum Propagator: String, OptionWord {
        /// `traceparent` and `tracestate`.
        case tracecontext
        case baggage
    }

    /// Who is told of spans.
    public enum Export: String, OptionWord {
        case none, otlp
    }

    public let propagators: Set<Propagator>
    /// The chance of a trace that begins here to be sampled; others are as those who began them said.
    public let ratio: Ratio
    /// `nil` where nobody is told.
    private let exporter: SpanExporter?
    private let counts: any WareCounter

    public var failsOpen: Bool { true }
    public var holdsState: Bool { exporter != nil }
    public var counter: any WareCounter { counts }
    public var finisher: (any WareFinisher)? { exporter }

    /// Tells nobody of spans.
    public init(propagators: Set<Propagator> = Set(Propagator.allCases), ratio: Ratio = 1.0) {
        self.init(propagators: propagators, ratio: ratio, exporter: nil)
    }

    /// Tells a collector of spans, where this gateway is called `service`; `exportFields` go with each call, such as an API key.
    public init(
        propagators: Set<Propagator> = Set(Propagator.allCases), ratio: Ratio = 1.0, endpoint: HttpUrl,
        service: String = "httpware", exportFields: HttpFields = [:], timeout: Duration = .seconds(10),
        client: any HttpClient = SideCaller()
    ) {
        let exporter = SpanExporter(
            endpoint, service: service, fields: exportFields, timeout: timeout, client: client)
        self.init(propagators: propagators, ratio: ratio, exporter: exporter)
    }

    private init(propagators: Set<Propagator>, ratio: Ratio, exporter: SpanExporter?) {
        self.propagators = propagators
        self.ratio = ratio
        self.exporter = exporter
        counts = exporter ?? NoCounter()
    }

    /// Where nothing is counted.
    private final class NoCounter: WareCounter {
        var numbers: [WareNumber] { [] }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        let span = exchange[Span.self] ?? begin(request)
        exchange[Span.self] = span
        exchange.traceId = TraceId(high: span.context.traceHigh, low: span.context.traceLow)
        if !propagators.contains(.tracecontext) {
            request.fields.remove(.traceparent)
            request.fields.remove(.tracestate)
        } else {
            // Without `traceparent` of the same trace `tracestate` means nothing: §3.3.1.
            if span.state.isEmpty { request.fields.remove(.tracestate) }
            try request.fields.set(.traceparent, to: span.context.text)
        }
        let baggage = request.fields.values(of: Traceparent.baggage)
        if !baggage.isEmpty, !propagators.contains(.baggage) || !TraceFields.isBaggage(baggage) {
            request.fields.remove(Traceparent.baggage)
        }
        exchange.note(span.context.traceId)
        return .pass
    }

    /// Goes on with the trace of the request, or begins one.
    private func begin(_ request: borrowing HttpRequest) -> TraceSpan {
        guard case .one(let read) = request.fields.withOnlyValue(of: .traceparent, { TraceContext($0) }),
            let received = read
        else { return TraceSpan(context: .begin(sampled: ratio.value), parent: nil, state: "") }
        let lines = request.fields.values(of: .tracestate)
        let state = TraceFields.isValidState(lines) ? lines.joined(separator: ",") : ""
        // Who tells nobody is no link of the chain: the origin server's parent is then the client.
        let context = exporter == nil ? received : received.goingOn()
        return TraceSpan(context: context, parent: received.parent, state: state)
    }

    // MARK: Spans

    public func ended(_ exchange: Exchange) {
        guard let exporter, let span = exchange[Span.self], span.context.isSampled else { return }
        exporter.add(span.json(exchange).text)
    }

    private enum Span: ExchangeKey { typealias Value = TraceSpan }
    private static let baggage: FieldName = "baggage"
}

extension Traceparent: ConfigurableWare {
    public static let name: WareName = "traceparent"
    public static let about = WareAbout(
        "Gives every request its place in a trace, and tells a collector how long it took.",
        source: "W3C Trace Context level 2, W3C Baggage, OpenTelemetry Protocol (OTLP/HTTP, JSON)",
        example: #"""
            - traceparent: { ratio: 10%, export: otlp, endpoint: "http://collector:4318/v1/traces" }
            """#,
        details: #"""
            A `traceparent` that is sound is gone on with, and one that is not – or two – begins a new trace, of which `ratio` are sampled; whether
            others are, those decide who began them. `tracestate` goes along as it came, unless it is malformed or has more than 32 members. `baggage`
            goes along up to 64 members and 8192 bytes. What is not in `propagators` is taken away.

            With `export: otlp` each sampled exchange is a span of kind server, sent to `endpoint` as JSON, at most a second later and 512 at a time; the
            origin server's parent is that span. At most 2048 spans, or 4 MiB, wait; more are dropped and counted, as are those that the collector
            did not take in three calls. The spans name the path without the query. Without export the trace goes on as it came. `exportHeaders` go with each
            call, such as the collector's API key; their values are shown nowhere. A gateway that ends sends what waits behind its last exchange, for
            5 s at most.
            """#)

    public init(options: inout OptionsReader) {
        var propagators = Propagator.allCases
        var ratio: Ratio = 1.0
        var export = Export.none
        // A literal that is a URL.
        var endpoint = try? HttpUrl(optionText: "http://127.0.0.1:4318/v1/traces")
        var service = "httpware"
        var headers = OptionMap<FieldName, Secret>()
        var timeout = Duration.seconds(10)
        options.read("propagators", into: &propagators, doc: "which fields are passed on; others are taken away")
        options.read("ratio", into: &ratio, doc: "how many of the traces that begin here are sampled")
        options.read("export", into: &export, doc: "who is told of spans")
        options.read("endpoint", into: &endpoint, doc: "where the collector takes traces")
        options.read("service", into: &service, doc: "what the collector calls this gateway (service.name)")
        options.read("exportHeaders", into: &headers, doc: "what goes with each call, such as an API key")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(10) ... .seconds(300), doc: "how long a call to it may take")
        if export == .none {
            for key in ["endpoint", "service", "exportHeaders", "timeout"] where options.isGiven(key) {
                options.fail(at: key, "means nothing where nobody is told; write export: otlp")
            }
        }
        let fields = Self.fields(headers, &options)
        guard export == .otlp, let endpoint else {
            self.init(propagators: Set(propagators), ratio: ratio)
            return
        }
        self.init(
            propagators: Set(propagators), ratio: ratio, endpoint: endpoint, service: service, exportFields: fields,
            timeout: timeout)
    }

    /// What goes with each call. No value is named in an error: it may be a credential.
    private static func fields(_ headers: OptionMap<FieldName, Secret>, _ options: inout OptionsReader) -> HttpFields {
        var fields = HttpFields()
        for entry in headers {
            if entry.key == .host || entry.key == .contentType || entry.key.isGatewayOwned {
                options.fail(at: "exportHeaders", in: entry.location, "\(entry.key) is the gateway's own")
            } else if (try? fields.set(entry.key, to: entry.value.revealed)) == nil {
                options.fail(
                    at: "exportHeaders", in: entry.location, "the value of \(entry.key) is none that a field can have")
            }
        }
        return fields
    }
}
