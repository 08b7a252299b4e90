import Glibc
public import HttpWare
import Synchronization

/// Reports errors about log lines: on standard error, and in the gateway's own log if that has another output.
///
/// Safe from any thread: a mutex guards the state.
public enum LogTrouble {
    private static let ownOutput = Mutex<LogOutput?>(nil)

    /// Remembers the output of the gateway's own log, so that errors about this output are not written to it.
    public static func setOwnOutput(_ output: LogOutput) { ownOutput.withLock { $0 = output } }

    /// Reports a problem with an output.
    static func tell(of output: LogOutput, _ message: String) {
        let own = ownOutput.withLock { $0 }
        if own != output { WareLog.shared.log(.error, message) }
        // Without a log of its own, the process has reported the error on standard error already.
        let isSaid = own.map { $0 == .stderr && output != .stderr } ?? true
        if !isSaid || !WareLog.shared.writes(.error) { writeToStandardError("error: \(message)\n") }
    }

    /// Writes one line, unless the reader of standard error is too slow: other logs must not wait for it.
    private static func writeToStandardError(_ line: String) {
        var poll = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard Glibc.poll(&poll, 1, 0) > 0 else { return }
        var line = line
        line.withUTF8 { bytes in _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, min(bytes.count, 4096)) }
    }
}
