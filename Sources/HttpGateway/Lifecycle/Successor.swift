import Glibc
import HttpWare

/// A new process of the same command that is going to replace this one. It has the listening sockets and reports when it serves;
/// until then nothing changes here. So no connection is refused, and no waiting connection is lost. Used on the control loop
/// only.
final class Successor: SocketEventHandler, LoopTimerHandler {
    /// The variable that lists the sockets for the process: see `Inheritance`.
    static let variable = "HTTPWARE_HANDOVER"
    /// The byte that the new process sends when it serves.
    static let ready = UInt8(ascii: "r")

    /// The id of the process.
    let pid: pid_t
    private let socket: SocketEvents
    private let timer: LoopTimer
    /// Called once: with `nil` when the process serves, or with the reason why it never will. In the latter case it has ended.
    private var told: ((_ failure: String?) -> Void)?

    /// The maximum time until it serves.
    static let patience = Duration.seconds(60)

    /// Starts the process. Throws if that fails.
    init(
        of inheritance: Inheritance, sockets: [InheritedSocket], loop: EventLoop,
        told: @escaping (_ failure: String?) -> Void
    ) throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError("socketpair") }
        defer { Socket.close(ends[1]) }
        let list = sockets.map { "\($0.descriptor)\($0.isManagers ? "!" : "=")\($0.name)" }
        var environment = inheritance.environment
        environment[Successor.variable] = (["\(getpid())", "\(ends[1])"] + list).joined(separator: " ")
        if let manager = inheritance.manager {
            environment["NOTIFY_SOCKET"] = manager.socket
            environment["WATCHDOG_USEC"] = manager.watchdog.map { "\($0 / .microseconds(1))" }
        }
        do throws(SystemError) {
            pid = try Successor.start(
                inheritance.command, environment, keeping: sockets.map(\.descriptor) + [ends[1]])
        } catch {
            Socket.close(ends[0])
            throw error
        }
        // Written first, so that the new process finds it when it starts.
        ProcessSecret.bytes.withUnsafeBytes { _ = Socket.write(ends[0], $0) }
        self.told = told
        socket = SocketEvents(loop: loop, descriptor: ends[0])
        timer = LoopTimer(loop: loop)
        socket.handler = self
        timer.handler = self
        socket.enableReading()
        timer.set(after: Successor.patience)
    }

    /// Starts the program, which is looked up in `PATH` as by a shell. All other descriptors are closed on exec.
    private static func start(
        _ command: [String], _ environment: [String: String], keeping descriptors: [Int32]
    ) throws(SystemError) -> pid_t {
        guard let program = command.first else { throw SystemError("posix_spawn", code: ENOENT) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Duplicated onto itself, so that it keeps its number and is not closed on exec.
        for descriptor in descriptors { posix_spawn_file_actions_adddup2(&actions, descriptor, descriptor) }
        var texts = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in texts + variables { free(text) } }
        var process = pid_t()
        let code = posix_spawnp(&process, program, &actions, nil, &texts, &variables)
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        return process
    }

    func socketReadable() {
        var byte: UInt8 = 0
        let result = withUnsafeMutableBytes(of: &byte) { Socket.read(socket.descriptor, into: $0) }
        switch result {
        case .wouldBlock: return
        case .bytes where byte == Successor.ready: end(nil)
        case .bytes, .end, .failed: fail { "the new process ended with \($0)" }
        }
    }

    func socketWritable() {}

    func timerFired(_ timer: LoopTimer) { fail { _ in "the new process was not ready within \(Successor.patience)" } }

    /// Ends the new process because this process ends, too. Reports nothing.
    func giveUp() {
        told = nil
        fail { $0 }
    }

    /// Ends the process, and reports why it failed. A process that is ending already keeps its exit status.
    private func fail(_ reason: (_ status: String) -> String) {
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        // The equivalent of WIFEXITED, WEXITSTATUS and WTERMSIG.
        end(reason(status & 0x7f == 0 ? "status \(status >> 8 & 0xff)" : "signal \(status & 0x7f)"))
    }

    private func end(_ failure: String?) {
        timer.cancel()
        socket.close()
        told.take()?(failure)
    }
}
