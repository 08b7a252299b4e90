public import HttpWare

/// A listener, checked: what it binds, whom it serves, and its routes with their chains.
public struct ListenerDefinition: Sendable {
    /// Which requests a listener takes.
    public enum Mode: String, OptionWord {
        /// A gateway: origin-form requests, routed to services.
        case reverse
        /// A forward proxy: absolute-form requests and CONNECT.
        case forward
    }

    /// What becomes of paths that origin servers read differently.
    public enum Paths: String, OptionWord {
        /// They go upstream as they came.
        case lenient
        /// They are refused with 400.
        case strict
    }

    /// What a client may ask of a listener. Each has a bound.
    public struct Limits: Sendable, Hashable {
        /// The largest head of a request; a larger one is 431.
        public var head = ByteCount.kibibytes(64)
        /// The most field lines of a head; more are 431.
        public var fieldLines = 100
        /// The longest request target; a longer one is 414.
        public var requestTarget = ByteCount.kibibytes(16)
        /// The most connections at a time, over all loops.
        public var connections = 65_536
        /// From the first byte of a head to its last; a slower one is 408.
        public var headTimeout = Duration.seconds(10)
        /// Between requests, and without progress inside one.
        public var idleTimeout = Duration.seconds(60)
        /// The least bytes of content in a period; `nil`: no least.
        public var bodyMinRate: Rate?
    }

    /// As metrics, traces, logs and errors call it.
    public let name: String
    /// Where its options begin.
    public let location: SourceLocation
    /// The address that it listens on.
    public internal(set) var bind = SocketAddress.loopback
    /// Which requests it takes.
    public internal(set) var mode = Mode.reverse
    /// The ports that a CONNECT may name.
    public internal(set) var connectPorts: [Int] = [443]
    /// Addresses that are not global are refused, after resolution. `SocketAddress.isPrivate`.
    public internal(set) var denyPrivate = true
    /// What becomes of paths that origin servers read differently; `nil` where the file does not say.
    public internal(set) var paths: Paths?
    /// They are refused: the file says so, or the path decides about access and the file does not say otherwise.
    public internal(set) var refusesAmbiguousPaths = false
    /// How it speaks TLS; `nil` without.
    public internal(set) var tls: ListenerTls?
    /// Whether clients may speak HTTP/2.
    public internal(set) var http2 = true
    /// Whose forwarding fields are believed.
    public internal(set) var trustedProxies: [IPNetwork] = []
    /// What a client may ask of it.
    public internal(set) var limits = Limits()
    /// The listener's own chain: all that runs where no route matches.
    public internal(set) var chain = WareChain.empty
    /// The routes that serve this listener, in file order; the first that matches wins.
    public internal(set) var routes: [ResolvedRoute] = []

    /// The files that it names, as they were when it was read.
    private(set) var files: [FileOfOptions] = []
    var chainName: Located<String>?
    var bindLocation: SourceLocation

    /// A name's entry under `listeners`.
    init(name: String, options: inout OptionsReader, files: ConfigurationFiles = .system) {
        self.name = name
        location = options.location
        bindLocation = options.location(of: "bind")
        options.read("bind", into: &bind)
        options.require("bind")
        options.read("mode", into: &mode)
        options.read("chain", into: &chainName)
        options.read("trustedProxies", into: &trustedProxies)
        options.read("paths", into: &paths)
        refusesAmbiguousPaths = paths == .strict
        options.read("forward") { options in
            var ports = connectPorts.map(PortNumber.init)
            options.read("connectPorts", into: &ports)
            connectPorts = ports.map(\.number)
            options.read("denyPrivate", into: &denyPrivate)
        }
        if mode == .reverse, options.isGiven("forward") {
            options.fail(at: "forward", "has no effect on a reverse listener; write mode: forward, or remove it")
        }
        options.read("limits") { limits.read(&$0) }
        let isSecure = options.isGiven("tls")
        options.read("http2", into: &http2)
        let http2 = self.http2
        options.read("tls") { tls = ListenerTls(options: &$0, isGiven: isSecure, http2: http2, files: files) }
        options.refuse("intercept", "proxyProtocol")
        // Clients of a forward proxy may ask for https origins, which are verified by what the system trusts.
        if mode == .forward, !options.isDescribing {
            options.noteFile(SystemTrust.shared.path, content: SystemTrust.shared.look())
        }
        self.files = options.files
    }
}

extension ListenerDefinition {
    /// Whether a socket of this listener can go on as the other's: the address is the same, and where that is any port, the name.
    public func isBound(like other: ListenerDefinition) -> Bool {
        bind == other.bind && (bind.port != 0 || name == other.name)
    }
}

extension ListenerDefinition.Limits {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        options.read("head", into: &head, in: .kibibytes(1) ... .mebibytes(1))
        options.read("fieldLines", into: &fieldLines, in: 1...10_000)
        options.read("requestTarget", into: &requestTarget, in: .bytes(256) ... .mebibytes(1))
        options.read("connections", into: &connections, in: 1...1_000_000)
        options.read("headTimeout", into: &headTimeout, in: .milliseconds(100) ... .seconds(3600))
        options.read("idleTimeout", into: &idleTimeout, in: .milliseconds(100) ... .seconds(86_400))
        options.read("bodyMinRate", into: &bodyMinRate)
        if !options.isGiven("requestTarget") { requestTarget = min(requestTarget, head) }
        if requestTarget > head {
            options.fail(
                at: "requestTarget", "\(requestTarget) is more than head, \(head); write at most that")
        }
    }
}

/// A TCP port that can be connected to.
private struct PortNumber: OptionValue {
    let number: Int

    static let optionType = "port"
    static var optionForm: OptionForm { .whole(1...65535) }
    var optionText: String { String(number) }

    init(_ number: Int) { self.number = number }

    init(optionText: String) throws(OptionMistake) {
        guard let number = try? Int(optionText: optionText), (1...65535).contains(number) else {
            throw OptionMistake("write a number from 1 to 65535")
        }
        self.number = number
    }
}
