import Dispatch
import Glibc
import Synchronization

/// Threads for work that takes long but never waits, such as hashing a password, which must not run on a loop. The number of pending
/// pieces is bounded.
///
/// Shared by all loops, and usable from any thread.
public final class OffloadQueue: Sendable {
    /// The queue of the process: half of the cores, at least one, so that the loops keep running; 64 pieces of work may be pending.
    public static let shared = OffloadQueue(
        name: "httpware.offload", threads: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) / 2, most: 64)

    /// The pieces of work of all queues that were accepted, and whose completion has not returned.
    private static let pending = Atomic(0)

    /// The number of pieces of work that wait or run, in all queues of the process. A piece is counted until its completion has returned.
    package static var pendingCount: Int { pending.load(ordering: .acquiring) }

    private let queues: [DispatchQueue]
    private let most: Int
    private let waiting = Atomic(0)
    private let turn = Atomic(0)

    /// Makes a queue of this many threads, at least one. It refuses work while `most` pieces are waiting or running.
    public init(name: String, threads: Int, most: Int) {
        queues = (0..<max(1, threads)).map { DispatchQueue(label: "\(name).\($0)") }
        self.most = most
    }

    /// The number of pieces of work accepted so far.
    public var taken: Int { turn.load(ordering: .relaxed) }

    /// Does the work on one of the threads, and returns its value. If too much work is pending, a thread of the system does it.
    public func value<Value: Sendable>(of work: @escaping @Sendable () -> Value) async -> Value {
        await withUnsafeContinuation { continuation in
            guard !submit(work, completion: { continuation.resume(returning: $0) }) else { return }
            DispatchQueue.global().async { continuation.resume(returning: work()) }
        }
    }

    /// Does the work on one of the threads and then calls `completion` there. Returns false and does nothing if too much
    /// work is pending.
    public func submit<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, completion: @escaping @Sendable (Value) -> Void
    ) -> Bool {
        if waiting.add(1, ordering: .relaxed).newValue > most {
            waiting.subtract(1, ordering: .relaxed)
            return false
        }
        let index = turn.add(1, ordering: .relaxed).newValue & .max % queues.count
        OffloadQueue.pending.add(1, ordering: .relaxed)
        queues[index].async {
            let value = work()
            self.waiting.subtract(1, ordering: .relaxed)
            completion(value)
            OffloadQueue.pending.subtract(1, ordering: .releasing)
        }
        return true
    }
}
