import Dispatch
import Glibc
import Synchronization

/// Threads for what takes long and waits for nothing, such as the hash of a password: never a loop. How much may wait there is
/// bounded.
///
/// Shared by all loops, and used from any thread.
public final class OffloadQueue: Sendable {
    /// The queue of the process: half of the cores, at least one, so that loops go on; 64 pieces of work may wait.
    public static let shared = OffloadQueue(
        name: "httpware.offload", threads: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) / 2, most: 64)

    private let queues: [DispatchQueue]
    private let most: Int
    private let waiting = Atomic(0)
    private let turn = Atomic(0)

    /// A queue of so many threads, at least one, that takes no more work while so many pieces wait or are done.
    public init(name: String, threads: Int, most: Int) {
        queues = (0..<max(1, threads)).map { DispatchQueue(label: "\(name).\($0)") }
        self.most = most
    }

    /// How many pieces of work it took so far.
    public var taken: Int { turn.load(ordering: .relaxed) }

    /// Does the work on one of the threads and then calls `completion` there. Answers false, and does nothing, when too much
    /// waits already.
    public func submit<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, completion: @escaping @Sendable (Value) -> Void
    ) -> Bool {
        if waiting.add(1, ordering: .relaxed).newValue > most {
            waiting.subtract(1, ordering: .relaxed)
            return false
        }
        let index = turn.add(1, ordering: .relaxed).newValue & .max % queues.count
        queues[index].async {
            let value = work()
            self.waiting.subtract(1, ordering: .relaxed)
            completion(value)
        }
        return true
    }
}
