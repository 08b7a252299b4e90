import ArgumentParser
import FoundationEssentials
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// The forward proxy of `with` and `inspect`. It needs no file, serves only this machine, and reads the tunnels of its clients.
struct LocalProxy {
    /// The command that runs the proxy; the listener has the same name.
    let command: String
    var listen = "127.0.0.1:0"
    /// The address of the admin listener; `nil` for none.
    var admin: String?
    /// The token of the admin listener; `nil` if none is required.
    var token: Secret?
    /// The limits of the captures of the admin listener.
    var capture = BuiltinConfiguration.Capture()
    /// The hosts whose tunnels are read; `nil` reads no tunnels.
    var hosts: [String]? = ["*"]
    /// The exceptions to `hosts`, whose tunnels are not read.
    var except: [String] = []
    /// The only hosts that clients can reach; empty allows all.
    var only: [String] = []
    /// The proxy through which it reaches other hosts; `nil` uses the proxy of the environment, if there is one.
    var upstream: String?
    /// The maximum size of a response's head; `nil` uses the default of services.
    var responseHead: String?
    /// A file with an addon for mitmproxy, which sees all requests and responses; `nil` for none.
    var addon: String?
    /// Whether its clients are behind a wall: then private addresses are denied, because a name could lead to this machine.
    var isWalled = false
    /// The lowest level of its log.
    var logs = "notice"

    /// The metadata services of clouds, which give a machine's credentials to every program on it.
    static let metadataHosts = [
        "169.254.169.254", "[::ffff:169.254.169.254]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]",
        "[fd00:ec2::23]", "100.100.100.200", "192.0.0.192", "[fd20:ce::254]", "metadata.google.internal",
        "metadata.goog", "instance-data",
    ]

    /// The configuration in YAML.
    var text: String {
        let list = { (texts: [String]) in "[" + texts.map(BuiltinConfiguration.quoted).joined(separator: ", ") + "]" }
        var intercept = ""
        if let hosts {
            intercept = "\n    intercept: { hosts: \(list(hosts))"
            if !except.isEmpty { intercept += ", except: \(list(except))" }
            intercept += " }"
        }
        let proxy = upstream.map { "url: \(BuiltinConfiguration.quoted($0))" } ?? "fromEnvironment: true"
        // A larger head may have as many lines as a service allows.
        let services = responseHead.map {
            let head = BuiltinConfiguration.quoted($0)
            return "services: { passthrough: { limits: { response: { head: \(head), fieldLines: 10000 } } } }\n"
        }
        // An addon may do what takes long, such as a request of its own.
        let addon = self.addon.map {
            let path = BuiltinConfiguration.quoted(URL(filePath: $0).path)
            return ", { callout: { mitmproxy: \(path), timeout: 60s, startTimeout: 60s } }"
        }
        let allow = only.isEmpty ? "" : ", allow: \(list(only + [OwnHost.name]))"
        return """
            version: 1
            listeners:
              \(command):
                bind: \(BuiltinConfiguration.quoted(listen))
                mode: forward
                forward: { denyPrivate: \(isWalled), upstreamProxy: { \(proxy) } }
                socks: true
                chain: \(command)\(intercept)
            chains: { \(command): { middlewares: [{ hostRule: { deny: \(list(LocalProxy.metadataHosts))\(allow) } }\(addon ?? "")] } }
            routes: [{ service: passthrough }]
            \(services ?? "")\(admin.map { BuiltinConfiguration.admin($0, token, capture) } ?? "")log: { level: \(logs) }

            """
    }

    /// The checked configuration; ends the program if an option of the user is invalid.
    func configuration() throws -> GatewayConfiguration {
        let configuration = try BuiltinConfiguration.read(text, for: command)
        return isWalled ? configuration : configuration.reachingEverything
    }

    /// The hosts of options such as `--only a.example,b.example`.
    static func hosts(_ options: [String]) -> [String] {
        options.flatMap { $0.split { $0 == "," || $0.isWhitespace } }.map(String.init)
    }

    /// Makes the authority of this user at the first run, and prints a message about it.
    static func makeAuthority(for command: String, hint: String) throws {
        let folder = CertificateAuthority.usualFolder()
        guard access(FilePath.joined(folder, CertificateAuthority.keyFile), F_OK) != 0 else { return }
        do throws(TlsFault) {
            try CertificateAuthority.make(in: folder, name: CaFolder.owner)
        } catch {
            Terminal.error("\(Program.name) \(command): the certificate authority cannot be made: \(error.reason)")
            throw ExitCode(1)
        }
        Terminal.error("\(Program.name): made a certificate authority in \(folder), for this user alone; \(hint)")
    }

    /// Adds the authorities that the user's variables name to the ones that this process trusts, because the proxy connects to
    /// origin servers in place of the command. Call it before any root certificate is read.
    static func trustUserCertificates(in folder: CommandFolder, _ user: [String: String]) throws {
        var named = CertificateBundle()
        var others = user
        others["SSL_CERT_FILE"] = nil
        named.addCertificates(of: others)
        guard !named.certificates.isEmpty else { return }
        var bundle = CertificateBundle()
        if let own = user["SSL_CERT_FILE"] ?? CertificateBundle.systemFile { bundle.add(path: own) }
        for certificate in named.certificates { bundle.add(certificate) }
        let file = FilePath.joined(folder.path, "origins.pem")
        try folder.write(Array(bundle.pem.utf8), to: file)
        setenv("SSL_CERT_FILE", file, 1)
    }
}

extension ExchangeReport {
    /// True for the CONNECT of a tunnel that is read. The requests in the tunnel have separate lines.
    var isOpeningOfReadTunnel: Bool { responder == Responder.interception.name }
}
