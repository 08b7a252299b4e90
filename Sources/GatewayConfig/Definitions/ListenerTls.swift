public import Acme
public import HttpWare

/// The checked TLS settings of a listener: its certificates were read, and their keys match.
public struct ListenerTls: Sendable {
    /// The handling of clients without a certificate, if `clientCa` is given.
    public enum ClientCertificates: String, OptionWord {
        /// The clients are refused.
        case require
        /// The clients are accepted. A client with an invalid certificate is still refused.
        case request
    }

    /// The context that was built from the files. With `acme`, new sessions use the context in `live` instead.
    public let context: TlsContext
    /// The settings for certificates by ACME; `nil` if all certificates are from files.
    public let acme: AcmeSettings?
    /// The place of the ACME settings.
    let acmeLocation: SourceLocation
    /// The context that replaces `context` while the listener runs.
    public let live = LiveTls()
    /// The input of the context, without the certificates of `acme`.
    private let server: TlsContext.Server
    /// The time limit from the connection to the end of its handshake.
    public let handshakeTimeout: Duration
    /// Whether clients are asked for a certificate.
    let asksForCertificates: Bool
    /// Whether a client without a certificate is refused.
    let requiresCertificates: Bool
    /// The certificates from files: what their validity is about.
    public let certificates: [CertificateFacts]

    /// Reads `listeners.NAME.tls`; `nil` if it is missing or invalid.
    init?(
        options: inout OptionsReader, http2: Bool, bind: SocketAddress = .loopback, files: ConfigurationFiles
    ) {
        var identities: [TlsIdentity] = []
        let single = TlsFiles(files).readIdentity(&options)
        if let single { identities.append(single) }
        options.readEach(
            "certificates", doc: "several certificates; the one with the name that the client asks for is used"
        ) {
            options in
            if let identity = TlsFiles(files).readIdentity(&options, isMember: true) { identities.append(identity) }
        }
        var protocols = [AlpnName(.h2), AlpnName(.http11)]
        options.read("alpn", into: &protocols, doc: "the supported protocols, in order of preference")
        let clientCa = TlsFiles(files).read(
            "clientCa", &options, doc: "PEM: the authorities that sign clients' certificates")
        var clientCertificates: ClientCertificates?
        options.read("clientCert", into: &clientCertificates, doc: "whether a client must have a certificate; require")
        var least = TlsVersion.tls12
        options.read("minVersion", into: &least, doc: "the lowest version")
        var timeout = Duration.seconds(10)
        options.read(
            "handshakeTimeout", into: &timeout, in: .milliseconds(100) ... .seconds(3600),
            doc: "how long a handshake may take")
        var acme: AcmeSettings?
        options.read("acme", doc: "gets certificates by itself, from an authority that speaks ACME") {
            acme = AcmeSettings(options: &$0, files: files)
        }
        var local: TlsContext.LocalNames?
        options.read(
            "internal",
            doc: "makes certificates for local names by itself, signed by the authority of \(ProgramName.text) ca init"
        ) {
            local = LocalCertificates.read(&$0, bind: bind)
        }
        options.exclusive("cert", "certificates")
        options.exclusive("acme", "internal")
        options.require(anyOf: ["cert", "certificates", "acme", "internal"])
        options.refuseEmpty("certificates", "write at least one")
        options.only("clientCert", with: "clientCa")
        options.refuseEmpty("alpn", "write h2 or http/1.1, or remove it")
        guard options.isWritten else { return nil }
        if !http2 {
            if options.isGiven("alpn"), protocols.contains(where: { $0.name == .h2 }) {
                options.fail(at: "alpn", "names h2, but the listener has http2: false; remove one of them")
            }
            protocols.removeAll { $0.name == .h2 }
        }
        guard !options.hasErrors else { return nil }
        var server = TlsContext.Server(identities: identities)
        server.protocols = protocols.map(\.name)
        server.clientAuthorities = clientCa
        server.requiresClientCertificate = clientCertificates != .request
        server.leastVersion = least.version
        server.local = local
        if acme != nil { server.live = live }
        self.server = server
        self.acme = acme
        acmeLocation = options.location(of: "acme")
        do throws(TlsFault) {
            context = try ListenerTls.context(server, first: acme?.domains.first)
        } catch {
            options.fail(at: clientCa == nil ? nil : "clientCa", error.reason)
            return nil
        }
        certificates = identities.compactMap { try? CertificateFacts($0.chain) }
        handshakeTimeout = timeout
        asksForCertificates = clientCa != nil
        requiresCertificates = clientCa != nil && clientCertificates != .request
    }

    /// Makes the context. Without certificates from files, it has a self-signed one until the first certificate
    /// arrives.
    private static func context(_ server: TlsContext.Server, first name: String?) throws(TlsFault) -> TlsContext {
        var server = server
        if server.identities.isEmpty, let name, let made = try CertificateKey().selfSigned(for: name) {
            server.identities = [made]
        }
        return try TlsContext(server: server)
    }

    /// Makes new sessions use these certificates, after those from files, and answer these challenges.
    public func use(_ identities: [TlsIdentity], challenges: [TlsChallenge]) throws(TlsFault) {
        var server = self.server
        server.identities += identities
        server.challenges = challenges
        server.live = nil
        live.use(try TlsContext(server: server))
    }
}

/// The name of a protocol in ALPN.
struct AlpnName: OptionValue {
    let name: ApplicationProtocol

    static let optionType = "protocol"
    static var optionForm: OptionForm { .words(ApplicationProtocol.allCases.map(\.rawValue)) }
    var optionText: String { name.rawValue }

    init(_ name: ApplicationProtocol) { self.name = name }

    init(optionText: String) throws(OptionMistake) {
        guard let name = ApplicationProtocol(rawValue: optionText) else { throw OptionMistake("write h2 or http/1.1") }
        self.name = name
    }
}

/// A version of TLS in a file.
private enum TlsVersion: String, OptionWord {
    case tls12 = "1.2"
    case tls13 = "1.3"

    var version: TlsContext.Version { self == .tls12 ? .tls12 : .tls13 }
}
