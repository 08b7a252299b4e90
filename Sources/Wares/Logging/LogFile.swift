import Glibc
import HttpWare
import Synchronization

/// The output of one sink, on the writer's thread. It opens the output, writes without blocking, and opens it again.
final class LogFile {
    /// The result of writing.
    enum Outcome { case all, later }

    private(set) var sink: LogSink
    /// Makes the line that reports the number of dropped lines.
    private let notice: (Int) -> String
    /// Reports to the operator that lines cannot be written.
    private let complain: (_ output: LogOutput, _ message: String) -> Void

    private var descriptor: Int32 = -1
    private var isRegular = false
    private var identity: (device: dev_t, inode: ino_t)?
    /// The connection, for an output on another machine.
    private let connection: LogConnection?
    private var waiting: [(block: LogBlock, offset: Int)] = []
    private var dropped = 0
    /// Whether the last written line is incomplete.
    private var isTorn = false
    private var lastLook: Int64 = .min
    /// The time of the last call of `write`.
    private var now: Int64 = 0
    /// The errors reported since lines were last written successfully, and the time of the last error.
    private var toldFaults: Set<Int32> = []
    private var lastFault: Int64 = 0
    /// The time without errors after which a problem counts as solved, in nanoseconds. It is needed because a full disk
    /// sometimes accepts a few bytes.
    private static let calm: Int64 = 10_000_000_000

    init(
        _ sink: LogSink, notice: @escaping (Int) -> String,
        complain: @escaping (_ output: LogOutput, _ message: String) -> Void = LogTrouble.tell(of:_:)
    ) {
        self.sink = sink
        self.notice = notice
        self.complain = complain
        if case .network(let target) = sink.output {
            connection = LogConnection(target)
        } else {
            connection = nil
        }
        switch sink.output {
        case .stdout: use(STDOUT_FILENO)
        case .stderr: use(STDERR_FILENO)
        case .file, .syslog, .network: break
        }
    }

    deinit {
        if descriptor > STDERR_FILENO { close(descriptor) }
    }

    /// Writes waiting lines, as many as the output accepts without blocking.
    func write(now: Int64) -> Outcome {
        self.now = now
        let taken = sink.takeAll()
        dropped += taken.dropped
        waiting += taken.blocks.map { ($0, 0) }
        if let connection { return write(to: connection) }
        guard !waiting.isEmpty || dropped > 0 else { return .all }
        guard prepare(now: now) else {
            // Nothing can be written: the waiting lines are lost, and counted.
            dropWaiting()
            return .all
        }
        if dropped > 0, let outcome = writeNotice() { return outcome }
        while let (block, offset) = waiting.first {
            let written = send(UnsafeRawBufferPointer(rebasing: block.bytes[offset...]), block)
            switch written {
            case .all:
                waiting.removeFirst()
                sink.finished(block, bytes: block.count)
            case .part(let count):
                waiting[0].offset += count
                return .later
            case .failed(let code, let count):
                tell(code)
                lose(block, from: offset + count)
                waiting.removeFirst()
                if case .file = sink.output { lastLook = .min }
                return .all
            }
        }
        noteWritten()
        return .all
    }

    /// Sends waiting lines to another machine. If it is unreachable, lines wait for a while, up to the limit of the sink.
    private func write(to connection: LogConnection) -> Outcome {
        guard !waiting.isEmpty || dropped > 0 || !connection.isEmpty else { return .all }
        switch connection.prepare(now: now) {
        case .isReady: break
        case .waits: return isHopeless ? giveUp() : .later
        case .failed(let problem):
            tell(of: problem, code: -1)
            return isHopeless ? giveUp() : .later
        }
        unreachableSince = nil
        while true {
            switch connection.send(now: now) {
            case .all: break
            case .later: return .later
            case .failed(let problem, let lost):
                countLost(lost)
                tell(of: problem, code: -1)
                return .later
            }
            if dropped > 0 {
                let text = Array((notice(dropped) + "\n").utf8)
                dropped = 0
                _ = text.withUnsafeBytes { connection.add($0, at: SystemLoopClock().wallNow()) }
            } else if let (block, _) = waiting.first {
                countLost(connection.add(block.bytes, at: SystemLoopClock().wallNow()))
                waiting.removeFirst()
                sink.finished(block, bytes: block.count)
            } else {
                break
            }
        }
        noteWritten()
        return .all
    }

    /// The time since which the other machine is unreachable; `nil` if it is reachable.
    private var unreachableSince: Int64?
    private static let longestWait: Int64 = 30_000_000_000

    /// Whether lines have waited too long for the other machine.
    private var isHopeless: Bool {
        let since = unreachableSince ?? now
        unreachableSince = since
        return now - since > LogFile.longestWait
    }

    private func giveUp() -> Outcome {
        dropWaiting()
        return .all
    }

    private func countLost(_ count: Int) {
        dropped += count
        sink.droppedLines.add(count, ordering: .relaxed)
    }

    /// Closes the file, to open it again at the next write, because it may have been renamed.
    func reopen() {
        guard case .file = sink.output, descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
        lastLook = .min
    }

