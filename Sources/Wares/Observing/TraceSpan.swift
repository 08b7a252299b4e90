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
        // Split into parts with explicit types, because the compiler takes seconds for a single expression.
        let ended = began &+ max(0, exchange.loggedNanoseconds)
        let flags = (context.isSampled ? 1 : 0) + (context.isRandom ? 2 : 0)
        let title = exchange.route.map { "\(name) \($0)" } ?? name
        let parentId: Json? = parent.map { Json.text(Hex.text($0)) }
        var given: [Json] = []
        for case (let key, let value?) in attributes { given.append(.object([("key", .text(key)), ("value", value)])) }
        // STATUS_CODE_ERROR. A client's mistake does not count as an error of the server.
        let error: Json? = isError ? Json.object([("code", 2)]) : nil
        let members: [(String, Json?)] = [
            ("traceId", Json.text(context.traceId)), ("spanId", Json.text(Hex.text(context.parent))),
            ("parentSpanId", parentId), ("traceState", state.isEmpty ? nil : Json.text(state)),
            ("flags", Json.number(flags)), ("name", Json.text(title)),
            // SPAN_KIND_SERVER.
            ("kind", Json.number(2)), ("startTimeUnixNano", Json.text("\(began)")),
            ("endTimeUnixNano", Json.text("\(ended)")), ("attributes", Json.list(given)), ("status", error),
        ]
        return .object(given: members)
    }

    private func text(_ value: String) -> Json { .object([("stringValue", .text(value))]) }
    private func number(_ value: Int) -> Json { .object([("intValue", .text("\(value)"))]) }

    /// The methods that the conventions define; all others are reported as `_OTHER`.
    private static let methods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
    ]
}
