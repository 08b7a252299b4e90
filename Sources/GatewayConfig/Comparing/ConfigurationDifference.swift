import Credentials
import Acme
import HttpCaching
public import HttpWare

/// The differences between two configurations: what a reload does, and what it keeps.
///
/// Compares definitions after interpolation, not their places in the files. Services and wares are kept exactly if this
/// finds no change.
public struct ConfigurationDifference: Sendable {
    /// Something that was added, removed, changed or moved.
    public struct Change: Sendable, Hashable {
        /// The kind of a change.
        public enum Kind: String, Sendable {
            case added, removed, changed
            /// Its position among definitions of its kind changed, and the order matters.
            case moved
        }

        /// The definition, such as `listeners.web`, `routes.orders` or `chains.base.middlewares.mock`.
        public let what: String
        /// The kind of this change.
        public let kind: Kind
        /// The effect of a reload, as text; `nil` if it is obvious.
        public internal(set) var effect: String?
        /// The place in the new files, or in the old ones if it was removed.
        public let location: SourceLocation
        /// The differing options of a changed definition.
        public let keys: [KeyChange]
    }

    /// An option that differs. Secrets are not shown.
    public struct KeyChange: Sendable, Hashable {
        /// The key, such as `limits.idleTimeout`.
        public let key: String
        /// The old value; `nil` if the option was not set.
        public let old: String?
        /// The new value; `nil` if the option is not set.
        public let new: String?
        /// The place of the option in the new files, or in the old ones if it was removed.
        public let location: SourceLocation
    }

    /// State that is lost.
    public struct Loss: Sendable, Hashable {
        /// The state, such as `chains.base: mock: its state`.
        public let what: String
        /// The place of the definition that had the state.
        public let location: SourceLocation
    }

    /// The changes by noun, in file order.
    public private(set) var changes: [Change] = []
    /// The state that a reload loses.
    public private(set) var losses: [Loss] = []
    /// The services of the old configuration that stay unchanged, with their connections.
    public private(set) var keptServices: Set<String> = []

    private let secretPlaces: Set<SourceLocation>

    /// Whether nothing changes.
    public var isEmpty: Bool { changes.isEmpty }

    /// Compares two configurations.
    public init(from old: GatewayConfiguration, to new: GatewayConfiguration) {
        secretPlaces = old.secretPlaces.union(new.secretPlaces)
        let before = WrittenNouns(old.written)
        let after = WrittenNouns(new.written)
        for noun in WrittenNouns.names(before, after) {
            switch noun {
            case "routes":
                // The key is a label or a ware's name, so an option that is secret in one ware is secret in all.
                let secrets = Set(Self.secrets(old, new).map { ["with", "*"] + $0.dropFirst() })
                    .union([["sticky", "key"]])
                compare(NodeSequence.routes(before.routes), NodeSequence.routes(after.routes), noun, secrets: secrets)
            case "chains": compareChains(before.named(noun), after.named(noun), secrets: Self.secrets(old, new))
            case "log", "admin", "resolver", "discover":
                compare(noun, before.single(noun), after.single(noun), secrets: [["token"]])
            case "listeners": compareListeners(before.named(noun), after.named(noun), old, new)
            case "credentials":
                let secrets = Set(CredentialRules.secretKeys.map { [$0] })
                compareNamed(noun, before.named(noun), after.named(noun), secrets: secrets)
            case "stores":
                let stores = (old.stores + new.stores).map(\.store.definition)
                let secrets = Set(stores.flatMap { store in store.secretKeys.map { [store.kindName, $0] } })
                compareNamed(noun, before.named(noun), after.named(noun), secrets: secrets)
            default:
                compareNamed(noun, before.named(noun), after.named(noun), secrets: [["sticky", "key"]])
                if noun == "services" {
                    compareFiles(
                        noun, old.allServices.map { ($0.name, $0.files, $0.location) },
                        new.allServices.map { ($0.name, $0.files, $0.location) },
                        "its files changed; its connections close")
                }
            }
        }
        comparePaths(old, new)
        keepServices(before.named("services"), after.named("services"))
        for (service, former) in ConfigurationDifference.pairs(old.allServices, new.allServices)
        where service.files != former.files {
            keptServices.remove(service.name)
        }
        lose(old, new)
    }

    // MARK: Nouns

