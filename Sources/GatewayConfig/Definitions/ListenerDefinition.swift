public import HttpWare

/// A checked listener: its address, its limits, and its routes with their chains.
public struct ListenerDefinition: Sendable {
    /// The requests that a listener accepts.
    public enum Mode: String, OptionWord {
        /// A gateway: origin-form requests, routed to services.
        case reverse
        /// A forward proxy: absolute-form requests and CONNECT.
        case forward
    }

    /// The handling of paths that origin servers read differently.
    public enum Paths: String, OptionWord {
        /// The requests go upstream as received.
        case lenient
        /// The requests are refused with 400.
        case strict
    }

    /// The limits for clients of a listener.
    public struct Limits: Sendable, Hashable {
        /// The maximum size of a request's head; a larger one is answered 431.
        public var head = ByteCount.kibibytes(64)
        /// The maximum number of field lines of a head; more are answered 431.
        public var fieldLines = 100
        /// The maximum length of a request target; a longer one is answered 414.
        public var requestTarget = ByteCount.kibibytes(16)
        /// The maximum number of connections at a time, over all loops.
        public var connections = 65_536
        /// The time limit from the first byte of a head to its last; a slower head is answered 408.
        public var headTimeout = Duration.seconds(10)
        /// The time limit between requests, and for a request without progress.
        public var idleTimeout = Duration.seconds(60)
        /// The minimum number of content bytes in a period; `nil` for no minimum.
        public var bodyMinRate: Rate?
    }

    /// The name in metrics, traces, logs and errors.
    public let name: String
    /// The place of the options.
    public let location: SourceLocation
    /// The address that the listener listens on.
    public internal(set) var bind = SocketAddress.loopback
    /// The requests that the listener accepts.
    public internal(set) var mode = Mode.reverse
    /// The ports that a CONNECT can name.
    public internal(set) var connectPorts: [Int] = [443]
    /// Whether addresses that are not global are refused, after resolution. See `SocketAddress.isPrivate`.
    public internal(set) var denyPrivate = true
    /// Whether the metadata addresses of clouds are refused, after resolution, although private addresses are allowed. No option
    /// sets this.
    public internal(set) var deniesMetadata = false
    /// The proxy through which origin servers are reached; `nil` for none.
    public internal(set) var upstreamProxy: UpstreamProxy?
    /// The handling of paths that origin servers read differently; `nil` if the file does not say.
    public internal(set) var paths: Paths?
    /// Whether such paths are refused: because the file says so, or because access depends on the path and the file says
    /// nothing.
    public internal(set) var refusesAmbiguousPaths = false
    /// The reason for that: the subject that the path decides about, if that alone makes such paths refused.
    public internal(set) var ambiguityReason: String?
    /// The TLS settings; `nil` without TLS.
    public internal(set) var tls: ListenerTls?
    /// The interception of tunnels; `nil` for no interception.
    public internal(set) var intercept: ListenerIntercept?
    /// The settings for programs behind a wall; `nil` if the file names none.
    public internal(set) var jail: ListenerJail?
    /// Whether the port also speaks SOCKS5.
    public internal(set) var socks = false
    /// Whether clients may use HTTP/2.
    public internal(set) var http2 = true
    /// The peers whose forwarding fields are trusted.
    public internal(set) var trustedProxies: [IPNetwork] = []
    /// The proxies that state their clients' addresses by the PROXY protocol.
    public internal(set) var proxyHeaderPeers: [IPNetwork] = []
    /// The limits for clients.
    public internal(set) var limits = Limits()
    /// Whether clients may be programs that have placeholders instead of tokens.
    public internal(set) var hasPlaceholders = false
    /// The listener's own chain, which runs alone if no route matches.
    public internal(set) var chain = WareChain.empty
    /// The routes that serve this listener, in file order; the first matching route is used.
    public internal(set) var routes: [ResolvedRoute] = []

    /// The files that the options name, with their content when they were read.
    private(set) var files: [FileOfOptions] = []
    var chainName: Located<String>?
    var bindLocation: SourceLocation
    private(set) var socksLocation = SourceLocation.code

