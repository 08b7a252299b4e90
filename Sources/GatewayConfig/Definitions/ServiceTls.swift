public import HttpWare

/// The checked TLS settings of a service for its `https` endpoints.
public struct ServiceTls: Sendable {
    /// The context that was built from the files.
    public let context: TlsContext
    /// The name that the certificate must have, in place of the endpoint's host.
    public let serverName: String?

    /// Reads `services.NAME.tls`; `nil` if no endpoint is `https`, or if there is an error.
    init?(
        options: inout OptionsReader, isGiven: Bool, isSecure: Bool, files: ConfigurationFiles
    ) {
        var client = TlsContext.Client()
        client.authorities = TlsFiles.read(
            "ca", &options, files,
            doc: "PEM: the authorities that sign the origin servers' certificates, in place of the system's")
        client.identity = TlsFiles.readIdentity(&options, files)
        var serverName: ServerName?
        options.read(
            "serverName", into: &serverName, doc: "the name that the certificate must have; the endpoint's host")
        options.read("insecureSkipVerify", into: &client.skipsVerification, doc: "accepts any certificate")
        guard !options.isDescribing else { return nil }
        if isGiven, !isSecure { options.fail("has no effect: no endpoint is https") }
        if client.skipsVerification {
            if options.isGiven("ca") {
                options.fail(at: "insecureSkipVerify", "cannot be combined with ca; remove one of them")
            }
            options.warn(
                at: "insecureSkipVerify",
                "the origin servers' certificates are not verified: an attacker on the network can read and change everything"
            )
        }
        guard isSecure, !options.hasErrors else { return nil }
        self.serverName = serverName?.text
        if client.authorities == nil, !client.skipsVerification {
            options.noteFile(SystemTrust.shared.path, content: SystemTrust.shared.look())
        }
        if !isGiven, let shared = SystemTrust.shared.client {
            context = shared
            return
        }
        do throws(TlsFault) {
            context = try TlsContext(client: client)
        } catch {
            options.fail(error.reason)
            return nil
        }
    }

    /// Reads `services.passthrough.tls`; `nil` if it names no authorities, or if there is an error.
    init?(passthrough options: inout OptionsReader, files: ConfigurationFiles) {
        var client = TlsContext.Client()
        client.authorities = TlsFiles.read(
            "ca", &options, files,
            doc: "PEM: the authorities that sign the origin servers' certificates, in place of the system's")
        for key in ["cert", "key", "serverName", "insecureSkipVerify"] {
            options.refuse(
                key,
                because: "would apply to every origin that clients choose; write a service for the host that needs it")
        }
        guard client.authorities != nil, !options.isDescribing, !options.hasErrors else { return nil }
        serverName = nil
        do throws(TlsFault) {
            context = try TlsContext(client: client)
        } catch {
            options.fail(at: "ca", error.reason)
            return nil
        }
    }
}

/// A host without a port.
private struct ServerName: OptionValue {
    let text: String

    static let optionType = "host name"
    var optionText: String { text }

    init(optionText: String) throws(OptionMistake) {
        guard let authority = Authority(optionText), authority.port == nil else {
            throw OptionMistake("write a name such as example.com, or an address")
        }
        let host = authority.host
        text = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }
}

/// Reads the files of certificates and keys that options name. Relative paths start at the folder of the file that names them.
enum TlsFiles {
    /// The maximum size of a file of certificates, in bytes.
    private static let limit = 1 << 20

    /// The content of the file that the option names.
    static func read(
        _ key: String, _ options: inout OptionsReader, _ files: ConfigurationFiles, doc: String
    ) -> TlsFile? {
        var path: FilePath?
        options.read(key, into: &path, doc: doc)
        guard let full = path?.path, !options.isDescribing else { return nil }
        do {
            let bytes = try files.read(full, limit)
            options.noteFile(full, content: bytes)
            return TlsFile(name: full, bytes: bytes)
        } catch {
            options.noteFile(full, content: [])
            options.fail(at: key, "\(full): \(error.reason)")
            return nil
        }
    }

    /// Reads `cert` and `key`, and checks that they belong together. A member of a list needs both, and may have `ocsp`, a
    /// response for stapling.
    static func readIdentity(
        _ options: inout OptionsReader, _ files: ConfigurationFiles, isMember: Bool = false
    ) -> TlsIdentity? {
        let chain = read("cert", &options, files, doc: "PEM: the certificate, then its intermediate certificates")
        let key = read("key", &options, files, doc: "PEM: the private key, without a passphrase")
        let staple =
            isMember ? read("ocsp", &options, files, doc: "DER: the OCSP response that is stapled") : nil
        if isMember {
            options.require("cert")
            options.require("key")
        }
        guard !options.isDescribing else { return nil }
        for (given, missing) in [("cert", "key"), ("key", "cert")]
        where !isMember && options.isGiven(given) && !options.isGiven(missing) {
            options.fail(at: given, "needs \(missing)")
        }
        if let key, files.isOpenToAll(key.name) {
            options.warn(
                at: "key", "\(key.name): every user of this machine can read the key; use chmod 600")
        }
        guard let chain, let key else { return nil }
        let identity = TlsIdentity(chain: chain, key: key, staple: staple)
        do throws(TlsFault) {
            if try identity.hasExpired() {
                options.warn(at: "cert", "\(chain.name): the certificate has expired")
            }
            return identity
        } catch {
            // The key of the option whose file has the error.
            let key = staple.map { error.reason.hasPrefix($0.name + ":") } == true ? "ocsp" : nil
            options.fail(at: key ?? (error.reason.hasPrefix(identity.key.name + ":") ? "key" : "cert"), error.reason)
            return nil
        }
    }
}
