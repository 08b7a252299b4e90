import CSystemShims
import Glibc
public import HttpWare
import Synchronization

/// A real `redis-server` for one test, on a Unix socket in its own folder, without data on disk. A node of a cluster, a replica
/// or a sentinel also has a free port of the loopback. When its last reference is released, it ends and its folder is removed.
/// Every call blocks for a moment. A mutex guards its process.
public final class TestRedis: Sendable {
    /// A program that a test needs is missing.
    public struct Missing: Error, CustomStringConvertible {
        public let description: String
    }

    /// The role of the server.
    private enum Role {
        case alone, replica(of: UInt16), node(bus: UInt16), sentinel
        /// The port speaks TLS, and `clients` are asked for a certificate if they have an authority.
        case secure(TlsIdentity, clients: TlsFile?)
    }

    private let folder: String
    private let role: Role
    private let process = Mutex<pid_t>(0)

    /// The password; `nil` for none.
    public let password: String?

    /// The path of its socket.
    public var path: String { "\(folder)/redis.sock" }

    /// The URL for a configuration.
    public var url: String { "unix:\(path)" }

    /// The port at 127.0.0.1; 0 if it has none.
    public let port: UInt16

    /// The port for connections of other nodes of a cluster; `nil` if it is not a node.
    public var busPort: UInt16? { if case .node(let bus) = role { bus } else { nil } }

    /// Starts the server, and waits until it listens.
    public convenience init(password: String? = nil) throws {
        try self.init(.alone, port: 0, password: password)
    }

    /// A server with a port, optionally a replica of another one.
    public convenience init(replicaOf master: TestRedis?, password: String? = nil) throws {
        try self.init(
            master.map { .replica(of: $0.port) } ?? .alone, port: TestRedis.freePort(), password: password)
    }

    /// A server whose port speaks TLS with this certificate. If `clients` is given, each client needs a certificate of that authority.
    public convenience init(tls identity: TlsIdentity, clients: TlsFile? = nil) throws {
        try self.init(.secure(identity, clients: clients), port: TestRedis.freePort(), password: nil)
    }

    /// A node of a cluster that has no slots and knows no other node yet.
    public static func node() throws -> TestRedis {
        try TestRedis(.node(bus: freePort()), port: freePort(), password: nil)
    }

    /// A sentinel that decides alone that the master is lost, when it has not answered for `patience` milliseconds.
    public static func sentinel(of master: TestRedis, named name: String, patience: Int) throws -> TestRedis {
        let password = master.password.map { "sentinel auth-pass \(name) \($0)\n" } ?? ""
        return try TestRedis(
            .sentinel, port: freePort(), password: nil,
            file: """
                sentinel monitor \(name) 127.0.0.1 \(master.port) 1
                sentinel down-after-milliseconds \(name) \(patience)
                sentinel failover-timeout \(name) 2000
                \(password)
                """)
    }

    private init(_ role: Role, port: UInt16, password: String?, file: String? = nil) throws {
        self.role = role
        self.port = port
        var template = Array("/tmp/httpware-redis-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Missing(description: "a folder cannot be created") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.password = password
        if let file { try write(Array(file.utf8), to: "redis.conf") }
        if case .secure(let identity, let clients) = role {
            try write(identity.chain.bytes, to: "server.pem")
            try write(identity.key.bytes, to: "server.key")
            try write((clients ?? identity.chain).bytes, to: "clients.pem")
        }
        try start()
    }

    private func write(_ bytes: [UInt8], to name: String) throws {
        guard let opened = fopen("\(folder)/\(name)", "we") else {
            throw Missing(description: "a file cannot be created")
        }
        fwrite(bytes, 1, bytes.count, opened)
        fclose(opened)
    }

    /// A port of the loopback that is free now. It is below the range from which connections get theirs: a connection could have it
    /// before the server listens.
    private static func freePort() throws -> UInt16 {
        for _ in 0..<1000 {
            let port = UInt16.random(in: 15_000..<32_768)
            guard let address = SocketAddress("127.0.0.1:\(port)"), let descriptor = try? Socket.listen(on: address)
            else { continue }
            Socket.close(descriptor)
            return port
        }
        throw Missing(description: "no port is free")
    }

    deinit {
        kill()
        for name in ["redis.sock", "dump.rdb", "redis.conf", "nodes.conf", "server.pem", "server.key", "clients.pem"] {
            unlink("\(folder)/\(name)")
        }
        rmdir(folder)
    }

    /// Starts the server again after it was killed, empty and at the same address.
    public func start() throws {
        var words = ["redis-server"]
        if case .sentinel = role { words += ["\(folder)/redis.conf", "--sentinel"] }
        if case .secure(_, let clients) = role {
            words += ["--tls-port", "\(port)", "--port", "0", "--save", "", "--appendonly", "no"]
            words += ["--tls-cert-file", "\(folder)/server.pem", "--tls-key-file", "\(folder)/server.key"]
            words += ["--tls-ca-cert-file", "\(folder)/clients.pem"]
            words += ["--tls-auth-clients", clients == nil ? "no" : "yes"]
        } else {
            words += ["--port", "\(port)"]
        }
        words += ["--bind", "127.0.0.1", "--unixsocket", path, "--dir", folder]
        switch role {
        case .sentinel, .secure: break
        case .alone: words += ["--save", "", "--appendonly", "no"]
        case .replica(let master):
            words += ["--save", "", "--appendonly", "no", "--replicaof", "127.0.0.1", "\(master)"]
        case .node(let bus):
            words += ["--save", "", "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-port", "\(bus)"]
            words += ["--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0"]
        }
        if let password { words += ["--requirepass", password, "--masterauth", password] }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Foundation's pipes are inherited: a reader that waits for the end of one would also wait for the end of this server.
        _ = csystem_spawn_close_from(&actions, 3)
        let arguments = words.map { strdup($0) }
        defer { for argument in arguments { free(argument) } }
        var started: pid_t = 0
        guard posix_spawnp(&started, "redis-server", &actions, nil, arguments + [nil], environ) == 0 else {
            throw Missing(description: "redis-server cannot be started; .ci/setup installs it")
        }
        process.withLock { $0 = started }
        do {
            try eventuallyBlocking {
                guard case .connected(let descriptor) = Socket.connect(to: .unix(path: path)) else { return false }
                Socket.close(descriptor)
                return true
            }
        } catch {
            throw Missing(description: "redis-server does not listen")
        }
    }

    /// Kills the server at once, without notice to its clients.
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

    /// Stops the server: connections and bytes are accepted, but nothing is answered.
    public func pause() { signal(SIGSTOP) }

    /// Continues after `pause`.
    public func resume() { signal(SIGCONT) }

    private func signal(_ number: Int32) {
        let process = process.withLock { $0 }
        if process > 0 { Glibc.kill(process, number) }
    }
}
