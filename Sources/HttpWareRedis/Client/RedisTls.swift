public import HttpWare
import Wares

/// TLS to Redis servers. Two values are equal if their settings and the content of their files are equal.
public struct RedisTls: Sendable, Hashable {
    /// The name that the certificate of each server must have, in place of the host that is connected to.
    public let serverName: String?
    private let context: TlsContext
    /// The settings and the content of the files.
    private let content: [[UInt8]]

    /// Makes the context. Throws the fault of a file, with its name.
    public init(_ client: TlsContext.Client = TlsContext.Client(), serverName: String? = nil) throws(TlsFault) {
        self.serverName = serverName
        let trust = client.authorities.map(\.bytes) ?? SystemTrust.shared.look()
        content = [
            trust, client.identity?.chain.bytes ?? [], client.identity?.key.bytes ?? [],
            client.skipsVerification ? [1] : [], client.pins.flatMap { Array($0.description.utf8) },
        ]
        context = try TlsContext(client: client)
    }

    public static func == (one: RedisTls, other: RedisTls) -> Bool {
        one.serverName == other.serverName && one.content == other.content
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(serverName)
        hasher.combine(content)
    }

    /// A server as its clients see it; `nil` for a Unix socket, which has no name.
    func peer(for place: RedisUrl.Place) -> TlsPeer? {
        guard case .host(let host, _) = place else { return nil }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        return TlsPeer(context, name: serverName ?? (isBracketed ? String(host.dropFirst().dropLast()) : host))
    }
}

extension RedisTls {
    /// Reads `tls` of a server; `nil` if it is not used, or if there is a mistake.
    init?(options: inout OptionsReader, isUsed: Bool) {
        let files = TlsFiles(isOpenToAll: { FileGate.refusal == nil && FileStatus.isOpenToAll($0) }) {
            LoadedFile.read($0, $1, &$2)
        }
        let (client, serverName) = files.readClient(&options, of: "servers", serverName: "the server's host")
        guard isUsed, !options.isDescribing, !options.hasErrors else { return nil }
        if client.authorities == nil, !client.skipsVerification {
            options.noteFile(SystemTrust.shared.path, content: SystemTrust.shared.look())
        }
        do throws(TlsFault) { try self.init(client, serverName: serverName) } catch {
            if options.isGiven("ca") { options.fail(at: "ca", error.reason) } else { options.fail(error.reason) }
            return nil
        }
    }
}
