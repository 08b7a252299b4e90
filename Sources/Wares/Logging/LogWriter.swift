import Glibc
public import HttpWare
import Synchronization

/// The one thread that writes log lines to their outputs, so that no loop waits for a disk or a reader.
///
/// It sleeps while there are no lines. Otherwise it writes every 100 ms, or as soon as a block of 64 KiB is full.
public final class LogWriter: @unchecked Sendable {
    // Unchecked: `mutex` and `condition` are made in `init`, never moved or freed, and can be shared. All else is atomic,
    // guarded by `mutex`, or used only on the writer's thread, as noted below.

    /// The writer of this process. Its thread starts with the first sink.
    public static let shared = LogWriter()

    private static let pause: Int64 = 100_000_000

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private let hasLines = Atomic(false)
    private let hasFullBlock = Atomic(false)

    // Guarded by `mutex`.
    private var files: [LogFile] = []
    private var isStarted = false
    private var wantsReopen = false
    private var flushesWanted = 0
    private var flushesDone = 0

    /// Outputs without a sink, which are written to the end and closed. Used only on the writer's thread.
    private var closing: [LogFile] = []

    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    // MARK: For any thread

    /// The sink of an output, always the same one. `notice` makes the line that reports the number of dropped lines.
    public func sink(for output: LogOutput, notice: @escaping @Sendable (Int) -> String) -> LogSink {
        let output = OutputGate.isClosed ? LogOutput.file("/dev/null") : output
        return locked {
            if let found = files.first(where: { $0.sink.output == output }) { return found.sink }
            let sink = LogSink(output, writer: self)
            files.append(LogFile(sink, notice: notice))
            start()
            return sink
        }
    }

    /// Opens the log files again after they were renamed, for SIGHUP. Safe to call from any thread.
    public func reopen() {
        locked {
            wantsReopen = true
            pthread_cond_broadcast(condition)
        }
    }

    /// Waits until all lines logged so far are written, or the time is up. Used at the end of the process.
    ///
    /// Blocks, so it must not be called on a loop. Returns whether all lines were written.
    @discardableResult
    public func flush(timeout: Duration = .seconds(5)) -> Bool {
        locked {
            guard isStarted else { return true }
            flushesWanted += 1
            let wanted = flushesWanted
            pthread_cond_broadcast(condition)
            var deadline = LogWriter.time(LogWriter.now() &+ timeout.nanoseconds)
            while flushesDone < wanted {
                if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return false }
            }
            return true
        }
    }

    // MARK: For sinks

    /// Called when there are lines again.
    @inline(__always)
    func noteLines() {
        if hasLines.load(ordering: .relaxed) { return }
        if !hasLines.exchange(true, ordering: .sequentiallyConsistent) { wake() }
    }

    /// Called when a block is full.
    func noteFullBlock() {
        if !hasFullBlock.exchange(true, ordering: .sequentiallyConsistent) { wake() }
    }

    private func wake() {
        locked { _ = pthread_cond_broadcast(condition) }
    }

    // MARK: The thread

    private func start() {
        guard !isStarted else { return }
        var thread = pthread_t()
        let handed = Unmanaged.passRetained(self)  // released by logWriterThread(_:)
        isStarted = pthread_create(&thread, nil, logWriterThread, handed.toOpaque()) == 0
        if isStarted { pthread_detach(thread) } else { handed.release() }
    }

    fileprivate func run() -> Never {
        var isLeft = false
        while true {
            let flush = waitForWork(isLeft: isLeft)
            hasFullBlock.store(false, ordering: .sequentiallyConsistent)
            hasLines.store(false, ordering: .sequentiallyConsistent)
            let files = locked { self.files } + closing
            if locked({ wantsReopen }) {
                locked { wantsReopen = false }
                for file in files { file.reopen() }
            }
            let late = files.filter { file in
                if case .later = file.write(now: LogWriter.now()) { true } else { false }
            }
            // Lines that arrived between the last write and the release of the sink are written in one more round.
            let unused = takeUnused()
            closing = closing.filter { file in late.contains { $0 === file } } + unused
            isLeft = !late.isEmpty || !unused.isEmpty
            // A flush is complete when nothing is left. A flush that waits for a slow reader ends by its own timeout.
            if let flush, !isLeft {
                locked {
                    flushesDone = max(flushesDone, flush)
                    pthread_cond_broadcast(condition)
                }
            }
        }
    }

    /// Removes the outputs whose sinks are no longer used, after a reload.
    private func takeUnused() -> [LogFile] {
        locked {
            let unused = files.filter { $0.isUnused() }
            files.removeAll { file in unused.contains { $0 === file } }
            return unused
        }
    }

    /// Waits for lines, and then briefly for more. Returns the number of the requested flush, if any.
    private func waitForWork(isLeft: Bool) -> Int? {
        locked {
            while !isLeft, !hasLines.load(ordering: .sequentiallyConsistent),
                !hasFullBlock.load(ordering: .sequentiallyConsistent), !wantsReopen, flushesWanted == flushesDone
            {
                pthread_cond_wait(condition, mutex)
            }
            var deadline = LogWriter.time(LogWriter.now() &+ LogWriter.pause)
            while !hasFullBlock.load(ordering: .sequentiallyConsistent), !wantsReopen,
                isLeft || flushesWanted == flushesDone
            {
                if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { break }
            }
            return flushesWanted > flushesDone ? flushesWanted : nil
        }
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    private static func now() -> Int64 { SystemLoopClock().now().nanoseconds }

    private static func time(_ nanoseconds: Int64) -> timespec {
        timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
}

// Outside any isolated context: inside one, the thread would check its isolation at run time and trap.
private func logWriterThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let writer = Unmanaged<LogWriter>.fromOpaque(argument).takeRetainedValue()  // retained by start()
    writer.run()
}
