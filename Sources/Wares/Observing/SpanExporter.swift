import HttpWare
import Synchronization

/// Sends spans to a collector as JSON (OTLP over HTTP), by side calls of the gateway.
///
/// Spans wait for at most about a second, and are sent 512 at a time, one call after the other. The waiting spans are limited in
/// number and bytes. Spans above the limits are dropped and counted, and so are the spans of a call that failed three times.
/// Requests never wait for it.
///
/// Safe from any loop: guarded by a mutex.
final class SpanExporter: Sendable {
    private struct State {
        var waiting: [String] = []
        var bytes = 0
        var isRunning = false
        /// Whether the ware is finishing, so that spans are sent at once.
        var isEnding = false
        /// The continuations that are resumed when no spans are left.
        var whenDone: [UnsafeContinuation<Void, Never>] = []
        var exported = 0
        var dropped = 0
        var failures = 0

        mutating func takeDone() -> [UnsafeContinuation<Void, Never>] {
            defer { whenDone = [] }
            return whenDone
        }
    }

    /// The maximum number and size of waiting spans.
    static let most = 2048
    static let mostBytes = 4 << 20
    /// The maximum number of spans in one call.
    static let batch = 512
    private static let attempts = 3
    /// The maximum pause before the next call, even if the collector asks for a longer one.
    private static let longestPause = Duration.seconds(30)
    private static let step = Duration.milliseconds(100)
    private static let steps = 10

    private let endpoint: String
    private let fields: HttpFields
    /// The JSON text before the spans of a call.
    private let head: String
    private let limits: CallLimits
    private let client: any HttpClient
    private let state = Mutex(State())

    /// `service` is the service name of all spans, and each call carries `fields`. A call takes at most `timeout`.
    init(_ endpoint: HttpUrl, service: String, fields: HttpFields, timeout: Duration, client: any HttpClient) {
        self.endpoint = endpoint.text
        var fields = fields
        fields.set(FieldLine(literal: .contentType, "application/json"))
        self.fields = fields
        self.client = client
        limits = CallLimits(timeout: timeout, content: .kibibytes(64))
        let name = Json.object([("key", "service.name"), ("value", .object([("stringValue", .text(service))]))])
        let resource = Json.object([("attributes", .list([name]))]).text
        head = #"{"resourceSpans":[{"resource":\#(resource),"scopeSpans":[{"scope":{"name":"httpware"},"spans":["#
    }

    /// Adds a span, and starts sending unless that is in progress. Must be called on a loop.
    func add(_ span: String) {
        let isFirst = state.withLock { state -> Bool in
            guard state.waiting.count < SpanExporter.most, state.bytes + span.utf8.count <= SpanExporter.mostBytes
            else {
                state.dropped += 1
                return false
            }
            state.waiting.append(span)
            state.bytes += span.utf8.count
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard isFirst else { return }
        guard let loop = EventLoop.current else {
            state.withLock { $0.isRunning = false }
            return
        }
        Task(executorPreference: loop) { await self.run(loop) }
    }

    private func run(_ loop: EventLoop) async {
        repeat {
            for _ in 0..<SpanExporter.steps where !isUrgent { try? await loop.sleep(for: SpanExporter.step) }
            await send(takeSpans(), loop)
        } while goesOn()
    }

    private var isUrgent: Bool { state.withLock { $0.isEnding || $0.waiting.count >= SpanExporter.batch } }

    private func takeSpans() -> [String] {
        state.withLock { state in
            let batch = Array(state.waiting.prefix(SpanExporter.batch))
            state.waiting.removeFirst(batch.count)
            state.bytes -= batch.reduce(0) { $0 + $1.utf8.count }
            return batch
        }
    }

    private func goesOn() -> Bool {
        let (isRunning, done) = state.withLock { state in
            state.isRunning = !state.waiting.isEmpty
            return (state.isRunning, state.isRunning ? [] : state.takeDone())
        }
        for continuation in done { continuation.resume() }
        return isRunning
    }

    private func send(_ spans: [String], _ loop: EventLoop) async {
        for attempt in 0..<SpanExporter.attempts {
            let asked: Duration
            switch await call(spans, loop) {
            case .taken(let count):
                return state.withLock {
                    $0.exported += count
                    $0.dropped += spans.count - count
                }
            case .refused:
                return state.withLock {
                    $0.failures += 1
                    $0.dropped += spans.count
                }
            case .failed(let pause): asked = min(pause ?? .zero, SpanExporter.longestPause)
            }
            state.withLock { $0.failures += 1 }
            guard attempt < SpanExporter.attempts - 1 else { break }
            try? await loop.sleep(for: .seconds(1 << attempt))
            // If the ware is finishing, the pause that the collector asked for is cut short.
            let due = loop.now + asked - .seconds(1 << attempt)
            while loop.now < due, !state.withLock({ $0.isEnding }) { try? await loop.sleep(for: SpanExporter.step) }
        }
        state.withLock { $0.dropped += spans.count }
    }

    private enum Outcome {
        /// The number of spans that the collector accepted.
        case taken(Int)
        case refused
        /// The call can be repeated, after this pause if the collector asked for one.
        case failed(Duration?)
    }

    /// Makes one call. After 429, 502, 503 and 504, or without a response, it can be repeated (OTLP/HTTP).
    private func call(_ spans: [String], _ loop: EventLoop) async -> Outcome {
        let content = HttpContent.text(head + spans.joined(separator: ",") + "]}]}]}")
        guard let request = try? HttpRequest(.post, endpoint, fields: fields, content: content) else { return .refused }
        guard let response = try? await client.send(request, limits: limits) else { return .failed(nil) }
        if response.status.code / 100 == 2 {
            return .taken(max(0, spans.count - SpanExporter.rejected(response.content.bytes ?? [])))
        }
        guard [429, 502, 503, 504].contains(response.status.code) else { return .refused }
        return .failed(RetryAfter.pause(response, at: loop.wallNow()))
    }

    /// The number of spans that the collector rejected although it accepted the call: `partialSuccess.rejectedSpans`. It is a
    /// number or, as protobuf writes it in JSON, a string.
    private static func rejected(_ content: [UInt8]) -> Int {
        guard let rejected = (try? JsonValue(content))?["partialSuccess"]?["rejectedSpans"] else { return 0 }
        return switch rejected {
        case .string(let text), .number(let text): max(0, Int(text) ?? 0)
        default: 0
        }
    }
}

extension SpanExporter: WareFinisher {
    func finish() async {
        await withUnsafeContinuation { continuation in
            let isDone = state.withLock { state -> Bool in
                state.isEnding = true
                if state.isRunning { state.whenDone.append(continuation) }
                return !state.isRunning
            }
            if isDone { continuation.resume() }
        }
    }
}

extension SpanExporter: WareCounter {
    var numbers: [WareNumber] {
        let (waiting, exported, dropped, failures) = state.withLock {
            ($0.waiting.count, $0.exported, $0.dropped, $0.failures)
        }
        return [
            WareNumber("httpware_spans_exported_total", "Spans that the collector accepted.", exported),
            WareNumber(
                "httpware_spans_dropped_total",
                "Spans dropped because there was no room, or because the collector did not accept them.", dropped
            ),
            WareNumber("httpware_span_export_failures_total", "Calls to the collector that failed.", failures),
            WareNumber("httpware_spans_waiting", isGauge: true, "Spans waiting to be sent.", waiting),
        ]
    }
}
