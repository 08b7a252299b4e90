#if HTTPWARE_BENCH
    import CAllocations
#endif
import Glibc

/// An operation that is repeated, and its measurement.
struct Benchmark: Sendable {
    /// The name of the operation, in the style of a test's name.
    let name: String
    /// Runs once before the measurement, and is not measured.
    var prepare: @Sendable () -> Void = {}
    /// Runs the operation `times` times.
    let body: @Sendable (_ times: Int) -> Void

    /// The minimum and the median over many batches, in nanoseconds for one operation.
    func measure() -> (least: Double, median: Double) {
        prepare()
        var times = 1
        // A batch of 2 ms is long compared with the resolution of the clock, and some batches run undisturbed by others
        // on the machine.
        while elapsed(times) < 2_000_000 { times *= 2 }
        // The time for the setup of a batch is not counted.
        let preparing = (0..<21).reduce(Int.max) { least, _ in min(least, elapsed(0)) }
        let batches = (0..<201).map { _ in Double(elapsed(times) - preparing) / Double(times) }.sorted()
        return (batches[0], batches[batches.count / 2])
    }

    /// The number of allocations of one operation after buffers have grown, computed from 1,000 additional operations.
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

    /// The CPU time of this thread, which other processes on the machine affect less.
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

/// Prevents the compiler from removing the computation of this value.
@inline(never)
func keep<Value>(_ value: Value) {}
