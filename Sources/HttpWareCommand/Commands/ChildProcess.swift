import Glibc
import HttpWare

/// A child process that shares the terminal, input and output of this process. Signals are passed on to it.
///
/// It stays in this process's group, so that the terminal's signals (interrupt, stop) reach it directly. A signal to this process
/// alone is passed on.
struct ChildProcess {
    /// The signal mask of this process before its signals were blocked.
    struct Signals {
        let former: sigset_t

        /// Waits until a key is pressed on the terminal of standard input, if it is one, or a signal comes that would be passed on. `ready`
        /// is called when keys count; earlier ones are dropped.
        func waitForKeyOrSignal(takesKeys: Bool, _ ready: () -> Void) {
            var set = ChildProcess.waitedFor
            sigdelset(&set, SIGCHLD)
            var terminal = termios()
            guard takesKeys, tcgetattr(STDIN_FILENO, &terminal) == 0 else {
                ready()
                var info = siginfo_t()
                while sigwaitinfo(&set, &info) < 0, errno == EINTR {}
                return
            }
            let former = terminal
            // A program that was moved to the background meanwhile would be stopped by changing the terminal.
            var stopping = sigset_t()
            sigemptyset(&stopping)
            sigaddset(&stopping, SIGTTOU)
            pthread_sigmask(SIG_BLOCK, &stopping, nil)
            // One key, without Enter, and not shown.
            terminal.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &terminal)
            tcflush(STDIN_FILENO, TCIFLUSH)
            ready()
            defer {
                tcflush(STDIN_FILENO, TCIFLUSH)
                var former = former
                tcsetattr(STDIN_FILENO, TCSANOW, &former)
            }
            var key = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            while poll(&key, 1, ChildProcess.pause) <= 0 {
                var pending = sigset_t()
                sigpending(&pending)
                guard ChildProcess.passed.contains(where: { sigismember(&pending, $0) == 1 }) else { continue }
                var number: Int32 = 0
                sigwait(&set, &number)
                return
            }
        }
    }

    private let pid: pid_t

    /// The signals that are passed on.
    private static let passed = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]

    /// Milliseconds between two looks at pending signals.
    private static let pause: Int32 = 100

    private static var waitedFor: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in passed + [SIGCHLD] { sigaddset(&set, signal) }
        return set
    }

    /// Blocks signals until `wait()` takes them. Call it before other threads are made, because threads inherit the mask.
    static func takeSignals() -> Signals {
        var set = waitedFor
        var former = sigset_t()
        pthread_sigmask(SIG_BLOCK, &set, &former)
        return Signals(former: former)
    }

    /// A process that was started already.
    init(id: pid_t) { pid = id }

    /// Starts the command, found by `PATH`. Throws if it cannot be run.
    init(_ command: [String], environment: [String: String], _ signals: Signals) throws(SystemError) {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The loops ignore SIGPIPE, which the command must not inherit.
        var usual = sigset_t()
        sigemptyset(&usual)
        sigaddset(&usual, SIGPIPE)
        var former = signals.former
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setsigmask(&attributes, &former)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var started = pid_t()
        let code = posix_spawnp(&started, command[0], nil, &attributes, &arguments, &variables)
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        pid = started
    }

    /// Passes signals on until the command has ended. Returns its exit status, or 128 plus the number of the signal that ended
    /// it.
    func wait() -> Int32 {
        var set = ChildProcess.waitedFor
        while true {
            var status: Int32 = 0
            let ended = waitpid(pid, &status, WNOHANG)
            if ended == pid { return ProcessEnd(status).shellStatus }
            if ended < 0, errno != EINTR { return 127 }
            var info = siginfo_t()
            let signal = sigwaitinfo(&set, &info)
            // The terminal has sent its own signal to the command too.
            guard ChildProcess.passed.contains(signal), info.si_code != ChildProcess.fromKernel else { continue }
            kill(pid, signal)
        }
    }

    /// `SI_KERNEL`
    private static let fromKernel: Int32 = 0x80
}
