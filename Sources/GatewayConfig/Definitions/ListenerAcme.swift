import Acme
import Credentials
import HttpWare

extension AcmeSettings {
    /// The maximum number of names of a listener. Each gets its own certificate.
    private static let mostDomains = 1000
    /// The maximum number of secrets, and the minimum length of a secret in bytes.
    /// The secret options of a listener. Nothing may print them.
    static let secretKeys: [[String]] = [["tls", "acme", "key"], ["tls", "acme", "externalAccount", "macKey"]]

    /// Reads `listeners.NAME.tls.acme`; `nil` if it is missing or invalid.
    init?(options: inout OptionsReader, files: ConfigurationFiles) {
        var domains: [AcmeDomain] = []
        options.read("domains", into: &domains, doc: "the DNS names; each has a certificate of its own")
        var directory = AcmeSettings.letsEncrypt
        options.read("directory", into: &directory, doc: "the URL of the authority's directory; Let's Encrypt")
        var staging: EndpointUrl?
        options.read(
            "staging", into: &staging,
            doc: "the URL of the authority's directory for trials; known for Let's Encrypt")
        var email: String?
        options.read("email", into: &email, doc: "the address that the authority may write to")
        let authorities = TlsFiles(files).read(
            "ca", &options,
            doc: "PEM: the authorities that sign the certificate of the directory's server, in place of the system's")
        var challenge = ChallengeKind.tlsAlpn01
        options.read("challenge", into: &challenge, doc: "how control of the names is proved")
        var store: Located<FilePath>?
        options.read(
            "store", into: &store,
            doc: "the folder of accounts, keys and certificates, or the name of a store in Redis that gateways share")
        var keys: [Secret] = []
        options.readSecrets(
            "key", into: &keys,
            doc: "secrets that seal what is kept in a store: the first one seals, all open")
        var listener: String?
        options.read(
            "listener", into: &listener,
            doc: "the listener without TLS that answers http-01; those on port 80")
        var profile: String?
        options.read("profile", into: &profile, doc: "the profile of the certificates, if the authority has several")
        var account: ExternalAccount?
        options.read("externalAccount", doc: "the account of the authority that this one belongs to") {
            account = ExternalAccount(options: &$0)
        }
        options.require("domains", "store")
        options.refuseEmpty("domains", "write the DNS names that the certificates are for")
        options.only("listener", with: "challenge", challenge, is: .http01)
        guard options.isWritten else { return nil }
        if domains.count > AcmeSettings.mostDomains {
            options.fail(at: "domains", "has more than \(AcmeSettings.mostDomains) names")
        }
        if Set(domains.map(\.name)).count < domains.count { options.fail(at: "domains", "names a domain twice") }
        if let email, !AcmeSettings.isAddress(email) {
            options.fail(at: "email", "\(email.quotedForErrors) is not an address such as anna@example.com")
        }
        if !directory.isSecure, !directory.isLoopback {
            options.fail(at: "directory", "is not https; keys and certificates need it")
        }
        if let staging {
            if !staging.isSecure, !staging.isLoopback {
                options.fail(at: "staging", "is not https; keys need it")
            } else if staging == directory {
                options.fail(at: "staging", "is the directory itself; trials would use up its limits")
            }
        }
        let sharing = store.flatMap { AcmeSettings.sharing($0.value.path, keys, &options) }
        guard !options.hasErrors, let store else { return nil }
        let folder = sharing == nil ? options.joined(store.value.path, writtenIn: store.location.file) : ""
        self.init(domains: domains.map(\.name), store: folder)
        self.sharing = sharing
        self.directory = directory
        self.staging = staging ?? (directory == AcmeSettings.letsEncrypt ? AcmeSettings.letsEncryptStaging : nil)
        self.email = email
        self.authorities = authorities?.bytes
        self.challenge = challenge
        self.listener = listener
        self.profile = profile
        externalAccount = account
    }

    /// The store with this name; `nil` for a folder, or if there is a mistake.
    private static func sharing(_ name: String, _ keys: [Secret], _ options: inout OptionsReader) -> AcmeSharing? {
        let hasKey = options.isGiven("key")
        guard hasKey || options.hasNamed(name, of: "stores") else { return nil }
        guard let server = options.findServer(name, for: "store", as: (any AcmeServer).self) else { return nil }
        guard !keys.isEmpty else {
            options.fail(
                at: hasKey ? "key" : "store",
                "the store \(name.quotedForErrors) needs key, a secret that seals what is kept there, such as ${file:/run/secrets/acme}; write ./\(name) for a folder"
            )
            return nil
        }
        return AcmeSharing(server, store: name, keys: keys)
    }

    /// Whether the text is one e-mail address that a `mailto` URI can contain without escapes. RFC 6068 §2.
    private static func isAddress(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && !parts[0].isEmpty && isDomain(parts[1].lowercased())
            && parts[0].utf8.allSatisfy {
                switch $0 {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2b, 0x2d, 0x2e, 0x5f: true
                default: false
                }
            }
    }
}

extension ExternalAccount {
    /// Reads `externalAccount`; `nil` if it is missing or invalid.
    fileprivate init?(options: inout OptionsReader) {
        var keyId: String?
        options.read("keyId", into: &keyId, doc: "the identifier that the authority gave")
        var macKey: Secret?
        options.readSecret("macKey", into: &macKey, doc: "the key that the authority gave, in base64url")
        options.require("keyId", "macKey")
        guard options.isWritten, let keyId, let macKey else { return nil }
        let bytes = Base64.decodeUrl(macKey.revealed.utf8.filter { $0 != UInt8(ascii: "=") })
        guard let bytes, bytes.count >= 16 else {
            options.fail(at: "macKey", "is not a key of at least 16 bytes in base64url")
            return nil
        }
        self.init(keyId: keyId, macKey: bytes)
    }
}

/// A DNS name that a certificate can be ordered for.
private struct AcmeDomain: OptionValue {
    let name: String

    static let optionType = "domain"
    var optionText: String { name }

    init(optionText: String) throws(OptionMistake) {
        name = optionText.lowercased()
        if name.hasPrefix("*.") {
            throw OptionMistake(
                "a wildcard needs the challenge dns-01, which is not supported; write each name, or use cert and key")
        }
        guard AcmeSettings.isDomain(name) else {
            throw OptionMistake("write a DNS name such as www.example.com")
        }
    }
}
