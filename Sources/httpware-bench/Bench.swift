/// Micro benchmarks, named like tests.
///
///     HTTPWARE_BENCH=1 swift run -c release --scratch-path .build-bench httpware-bench [FILTER [TIMES]]
///
/// For each the time of this thread and the allocations of one time. With TIMES each is done so many times and not measured: for profilers.
///
/// What they measure is internal to the module `HttpWare`, so that it can be inlined there; `HTTPWARE_BENCH` builds that
/// module testable. A build for users is not testable and has no benchmarks; how much faster it may be is not measured.
@main enum Bench {
    static func main() {
        let filter = CommandLine.arguments.dropFirst().first ?? ""
        #if HTTPWARE_BENCH
            for benchmark in codecBenchmarks + chainBenchmarks + routeBenchmarks + tokenBenchmarks
            where benchmark.name.contains(filter) {
                if let times = CommandLine.arguments.dropFirst(2).first.flatMap({ Int($0) }) {
                    benchmark.body(times)
                    continue
                }
                let tenths = Int((benchmark.measure() * 10).rounded())
                let allocations = Int((benchmark.allocations() * 10).rounded())
                print(
                    "\(padded("\(tenths / 10).\(tenths % 10)")) ns \(padded("\(allocations / 10).\(allocations % 10)")) allocations  "
                        + benchmark.name)
            }
        #else
            print("built without benchmarks: set HTTPWARE_BENCH=1 and build again (\(filter))")
        #endif
    }

    private static func padded(_ number: String) -> String {
        String(repeating: " ", count: max(0, 10 - number.count)) + number
    }
}
