import HttpWare

/// The gateways whose files can be imported.
public enum ImportFormat: String, Sendable, CaseIterable {
    case nginx, haproxy, caddy, traefik, ingress, httproute, compose

    /// Turns files of this format into a configuration of ours.
    ///
    /// Nothing is read but the sources and what `files` delivers, and nothing can trap: a file that is not of the format makes notes.
    /// `command` is written into the head, such as `httpware import nginx nginx.conf`. On any thread.
    public func translate(
        _ sources: [ImportSource], files: ImportFiles = .none, command: String
    ) -> ImportedGateway {
        var draft: GatewayDraft
        switch self {
        case .nginx: draft = NginxImport.translate(sources, files: files)
        case .haproxy: draft = HaproxyImport.translate(sources)
        case .caddy: draft = ForeignSources.caddy(sources, files: files)
        case .traefik: draft = ForeignSources.traefik(sources)
        case .ingress: draft = ForeignSources.kubernetes(sources, as: .ingress)
        case .httproute: draft = ForeignSources.kubernetes(sources, as: .httpRoute)
        case .compose: draft = ForeignSources.compose(sources)
        }
        if self != .nginx, self != .haproxy { draft.finishForwarding() }
        return GatewayWriter.write(draft, command: command)
    }
}

/// A file to import.
public struct ImportSource: Sendable {
    /// The file as the user named it; `stdin` for standard input. Places name it.
    public var name: String
    /// The content.
    public var bytes: [UInt8]

    /// Makes a source from its parts.
    public init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    /// Makes a source of a text.
    public init(name: String, text: String) { self.init(name: name, bytes: Array(text.utf8)) }

    /// The maximum size of a file, in bytes.
    public static let mostBytes = 4 << 20
}

/// The files that sources include. Nothing else reaches the file system.
public struct ImportFiles: Sendable {
    /// The content of a file; `nil` if it cannot be read or is larger than `ImportSource.mostBytes`.
    public var read: @Sendable (_ path: String) -> [UInt8]?
    /// The paths that match a pattern with `*`, `?` or `[…]`, in name order.
    public var list: @Sendable (_ pattern: String) -> [String]

    /// Makes files from two functions.
    public init(
        read: @escaping @Sendable (_ path: String) -> [UInt8]?,
        list: @escaping @Sendable (_ pattern: String) -> [String]
    ) {
        self.read = read
        self.list = list
    }

    /// No files.
    public static var none: ImportFiles { ImportFiles(read: { _ in nil }, list: { _ in [] }) }
}

/// A configuration that was made from files of another gateway.
public struct ImportedGateway: Sendable {
    /// The configuration file, in YAML, with the notes at its head.
    public var text: String
    /// Files that belong beside it, such as users with their hashes.
    public var files: [(name: String, text: String)]
    /// The number of listeners, stores, services, routes and wares.
    public var partCount: Int
    /// The number of lines that were not translated.
    public var untranslated: Int
    /// The number of lines that change nothing here.
    public var unneeded: Int
}
