import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(2))) struct SpanExporterTests {
    private static let url = "http://collector.test/v1/traces"
    private let calls = ScriptedCalls()
    private let clock = ManualClock()

    private func exporter() throws -> SpanExporter {
        SpanExporter(
            try HttpUrl(optionText: Self.url), service: "a \"b\"", fields: ["X-Api-Key": "k"], timeout: .seconds(7),
            client: calls)
    }

    /// An exporter, and a loop that the test stops.
    private func started() throws -> (SpanExporter, EventLoop) {
        (try exporter(), try EventLoop.start(name: "spans", clock: clock))
    }

    /// Adds this number of spans on a loop, and lets the time pass by tenths of a second.
    private func add(_ count: Int, to exporter: SpanExporter, on loop: EventLoop) async {
        await loop.submit { for index in 0..<count { exporter.add("{\"s\":\(index)}") } }
        await settle(loop)
    }

    private func settle(_ loop: EventLoop) async { for _ in 0..<8 { await loop.submit {} } }

    private func pass(_ tenths: Int, _ loop: EventLoop) async {
        for _ in 0..<tenths {
            clock.advance(by: .milliseconds(100))
            await settle(loop)
        }
    }

    @Test func `spans wait for a second, and go together`() async throws {
        calls.script(Self.url, ScriptedCalls.json("{}".utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(3, to: exporter, on: loop)
        await pass(9, loop)
        #expect(calls.requests.isEmpty)
        await pass(2, loop)
        #expect(calls.requests.count == 1)
        #expect(calls.requests.first?.content.text?.hasSuffix(#""spans":[{"s":0},{"s":1},{"s":2}]}]}]}"#) == true)
        #expect(calls.requests.first?.content.text?.contains(#""stringValue":"a \"b\"""#) == true)
        #expect(calls.limits.first?.timeout == .seconds(7))
        let fields = try #require(calls.requests.first?.fields)
        #expect(fields["X-Api-Key"] == "k" && fields.values(of: .contentType) == ["application/json"])
        await add(1, to: exporter, on: loop)
        await pass(11, loop)
        #expect(calls.requests.count == 2, "it goes on after a pause")
        #expect(exporter.numbers.map(\.value) == [4, 0, 0, 0])
    }

    @Test func `a full batch goes at once, and what waits is bounded and counted`() async throws {
        calls.script(Self.url, ScriptedCalls.json("{}".utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(SpanExporter.most + 10, to: exporter, on: loop)
        for _ in 0..<100 where calls.requests.count < SpanExporter.most / SpanExporter.batch { await settle(loop) }
        #expect(exporter.numbers.map(\.value) == [SpanExporter.most, 10, 0, 0])
        #expect(calls.requests.count == SpanExporter.most / SpanExporter.batch)
    }

    @Test func `a collector that is busy is asked three times, and then the spans are dropped`() async throws {
        calls.script(
            Self.url, .respond(HttpResponse(.serviceUnavailable)),
            .fail(GatewayError(.upstream, .connectionRefused, "refused")), .respond(HttpResponse(.badGateway)))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(2, to: exporter, on: loop)
        await pass(60, loop)
        #expect(calls.requests.count == 3)
        #expect(exporter.numbers.map(\.value) == [0, 2, 3, 0])
    }

    @Test(arguments: [("6", 61), ("3600", 301)])
    func `a collector that asks for a pause has it, half a minute at most`(asked: String, tenths: Int) async throws {
        var busy = HttpResponse(.tooManyRequests)
        try busy.fields.set(.retryAfter, to: asked)
        calls.script(Self.url, .respond(busy), ScriptedCalls.json("{}".utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(2, to: exporter, on: loop)
        await pass(10, loop)
        #expect(calls.requests.count == 1)
        await pass(tenths - 2, loop)
        #expect(calls.requests.count == 1)
        await pass(3, loop)
        #expect(calls.requests.count == 2)
        #expect(exporter.numbers.map(\.value) == [2, 0, 1, 0])
    }

    @Test func `the end does not wait for the pause that a collector asks for`() async throws {
        let busy = HttpResponse(.tooManyRequests, fields: ["Retry-After": "30"])
        calls.script(Self.url, .respond(busy), ScriptedCalls.json("{}".utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(2, to: exporter, on: loop)
        await pass(30, loop)
        #expect(calls.requests.count == 1)
        let end = Task(executorPreference: loop) { await exporter.finish() }
        await settle(loop)
        await pass(3, loop)
        await end.value
        #expect(exporter.numbers.map(\.value) == [2, 0, 1, 0])
    }

    @Test(arguments: ["5", "\"5\""])
    func `spans that the collector takes out of a call are dropped`(count: String) async throws {
        calls.script(Self.url, ScriptedCalls.json(#"{"partialSuccess":{"rejectedSpans":\#(count)}}"#.utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(7, to: exporter, on: loop)
        await pass(11, loop)
        #expect(exporter.numbers.map(\.value) == [2, 5, 0, 0])
    }

    @Test func `spans that wait at the end are sent then, and the end waits for it`() async throws {
        calls.script(Self.url, .respond(HttpResponse(.serviceUnavailable)), ScriptedCalls.json("{}".utf8))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(3, to: exporter, on: loop)
        let end = Task(executorPreference: loop) { await exporter.finish() }
        await settle(loop)
        #expect(calls.requests.isEmpty)
        // The pause that it is in, and the one before the second try.
        await pass(11, loop)
        await end.value
        #expect(calls.requests.count == 2)
        #expect(exporter.numbers.map(\.value) == [3, 0, 1, 0])
    }

    @Test func `where nothing waits the end is there at once, and spans behind it do not wait`() async throws {
        calls.script(Self.url, ScriptedCalls.json("{}".utf8))
        let exporter = try exporter()
        await exporter.finish()
        let loop = try EventLoop.start(name: "spans", clock: clock)
        defer { loop.stop() }
        await add(1, to: exporter, on: loop)
        await exporter.finish()
        #expect(exporter.numbers.map(\.value) == [1, 0, 0, 0])
    }

    @Test func `spans that the collector refuses are not sent again`() async throws {
        calls.script(Self.url, .respond(HttpResponse(.badRequest)))
        let (exporter, loop) = try started()
        defer { loop.stop() }
        await add(2, to: exporter, on: loop)
        await pass(60, loop)
        #expect(calls.requests.count == 1)
        #expect(exporter.numbers.map(\.value) == [0, 2, 1, 0])
    }
}