    /// Reads an entry under `listeners`.
    init(name: String, options: inout OptionsReader, files: ConfigurationFiles = .system) {
        self.name = name
        location = options.location
        bindLocation = options.location(of: "bind")
        options.recognize(["address": "bind", "listen": "bind", "port": "bind", "ssl": "tls", "http": "http2"])
        options.read("bind", into: &bind, doc: "the address, such as 127.0.0.1:8080, or unix:/run/http.sock")
        options.require("bind")
        options.read(
            "mode", into: &mode, doc: "reverse for a gateway, forward for a proxy that clients are told to use")
        options.read("chain", into: &chainName, doc: "the wares for all its requests, before those of the route")
        options.read(
            "trustedProxies", into: &trustedProxies, doc: "the proxies in front whose X-Forwarded-For is believed")
        options.read(
            "paths", into: &paths, doc: "the handling of paths that servers read differently, such as //a and /a%2Fb")
        refusesAmbiguousPaths = paths == .strict
        options.read("forward", doc: "the addresses that a forward proxy may reach") { options in
            var ports = connectPorts.map(PortNumber.init)
            options.read("connectPorts", into: &ports, doc: "the ports to which tunnels may lead")
            connectPorts = ports.map(\.number)
            options.read(
                "denyPrivate", into: &denyPrivate, doc: "refuses addresses of private networks and of this machine")
            options.read("upstreamProxy", doc: "another proxy through which everything goes") {
                upstreamProxy = UpstreamProxy(options: &$0, files: files, of: bind)
            }
        }
        options.read("limits", doc: "the largest requests and the longest waits") { limits.read(&$0) }
        options.read("http2", into: &http2, doc: "whether HTTP/2 is spoken")
        let http2 = self.http2
        options.read(
            "tls", orWord: "internal",
            doc: "certificates: from files, from Let's Encrypt (acme), or internal for local names"
        ) {
            tls = ListenerTls(options: &$0, http2: http2, bind: bind, files: files)
        }
        options.read("intercept", doc: "reads TLS in tunnels, by certificates of the program's own authority") {
            intercept = ListenerIntercept(options: &$0, http2: http2)
        }
        options.read("jail", doc: "a wall around the programs that with starts: they reach nothing but this listener") {
            jail = ListenerJail(options: &$0)
        }
        options.only("forward", "intercept", "jail", with: "mode", mode, is: .forward)
        options.only("jail", with: "intercept")
        options.read("socks", into: &socks, doc: "whether SOCKS5 is spoken, too")
        if socks { options.only("socks", with: "mode", mode, is: .forward) }
        socksLocation = options.location(of: "socks")
        options.read("proxyProtocol", doc: "takes the address of the client from a proxy in front") { options in
            options.read("from", into: &proxyHeaderPeers, doc: "the addresses of these proxies")
            options.require("from")
            options.refuseEmpty("from", "write the addresses or networks of the proxies in front")
            if proxyHeaderPeers.contains(where: { $0.prefixLength == 0 }) {
                options.warn(
                    at: "from",
                    "every client can say that it is another; write the addresses or networks of the proxies in front")
            }
        }
        // Clients of a forward proxy may ask for https origins, whose certificates are verified with the system's root
        // certificates.
        if mode == .forward, !options.isDescribing {
            options.noteFile(SystemTrust.shared.path, content: SystemTrust.shared.look())
        }
        self.files = options.files
    }
}

extension ListenerDefinition {
    /// The same listener for a program behind a wall.
    public func jailing(by jail: ListenerJail) -> ListenerDefinition {
        var copy = self
        copy.jail = jail
        return copy
    }

    /// Whether a socket of this listener can be used by the other: the address is the same, and for port 0 also the
    /// name.
    public func isBound(like other: ListenerDefinition) -> Bool {
        bind == other.bind && (bind.port != 0 || name == other.name)
    }
}

extension ListenerDefinition.Limits {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        options.read("head", into: &head, in: .kibibytes(1) ... .mebibytes(1), doc: "the largest head of a request")
        options.read("fieldLines", into: &fieldLines, in: 1...10_000, doc: "the most fields of a request")
        options.read(
            "requestTarget", into: &requestTarget, in: .bytes(256) ... .mebibytes(1), doc: "the longest request target")
        options.read("connections", into: &connections, in: 1...1_000_000, doc: "the most connections at once")
        options.read(
            "headTimeout", into: &headTimeout, in: .milliseconds(100) ... .seconds(3600),
            doc: "how long a head may take")
        options.read(
            "idleTimeout", into: &idleTimeout, in: .milliseconds(100) ... .seconds(86_400),
            doc: "how long a connection may wait for its next request")
        options.read("bodyMinRate", into: &bodyMinRate, doc: "the slowest content, in bytes a second")
        if !options.isGiven("requestTarget") { requestTarget = min(requestTarget, head) }
        if requestTarget > head {
            options.fail(
                at: "requestTarget", "\(requestTarget) is more than head, \(head); write at most that")
        }
    }
}

/// A TCP port to connect to.
struct PortNumber: OptionValue {
    let number: Int

    static let optionType = "port"
    static var optionForm: OptionForm { .whole(1...65535) }
    var optionText: String { String(number) }

    init(_ number: Int) { self.number = number }

    init(optionText: String) throws(OptionMistake) {
        guard let number = try? Int(optionText: optionText), (1...65535).contains(number) else {
            let isRange = PortText.mistake(in: ":\(optionText)") != nil && optionText.contains("-")
            throw isRange
                ? OptionMistake("write each port", problem: "\(optionText) is a range of ports")
                : OptionMistake("write a number from 1 to 65535")
        }
        self.number = number
    }
}
