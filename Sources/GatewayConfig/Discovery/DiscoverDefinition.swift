public import HttpWare

/// Where services are looked for that no file names: the containers of an engine, or a folder of small files.
public struct DiscoverDefinition: Sendable, Equatable {
    /// A container engine that speaks Docker's API, such as Docker or Podman.
    public struct Docker: Sendable, Equatable {
        /// The engine's address: a Unix socket, or `host:port` for TCP.
        public internal(set) var socket = EngineAddress.usual
        /// The network by which containers are reached; `nil` takes the only one that a container has.
        public internal(set) var network: String?
        /// Whether containers without a label of ours are ignored.
        public internal(set) var onlyLabelled = true
        /// The TLS client for an engine on TCP; `nil` without TLS.
        public internal(set) var tls: EngineTls?

        /// The settings for the engine at that address.
        public init(socket: EngineAddress = .usual, network: String? = nil, onlyLabelled: Bool = true) {
            self.socket = socket
            self.network = network
            self.onlyLabelled = onlyLabelled
        }
    }

    /// The settings for a container engine; `nil` if none is asked.
    public internal(set) var docker: Docker?
    /// The folder of service files; `nil` if there is none.
    public internal(set) var folder: FilePath?
    /// The chains that a label may name.
    public internal(set) var chains: [Located<String>] = []
    /// The listeners that serve the found routes; empty for all.
    public internal(set) var listeners: [Located<String>] = []
    /// How long a service without a running container is remembered, and its requests are answered with 503.
    public internal(set) var keep = Duration.seconds(60)
    /// The place of the options.
    public let location: SourceLocation

    /// Makes a definition that is not from a file.
    public init(docker: Docker? = nil, folder: FilePath? = nil) {
        self.docker = docker
        self.folder = folder
        location = .code
    }

    /// Reads `discover`.
    init(options: inout OptionsReader, files: ConfigurationFiles = .system) {
        location = options.location
        options.recognize(["podman": "docker", "file": "folder", "directory": "folder", "providers": "docker"])
        var docker = Docker()
        options.read("docker", doc: "services from the labels of containers, by Docker's API; Podman has the same") {
            docker.read(&$0, files)
            if $0.isWritten { self.docker = docker }
        }
        options.read(
            "folder", into: &folder, doc: "folder of service files, one YAML file for each service; it is watched")
        options.read(
            "chains", into: &chains,
            doc: "chains of the configuration that a label may name; a container gets what they send, such as tokens")
        options.read(
            "listeners", into: &listeners, doc: "listeners that serve the found routes; without it, all of them")
        options.read(
            "keep", into: &keep, in: .zero ... .seconds(86_400),
            doc: "how long a service without a running container is remembered, and answered with 503")
        options.require(anyOf: ["docker", "folder"])
    }

    /// Whether both look in the same places.
    public static func == (one: Self, other: Self) -> Bool {
        one.docker == other.docker && one.folder == other.folder && one.keep == other.keep
            && one.chains.map(\.value) == other.chains.map(\.value)
            && one.listeners.map(\.value) == other.listeners.map(\.value)
    }
}

extension DiscoverDefinition.Docker {
    fileprivate mutating func read(_ options: inout OptionsReader, _ files: ConfigurationFiles) {
        options.recognize(["endpoint": "socket", "host": "socket", "exposedbydefault": "onlyLabelled"])
        options.read(
            "socket", into: &socket, doc: "address of the engine: unix:/path, or tcp:host:port, with tls: {…} for TLS")
        options.read(
            "network", into: &network,
            doc: "network by which containers are reached; without it, the only one that a container has")
        options.read(
            "onlyLabelled", into: &onlyLabelled,
            doc: "whether containers without a label that begins with httpware. are ignored")
        options.read("tls", doc: "TLS for an engine on TCP") { options in
            let (client, serverName) = TlsFiles(files).readClient(
                &options, of: "engine", serverName: "the host of socket")
            guard options.isWritten, !options.isDescribing, !options.hasErrors else { return }
            if case .unix = socket {
                return options.fail("has no effect on a Unix socket; write socket: tcp:host:port")
            }
            do throws(TlsFault) {
                tls = EngineTls(context: try TlsContext(client: client), serverName: serverName, files: options.files)
            } catch {
                options.fail(error.reason)
            }
        }
    }
}

/// The TLS client for a container engine. Two are equal if they were made from the same files.
public struct EngineTls: Sendable, Equatable {
    /// The client's certificate and the authorities that it trusts.
    public let context: TlsContext
    /// The name that the engine's certificate must have; `nil` for the host of its address.
    public let serverName: String?
    let files: [FileOfOptions]

    public static func == (one: Self, other: Self) -> Bool {
        one.serverName == other.serverName && one.files == other.files
    }
}

/// The address of a container engine: `unix:/path`, or `tcp:host:port`, also as `unix:///path` and `tcp://host:port`.
public enum EngineAddress: OptionValue, Hashable {
    case unix(path: String)
    case tcp(host: String, port: UInt16)

    /// The address that engines have if nothing else is said.
    public static let usual = EngineAddress.unix(path: "/var/run/docker.sock")

    public static let optionType = "address of a container engine"
    public static var optionForm: OptionForm { .pattern("(unix:|tcp:).+") }

    public var optionText: String {
        switch self {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): "tcp:\(host):\(port)"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        let hint = OptionMistake("write unix:/var/run/docker.sock, or tcp:host:2376")
        if optionText.hasPrefix("unix:") {
            var path = optionText.dropFirst("unix:".count)
            if path.hasPrefix("//") { path = path.dropFirst(2) }
            guard case .unix(let path)? = SocketAddress("unix:\(path)"), path.hasPrefix("/") else { throw hint }
            self = .unix(path: path)
            return
        }
        guard optionText.hasPrefix("tcp:") else { throw hint }
        var rest = optionText.dropFirst("tcp:".count)
        if rest.hasPrefix("//") { rest = rest.dropFirst(2) }
        guard let authority = Authority(String(rest)), let port = authority.port, port > 0 else { throw hint }
        self = .tcp(host: authority.host, port: port)
    }
}
