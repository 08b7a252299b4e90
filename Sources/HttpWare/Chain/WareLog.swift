import Glibc
import Synchronization

/// The log of wares, for operators; the gateway forwards it to its own log.
///
/// One per process, like that log. Until `use` or `useStandardError` is called, nothing is written: standard error belongs to the
/// program. Guarded by a mutex and an atomic. Writing must not block, so the function given to `use` must queue.
public final class WareLog: Sendable {
    /// The severity of a line.
    public enum Level: String, OptionWord, Comparable {
        case trace, debug, info, notice, warning, error, critical

        fileprivate var rank: Int { Level.allCases.firstIndex(of: self) ?? 0 }

        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The log of this process.
    public static let shared = WareLog()

    private let leastRank = Atomic(Level.allCases.count)
    private let write = Mutex<@Sendable (Level, String) -> Void>({ _, _ in })

    init() {}

    /// Sends lines of this level and above to `write`, which is called on any thread and must not block.
    public func use(_ level: Level, _ write: @escaping @Sendable (Level, String) -> Void) {
        self.write.withLock { $0 = write }
        leastRank.store(level.rank, ordering: .relaxed)
    }

    /// Sends warnings and worse to standard error.
    public func useStandardError() { use(.warning, WareLog.writeToStandardError) }

    /// Whether lines of this level are written.
    public func writes(_ level: Level) -> Bool { level.rank >= leastRank.load(ordering: .relaxed) }

    /// Writes a line: lower case at the start, no full stop, no credentials. The text is built only if it is written.
    public func log(_ level: Level, _ message: @autoclosure () -> String) {
        guard writes(level), !OutputGate.isClosed else { return }
        let write = self.write.withLock { $0 }
        write(level, message())
    }

    private static func writeToStandardError(_ level: Level, _ message: String) {
        var line = "\(level.rawValue): \(message)\n"
        line.withUTF8 { bytes in _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
    }
}
