#if HTTPWARE_BENCH && canImport(AsyncHTTPClient)
    import AsyncHTTPClient
    import CAllocations
    import Foundation
    import Glibc
    import HttpWareClient
    import NIOCore
    import NIOFoundationCompat
    import NIOHTTP1
    import NIOPosix

    /// Compares this library's client with async-http-client: the CPU time and allocations of this process for a request. Its
    /// response, 1 KiB of JSON, is decoded to a model. Each client has one thread and persistent connections. The origin
    /// server is in another process, and the rounds of the two clients alternate.
    ///
    ///     httpware-bench clients [ROUNDS [REQUESTS]]
    enum ClientComparison {
        /// Sends one request and decodes its response.
        typealias Ask = @Sendable () async throws -> Void

        private struct Contender {
            let name: String
            let ask: Ask
        }

        private struct Figures {
            /// The CPU time for a request in microseconds, for each round.
            var times: [Double] = []
            /// The allocations for a request, for each round.
            var allocations: [Double] = []

            var least: Double { times.min() ?? .nan }
            var median: Double { times.sorted()[times.count / 2] }
        }

        static func run(rounds: Int, requests: Int) async throws {
            let origin = try BenchOrigin()
            defer { origin.stop() }
            let loops = ClientLoops(count: 1, name: "bench")
            let manager = HttpManager(service: ServiceDefinition(baseURL: try BaseUrl(origin.url)), loops: loops)
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let other = HTTPClient(eventLoopGroupProvider: .shared(group))
            print("\(rounds) rounds of \(requests) requests each")
            try await compare(BenchNote.self, "a note", manager, other, origin.url, rounds, requests)
            try await compare(BenchPage.self, "a list", manager, other, origin.url, rounds, requests)
            try await other.shutdown()
            try await group.shutdownGracefully()
            await loops.shutdown()
        }

        private static func compare<Model: BenchModel>(
            _ model: Model.Type, _ name: String, _ manager: HttpManager, _ other: HTTPClient, _ origin: String,
            _ rounds: Int, _ requests: Int
        ) async throws {
            let decoder = JSONDecoder()
            let url = origin + Model.path.text
            let contenders = [
                Contender(name: "httpware") { keep(try await manager.send(GetModel<Model>())) },
                Contender(name: "async-http-client") {
                    var request = HTTPClientRequest(url: url)
                    request.headers.add(name: "Accept", value: "application/json")
                    let response = try await other.execute(request, timeout: .seconds(30))
                    let content = try await response.body.collect(upTo: 1 << 20)
                    keep(try decoder.decode(Model.self, from: content))
                },
            ]
            let decoding = try alone(decoder, model, rounds, requests)
            print("\(name), decoded only: \(text(decoding.least)) µs, \(text(decoding.median)) µs")
            for tasks in [1, 8, 64] {
                var figures = contenders.map { _ in Figures() }
                for contender in contenders { try await ask(contender.ask, requests / 4, tasks) }
                for _ in 0..<rounds {
                    for (index, contender) in contenders.enumerated() {
                        let time = cpuTime()
                        let allocations = callocations_count()
                        try await ask(contender.ask, requests, tasks)
                        figures[index].times.append((cpuTime() - time) / Double(requests))
                        figures[index].allocations.append(
                            Double(callocations_count() - allocations) / Double(requests))
                    }
                }
                print("\(name), \(Model.content.count) bytes, \(tasks) tasks: least and median of CPU; allocations")
                for (contender, figures) in zip(contenders, figures) {
                    let allocations = figures.allocations.sorted()[rounds / 2]
                    print(
                        "    \(contender.name): \(text(figures.least)) µs, \(text(figures.median)) µs; \(text(allocations))"
                    )
                }
                let (ours, other) = (figures[0], figures[1])
                print("    ratio: \(text(ours.least / other.least)), \(text(ours.median / other.median))")
                let rest = (ours.least - decoding.least, other.least - decoding.least)
                print("    without the decoder, which is the same: \(text(rest.0 / rest.1))")
            }
        }

        /// The cost of the decoder alone.
        private static func alone<Model: BenchModel>(
            _ decoder: JSONDecoder, _ model: Model.Type, _ rounds: Int, _ times: Int
        ) throws -> Figures {
            var figures = Figures()
            for _ in 0..<rounds {
                let time = cpuTime()
                for _ in 0..<times { keep(try decoder.decode(model, from: Data(Model.content))) }
                figures.times.append((cpuTime() - time) / Double(times))
            }
            return figures
        }

        /// Sends this number of requests, from this number of concurrent tasks.
        private static func ask(_ ask: @escaping Ask, _ requests: Int, _ tasks: Int) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<tasks {
                    group.addTask { for _ in 0..<(requests / tasks) { try await ask() } }
                }
                try await group.waitForAll()
            }
        }

        /// The CPU time of this process so far, in microseconds.
        private static func cpuTime() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1000
        }

        private static func text(_ number: Double) -> String { "\((number * 100).rounded() / 100)" }
    }
#endif
