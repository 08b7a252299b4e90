public import HttpWare

/// The checked settings of a forward listener for the tunnels that it reads.
public struct ListenerIntercept: Sendable {
    /// The handling of a tunnel whose bytes are neither TLS nor HTTP.
    public enum Opaque: String, OptionWord {
        /// The tunnel passes without being read.
        case tunnel
        /// The tunnel is closed.
        case refuse
    }

    /// The hosts whose tunnels are read.
    public let hosts: HostList
    /// The hosts whose tunnels pass unread, even if `hosts` lists them.
    public let except: HostList
    /// The hosts whose tunnels may pass unread even for programs that have placeholders instead of tokens.
    public let allowOpaque: HostList
    /// The authority that signs the certificates.
    public let authority: CertificateAuthority
    /// How long tunnels to a host pass unread after a client refused the certificate; zero for never.
    public let passPinned: Duration
    /// The handling of bytes that are neither TLS nor HTTP.
    public let opaque: Opaque
    /// The TLS context for clients inside a tunnel.
    public let context: TlsContext
    /// The place of the options.
    public let location: SourceLocation

    /// Reads `listeners.NAME.intercept`; `nil` if it is missing or invalid.
    init?(options: inout OptionsReader, http2: Bool) {
        location = options.location
        var hosts: [AnyHost] = []
        var except: [AnyHost] = []
        var allowOpaque: [AnyHost] = []
        var path: String?
        var passPinned = Duration.seconds(600)
        var opaque = Opaque.tunnel
        var protocols = [AlpnName(.h2), AlpnName(.http11)]
        options.read("hosts", into: &hosts, doc: "the hosts whose tunnels are read; \"*\" is all of them")
        options.read("except", into: &except, doc: "the hosts whose tunnels pass unread, even if hosts lists them")
        options.read(
            "ca", into: &path,
            doc:
                "folder of the certificate authority that \(ProgramName.text) ca init makes; httpware/ca in $XDG_DATA_HOME or ~/.local/share"
        )
        options.read(
            "passPinned", into: &passPinned, in: .zero ... .seconds(86_400),
            doc:
                "how long a host passes unread for a client that refused its certificate twice within a minute; 0s: never"
        )
        options.read("opaque", into: &opaque, doc: "the handling of what is neither TLS nor HTTP inside a tunnel")
        options.read(
            "allowOpaque", into: &allowOpaque,
            doc: "the hosts whose tunnels may pass unread even where programs have placeholders in place of tokens")
        options.read("alpn", into: &protocols, doc: "the protocols for clients inside a tunnel, in order of preference")
        options.require("hosts")
        options.refuseEmpty("hosts", "write the hosts, or \"*\" for all")
        options.refuseEmpty("alpn", "write h2 or http/1.1, or remove it")
        guard options.isWritten else { return nil }
        if !http2 { protocols.removeAll { $0.name == .h2 } }
        guard !options.hasErrors else { return nil }
        self.hosts = hosts.list
        self.except = except.list
        self.allowOpaque = allowOpaque.list
        self.passPinned = passPinned
        self.opaque = opaque
        guard let authority = CertificateAuthority.read(&options, at: path) else { return nil }
        self.authority = authority
        do throws(TlsFault) {
            context = try TlsContext(interceptingFor: authority, protocols: protocols.map(\.name))
        } catch {
            options.fail(at: path == nil ? nil : "ca", error.reason)
            return nil
        }
    }
}

extension ConfigError {
    static let noAuthority = "there is no certificate authority in "

    /// True if the user's usual certificate authority is missing: `intercept` is written without `ca`.
    public var isAboutMissingAuthority: Bool {
        keyPath.hasSuffix("intercept") && message.hasPrefix(ConfigError.noAuthority)
    }
}

/// A pattern of hosts, or `*` for all.
private enum AnyHost: OptionValue {
    case all
    case pattern(HostPattern)

    static let optionType = "host pattern or *"
    static var optionForm: OptionForm {
        if case .pattern(let text) = HostPattern.optionForm { .pattern("(\\*|\(text))") } else { .text }
    }
    var optionText: String { if case .pattern(let pattern) = self { pattern.optionText } else { "*" } }

    init(optionText: String) throws(OptionMistake) {
        self = optionText == "*" ? .all : .pattern(try HostPattern(optionText: optionText))
    }
}

extension [AnyHost] {
    fileprivate var list: HostList {
        var list = HostList([])
        for host in self {
            switch host {
            case .all: list.isAll = true
            case .pattern(let pattern): list.patterns.append(pattern)
            }
        }
        return list
    }
}
