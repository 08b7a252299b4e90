#if HTTPWARE_BENCH
    import CAllocations
#endif
import Glibc

/// Something that is done over and over, and how long one time takes.
struct Benchmark: Sendable {
    /// What is done, as a test would be named.
    let name: String
    /// Done once before, and not measured.
    var prepare: @Sendable () -> Void = {}
    /// Does it so many times.
    let body: @Sendable (_ times: Int) -> Void

    /// The least and the median over many batches, in nanoseconds for one time.
    func measure() -> (least: Double, median: Double) {
        prepare()
        var times = 1
        // A batch of 2 ms is long beside the clock, and some of them have nothing else beside them on the machine.
        while elapsed(times) < 2_000_000 { times *= 2 }
        // What a batch makes before it begins is none of its times.
        let preparing = (0..<21).reduce(Int.max) { least, _ in min(least, elapsed(0)) }
        let batches = (0..<201).map { _ in Double(elapsed(times) - preparing) / Double(times) }.sorted()
        return (batches[0], batches[batches.count / 2])
    }

    /// How often memory is asked for in one time, once buffers have grown: what a thousand more times ask for.
    func allocations() -> Double {
        #if HTTPWARE_BENCH
            let few = allocated(1000)
            return Double(allocated(2000) - few) / 1000
        #else
            return .nan
        #endif
    }

    #if HTTPWARE_BENCH
        private func allocated(_ times: Int) -> Int {
            let before = callocations_count()
            body(times)
            return Int(callocations_count() - before)
        }
    #endif

    /// Time of this thread, so that others on the machine count less.
    private func elapsed(_ times: Int) -> Int {
        let start = now()
        body(times)
        return now() - start
    }

    private func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// Keeps the compiler from leaving out what makes this value.
@inline(never)
func keep<Value>(_ value: Value) {}
