import CSystemShims
import Glibc
import HttpWare

/// A run of a system tool. It has no standard input, so that it cannot ask questions.
enum ToolRun {
    /// The exit status and the output of a tool.
    struct Result {
        /// Its exit status, or 128 plus the number of the signal that ended it.
        let status: Int32
        let output: String
        let errors: String

        /// The first line that it wrote, for people; standard error comes first.
        var reason: String {
            let lines = (errors + "\n" + output).split(whereSeparator: \.isNewline)
            return lines.first { !$0.allSatisfy(\.isWhitespace) }.map(String.init) ?? "exit status \(status)"
        }
    }

    /// Runs a tool to its end; `nil` if it cannot be started. Without `environment` it has that of this process.
    static func run(_ command: [String], environment: [String: String]? = nil) -> Result? {
        guard let output = OutputPipe(), let errors = OutputPipe() else { return nil }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writing, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.writing, STDERR_FILENO)
        var arguments = command.map { strdup($0) } + [nil]
        var variables = (environment ?? [:]).map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var pid = pid_t()
        let code =
            environment == nil
            ? posix_spawn(&pid, command[0], &actions, nil, &arguments, environ)
            : posix_spawn(&pid, command[0], &actions, nil, &arguments, &variables)
        guard code == 0 else { return nil }
        OutputPipe.read(output, errors)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return Result(status: ProcessEnd(status).shellStatus, output: output.text, errors: errors.text)
    }

    /// The output of a tool that succeeds.
    static func output(_ command: [String], environment: [String: String]? = nil) -> String? {
        run(command, environment: environment).flatMap { $0.status == 0 ? $0.output : nil }
    }
}

/// A pipe that a tool writes into. Both ends are closed with it.
private final class OutputPipe {
    private let reading: Int32
    private(set) var writing: Int32
    private var bytes: [UInt8] = []

    init?() {
        var ends: [Int32] = [-1, -1]
        guard csystem_blocking_pipe(&ends) == 0 else { return nil }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        if writing >= 0 { close(writing) }
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Reads both to their ends at the same time, because a tool waits when one of them is full.
    static func read(_ pipes: OutputPipe...) {
        for pipe in pipes {
            close(pipe.writing)
            pipe.writing = -1
        }
        var open = pipes
        while !open.isEmpty {
            var watched = open.map { pollfd(fd: $0.reading, events: Int16(POLLIN), revents: 0) }
            guard poll(&watched, nfds_t(watched.count), -1) >= 0 || errno == EINTR else { return }
            let ready = Set(watched.filter { $0.revents != 0 }.map(\.fd))
            open.removeAll { ready.contains($0.reading) && !$0.readsMore() }
        }
    }

    /// Reads what is there; `false` at the end.
    private func readsMore() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            let count = Glibc.read(reading, buffer.baseAddress, buffer.count)
            if count > 0 { bytes += buffer[..<count] }
            return count > 0 || count < 0 && errno == EINTR
        }
    }
}
