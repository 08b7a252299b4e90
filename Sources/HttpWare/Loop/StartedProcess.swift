import CSystemShims
import Glibc
import Synchronization

/// A program to start, and its surroundings.
package struct ProcessLaunch: Sendable {
    /// The program, looked up in `PATH` as by a shell, and its arguments.
    package var command: [String]
    /// Variables to set besides those of this process.
    package var variables: [String: String] = [:]
    /// The working directory; `nil` for that of this process.
    package var folder: String?
    /// A socket that the program gets as descriptor 3; `nil` for none.
    package var socket: Int32?

    package init(_ command: [String]) { self.command = command }

    /// Variables that tell this process about sockets and a service manager, which are not the program's.
    private static let own = [
        "HTTPWARE_HANDOVER", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
        "LISTEN_FDNAMES",
    ]

    /// The whole environment of the program.
    fileprivate var environment: [String] {
        var lines: [String] = []
        var at = environ
        while let line = at.pointee {
            let text = String(cString: line)
            let name = String(text.prefix { $0 != "=" })
            if !ProcessLaunch.own.contains(name), variables[name] == nil { lines.append(text) }
            at += 1
        }
        return lines + variables.map { "\($0.key)=\($0.value)" }
    }
}

/// How a program has ended.
package enum ProcessEnd: Sendable, Equatable, CustomStringConvertible {
    case exited(Int32)
    case killed(signal: Int32)

    /// Reads the status that `waitpid` gives.
    package init(_ status: Int32) {
        // The same as WIFEXITED, WEXITSTATUS and WTERMSIG.
        self = status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .killed(signal: status & 0x7f)
    }

    /// As a shell says it: the exit status, or 128 plus the number of the signal.
    package var shellStatus: Int32 {
        switch self {
        case .exited(let status): status
        case .killed(let signal): 128 + signal
        }
    }

    package var description: String {
        switch self {
        case .exited(let status): "status \(status)"
        case .killed(let signal): "signal \(signal)"
        }
    }
}

