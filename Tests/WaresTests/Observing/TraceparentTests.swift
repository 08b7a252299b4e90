import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(2))) struct TraceparentTests {
    private static let received = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    private static let url = "http://collector.test/v1/traces"

    private func sent(_ fields: HttpFields, _ ware: Traceparent = Traceparent()) async throws -> HttpFields {
        let exchange = try TestExchange([ware])
        _ = try await exchange.send(.get("/", fields: fields))
        return try #require(exchange.upstream.requests.first).fields
    }

    private func exporting(_ calls: ScriptedCalls, ratio: Ratio = 1.0) throws -> Traceparent {
        Traceparent(ratio: ratio, endpoint: try HttpUrl(optionText: Self.url), service: "edge", client: calls)
    }

    // MARK: Propagation

    @Test func `without one a trace begins here - W3C Trace Context §3.2`() async throws {
        let fields = try await sent([:])
        #expect(fields.values(of: .traceparent).count == 1)
        let value = try #require(fields[.traceparent])
        #expect(value.hasPrefix("00-") && value.hasSuffix("-03") && value.utf8.count == 55)
        #expect(try await sent([:])[.traceparent] != value)
        #expect(try await sent([:], Traceparent(ratio: 0.0))[.traceparent]?.hasSuffix("-02") == true)
    }

    @Test func `a sound one goes on as it came, with tracestate - W3C Trace Context §3.3`() async throws {
        var fields: HttpFields = ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        try fields.append(.tracestate, "congo=t61")
        try fields.append(.tracestate, "rojo=00f0")
        let sent = try await sent(fields)
        #expect(sent[.traceparent] == Self.received)
        #expect(sent.values(of: .tracestate) == ["congo=t61", "rojo=00f0"])
        let later = try await self.sent(["traceparent": "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"])
        #expect(later[.traceparent] == Self.received, "a later version is written as ours")
    }

    @Test(
        arguments: [
            ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "tracestate": "a=1"],
            ["traceparent": "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"],
            [
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1",
            ],
            ["tracestate": "a=1"],
        ] as [HttpFields])
    func `an invalid one, or two, begin a new trace without the old state - W3C Trace Context §3.3.1`(
        fields: HttpFields
    )
        async throws
    {
        let sent = try await sent(fields)
        #expect(sent.values(of: .traceparent).count == 1)
        #expect(sent[.traceparent]?.contains("0af7651916cd43dd8448eb211c80319c") == false)
        #expect(!sent.contains(.tracestate))
    }

    @Test func `a malformed tracestate goes, and the trace goes on - W3C Trace Context §3.3.1`() async throws {
        let sent = try await sent([
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "A=1",
        ])
        #expect(sent[.traceparent] == Self.received && !sent.contains(.tracestate))
    }

    @Test func `only what is in propagators is passed on`() async throws {
        let all: HttpFields = [
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1",
            "baggage": "user=1",
        ]
        #expect(try await sent(all)["baggage"] == "user=1")
        let trace = try await sent(all, Traceparent(propagators: [.tracecontext]))
        #expect(trace[.traceparent] == Self.received && trace["baggage"] == nil)
        let baggage = try await sent(all, Traceparent(propagators: [.baggage]))
        #expect(!baggage.contains(.traceparent) && !baggage.contains(.tracestate) && baggage["baggage"] == "user=1")
        let none = try await sent([:], Traceparent(propagators: []))
        #expect(!none.contains(.traceparent))
    }

    @Test func `a gateway with a collector is a link of the chain`() async throws {
        let value = try #require(
            try await sent(
                ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
                try exporting(ScriptedCalls()))[
                    .traceparent])
        #expect(value.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") && !value.contains("b7ad6b7169203331"))
    }

    @Test func `a request that is sent again stays in its trace`() async throws {
        let exchange = try TestExchange([Retry(), Traceparent()])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        let pending = await exchange.start(.get("/"))
        await exchange.advanceUntilAsked(2)
        _ = try await pending.response()
        let values = exchange.upstream.requests.map { $0.fields[.traceparent] }
        #expect(values.count == 2 && values[0] == values[1] && values[0] != nil)
    }

    // MARK: Spans

    @Test func `a span has OTLP's names, and no query`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, ScriptedCalls.json("{}".utf8))
        let ware = try exporting(calls)
        let exchange = try TestExchange([ware])
        exchange.upstream.respond(with: HttpResponse(.badGateway))
        _ = try await exchange.send(
            .get(
                "/a?token=s3cret",
                fields: ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"])
        )
        for _ in 0..<12 where calls.requests.isEmpty { await exchange.advance(by: .milliseconds(100)) }
        let call = try #require(calls.requests.first)
        #expect(call.method == .post && call.fields[.contentType] == "application/json")
        let text = try #require(call.content.text)
        let upstream = try #require(exchange.upstream.requests.first?.fields[.traceparent])
        for part in [
            #"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"edge"}}]}"#,
            #""scopeSpans":[{"scope":{"name":"httpware"},"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c""#,
            #""spanId":"\#(upstream.dropFirst(36).prefix(16))","parentSpanId":"b7ad6b7169203331","traceState":"a=1","flags":1"#,
            #""name":"GET test","kind":2,"startTimeUnixNano":"1767225600000000000""#,
            #"{"key":"http.response.status_code","value":{"intValue":"502"}}"#,
            #"{"key":"url.path","value":{"stringValue":"/a"}}"#, #"{"key":"error.type","value":{"stringValue":"502"}}"#,
            #""status":{"code":2}}]}]}]}"#,
        ] { #expect(text.contains(part), "\(part) in \(text)") }
        #expect(!text.contains("s3cret"))
        #expect(ware.counter.numbers.map(\.value) == [1, 0, 0, 0])
    }

    @Test func `a span that is not sampled is not exported`() async throws {
        let calls = ScriptedCalls()
        let ware = try exporting(calls, ratio: 0.0)
        let exchange = try TestExchange([ware])
        _ = try await exchange.send(.get("/"))
        _ = try await exchange.send(
            .get("/", fields: ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"]))
        #expect(ware.counter.numbers.map(\.value) == [0, 0, 0, 0])
    }

    // MARK: Options

    @Test func `the defaults are those of the catalogue`() throws {
        let ware = try TestExchange.make(Traceparent.self)
        #expect(ware.propagators == [.tracecontext, .baggage] && ware.ratio == 1.0 && !ware.holdsState)
        #expect(try TestExchange.make(Traceparent.self, ["export": "otlp"]).holdsState)
    }

    @Test func `fields for the collector are secret, and no error names their values`() throws {
        let ware = try TestExchange.make(
            Traceparent.self, ["export": "otlp", "exportHeaders": ["X-Api-Key": "s3cret", "X-Scope": "a"]])
        #expect(ware.finisher != nil && !"\(ware)".contains("s3cret"))
        #expect(try TestExchange.make(Traceparent.self).finisher == nil)
        for name in ["X-Api-Key", "Host", "Content-Type", "Transfer-Encoding", "a b"] {
            let error = #expect(throws: ConfigError.self) {
                try TestExchange.make(
                    Traceparent.self,
                    [
                        "export": "otlp",
                        "exportHeaders": .init(
                            .map([
                                .init(key: name, location: .code, value: "s3cret\n")
                            ])),
                    ])
            }
            #expect(error.map { "\($0)".contains("s3cret") } == false)
        }
    }

    @Test(
        arguments: [
            ["propagators": ["b3"]], ["ratio": "2"], ["export": "zipkin"], ["endpoint": "http://a.test/"],
            ["service": "edge"], ["exportHeaders": ["X-A": "b"]],
            ["export": "otlp", "endpoint": "collector"], ["export": "otlp", "timeout": "1ms"], ["headers": [:]],
        ] as [ConfigNode])
    func `invalid options of traceparent are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Traceparent.self, options) }
    }

    @Test func `the trace is a placeholder for wares behind it`() async throws {
        let edits = try TestExchange.make(RequestHeaders.self, ["set": ["X-Trace": "{trace.id}"]])
        let exchange = try TestExchange([edits, Traceparent(), edits])
        let received: HttpFields = ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        _ = try await exchange.send(.get("/", fields: received))
        let request = try #require(exchange.upstream.requests.first)
        #expect(request.fields["X-Trace"] == "0af7651916cd43dd8448eb211c80319c")
        let without = try TestExchange([edits])
        _ = try await without.send(.get("/", fields: received))
        #expect(without.upstream.requests.first?.fields["X-Trace"] == "", "no ware of this chain knows the trace")
    }
}
