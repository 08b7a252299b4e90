import ArgumentParser
import Glibc
import HttpWare

/// A process of this machine that a command signals.
struct RunningProcess {
    private let pid: pid_t

    /// Throws for a number that is not that of one process.
    init(_ pid: Int32) throws {
        guard pid > 1 else { throw ValidationError("--pid is the number of one process, such as 4711") }
        self.pid = pid
    }

    /// Whether the process has not ended.
    var isThere: Bool { kill(pid, 0) == 0 || errno == EPERM }

    /// Sends a signal. If that fails, says so and ends the program with 3.
    func send(_ signal: Int32) throws {
        guard kill(pid, signal) != 0 else { return }
        Terminal.error("process \(pid) cannot be signalled: \(SystemError.text(of: errno))")
        throw ExitCode(3)
    }
}
