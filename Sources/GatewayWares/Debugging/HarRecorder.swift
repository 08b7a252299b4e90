import Capturing
import Glibc
import HttpWare
import Synchronization

/// Writes recorded exchanges to one file, which is a complete archive at any moment.
///
/// Loops hand exchanges over, and one thread writes them. The thread collects entries in an unnamed file. At most about a second
/// after an exchange was added, it replaces the archive by a copy of that file with the closing text.
///
/// Unchecked: `mutex` and `condition` are made in `init` and can be shared. The properties under *Guarded by `mutex`* are guarded
/// by it; the others are used only on the thread.
final class HarRecorder: @unchecked Sendable {
    private let path: String
    private let maxSize: Int
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    // Guarded by `mutex`.
    private var queue: [(exchange: CapturedExchange, redaction: CaptureRedaction)] = []
    private var queued = 0
    private var isStarted = false
    private var isOver = false
    private let ended = LoopWait<Bool>()

    /// The memory for exchanges in progress and for exchanges that are not written yet, in bytes.
    private let reserved = Atomic(0)
    private let lost = Atomic(0)

    // Used only on the thread.
    private var writer = HarWriter()
    private var spool: Int32 = -1
    private var size = 0
    private var isFull = false
    /// The entries in the unnamed file, in the order of their starts.
    private var entries = RecordedEntries()

    /// The maximum memory for all exchanges of one file, in bytes.
    private static let mostMemory = 64 << 20
    private static let pause: Int = 500

    init(path: String, maxSize: Int) {
        self.path = path
        self.maxSize = maxSize
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        if spool >= 0 { close(spool) }
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// The number of exchanges that are missing in the file, because the file is full or memory was short.
    var lostCount: Int { lost.load(ordering: .relaxed) }

    /// Reserves memory for a piece of content. Returns false if the limit is reached.
    func reserve(_ count: Int) -> Bool {
        if reserved.add(count, ordering: .relaxed).newValue <= HarRecorder.mostMemory { return true }
        reserved.subtract(count, ordering: .relaxed)
        return false
    }

    func giveBack(_ count: Int) { if count > 0 { reserved.subtract(count, ordering: .relaxed) } }

    /// Hands an exchange over, together with its reserved memory. The exchange is masked when it is written.
    func add(_ exchange: CapturedExchange, _ redaction: CaptureRedaction, reserved count: Int) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isOver, queue.count < 10_000, !OutputGate.isClosed else {
            lost.add(1, ordering: .relaxed)
            return giveBack(count)
        }
        queue.append((exchange, redaction))
        queued += count
        if !isStarted { start() }
        if queue.count == 1 { pthread_cond_signal(condition) }
    }

