public import HttpWare

/// Continues or starts a distributed trace for each request, and can export spans to an OpenTelemetry collector. W3C
/// Trace Context level 2, W3C Baggage, OTLP.
public struct Traceparent: Middleware, ExchangeObserver, CountingWare, FinishingWare {
    /// A standard whose fields are passed on.
    public enum Propagator: String, OptionWord {
        /// `traceparent` and `tracestate`.
        case tracecontext
        /// `baggage`.
        case baggage
    }

    /// The protocol by which spans are exported.
    public enum Export: String, OptionWord {
        case none, otlp
    }

    /// The standards whose fields are passed on.
    public let propagators: Set<Propagator>
    /// The share of new traces that are sampled. For a received trace, its sender has decided.
    public let ratio: Ratio
    /// The exporter of spans; `nil` without an export.
    private let exporter: SpanExporter?
    private let counts: any WareCounter

    /// The default share of new traces that are sampled.
    public static let usualRatio: Ratio = 1.0
    /// The default service name of spans.
    public static let usualService = "httpware"
    /// The default maximum duration of a call to the collector.
    public static let usualTimeout = Duration.seconds(10)

    public var failsOpen: Bool { true }
    public var holdsState: Bool { exporter != nil }
    public var counter: any WareCounter { counts }
    public var finisher: (any WareFinisher)? { exporter }

    /// Makes a ware that exports no spans.
    public init(propagators: Set<Propagator> = Set(Propagator.allCases), ratio: Ratio = usualRatio) {
        self.init(propagators: propagators, ratio: ratio, exporter: nil)
    }

    /// Makes a ware that exports spans, with the service name `service`; each call carries `exportFields`, such as an API key.
    public init(
        propagators: Set<Propagator> = Set(Propagator.allCases), ratio: Ratio = usualRatio, endpoint: HttpUrl,
        service: String = usualService, exportFields: HttpFields = [:], timeout: Duration = usualTimeout,
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

    /// A counter for a ware that exports nothing.
    private final class NoCounter: WareCounter {
        var numbers: [WareNumber] { [] }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        let span = exchange[Span.self] ?? beginSpan(request)
        exchange[Span.self] = span
        exchange.traceId = TraceId(high: span.context.traceHigh, low: span.context.traceLow)
        if !propagators.contains(.tracecontext) {
            request.fields.remove(.traceparent)
            request.fields.remove(.tracestate)
        } else {
            // `tracestate` has no meaning without the `traceparent` of the same trace: §3.3.1.
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

    /// Continues the trace of the request, or begins a new one.
    private func beginSpan(_ request: borrowing HttpRequest) -> TraceSpan {
        guard case .one(let read) = request.fields.withOnlyValue(of: .traceparent, { TraceContext($0) }),
            let received = read
        else { return TraceSpan(context: .makeRoot(sampled: ratio.value), parent: nil, state: "") }
        let lines = request.fields.values(of: .tracestate)
        let state = TraceFields.isValidState(lines) ? lines.joined(separator: ",") : ""
        // Without an export, the gateway is not a span of the trace: the origin server's parent is then the client's span.
        let context = exporter == nil ? received : received.goingOn()
        return TraceSpan(context: context, parent: received.parent, state: state)
    }

    // MARK: Spans

    public func ended(_ exchange: Exchange) {
        guard let exporter, let span = exchange[Span.self], span.context.isSampled else { return }
        if let request = exchange.request { exporter.add(span.json(request, in: exchange).text) }
    }

    private enum Span: ExchangeKey { typealias Value = TraceSpan }
    private static let baggage: FieldName = "baggage"
}

extension Traceparent: ConfigurableWare {
    public static let name: WareName = "traceparent"
    public static let chainPlace: ChainPlace? = .tracing
    public static let about = WareAbout(
        "Continues or starts a distributed trace for each request, and can export spans to an OpenTelemetry collector.",
        source: "W3C Trace Context level 2, W3C Baggage, OpenTelemetry Protocol (OTLP/HTTP, JSON)",
        example: #"""
            - traceparent: { ratio: 10%, export: otlp, endpoint: "http://collector:4318/v1/traces" }
            """#,
        details: #"""
            A valid `traceparent` is continued. An invalid or repeated one is replaced by a new trace, sampled with
            probability `ratio`. For continued traces, the sender has decided about sampling. `tracestate` is passed on
            unchanged, unless it is malformed or has more than 32 members. `baggage` is passed on if it has at most 64
            members and 8192 bytes. Fields of standards that are not in `propagators` are removed.

            With `export: otlp`, each sampled exchange is exported as a span of kind server, which is the parent of the
            origin server's spans. Spans are sent to `endpoint` as JSON, up to 512 in a call, at most one second after
            the exchange. At most 2048 spans, or 4 MiB, wait; further ones are dropped and counted, and so are spans
            that the collector did not accept in three calls. Spans contain the path without the query. Without export,
            the received `traceparent` is passed on unchanged. Values of `exportHeaders` are secrets and never shown.
            When the gateway stops, it sends the waiting spans after its last exchange, for at most 5 s.
            """#,
        otherNames: ["tracing", "opentelemetry", "otel", "zipkin", "jaeger"])

    public init(options: inout OptionsReader) {
        var propagators = Propagator.allCases
        var ratio = Traceparent.usualRatio
        var export = Export.none
        // A literal that is a URL.
        var endpoint = try? HttpUrl(optionText: "http://127.0.0.1:4318/v1/traces")
        var service = Traceparent.usualService
        var headers = OptionMap<FieldName, Secret>()
        var timeout = Traceparent.usualTimeout
        options.read(
            "propagators", into: &propagators,
            doc: "standards whose fields are passed on; fields of the other one are removed")
        options.read("ratio", into: &ratio, doc: "share of the traces started here that are sampled")
        options.read(
            "export", into: &export, doc: "protocol by which spans are sent to a collector; none sends no spans")
        options.read(
            "endpoint", into: &endpoint, doc: "URL of the collector that receives the spans; only with export: otlp")
        options.read(
            "service", into: &service, doc: "name of this gateway in the spans (service.name); only with export: otlp")
        options.read(
            "exportHeaders", into: &headers,
            doc: "header fields of each call to the collector, such as an API key; only with export: otlp")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(10) ... .seconds(300),
            doc: "maximum duration of one call to the collector; only with export: otlp")
        options.only("endpoint", "service", "exportHeaders", "timeout", with: "export", export, is: .otlp)
        let fields = Self.fields(headers, &options)
        guard export == .otlp, let endpoint else {
            self.init(propagators: Set(propagators), ratio: ratio)
            return
        }
        self.init(
            propagators: Set(propagators), ratio: ratio, endpoint: endpoint, service: service, exportFields: fields,
            timeout: timeout)
    }

    /// The fields of each call. Errors do not show values, because these may be credentials.
    private static func fields(_ headers: OptionMap<FieldName, Secret>, _ options: inout OptionsReader) -> HttpFields {
        var fields = HttpFields()
        for entry in headers {
            if entry.key == .host || entry.key == .contentType || entry.key.isGatewayOwned {
                options.fail(at: "exportHeaders", in: entry.location, "\(entry.key) is set by the gateway itself")
            } else if (try? fields.set(entry.key, to: entry.value.revealed)) == nil {
                options.fail(
                    at: "exportHeaders", in: entry.location, "the value of \(entry.key) is invalid in a field")
            }
        }
        return fields
    }
}
