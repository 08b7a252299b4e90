/// Reads the options of TLS: files of certificates and keys, and the settings of a client. Relative paths start at the folder of the
/// file that names them.
package struct TlsFiles {
    /// Reads a file that an option names, and notes it for reloads. If the file cannot be read, records a mistake and returns `nil`.
    package typealias Reading = (_ path: String, _ key: String, _ options: inout OptionsReader) -> [UInt8]?

    private let content: Reading
    private let isOpenToAll: (_ path: String) -> Bool

    /// `isOpenToAll` says whether every user of this machine can read the file.
    package init(isOpenToAll: @escaping (_ path: String) -> Bool, content: @escaping Reading) {
        self.isOpenToAll = isOpenToAll
        self.content = content
    }

    /// The content of the file that the option names.
    package func read(_ key: String, _ options: inout OptionsReader, doc: String) -> TlsFile? {
        var path: FilePath?
        options.read(key, into: &path, doc: doc)
        guard let full = path?.path, !options.isDescribing else { return nil }
        return content(full, key, &options).map { TlsFile(name: full, bytes: $0) }
    }

    /// Reads `cert` and `key`, and checks that they belong together. A member of a list needs both, and may have `ocsp`, a
    /// response for stapling.
    package func readIdentity(_ options: inout OptionsReader, isMember: Bool = false) -> TlsIdentity? {
        let chain = read("cert", &options, doc: "PEM: the certificate, then its intermediate certificates")
        let key = read("key", &options, doc: "PEM: the private key, without a passphrase")
        let staple = isMember ? read("ocsp", &options, doc: "DER: the OCSP response that is stapled") : nil
        if isMember {
            options.require("cert", "key")
        } else {
            options.only("cert", with: "key")
            options.only("key", with: "cert")
        }
        guard !options.isDescribing else { return nil }
        if let key, isOpenToAll(key.name) {
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

    /// Reads the settings of a client of these servers: `ca`, `cert`, `key`, `serverName` and `insecureSkipVerify`. `usualName` is the
    /// name that a certificate must have without `serverName`, for the help.
    package func readClient(
        _ options: inout OptionsReader, of servers: String, serverName usualName: String
    ) -> (client: TlsContext.Client, serverName: String?) {
        var client = TlsContext.Client()
        client.authorities = read(
            "ca", &options,
            doc: "PEM: the authorities that sign the \(servers)' certificates, in place of the system's")
        client.identity = readIdentity(&options)
        var serverName: ServerName?
        options.read(
            "serverName", into: &serverName, doc: "the name that the certificate must have; \(usualName)")
        options.read("insecureSkipVerify", into: &client.skipsVerification, doc: "accepts any certificate")
        options.useless("ca", with: "insecureSkipVerify", client.skipsVerification, is: true)
        if client.skipsVerification {
            options.warn(
                at: "insecureSkipVerify",
                "the \(servers)' certificates are not verified: an attacker on the network can read and change everything"
            )
        }
        return (client, serverName?.text)
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
