#if HTTPWARE_BENCH
    @testable import HttpWare

    /// A ware that only passes: what is left is the cost of asking.
    private struct Pass: Middleware, Postware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
    }

    /// Takes a response and does nothing with it.
    private final class NoSink: ResponseSink {
        let isBlocked = false
        func sendInterim(_ response: HttpResponse) {}
        func send(_ response: HttpResponse, extent: HttpContent.Extent, via: Bool) {}
        func sendContent(_ bytes: UnsafeRawBufferPointer) {}
        func sendEnd(_ trailers: HttpFields?) {}
        func cutOff() {}
        func startTunnel() {}
        func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
        func endTunnel() {}
        func pauseRequest() {}
        func resumeRequest() {}
    }

    private struct OnePlan: ExchangeRouter {
        let listenerPlan: ExchangePlan

        func plan(
            for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
        ) throws(Pattern.LimitReached) -> ExchangePlan { listenerPlan }
    }

    /// An exchange that a ware answers behind so many others, each asked on both ways.
    private func exchange(wares count: Int) -> Benchmark {
        Benchmark(name: "an exchange through \(count) wares and back, answered by one more") { times in
            struct Answer: Middleware {
                func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                    .abort(with: HttpResponse(.noContent))
                }
            }
            guard let loop = try? EventLoop(name: "bench"),
                let chain = try? WareChain(
                    middlewares: (0..<count).map { _ in ChainEntry(Pass()) } + [ChainEntry(Answer())], postwares: []),
                let request = try? HttpRequest(.get, "http://example.com/a/b", fields: ["Host": "example.com"])
            else { return }
            let server = LoopServer(
                name: "bench", transport: LoopTransport(loop: loop, resolver: nil),
                router: OnePlan(listenerPlan: ExchangePlan(chain: chain, service: nil, route: nil)))
            let sink = NoSink()
            let driver = ExchangeDriver(server: server)
            for _ in 0..<times {
                driver.prepare(sink: sink, peer: nil, local: nil)
                driver.exchange.request = request
                driver.requestStarted()
            }
        }
    }

    let chainBenchmarks = [0, 1, 5, 20].map(exchange(wares:))
#endif
