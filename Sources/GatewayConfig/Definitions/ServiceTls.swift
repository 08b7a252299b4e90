public import HttpWare

/// The checked TLS settings of a service for its `https` endpoints.
public struct ServiceTls: Sendable {
    /// The context that was built from the files.
    public let context: TlsContext
    /// The name that the certificate must have, in place of the endpoint's host.
    public let serverName: String?
    /// The certificate that the gateway shows to origin servers; `nil` without one.
    public let certificate: CertificateFacts?

    /// Reads `services.NAME.tls`; `nil` if no endpoint is `https`, or if there is an error.
    init?(options: inout OptionsReader, isSecure: Bool, files: ConfigurationFiles) {
        let (client, serverName) = TlsFiles(files).readClient(
            &options, of: "origin servers", serverName: "the endpoint's host")
        guard !options.isDescribing else { return nil }
        if options.isWritten, !isSecure { options.fail("has no effect: no endpoint is https") }
        guard isSecure, !options.hasErrors else { return nil }
        self.serverName = serverName
        certificate = client.identity.flatMap { try? CertificateFacts($0.chain) }
        if client.authorities == nil, !client.skipsVerification {
            options.noteFile(SystemTrust.shared.path, content: SystemTrust.shared.look())
        }
        if !options.isWritten, let shared = SystemTrust.shared.client {
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
        client.authorities = TlsFiles(files).read(
            "ca", &options,
            doc: "PEM: the authorities that sign the origin servers' certificates, in place of the system's")
        for key in ["cert", "key", "serverName", "insecureSkipVerify"] {
            options.refuse(
                key,
                because: "would apply to every origin that clients choose; write a service for the host that needs it")
        }
        guard client.authorities != nil, !options.isDescribing, !options.hasErrors else { return nil }
        serverName = nil
        certificate = nil
        do throws(TlsFault) {
            context = try TlsContext(client: client)
        } catch {
            options.fail(at: "ca", error.reason)
            return nil
        }
    }
}

extension TlsFiles {
    /// The maximum size of a file of certificates, in bytes.
    private static let limit = 1 << 20

    /// Reads from the source of the configuration's files.
    init(_ files: ConfigurationFiles) {
        self.init(isOpenToAll: files.isOpenToAll) { path, key, options in
            do throws(ConfigurationFiles.Fault) {
                let bytes = try files.read(path, TlsFiles.limit)
                options.noteFile(path, content: bytes)
                return bytes
            } catch {
                options.noteFile(path, content: [])
                options.fail(at: key, "\(path): \(error.reason)")
                return nil
            }
        }
    }
}