    /// Whether the sink has no other owner. Must be called only while no new owner can get it.
    func isUnused() -> Bool { isKnownUniquelyReferenced(&sink) }

    /// Drops the waiting lines: at the end, if the output does not accept them.
    func dropWaiting() {
        for (block, offset) in waiting { lose(block, from: offset) }
        waiting = []
    }

    // MARK: Opening

    private func use(_ descriptor: Int32) {
        self.descriptor = descriptor
        var status = stat()
        isRegular = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        identity = (status.st_dev, status.st_ino)
    }

    /// Whether the output is open. A file is checked once a second: if it was renamed or removed, it is created again.
    private func prepare(now: Int64) -> Bool {
        switch sink.output {
        case .stdout, .stderr: return true
        case .syslog: return descriptor >= 0 || openSyslog()
        case .network: return false
        case .file(let path):
            if lastLook != .min, now - lastLook < 1_000_000_000 { return descriptor >= 0 }
            lastLook = now
            var status = stat()
            if descriptor >= 0, stat(path, &status) == 0, let identity, identity == (status.st_dev, status.st_ino) {
                return true
            }
            let opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o640)
            guard opened >= 0 else {
                tell(errno)
                return descriptor >= 0  // better in the old file than nowhere
            }
            if descriptor >= 0 { close(descriptor) }
            isTorn = false
            use(opened)
            return true
        }
    }

    private func openSyslog() -> Bool {
        switch SyslogSocket.open() {
        case .success(let opened):
            descriptor = opened
            return true
        case .failure(let error):
            tell(error.code)
            return false
        }
    }

    // MARK: Writing

    private enum Written {
        case all
        case part(Int)
        case failed(Int32, after: Int)
    }

    private func send(_ bytes: UnsafeRawBufferPointer, _ block: LogBlock) -> Written {
        if case .syslog = sink.output { return sendDatagrams(bytes) }
        var start = 0
        while start < bytes.count {
            // A pipe that is ready accepts this much without blocking; a file accepts everything.
            let end = isRegular ? bytes.count : min(bytes.count, start + 4096)
            if !isRegular, !isReady() { return .part(start) }
            let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + start }, end - start)
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EAGAIN { return .part(start) }
                return .failed(errno, after: start)
            }
            start += count
            if count > 0 { isTorn = bytes[start - 1] != 0x0a }
        }
        return .all
    }

    private func isReady() -> Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return Glibc.poll(&poll, 1, 0) > 0
    }

    private func sendDatagrams(_ bytes: UnsafeRawBufferPointer) -> Written {
        var start = 0
        for line in bytes.split(separator: 0x0a) {
            let code = SyslogSocket.send(UnsafeRawBufferPointer(rebasing: line), to: descriptor)
            if code == EAGAIN || code == ENOBUFS { return .part(start) }
            if code != 0 {
                close(descriptor)
                descriptor = -1
                return .failed(code, after: start)
            }
            start = line.endIndex + 1
        }
        return .all
    }

    /// Writes a line with the number of dropped lines. Returns `nil` if it was written, otherwise the result.
    private func writeNotice() -> Outcome? {
        let text = (isTorn ? "\n" : "") + notice(dropped) + "\n"
        let block = LogBlock()
        block.append { line in line.raw(Array(text.utf8)) }
        switch send(block.bytes, block) {
        case .all:
            dropped = 0
            return nil
        case .part(0): return .later
        case .part:
            // The rest of a short line: too rare to be handled.
            dropped = 0
            isTorn = true
            return .later
        case .failed(let code, _):
            tell(code)
            dropWaiting()
            return .all
        }
    }

    private func lose(_ block: LogBlock, from offset: Int) {
        let rest = UnsafeRawBufferPointer(rebasing: block.bytes[min(offset, block.count)...])
        countLost(rest.count { $0 == 0x0a })
        sink.finished(block, bytes: block.count)
    }

    /// Reports an error, once for each kind until the problem is solved.
    private func tell(_ code: Int32) { tell(of: SystemError.text(of: code), code: code) }

    private func tell(of problem: String, code: Int32) {
        lastFault = now
        guard toldFaults.insert(code).inserted else { return }
        complain(sink.output, "log lines cannot be written to \(sink.output.optionText): \(problem)")
    }

    private func noteWritten() {
        guard !toldFaults.isEmpty, now - lastFault >= LogFile.calm else { return }
        toldFaults = []
        complain(sink.output, "log lines are written to \(sink.output.optionText) again")
    }
}

/// The system's log: datagrams to `/dev/log`, which journald, rsyslog and syslog-ng read.
private enum SyslogSocket {
    static func open() -> Result<Int32, SystemError> {
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return .failure(SystemError("socket")) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "/dev/log".utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            let error = SystemError("connect")
            close(descriptor)
            return .failure(error)
        }
        return .success(descriptor)
    }

    /// Sends one line, with facility daemon and severity info. Returns 0 or an `errno`.
    static func send(_ line: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var datagram = Array("<30>\(ProgramName.text)[\(getpid())]: ".utf8)
        datagram += line.prefix(8192 - datagram.count)
        return Glibc.send(descriptor, datagram, datagram.count, Int32(MSG_NOSIGNAL)) < 0 ? errno : 0
    }
}
