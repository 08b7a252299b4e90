import Capturing
import Credentials
import HttpCaching
public import HttpWare

/// A checked configuration: immutable, and replaced as a whole on reload.
public struct GatewayConfiguration: Sendable {
    /// The listeners in file order, each with its routes and their joined chains.
    public private(set) var listeners: [ListenerDefinition]
    /// The credentials in file order.
    public let credentials: [ConfiguredCredential]
    /// The stores in file order; the built-in store is last if it is not written.
    public let stores: [ConfiguredStore]
    /// The services in file order, without the built-in `passthrough`.
    public let services: [ConfiguredService]
    /// The built-in `passthrough`, with the settings that the file gives it.
    public let passthrough: ConfiguredService
    /// The routes in file order; the first matching route is used.
    public let routes: [RouteDefinition]
    /// The admin listener; `nil` without `admin` in the file.
    public private(set) var admin: AdminDefinition?
    /// The capture settings of the file's admin listener, if that listener was removed by `only`.
    var closedCapture: CaptureSettings?
    /// How names are looked up.
    public let resolver: ResolverDefinition
    /// The gateway's own log.
    public let log: LogDefinition
    /// Where services are looked for; `nil` if none are.
    public let discover: DiscoverDefinition?
    /// The services that were found when the configuration was made.
    public internal(set) var found = FoundServices.none
    /// The part of `written` that files have, without what was found.
    var writtenInFiles: [ConfigNode.Entry] = []
    /// Each chain by name, with the chains that it uses; only if the file was read for a client.
    public internal(set) var chains: [String: WareChain] = [:]
    /// The observer of token placeholders that are sent where they must not go; `nil` if no program has placeholders.
    public var placeholders: (any PlaceholderWatch)?
    /// The content of the files, joined and interpolated: the keys of the first file and of the files it includes, in file order.
    let written: [ConfigNode.Entry]
    /// Every ware by its position, so that a reload can keep it.
    let wares: [WarePlace: BuiltWare]
    /// The texts that `${file:…}` inserted.
    var fileSecrets: Set<String> = []

    /// The services with `passthrough`.
    var allServices: [ConfiguredService] { services + [passthrough] }

    /// The same configuration with what was found now; `nil` if more changed than the instances of services, so that the configuration has
    /// to be made again (`ConfigurationReader.read(again:finding:)`).
    public func updated(finding instances: [FoundInstance]) -> GatewayConfiguration? {
        guard let found = found.updated(instances, among: writtenInFiles) else { return nil }
        var copy = self
        copy.found = found
        return copy
    }

    /// Keeps one listener, bound to another address, without the admin listener: for a gateway that serves one command.
    public func only(_ listener: ListenerDefinition, at bind: SocketAddress) -> GatewayConfiguration {
        var copy = self
        var moved = listener
        moved.bind = bind
        if credentials.contains(where: { $0.credential.definition.env != nil }) { moved.hasPlaceholders = true }
        copy.listeners = [moved]
        copy.closedCapture = admin?.capture ?? closedCapture
        copy.admin = nil
        return copy
    }

    /// The same configuration with an admin listener at this address, whatever the file says. The token is not part of the texts
    /// of the configuration.
    public func inspected(at bind: SocketAddress, token: Secret) -> GatewayConfiguration {
        var copy = self
        copy.admin = AdminDefinition(
            bind: bind, token: token, capture: admin?.capture ?? closedCapture ?? CaptureSettings())
        return copy
    }

    /// The same configuration whose listeners allow all destinations except the metadata addresses of clouds.
    public var reachingEverything: GatewayConfiguration {
        var copy = self
        copy.listeners = listeners.map(\.reachingEverything)
        return copy
    }
}

extension ListenerDefinition {
    /// The same listener with nearly no limits on destinations: CONNECT to every port, and private addresses. Only the metadata
    /// addresses of clouds stay denied, for every name. Meant for a listener that only this machine can reach, whose clients
    /// could reach the same destinations themselves.
    public var reachingEverything: ListenerDefinition {
        var copy = self
        copy.connectPorts = Array(1...65_535)
        copy.denyPrivate = false
        copy.deniesMetadata = true
        return copy
    }
}

extension GatewayConfiguration {
    /// The secrets of credentials that are long enough to be distinguished from other text.
    public var credentialSecrets: [String] {
        credentials.map(\.credential.definition).flatMap { definition in
            [definition.clientSecret, definition.refreshToken, definition.value].compactMap { $0?.revealed }
        }.filter { $0.utf8.count >= 4 }
    }

    /// The texts in the files that must never be printed: from `${file:…}`, and of secret options.
    public var secretTexts: [String] {
        var texts = fileSecrets.union(written.flatMap(\.value.secretTexts))
        for definition in credentials.map(\.credential.definition) {
            let secrets = [definition.clientSecret, definition.refreshToken, definition.value]
            texts.formUnion(secrets.compactMap { $0?.revealed })
        }
        for store in stores { texts.formUnion(store.store.definition.kind.secretTexts) }
        texts.formUnion(routes.flatMap { $0.sticky?.keys ?? [] }.map(\.revealed))
        texts.formUnion(services.flatMap { $0.sticky?.keys ?? [] }.map(\.revealed))
        for chain in listeners.flatMap({ [$0.chain] + $0.routes.flatMap(\.chains) }) {
            for entry in chain.entries.middlewares + chain.entries.postwares {
                texts.formUnion(entry.options.secretTexts)
            }
        }
        // The longest first, because one may be a part of another.
        return texts.sorted { ($1.utf8.count, $0) < ($0.utf8.count, $1) }
    }
}
