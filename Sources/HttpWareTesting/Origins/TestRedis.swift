import CSystemShims
import Glibc
import HttpWare
import Synchronization

/// A real `redis-server` for one test, on a Unix socket in its own folder, with nothing kept on disk. With its last
/// reference, it ends and its folder is removed. Every call blocks for a moment. Its process is guarded by a mutex.
public final class TestRedis: Sendable {
    /// A program that a test needs is missing.
    public struct Missing: Error, CustomStringConvertible {
        public let description: String
    }

    private let folder: String
    private let process = Mutex<pid_t>(0)

    /// What it wants to hear first; `nil` for nothing.
    public let password: String?

    /// Its socket.
    public var path: String { "\(folder)/redis.sock" }

    /// Its URL in a configuration.
    public var url: String { "unix:\(path)" }

    /// Starts it, and waits until it listens.
    public init(password: String? = nil) throws {
        var template = Array("/tmp/httpware-redis-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Missing(description: "a folder cannot be created") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.password = password
        try start()
    }

    deinit {
        kill()
        for name in ["redis.sock", "dump.rdb"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }

    /// Starts it again, empty, at the same place, after it was killed.
    public func start() throws {
        var words = [
            "redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder,
        ]
        if let password { words += ["--requirepass", password] }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Foundation's pipes are inherited: who reads one to its end would wait for the end of this server, too.
        _ = csystem_spawn_close_from(&actions, 3)
        let arguments = words.map { strdup($0) }
        defer { for argument in arguments { free(argument) } }
        var started: pid_t = 0
        guard posix_spawnp(&started, "redis-server", &actions, nil, arguments + [nil], environ) == 0 else {
            throw Missing(description: "redis-server cannot be started; .ci/setup installs it")
        }
        process.withLock { $0 = started }
        for _ in 0..<1000 {
            if case .connected(let descriptor) = Socket.connect(to: .unix(path: path)) {
                Socket.close(descriptor)
                return
            }
            usleep(10_000)
        }
        throw Missing(description: "redis-server does not listen")
    }

    /// Ends it at once, without notice to its clients.
    public func kill() {
        let process = process.withLock { process in
            defer { process = 0 }
            return process
        }
        guard process > 0 else { return }
        Glibc.kill(process, SIGKILL)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }

    /// Stops it: it accepts connections and bytes, and answers nothing.
    public func pause() { signal(SIGSTOP) }

    /// Lets it continue.
    public func resume() { signal(SIGCONT) }

    private func signal(_ number: Int32) {
        let process = process.withLock { $0 }
        if process > 0 { Glibc.kill(process, number) }
    }
}
