/// Micro benchmarks, named like tests.
///
///     HTTPWARE_BENCH=1 swift run -c release --scratch-path .build-bench httpware-bench [FILTER [TIMES]]
///
///     … httpware-bench clients [ROUNDS [REQUESTS]]        the client beside async-http-client: ClientComparison.swift
///     … httpware-bench inflight [REQUESTS [CONNECTIONS]]  many requests at once: RequestsInFlight.swift
///
/// With `cache` as FILTER, all benchmarks of the cache run. One of them stores 1,000,000 responses, which takes 5 GiB of memory.
///
/// Prints the minimum and the median time of this thread, and the allocations, for each operation. With TIMES, each operation is
/// repeated that often and not measured; this is for profilers.
///
/// The measured functions are internal to the module `HttpWare`, so that they can be inlined there. `HTTPWARE_BENCH` builds that
/// module as testable. A build for users is not testable and has no benchmarks; its speed may differ, which is not measured.
@main enum Bench {
    static func main() async throws {
        let filter = CommandLine.arguments.dropFirst().first ?? ""
        #if HTTPWARE_BENCH
            let numbers = CommandLine.arguments.dropFirst(2).compactMap { Int($0) }
            switch filter {
            case "origin": return try BenchOrigin.serve()
            #if canImport(AsyncHTTPClient)
                case "clients":
                    return try await ClientComparison.run(
                        rounds: numbers.first ?? 11, requests: numbers.dropFirst().first ?? 20_000)
            #endif
            case "inflight":
                return try await RequestsInFlight.run(
                    requests: numbers.first ?? 10_000, connections: numbers.dropFirst().first ?? 100)
            default: break
            }
            let isMillion = filter.contains("1,000,000") || filter == "cache"
            if isMillion {
                let overhead = storeOverhead()
                print(
                    "1,000,000 stored responses of 1 KiB: \(overhead.process) bytes each beside content, key and fields;"
                )
                print("the store counts \(overhead.counted)")
            }
            let others = codecBenchmarks + chainBenchmarks + balanceBenchmarks + routeBenchmarks + tokenBenchmarks
            let caches = cacheBenchmarks + (isMillion ? millionBenchmarks() : [])
            let chosen = filter == "cache" ? caches : (others + caches).filter { $0.name.contains(filter) }
            for benchmark in chosen {
                if let times = numbers.first {
                    benchmark.body(times)
                    continue
                }
                let (least, median) = benchmark.measure()
                print(
                    "\(padded(least)) \(padded(median)) ns \(padded(benchmark.allocations())) allocations  "
                        + benchmark.name)
            }
        #else
            print("built without benchmarks: set HTTPWARE_BENCH=1 and build again (\(filter))")
        #endif
    }

    /// The number with one decimal.
    private static func padded(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        let text = "\(tenths / 10).\(tenths % 10)"
        return String(repeating: " ", count: max(0, 10 - text.count)) + text
    }
}
