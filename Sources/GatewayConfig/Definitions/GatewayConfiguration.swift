import Credentials
import HttpCaching
public import HttpWare

/// A checked configuration: immutable, and swapped whole on reload.
public struct GatewayConfiguration: Sendable {
    /// In file order, each with its routes and their joined chains.
    public private(set) var listeners: [ListenerDefinition]
    /// In file order.
    public let credentials: [ConfiguredCredential]
    /// In file order; the one that is built in is last, where it is not written.
    public let stores: [ConfiguredStore]
    /// In file order; the built-in `passthrough` is not among them.
    public let services: [ServiceDefinition]
    /// In file order; the first that matches wins.
    public let routes: [RouteDefinition]
    /// The admin listener; `nil`: there is none.
    public private(set) var admin: AdminDefinition?
    /// The gateway's own log.
    public let log: LogDefinition
    /// Each chain by itself, by name, with all that it uses; only where the file was read for a client.
    public internal(set) var chains: [String: WareChain] = [:]
    /// What the files say, joined and interpolated: the keys of the first file and of those it includes, in file order.
    let written: [ConfigNode.Entry]
    /// Every ware, by its place: what a reload may keep.
    let wares: [WarePlace: BuiltWare]
    /// What `${file:…}` brought.
    var fileSecrets: Set<String> = []

    /// One of its listeners alone, bound elsewhere: for a gateway that serves one command. No admin listener is part of it.
    public func only(_ listener: ListenerDefinition, at bind: SocketAddress) -> GatewayConfiguration {
        var copy = self
        var moved = listener
        moved.bind = bind
        copy.listeners = [moved]
        copy.admin = nil
        return copy
    }
}

extension ListenerDefinition {
    /// The same, reaching whatever this machine reaches: every port by CONNECT, private addresses too. For a listener that only
    /// this machine can reach, and that asks for nothing which its clients could not do themselves.
    public var reachingEverything: ListenerDefinition {
        var copy = self
        copy.connectPorts = Array(1...65_535)
        copy.denyPrivate = false
        return copy
    }
}

extension GatewayConfiguration {
    /// The texts in the files that nothing may print: from `${file:…}`, and of options that are secret.
    public var secretTexts: [String] {
        var texts = fileSecrets.union(written.flatMap(\.value.secretTexts))
        for definition in credentials.map(\.credential.definition) {
            let secrets = [definition.clientSecret, definition.refreshToken, definition.value]
            texts.formUnion(secrets.compactMap { $0?.revealed })
        }
        for store in stores {
            if let password = store.store.redis?.definition.password { texts.insert(password.revealed) }
        }
        for chain in listeners.flatMap({ [$0.chain] + $0.routes.map(\.chain) }) {
            for entry in chain.entries.middlewares + chain.entries.postwares {
                texts.formUnion(entry.options.secretTexts)
            }
        }
        // The longest first: one may be a part of another.
        return texts.sorted { ($1.utf8.count, $0) < ($0.utf8.count, $1) }
    }
}