    private mutating func compareNamed(
        _ noun: String, _ old: [ConfigNode.Entry], _ new: [ConfigNode.Entry], secrets: Set<[String]> = []
    ) {
        let former = Dictionary(old.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
        let names = Set(new.map(\.key))
        for entry in new { compare("\(noun).\(entry.key)", former[entry.key], entry.value, secrets: secrets) }
        for entry in old where !names.contains(entry.key) { compare("\(noun).\(entry.key)", entry.value, nil) }
    }

    private mutating func compareListeners(
        _ before: [ConfigNode.Entry], _ after: [ConfigNode.Entry], _ old: GatewayConfiguration,
        _ new: GatewayConfiguration
    ) {
        let first = changes.count
        compareNamed("listeners", before, after, secrets: Set(AcmeSettings.secretKeys))
        for index in changes.indices.dropFirst(first) {
            let change = changes[index]
            let name = String(change.what.dropFirst("listeners.".count))
            let former = old.listeners.first { $0.name == name }
            let now = new.listeners.first { $0.name == name }
            let giver = now.flatMap { now in old.listeners.first { $0.isBound(like: now) } }
            let taker = former.flatMap { former in new.listeners.first { former.isBound(like: $0) } }
            changes[index].effect =
                switch change.kind {
                case .added: giver.map { "takes over the socket of \($0.name)" } ?? "opens a socket"
                case .removed:
                    taker.map { "its socket goes to \($0.name)" }
                        ?? "its socket closes, and its connections finish their exchanges"
                case .changed where giver?.name != name:
                    (giver.map { "takes over the socket of \($0.name)" } ?? "opens another socket")
                        + (taker.map { ", its old one goes to \($0.name)" }
                            ?? ", its old one closes, and the connections there finish their exchanges")
                case .changed where former?.mode != now?.mode:
                    "its socket stays, and its connections finish their exchanges"
                case .changed, .moved: "its socket and its connections stay"
                }
        }
        compareFiles(
            "listeners", old.listeners.map { ($0.name, $0.files, $0.location) },
            new.listeners.map { ($0.name, $0.files, $0.location) },
            "its files changed; its socket and its connections stay")
    }

    private typealias Named = (name: String, files: [FileOfOptions], location: SourceLocation)

    /// Finds entries whose text is the same, but that name files whose content changed.
    private mutating func compareFiles(_ noun: String, _ old: [Named], _ new: [Named], _ effect: String) {
        for now in new {
            guard let former = old.first(where: { $0.name == now.name }), former.files != now.files else { continue }
            let what = "\(noun).\(now.name)"
            if changes.contains(where: { $0.what == what }) { continue }
            var change = Change(what: what, kind: .changed, location: now.location, keys: [])
            change.effect = effect
            changes.append(change)
        }
    }

    /// Finds wares whose text is the same, but whose relative paths now name other files.
    private mutating func comparePaths(_ old: GatewayConfiguration, _ new: GatewayConfiguration) {
        let moved = new.wares.compactMap { place, now -> Change? in
            guard place.route == nil, let former = old.wares[place], former.paths != now.paths,
                former.options.bare(exactly: true) == now.options.bare(exactly: true)
            else { return nil }
            var change = Change(
                what: "chains.\(place.chain): \(place.key)", kind: .changed, location: now.options.location, keys: [])
            let paths = zip(former.paths, now.paths).filter { $0 != $1 }.map { "\($0) → \($1)" }
            change.effect = "its relative paths name other files: " + paths.joined(separator: ", ")
            return change
        }
        changes += moved.sorted { ($0.location, $0.what) < ($1.location, $1.what) }
    }

    private static func pairs(
        _ old: [ConfiguredService], _ new: [ConfiguredService]
    ) -> [(ConfiguredService, ConfiguredService)] {
        new.compactMap { now in old.first { $0.name == now.name }.map { (now, $0) } }
    }

    private mutating func compare(
        _ what: String, _ old: ConfigNode?, _ new: ConfigNode?, secrets: Set<[String]> = [], exactly: Bool = false
    ) {
        switch (old, new) {
        case (nil, nil): break
        case (let old?, nil): changes.append(Change(what: what, kind: .removed, location: old.location, keys: []))
        case (nil, let new?): changes.append(Change(what: what, kind: .added, location: new.location, keys: []))
        case (let old?, let new?):
            guard old.bare(exactly: exactly) != new.bare(exactly: exactly) else { return }
            var comparison = NodeComparison(secrets: secrets, at: secretPlaces)
            comparison.compare(old, new, [])
            var change = Change(what: what, kind: .changed, location: new.location, keys: comparison.found)
            if change.keys.isEmpty { change.effect = "only the order of keys, or quotes" }
            changes.append(change)
        }
    }

    private mutating func compareChains(
        _ old: [ConfigNode.Entry], _ new: [ConfigNode.Entry], secrets: Set<[String]>
    ) {
        let former = Dictionary(old.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
        let names = Set(new.map(\.key))
        for entry in new {
            guard let old = former[entry.key] else {
                compare("chains.\(entry.key)", nil, entry.value)
                continue
            }
            for list in WrittenChain.List.allCases.map(\.rawValue) {
                compare(
                    NodeSequence.entries(old[list]), NodeSequence.entries(entry.value[list]),
                    "chains.\(entry.key).\(list)", secrets: secrets, exactly: true)
            }
        }
        for entry in old where !names.contains(entry.key) { compare("chains.\(entry.key)", entry.value, nil) }
    }

    /// Compares two sequences whose order matters.
    private mutating func compare(
        _ old: NodeSequence, _ new: NodeSequence, _ noun: String, secrets: Set<[String]> = [], exactly: Bool = false
    ) {
        let pairs = old.pairs(with: new)
        let moved = NodeSequence.moved(pairs)
        for (index, item) in new.items.enumerated() {
            let what = noun + item.name
            guard let former = pairs[index] else {
                compare(what, nil, item.node)
                continue
            }
            if moved.contains(index) {
                changes.append(Change(what: what, kind: .moved, location: item.node.location, keys: []))
            }
            compare(what, old.items[former].node, item.node, secrets: secrets, exactly: exactly)
        }
        let kept = Set(pairs.compactMap(\.self))
        for (index, item) in old.items.enumerated() where !kept.contains(index) {
            compare(noun + item.name, item.node, nil)
        }
    }

    // MARK: Kept state

    /// Keeps a service if it changed only in its chain or its fallback, because these belong to the routes that use it.
    private mutating func keepServices(_ old: [ConfigNode.Entry], _ new: [ConfigNode.Entry]) {
        func definition(_ node: ConfigNode) -> ConfigNode {
            ConfigNode(.map((node.entries ?? []).filter { $0.key != "chain" && $0.key != "fallback" }))
                .bare(exactly: false)
        }
        let now = Dictionary(new.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
        for entry in old {
            guard let node = now[entry.key] else { continue }
            if definition(entry.value) == definition(node) { keptServices.insert(entry.key) }
        }
        let name = ConfiguredService.passthroughName
        // The built-in service exists without an entry.
        if now[name] == nil, !old.contains(where: { $0.key == name }) { keptServices.insert(name) }
    }

    private mutating func lose(_ old: GatewayConfiguration, _ new: GatewayConfiguration) {
        let services = Set(new.services.map(\.name))
        for service in old.services where !keptServices.contains(service.name) {
            let what = services.contains(service.name) ? "the position in its endpoints" : "its connections"
            if service.endpoints.count > 1 || !services.contains(service.name) {
                losses.append(Loss(what: "services.\(service.name): \(what)", location: service.location))
            }
        }
        for former in old.credentials where former.credential.definition.grant != .static {
            guard !new.credentials.contains(where: { $0.credential === former.credential }) else { continue }
            losses.append(
                Loss(
                    what: "credentials.\(former.name): its tokens, except those in its file", location: former.location)
            )
        }
        for former in old.stores where !former.store.definition.outlives {
            guard !new.stores.contains(where: { $0.store.definition == former.store.definition }) else { continue }
            losses.append(Loss(what: "stores.\(former.name): its stored responses", location: former.location))
        }
        let lost = old.wares.filter { place, built in
            built.ware.holdsState && new.wares[place].map { !built.isSame(as: $0) } ?? true
        }
        losses += lost.map { place, built in
            let route = place.route.map { " of route \($0)" } ?? ""
            return Loss(
                what: "chains.\(place.chain): \(place.key)\(route): its state", location: built.options.location)
        }.sorted { ($0.location, $0.what) < ($1.location, $1.what) }
    }

    /// The options of wares whose values must never be printed, by name of ware and key.
    static func secrets(_ configurations: GatewayConfiguration...) -> Set<[String]> {
        var secrets: Set<[String]> = []
        var seen: Set<String> = []
        for built in configurations.flatMap(\.wares.values) {
            let type = type(of: built.ware)
            guard seen.insert(type.name.text).inserted else { continue }
            var reader = OptionsReader.describing()
            _ = type.init(options: &reader)
            for option in reader.described where option.isSecret {
                secrets.insert(
                    [type.name.text] + NodeComparison.bare(option.key.split(separator: ".").map(String.init)))
            }
        }
        return secrets
    }
}