/// A program that this process has started: a loop passes its output on, and reports its end.
///
/// Its input is a pipe that ends with this process. It leads a process group, so that the signals of a terminal do not reach it, and signals
/// from here reach the processes that it has started. Groups that are left when this process exits are killed.
///
/// It keeps itself alive until the end was reported. Used on the loop's thread only.
package final class StartedProcess {
    /// The id of the process and of its group.
    package let id: Int32

    private let loop: EventLoop
    private let input: Int32
    private let output: SocketEvents
    private var end: SocketEvents?
    private var timer: LoopTimer?
    private var watchers: [Watcher] = []
    private var tell: ((ProcessEnd) -> Void)?
    private let read: (UnsafeRawBufferPointer) -> Void

    /// Calls a closure for the events of a descriptor or a timer.
    private final class Watcher: SocketEventHandler, LoopTimerHandler {
        private let call: () -> Void

        init(_ call: @escaping () -> Void) { self.call = call }

        func socketReadable() { call() }
        func socketWritable() {}
        func timerFired(_ timer: LoopTimer) { call() }
    }

    /// Starts a program. Throws if that fails, such as because the program does not exist.
    ///
    /// - Parameters:
    ///   - read: Gets the bytes of its standard output and standard error.
    ///   - ended: Called once, after the last bytes.
    package init(
        _ launch: ProcessLaunch, on loop: EventLoop, read: @escaping (UnsafeRawBufferPointer) -> Void,
        ended: @escaping (ProcessEnd) -> Void
    ) throws(SystemError) {
        let given = try Ends()
        let taken: Ends
        do throws(SystemError) {
            taken = try Ends()
        } catch {
            given.close()
            throw error
        }
        defer {
            Socket.close(given.reading)
            Socket.close(taken.writing)
        }
        do throws(SystemError) {
            id = try StartedProcess.start(launch, input: given.reading, output: taken.writing)
        } catch {
            Socket.close(given.writing)
            Socket.close(taken.reading)
            throw error
        }
        RunningGroups.add(id)
        self.loop = loop
        self.read = read
        tell = ended
        input = given.writing
        _ = fcntl(taken.reading, F_SETFL, O_NONBLOCK)
        output = SocketEvents(loop: loop, descriptor: taken.reading)
        watch()
    }

    deinit { Socket.close(input) }

    /// Both ends of a pipe, closed in every program that is started meanwhile.
    private struct Ends {
        let reading: Int32
        let writing: Int32

        init() throws(SystemError) {
            var ends: [Int32] = [-1, -1]
            guard csystem_blocking_pipe(&ends) == 0 else { throw SystemError("pipe") }
            (reading, writing) = (ends[0], ends[1])
        }

        func close() {
            Socket.close(reading)
            Socket.close(writing)
        }
    }

    private static func start(
        _ launch: ProcessLaunch, input: Int32, output: Int32
    ) throws(SystemError) -> pid_t {
        guard let program = launch.command.first else { throw SystemError("posix_spawn", code: ENOENT) }
        // Copies above the numbers that the program gets, because each is made by overwriting what has that number.
        var copies: [Int32] = []
        defer { for copy in copies { Socket.close(copy) } }
        for descriptor in [input, output, output] + (launch.socket.map { [$0] } ?? []) {
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 16)
            guard copy >= 0 else { throw SystemError("dup") }
            copies.append(copy)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, copy) in copies.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy, Int32(number))
        }
        _ = csystem_spawn_close_from(&actions, Int32(copies.count))
        if let folder = launch.folder { _ = csystem_spawn_change_folder(&actions, folder) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var set = sigset_t()
        sigemptyset(&set)
        posix_spawnattr_setsigmask(&attributes, &set)
        // The loops ignore SIGPIPE, which the program must not inherit.
        for signal in [SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2] { sigaddset(&set, signal) }
        posix_spawnattr_setsigdefault(&attributes, &set)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var texts = launch.command.map { strdup($0) } + [nil]
        var variables = launch.environment.map { strdup($0) } + [nil]
        defer { for text in texts + variables { free(text) } }
        var process = pid_t()
        let code = posix_spawnp(&process, program, &actions, &attributes, &texts, &variables)
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        return process
    }

    // MARK: Watching

    private func watch() {
        let reader = Watcher { [unowned self] in readOutput() }
        // The end is what keeps this object.
        let waiter = Watcher { [self] in checkEnd() }
        watchers = [reader, waiter]
        output.handler = reader
        output.enableReading()
        let descriptor = csystem_process_descriptor(id)
        if descriptor >= 0 {
            let end = SocketEvents(loop: loop, descriptor: descriptor, handler: waiter)
            if end.enableReading() {
                self.end = end
                return
            }
        }
        // The system has no descriptors for processes.
        let timer = LoopTimer(loop: loop, handler: waiter)
        self.timer = timer
        timer.set(after: StartedProcess.look)
    }

    private static let look = Duration.milliseconds(50)
    /// The most output that is read before other work of the loop.
    private static let mostReads = 16

    private func readOutput() {
        for _ in 0..<StartedProcess.mostReads {
            let count = Glibc.read(output.descriptor, loop.readBuffer.baseAddress, loop.readBuffer.count)
            if count > 0 {
                read(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
            } else if count == 0 || errno != EAGAIN && errno != EINTR {
                return output.close()
            } else if errno == EAGAIN {
                return
            }
        }
    }

    /// Reports the end if the process has ended. Returns whether it has.
    @discardableResult
    package func checkEnd() -> Bool {
        guard tell != nil else { return true }
        var status: Int32 = 0
        let ended = waitpid(id, &status, WNOHANG)
        guard ended == id || ended < 0 && errno == ECHILD else {
            timer?.set(after: StartedProcess.look)
            return false
        }
        // Processes of the group that are left would hold the listening socket.
        kill(-id, SIGKILL)
        RunningGroups.remove(id)
        end?.close()
        timer?.cancel()
        if output.descriptor >= 0 { readOutput() }
        output.close()
        let tell = self.tell.take()
        withExtendedLifetime(self) {
            watchers = []
            tell?(ProcessEnd(status))
        }
        return true
    }

    /// Sends a signal to the process and its group, unless it has ended.
    package func signal(_ number: Int32) {
        if tell != nil { kill(-id, number) }
    }
}

/// The groups of the programs that run.
private enum RunningGroups {
    private static let all = Mutex<Set<pid_t>>([])
    private static let atExit: Void = {
        atexit { RunningGroups.killAll() }
        return ()
    }()

    static func add(_ group: pid_t) {
        _ = atExit
        all.withLock { _ = $0.insert(group) }
    }

    static func remove(_ group: pid_t) { all.withLock { _ = $0.remove(group) } }

    private static func killAll() { all.withLock { for group in $0 { kill(-group, SIGKILL) } } }
}