    /// Writes the remaining exchanges and ends the thread. No more exchanges can be added.
    func finish() {
        pthread_mutex_lock(mutex)
        isOver = true
        if !isStarted { ended.resume(returning: true) }
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Writes the remaining exchanges, and waits until the file is complete.
    func finishWriting() async {
        finish()
        _ = try? await ended.value()
    }

    // MARK: The thread

    private func start() {
        var thread = pthread_t()
        let handed = Unmanaged.passRetained(self)  // released by harRecorderThread(_:)
        isStarted = pthread_create(&thread, nil, harRecorderThread, handed.toOpaque()) == 0
        if isStarted { pthread_detach(thread) } else { handed.release() }
    }

    fileprivate func run() {
        while true {
            pthread_mutex_lock(mutex)
            while queue.isEmpty, !isOver { pthread_cond_wait(condition, mutex) }
            let batch = queue
            let count = queued
            queue = []
            queued = 0
            let isLast = isOver
            pthread_mutex_unlock(mutex)
            if !batch.isEmpty {
                write(batch)
                giveBack(count)
            }
            if isLast {
                ended.resume(returning: true)
                return
            }
            // Waits so that more exchanges are written together, well within two seconds.
            usleep(useconds_t(HarRecorder.pause * 1000))
        }
    }

    private func write(_ batch: [(exchange: CapturedExchange, redaction: CaptureRedaction)]) {
        if spool < 0, !open() { return fail(batch.count) }
        for (exchange, redaction) in batch.sorted(by: { $0.exchange.started < $1.exchange.started }) {
            guard let entry = HarWriter.entryAlone(redaction.masked(exchange)) else {
                writer.leaveOut()
                continue
            }
            // With the separator before each entry.
            guard !isFull, size + entry.count + 2 * (entries.count + 1) + writer.end().count <= maxSize else {
                if !isFull { tell("\(path) has reached maxSize; nothing more is recorded") }
                isFull = true
                lost.add(1, ordering: .relaxed)
                continue
            }
            guard HarRecorder.write(entry, to: spool, at: size) else {
                fail(1)
                continue
            }
            entries.add(exchange.started, size..<size + entry.count)
            size += entry.count
        }
        if !publish() { fail(0) }
    }

    /// Begins the archive in an unnamed file in the same folder.
    private func open() -> Bool {
        let name = path + ".\(getpid()).recording"
        spool = Glibc.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if spool < 0, errno == EEXIST {
            unlink(name)
            spool = Glibc.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        }
        guard spool >= 0 else { return false }
        unlink(name)
        size = 0
        return true
    }

    /// Replaces the file by a complete archive.
    private func publish() -> Bool {
        let name = path + ".\(getpid()).new"
        unlink(name)
        let descriptor = Glibc.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var writer = self.writer
        var offset = 0
        var output = writer.begin()
        func flush() -> Bool {
            defer {
                offset += output.count
                output.removeAll(keepingCapacity: true)
            }
            return HarRecorder.write(output, to: descriptor, at: offset)
        }
        var isCopied = true
        for place in entries.ordered where isCopied {
            output += writer.separator()
            var start = place.lowerBound
            while isCopied, start < place.upperBound {
                let count = read(from: start, min(place.upperBound - start, 1 << 20), into: &output)
                start += max(0, count)
                isCopied = count > 0 && (output.count < 1 << 20 || flush())
            }
        }
        output += writer.end()
        guard isCopied, flush(), rename(name, path) == 0 else {
            let code = errno
            unlink(name)
            errno = code
            return false
        }
        return true
    }

    /// Appends bytes of the unnamed file. Returns their number, which is at most `count`; at most 0 if there are none.
    private func read(from place: Int, _ count: Int, into output: inout [UInt8]) -> Int {
        let former = output.count
        output.append(contentsOf: repeatElement(0, count: count))
        var result = -1
        repeat {
            result = output.withUnsafeMutableBytes {
                pread(spool, $0.baseAddress?.advanced(by: former), count, off_t(place))
            }
        } while result < 0 && errno == EINTR
        output.removeLast(count - max(0, result))
        return result
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, at place: Int) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done, off_t(place + done))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    private var hasFailed = false

    private func fail(_ count: Int) {
        if count > 0 { lost.add(count, ordering: .relaxed) }
        if !hasFailed { tell("\(path) cannot be written: \(SystemError.text(of: errno))") }
        hasFailed = true
    }

    /// Logs a problem, once for each kind.
    private func tell(_ sentence: String) { WareLog.shared.log(.error, "record: \(sentence)") }
}

/// The places of entries in a file, in the order of the starts of their exchanges.
struct RecordedEntries {
    /// Almost always in that order already, because most exchanges are short.
    private var entries: [(started: WallTime, place: Range<Int>)] = []

    var count: Int { entries.count }

    mutating func add(_ started: WallTime, _ place: Range<Int>) {
        var index = entries.count
        while index > 0, entries[index - 1].started > started { index -= 1 }
        entries.insert((started, place), at: index)
    }

    /// The places, with adjacent ones apart.
    var ordered: [Range<Int>] { entries.map(\.place) }
}

// Outside any isolated context: inside one, the thread would check its isolation at run time and trap.
private func harRecorderThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    Unmanaged<HarRecorder>.fromOpaque(argument).takeRetainedValue().run()  // retained by start()
    return nil
}
