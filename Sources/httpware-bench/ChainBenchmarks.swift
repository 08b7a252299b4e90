#if HTTPWARE_BENCH
    import Credentials
    import Dispatch
    @testable import HttpWare
    import Wares

    /// A ware that only passes, for measuring the cost of calling it.
    private struct Pass: Middleware, Postware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
    }

    /// Receives a response and ignores it.
    final class NoSink: ResponseSink {
        let isBlocked = false
        func sendInterim(_ response: HttpResponse) {}
        func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {}
        func sendContent(_ bytes: UnsafeRawBufferPointer) {}
        func sendEnd(_ trailers: HttpFields?) {}
        func cutOff() {}
        func startTunnel() {}
        func setTunnelIdle(_ nanoseconds: Int64) {}
        func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
        func endTunnel() {}
        func pauseRequest() {}
        func resumeRequest() {}
    }

    /// A middleware that only passes.
    private struct PassRequest: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    /// A middleware that sets a field.
    private struct SetField: Middleware {
        let line: FieldLine
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            request.fields.set(line)
            return .pass
        }
    }

    /// The observer of the wares' decisions.
    private enum Observed: String {
        case not = ""
        case kept = ", kept in a ring"
        case live = ", kept in a ring and told to a reader"
    }

    /// An exchange that passes this number of wares and is answered by one more.
    private func exchange(
        wares count: Int, _ kind: String, _ observed: Observed = .not, ware: @escaping @Sendable (Int) -> any Middleware
    ) -> Benchmark {
        Benchmark(name: "an exchange through \(count) wares\(kind), answered by one more\(observed.rawValue)") {
            times in
            struct Answer: Middleware {
                func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                    .abort(with: HttpResponse(.noContent))
                }
            }
            guard let loop = try? EventLoop(name: "bench"),
                let chain = try? WareChain(
                    middlewares: (0..<count).map { ChainEntry(ware($0)) } + [ChainEntry(Answer())], postwares: []),
                let request = try? HttpRequest(.get, "http://example.com/a/b", fields: ["Host": "example.com"])
            else { return }
            let server = LoopListener(
                name: "bench", transport: LoopTransport(loop: loop, resolver: nil),
                router: OnePlan(ExchangePlan(chain: chain, service: nil, route: nil)))
            let ring = RecordRing(mostRecords: 2000, mostBytes: .mebibytes(64))
            if observed != .not { server.records = ring }
            let reader = RecordSubscription {}
            if observed == .live { ring.subscribe(reader) }
            let sink = NoSink()
            let driver = ExchangeDriver(server: server)
            for turn in 0..<times {
                driver.prepare(sink: sink, connection: .none)
                driver.exchange.heldRequest = request
                driver.requestStarted()
                if observed == .live, turn & 255 == 0 { keep(reader.takeRecords()) }
            }
        }
    }

    private let fewFields = Array(
        "GET /orders/17?expand=lines HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"
            .utf8)

    /// An exchange as a connection starts it: one turn of the loop, and a request that is decoded into reused memory.
    private func decodedExchange(
        _ what: String, _ wares: [any Middleware], answer: HttpResponse = HttpResponse(.noContent)
    )
        -> Benchmark
    {
        Benchmark(name: "a request is decoded, \(what), and answered") { times in
            struct Answer: Middleware {
                let response: HttpResponse
                func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .abort(with: response) }
            }
            guard let loop = try? EventLoop(name: "bench"),
                let chain = try? WareChain(
                    middlewares: wares.map { ChainEntry($0) } + [ChainEntry(Answer(response: answer))], postwares: [])
            else { return }
            let server = LoopListener(
                name: "bench", transport: LoopTransport(loop: loop, resolver: nil),
                router: OnePlan(ExchangePlan(chain: chain, service: nil, route: nil)))
            let sink = NoSink()
            let driver = ExchangeDriver(server: server)
            for _ in 0..<times {
                loop.beginCallback()
                driver.prepare(sink: sink, connection: .none)
                var decoder = RequestHeadDecoder()
                keep(
                    try? decoder.decode(
                        fewFields.span.bytes, into: &driver.exchange.heldRequest, limits: HeadLimits(), isReverse: true)
                )
                driver.requestStarted()
                loop.endCallback()
            }
        }
    }

    /// An origin server that answers on demand.
    private final class InstantOrigin: UpstreamConnector, ReceivingStream {
        let isReused = true
        let isBlocked = false
        private var receiver: (any ResponseReceiver)?

        func connect(
            to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
        ) -> ConnectionTicket? {
            waiter.connectionReady(self, nil)
            return nil
        }
        func send(
            requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
            responseTimeout: Int64, idleTimeout: Int64
        ) { self.receiver = receiver }
        func respond(_ response: inout HttpResponse) {
            receiver?.responseStarted(&response)
            receiver?.responseEnded(nil)
        }
    }

    /// A GET that is decoded, passes the wares, is answered by an origin server, and passes the wares again on its way
    /// back.
    func plainGet(
        _ what: String, isCounted: Bool = false, endpoints: Int = 1, balancing: Balancing = Balancing(),
        _ wares: [any Middleware]
    ) -> Benchmark {
        Benchmark(name: "a plain GET \(what)") { times in
            guard let loop = try? EventLoop(name: "bench"),
                let chain = try? WareChain(middlewares: wares.map { ChainEntry($0) }, postwares: [])
            else { return }
            let service = UpstreamService(
                name: "bench", endpoints: (1...endpoints).map { Endpoint(host: "192.0.2.\($0)", port: 80) },
                balancing: balancing)
            let server = LoopListener(
                name: "bench", transport: LoopTransport(loop: loop, resolver: nil),
                router: OnePlan(ExchangePlan(chain: chain, service: service, route: "bench")))
            let origin = InstantOrigin()
            server.connector = origin
            if isCounted { server.counters = ExchangeCounters() }
            let connection = ConnectionFacts(peer: SocketAddress("203.0.113.7:50000"))
            let sink = NoSink()
            let driver = ExchangeDriver(server: server)
            var response = HttpResponse(.noContent)
            for _ in 0..<times {
                loop.beginCallback()
                driver.prepare(sink: sink, connection: connection)
                var decoder = RequestHeadDecoder()
                keep(
                    try? decoder.decode(
                        fewFields.span.bytes, into: &driver.exchange.heldRequest, limits: HeadLimits(), isReverse: true)
                )
                driver.requestStarted()
                driver.requestEnded(nil)
                response.reset()
                origin.respond(&response)
                loop.endCallback()
            }
        }
    }

    /// The highest rate that can be configured, so that no request of a benchmark is refused.
    private let fastLimit = RateLimit(Rate(1_000_000, per: .second))

    private let passing: @Sendable (Int) -> any Middleware = { _ in PassRequest() }
    private let passingTwice: @Sendable (Int) -> any Middleware = { _ in Pass() }
    private let settingThree: @Sendable (Int) -> any Middleware = { index in
        guard index < 3, let name = FieldName("X-Field-\(index)"),
            let line = try? FieldLine(name, "value")
        else { return PassRequest() }
        return SetField(line: line)
    }

    /// A token endpoint that answers at once.
    private struct TokenServer: HttpClient {
        final class Answered: HttpCall {
            func cancel() {}
        }

        func start(
            _ request: HttpRequest, limits: CallLimits,
            completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
        ) -> any HttpCall {
            let token = String(repeating: "t", count: 400)
            var response = HttpResponse(.ok)
            response.content = .text(#"{"access_token":"\#(token)","token_type":"Bearer","expires_in":3600}"#)
            response.fields.append(FieldLine(literal: .contentType, "application/json"))
            completion(.success(response))
            return Answered()
        }
    }

    /// A valid token is available for an hour, as for most requests.
    private let credential: Credential = {
        var definition = CredentialDefinition(name: "bench", grant: .clientCredentials)
        definition.tokenUrl = EndpointUrl("http://127.0.0.1/token")
        definition.clientId = "bench"
        definition.clientSecret = Secret("bench")
        let credential = Credential(definition, client: TokenServer())
        guard let loop = try? EventLoop.start(name: "tokens") else { return credential }
        let isThere = DispatchSemaphore(value: 0)
        Task(executorPreference: loop) {
            let failure = await credential.refresh()
            precondition(failure == nil, "no token")
            isThere.signal()
        }
        isThere.wait()
        loop.stop()
        loop.join()
        return credential
    }()

    private let withToken: @Sendable (Int) -> any Middleware = { index in
        if index == 0 { return TokenRefresh(credential: credential) }
        return TokenInject(credential: credential)
    }

    let chainBenchmarks: [Benchmark] = [
        decodedExchange("passes no ware", []),
        decodedExchange("passes tokenRefresh and tokenInject with a valid token", [withToken(0), withToken(1)]),
        plainGet("passes no ware", []),
        plainGet("passes rateLimit", [fastLimit]),
        plainGet("passes circuitBreaker", [CircuitBreaker()]),
        plainGet("passes retry", [Retry()]),
        plainGet("passes concurrency", [Concurrency()]),
        plainGet("passes rateLimit, retry and circuitBreaker", [fastLimit, Retry(), CircuitBreaker()]),
        plainGet(
            "passes rateLimit, retry and circuitBreaker, and is counted for metrics", isCounted: true,
            [fastLimit, Retry(), CircuitBreaker()]),
        exchange(wares: 2, ", which only pass", ware: passingTwice),
        exchange(wares: 1, ", which sets a field", ware: settingThree),
        exchange(wares: 2, ", tokenRefresh and tokenInject", ware: withToken),
        exchange(wares: 0, " and back", ware: passingTwice),
        exchange(wares: 1, " and back", ware: passingTwice),
        exchange(wares: 5, " and back", ware: passingTwice),
        exchange(wares: 20, " and back", ware: passingTwice),
        exchange(wares: 10, "", ware: passing),
        exchange(wares: 10, "", .kept, ware: passing),
        exchange(wares: 10, "", .live, ware: passing),
        exchange(wares: 10, " and back", ware: passingTwice),
        exchange(wares: 10, " and back", .kept, ware: passingTwice),
        exchange(wares: 10, ", three of which set a field", ware: settingThree),
        exchange(wares: 10, ", three of which set a field", .kept, ware: settingThree),
    ]
#endif
