import Glibc
import Synchronization

/// Where wares write what the people who run the gateway should know; the gateway leads it into its own log.
///
/// One for the process, as that log is. Until `use` says otherwise, warnings and worse go to standard
/// error. Guarded by a mutex and an atomic; writing must not block, so what `use` is given queues.
public final class WareLog: Sendable {
    /// How much a line matters.
    public enum Level: String, OptionWord, Comparable {
        case trace, debug, info, notice, warning, error, critical

        fileprivate var rank: Int { Level.allCases.firstIndex(of: self) ?? 0 }

        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The log of this process.
    public static let shared = WareLog()

    private let leastRank = Atomic(Level.warning.rank)
    private let write = Mutex<@Sendable (Level, String) -> Void>(WareLog.writeToStandardError)

    init() {}

    /// Sends lines of this level and above to `write`, which is called on any thread and must not block.
    public func use(_ level: Level, _ write: @escaping @Sendable (Level, String) -> Void) {
        self.write.withLock { $0 = write }
        leastRank.store(level.rank, ordering: .relaxed)
    }

    /// Whether lines of this level go anywhere.
    public func writes(_ level: Level) -> Bool { level.rank >= leastRank.load(ordering: .relaxed) }

    /// Writes a line: starts in lower case, without a full stop, without credentials. It is made only if it goes anywhere.
    public func log(_ level: Level, _ message: @autoclosure () -> String) {
        guard writes(level) else { return }
        let write = self.write.withLock { $0 }
        write(level, message())
    }

    private static func writeToStandardError(_ level: Level, _ message: String) {
        var line = "\(level.rawValue): \(message)\n"
        line.withUTF8 { bytes in _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
    }
}
