import HttpWare

/// The span of one exchange in its trace. OpenTelemetry, semantic conventions of HTTP server spans.
struct TraceSpan {
    /// The trace, with this span's own id.
    let context: TraceContext
    /// The span that sent the request; `nil` if the trace begins here.
    let parent: UInt64?
    /// The `tracestate` that was received; empty if the request had none.
    let state: String

    /// The span in OTLP (opentelemetry.proto.trace.v1.Span; JSON with ids as hexadecimal digits and 64-bit numbers as strings).
    /// The target is given without its query, which may contain credentials.
    func json(_ request: HttpRequest, in exchange: Exchange) -> Json {
        let method = TraceSpan.methods.contains(request.receivedMethod.name) ? request.receivedMethod.name : "_OTHER"
        let began = exchange.record.startedAt.sinceEpoch
        let status = exchange.loggedStatus
        let fault = exchange.failure?.proxyStatusName
        let isError = status >= 500 || exchange.end == .cutOff
        let attributes: [(String, Json?)] = [
            ("http.request.method", text(method)),
            ("http.response.status_code", exchange.finalStatus.map { number($0.code) }),
            ("http.route", exchange.route.map(text)), ("url.scheme", text(exchange.isSecure ? "https" : "http")),
            ("url.path", text(request.path)), ("server.address", request.host.map(text)),
            ("client.address", exchange.client.map { text("\($0)") }),
            ("error.type", fault.map(text) ?? (isError ? text("\(status)") : nil)),
            ("httpware.service", exchange.service.map(text)), ("httpware.responder", text(exchange.responder.name)),
        ]
        let name = method == "_OTHER" ? "HTTP" : method
        return .object(given: [
            ("traceId", .text(context.traceId)), ("spanId", .text(TraceContext.hex(context.parent))),
            ("parentSpanId", parent.map { .text(TraceContext.hex($0)) }),
            ("traceState", state.isEmpty ? nil : .text(state)),
            ("flags", .number((context.isSampled ? 1 : 0) + (context.isRandom ? 2 : 0))),
            ("name", .text(exchange.route.map { "\(name) \($0)" } ?? name)),
            // SPAN_KIND_SERVER.
            ("kind", 2), ("startTimeUnixNano", .text("\(began)")),
            ("endTimeUnixNano", .text("\(began &+ max(0, exchange.loggedNanoseconds))")),
            (
                "attributes",
                .list(
                    attributes.compactMap { key, value in value.map { .object([("key", .text(key)), ("value", $0)]) } })
            ),
            // STATUS_CODE_ERROR. A client's mistake is not an error of the server.
            ("status", isError ? .object([("code", 2)]) : nil),
        ])
    }

    private func text(_ value: String) -> Json { .object([("stringValue", .text(value))]) }
    private func number(_ value: Int) -> Json { .object([("intValue", .text("\(value)"))]) }

    /// The methods that the conventions define; all others are reported as `_OTHER`.
    private static let methods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
    ]
}
