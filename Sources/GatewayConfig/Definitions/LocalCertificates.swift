import Glibc
import HttpWare

/// `tls.internal` of a listener: certificates for local names, from the authority that clients of this machine trust already.
enum LocalCertificates {
    /// The names that only a machine or a home network resolves: RFC 6761, RFC 6762, RFC 8375, and the names of private networks.
    private static let usualNames = [
        "localhost", "*.localhost", "*.local", "*.test", "*.internal", "*.home.arpa", "*.lan",
    ]

    /// Reads the options; `nil` if they are missing or invalid. `bind` is the address for clients that ask for no name.
    static func read(_ options: inout OptionsReader, bind: SocketAddress) -> TlsContext.LocalNames? {
        var names = usualNames.compactMap { try? HostPattern(optionText: $0) }
        var path: String?
        options.read("names", into: &names, doc: "the names that get a certificate")
        options.read(
            "ca", into: &path,
            doc:
                "folder of the certificate authority that \(ProgramName.text) ca init makes; httpware/ca in $XDG_DATA_HOME or ~/.local/share"
        )
        options.refuseEmpty("names", "write names such as *.localhost, or remove it")
        guard options.isWritten, !options.isDescribing, !options.hasErrors,
            let authority = CertificateAuthority.read(&options, at: path)
        else { return nil }
        let own = bind.address.flatMap { $0.isUnspecified ? nil : "\($0)" } ?? "127.0.0.1"
        return TlsContext.LocalNames(authority: authority, names: HostList(names), unnamed: own)
    }
}

extension CertificateAuthority {
    /// The authority in the folder that an option names, or in the user's own; `nil` with an error if it cannot be read.
    static func read(_ options: inout OptionsReader, at path: String?) -> CertificateAuthority? {
        let folder =
            path.map { FilePath.joined($0, writtenIn: options.location(of: "ca").file) }
            ?? CertificateAuthority.usualFolder()
        if let refusal = FileGate.refusal {
            options.fail(
                at: path == nil ? nil : "ca", "the certificate authority in \(folder) cannot be read: \(refusal)")
            return nil
        }
        for name in [CertificateAuthority.certificateFile, CertificateAuthority.keyFile] {
            options.noteFile("\(folder)/\(name)", content: Array(CertificateAuthority.stamp(of: folder).utf8))
        }
        let isMissing = access("\(folder)/\(CertificateAuthority.keyFile)", F_OK) != 0
        do throws(TlsFault) {
            // No client has to trust the authority in a run of cases.
            return isMissing && OutputGate.isClosed ? try .unwritten() : try .shared(folder: folder)
        } catch {
            options.fail(
                at: path == nil ? nil : "ca",
                isMissing
                    ? "\(ConfigError.noAuthority)\(folder); make one with \(ProgramName.text) ca init"
                        + (path == nil ? "" : " --dir \(folder)")
                    : error.reason)
            return nil
        }
    }
}
