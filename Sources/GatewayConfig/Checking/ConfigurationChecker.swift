import Credentials
import HttpCaching
import HttpWare

// One file: the sections are read in one order, because each refers to names that an earlier one defines.
/// Makes a configuration from the joined files: definitions, resolved names, built and joined chains.
struct ConfigurationChecker {
    private(set) var diagnostics = Diagnostics()
    private var builder: ChainBuilder
    private let source: ConfigurationFiles
    private var namedFiles: [String] = []
    private var references = References()
    private let former: [ConfiguredCredential]
    private let formerStores: [ConfiguredStore]
    private let storeKinds: [any StoreKind.Type]
    private let isForClient: Bool
    /// Whether errors at that place are about a found service, whose text must not look at this machine.
    private let isGuest: (String) -> Bool

    /// The words of other programs for the nouns.
    private static let otherWords = [
        "server": "listeners", "servers": "listeners", "http": "listeners", "frontend": "listeners",
        "frontends": "listeners", "entrypoints": "listeners", "upstream": "services", "upstreams": "services",
        "backend": "services", "backends": "services", "clusters": "services", "routers": "routes",
        "locations": "routes", "virtualhosts": "routes", "virtual_hosts": "routes", "middlewares": "chains",
        "plugins": "chains", "filters": "chains", "handlers": "chains", "logging": "log", "dns": "resolver",
        "resolvers": "resolver", "providers": "discover", "docker": "discover",
    ]

    static let nouns = [
        "listeners", "credentials", "stores", "services", "chains", "routes", "discover", "admin", "resolver", "log",
    ]
    private static let mostListeners = 100
    private static let mostRoutes = 10_000

    /// The files that options name.
    var files: [String] { builder.files + namedFiles }

    /// Keeps wares of the former configuration that would be built in the same way.
    init(
        registry: WareRegistry, stores: [any StoreKind.Type], keeping former: GatewayConfiguration? = nil,
        files: ConfigurationFiles = .system, isForClient: Bool = false,
        isGuest: @escaping (String) -> Bool = { _ in false }
    ) {
        storeKinds = stores
        self.isForClient = isForClient
        self.isGuest = isGuest
        source = files
        self.former = former?.credentials ?? []
        formerStores = former?.stores ?? []
        builder = ChainBuilder(registry: registry, former: former?.wares ?? [:], isGuest: isGuest)
    }

    mutating func check(_ entries: [ConfigNode.Entry], at start: SourceLocation) -> GatewayConfiguration {
        checkKeys(entries)
        let source = self.source
        // Listeners can name stores, so the stores are read first.
        let stores = readStores(entries)
        var listeners = named("listeners", entries).compactMap { entry in
            read(entry, "listeners") { ListenerDefinition(name: entry.key, options: &$0, files: source) }
        }
        var passthrough = ConfiguredService.passthrough
        var services = named("services", entries).compactMap { entry -> ConfiguredService? in
            if entry.key == ConfiguredService.passthroughName {
                passthrough = read(entry, "services") { ConfiguredService(passthrough: &$0, files: source) }
                return nil
            }
            return read(entry, "services") { ConfiguredService(name: entry.key, options: &$0, files: source) }
        }
        // Also adds services with an error, so that the error is reported only once.
        for entry in entries.filter({ $0.key == "services" }).flatMap({ $0.value.entries ?? [] })
        where entry.key != ConfiguredService.passthroughName {
            builder.objects.add(nil, noun: "services", name: entry.key)
        }
        let credentials = readCredentials(entries)
        let written = named("chains", entries).map { builder.read(name: $0.key, node: $0.value) }
        var chains = ChainTable(written)
        var routes = readRoutes(entries)
        let admin = readSingle("admin", entries) { AdminDefinition(options: &$0) }
        let resolver =
            readSingle("resolver", entries) { ResolverDefinition(options: &$0) } ?? ResolverDefinition()
        let log = readSingle("log", entries) { LogDefinition(options: &$0) } ?? LogDefinition()
        let discover = readSingle("discover", entries) { DiscoverDefinition(options: &$0, files: source) }
        if listeners.count > Self.mostListeners {
            diagnostics.error(at: start, "listeners", "more than \(Self.mostListeners)")
            listeners = []
        }
        // If listeners are written under another name or with a mistake, only that mistake is reported.
        let isAnyWritten = entries.contains { $0.key == "listeners" || Self.meant(by: $0.key) == "listeners" }
        if listeners.isEmpty, !isForClient, !isAnyWritten || !diagnostics.hasErrors {
            diagnostics.error(
                at: start, "listeners", "is empty; write a listener, such as web: { bind: 127.0.0.1:8080 }")
        }
        resolveFallbacks(&services)
        resolve(&routes, services + [passthrough], listeners)
        checkDiscovered(services, discover)
        // A route that could not be read may contain what seems to be missing.
        let areRoutesKnown = !diagnostics.hasErrors
        join(&listeners, routes, services, &chains)
        checkGuests(routes, listeners, discover)
        for index in listeners.indices {
            let chains = [listeners[index].chain] + listeners[index].routes.flatMap(\.chains)
            listeners[index].hasPlaceholders = chains.contains { chain in
                chain.entries.middlewares.contains { ($0.ware as? any CredentialUser)?.replacesPlaceholders == true }
            }
        }
        diagnostics.append(AcmeRules(listeners).diagnostics.all)
        PathReadings.decide(&listeners)
        var credentialRules = CredentialRules()
        for listener in listeners {
            for chain in [listener.chain] + listener.routes.flatMap(\.chains) { credentialRules.check(chain) }
            for route in listener.routes where route.route.service?.isPassthrough == true {
                credentialRules.checkPassthrough(route.chain)
            }
        }
        diagnostics.append(credentialRules.errors.all)
        references.checkResponders(of: builder)
        if areRoutesKnown { references.checkCaptures() }
        diagnostics.append(references.diagnostics.all)
        diagnostics.append(builder.diagnostics.all)
        diagnostics.append(chains.diagnostics.all)
        diagnostics.append(Safety(listeners: listeners, admin: admin, credentials: credentials).found)
        // After an error, much seems unused or unreachable although it is not.
        if !diagnostics.hasErrors, !isForClient {
            diagnostics.append(
                Lints(
                    listeners: listeners, services: passthrough.location == .code ? services : services + [passthrough],
                    routes: routes, findsRoutes: discover != nil,
                    namedServices: Set(builder.references.filter { $0.noun == "services" }.map(\.name))
                ).found)
            diagnostics.append(credentialRules.warnings.all)
            for credential in credentials { warnOfUnused("credentials", credential.name, at: credential.location) }
            warnOfPlaceholders(credentials, listeners)
            for store in stores where store.name != StoreDefinition.builtinName {
                warnOfUnused("stores", store.name, at: store.location)
            }
            let ofLabels = discover?.chains.map(\.value) ?? []
            for chain in written where !chains.used.contains(chain.name) && !ofLabels.contains(chain.name) {
                diagnostics.warning(at: chain.location, "chains.\(chain.name)", "is not used")
            }
        }
        var configuration = GatewayConfiguration(
            listeners: listeners, credentials: credentials, stores: stores, services: services,
            passthrough: passthrough, routes: routes,
            admin: admin, resolver: resolver, log: log, discover: discover,
            written: entries, wares: builder.built)
        if isForClient { configuration.chains = chains.joined }
        return configuration
    }

    /// Reads the credentials. If a definition did not change, the running credential is kept.
    private mutating func readCredentials(_ entries: [ConfigNode.Entry]) -> [ConfiguredCredential] {
        var found: [ConfiguredCredential] = []
        var variables: [String: String] = [:]
        for entry in named("credentials", entries) {
            let errors = diagnostics.all.count { $0.severity == .error }
            var definition = read(entry, "credentials") { CredentialDefinition(name: entry.key, options: &$0) }
            definition.keepsBeforeUse = isForClient
            guard errors == diagnostics.all.count(where: { $0.severity == .error }) else {
                builder.objects.add(nil, noun: "credentials", name: entry.key)
                continue
            }
            if let env = definition.env, let other = variables.updateValue(entry.key, forKey: env) {
                diagnostics.error(
                    at: entry.location, "credentials.\(entry.key).env",
                    "\(env) is the variable of credentials.\(other); each credential needs its own")
            }
            let kept = former.first { $0.credential.definition == definition }?.credential
            let credential = kept ?? Credential(definition, after: former.map(\.credential))
            builder.objects.add(credential, noun: "credentials", name: entry.key)
            found.append(ConfiguredCredential(location: entry.location, credential: credential))
        }
        return found
    }

    /// Reads the stores, and adds the built-in one. If a definition did not change, the running store is kept.
    private mutating func readStores(_ entries: [ConfigNode.Entry]) -> [ConfiguredStore] {
        var definitions: [(location: SourceLocation, definition: StoreDefinition)] = []
        var isBuiltinWritten = false
        var folders: [FilePath: String] = [:]
        let kinds = storeKinds
        for entry in named("stores", entries) {
            if entry.key == StoreDefinition.builtinName { isBuiltinWritten = true }
            let errors = diagnostics.all.count { $0.severity == .error }
            let definition = read(entry, "stores") { StoreDefinition(name: entry.key, options: &$0, kinds: kinds) }
            if let path = definition.kind.folder, let other = folders.updateValue(entry.key, forKey: path) {
                diagnostics.error(
                    at: entry.location, "stores.\(entry.key).\(definition.kindName).path",
                    "is the folder of stores.\(other); each store needs its own")
            }
            if errors == diagnostics.all.count(where: { $0.severity == .error }) {
                definitions.append((entry.location, definition))
            } else {
                builder.objects.add(nil, noun: "stores", name: entry.key)
            }
        }
        if !isBuiltinWritten { definitions.append((.code, .builtin)) }
        return definitions.map { location, definition in
            let kept = formerStores.first { $0.store.definition == definition }?.store
            let store = kept ?? NamedStore(definition)
            builder.objects.add(store, noun: "stores", name: definition.name)
            return ConfiguredStore(location: location, store: store)
        }
    }

    /// Warns about placeholders that no ware replaces, and about listeners whose clients have placeholders but cannot open
    /// a tunnel.
    private mutating func warnOfPlaceholders(_ credentials: [ConfiguredCredential], _ listeners: [ListenerDefinition]) {
        var replaced: Set<ObjectIdentifier> = []
        for entry in listeners.flatMap({ [$0.chain] + $0.routes.flatMap(\.chains) }).flatMap(\.entries.middlewares) {
            guard let user = entry.ware as? any CredentialUser, user.replacesPlaceholders else { continue }
            if let credential = user.credential { replaced.insert(ObjectIdentifier(credential)) }
        }
        for credential in credentials where credential.credential.definition.env != nil {
            guard !replaced.contains(ObjectIdentifier(credential.credential)) else { continue }
            diagnostics.warning(
                at: credential.location, "credentials.\(credential.name).env",
                "gives programs a placeholder that nothing replaces; write tokenInject: { credential: \(credential.name), placeholder: {} } in a chain"
            )
        }
        for listener in listeners
        where listener.hasPlaceholders && listener.mode == .forward && listener.intercept == nil {
            diagnostics.warning(
                at: listener.location, "listeners.\(listener.name)",
                "replaces placeholders of tokens and reads no tunnels, so each CONNECT is answered 403; write intercept: { hosts: [\"*\"] }"
            )
        }
    }

    private mutating func warnOfUnused(_ noun: String, _ name: String, at location: SourceLocation) {
        if !builder.references.contains(where: { $0.noun == noun && $0.name == name }) {
            diagnostics.warning(at: location, "\(noun).\(name)", "is not used")
        }
    }

    // MARK: Nouns

    private mutating func checkKeys(_ entries: [ConfigNode.Entry]) {
        // Keys that begin with `x-` hold values for anchors.
        for entry in entries where !Self.nouns.contains(entry.key) && !entry.key.hasPrefix("x-") {
            let near =
                Self.otherWords[entry.key.lowercased()].map { "; here it is \"\($0)\"" }
                ?? didYouMean(entry.key, among: Self.nouns + ["version", "include"])
            diagnostics.error(at: entry.location, entry.key.shortened, "unknown key\(near)")
        }
    }

    /// The key for a word of another program, or the key with a similar name; `nil` if there is neither.
    private static func meant(by key: String) -> String? {
        otherWords[key.lowercased()] ?? nearest(to: key, among: nouns + ["version", "include"])
    }

    /// The entries of a noun from all files. A name that is defined twice is an error.
    private mutating func named(_ noun: String, _ entries: [ConfigNode.Entry]) -> [ConfigNode.Entry] {
        var places: [String: SourceLocation] = [:]
        var result: [ConfigNode.Entry] = []
        for section in entries where section.key == noun {
            guard let members = section.value.entries else {
                diagnostics.error(
                    at: section.value.location, noun, "\(section.value.shown) is not a map; write name: {…}")
                continue
            }
            for entry in members {
                let keyPath = "\(noun).\(entry.key.shortened)"
                if let first = places[entry.key] {
                    diagnostics.error(
                        at: entry.location, keyPath, "this name is defined twice; the first is at \(first)")
                } else if !ServiceName.isName(entry.key) {
                    diagnostics.error(
                        at: entry.location, keyPath, "is not a name; write letters, digits, -, _ and ., at most 64")
                } else {
                    places[entry.key] = entry.location
                    result.append(entry)
                }
            }
        }
        return result
    }

    private mutating func read<T>(_ entry: ConfigNode.Entry, _ noun: String, _ body: (inout OptionsReader) -> T) -> T {
        var options = OptionsReader(entry.value, keyPath: "\(noun).\(entry.key)", naming: builder.objects)
        let value = isGuest(entry.location.file) ? FileGate.whileClosed { body(&options) } : body(&options)
        diagnostics.append(options.finish())
        builder.note(options.references)
        namedFiles += options.files.map(\.path)
        return value
    }

    private mutating func readRoutes(_ entries: [ConfigNode.Entry]) -> [RouteDefinition] {
        var routes: [RouteDefinition] = []
        var places: [String: SourceLocation] = [:]
        for section in entries where section.key == "routes" {
            if case .map = section.value.content {
                diagnostics.error(
                    at: section.value.location, "routes", "a map is not a list; write - before each route")
                continue
            }
            for node in section.value.members {
                var options = OptionsReader(node, keyPath: "routes[\(routes.count)]")
                let route = RouteDefinition(index: routes.count, options: &options)
                diagnostics.append(options.finish())
                if let first = places.updateValue(route.location, forKey: route.name) {
                    diagnostics.error(
                        at: route.location, "routes[\(route.index)].name",
                        "\(route.name.quotedForErrors) is defined twice; the first is at \(first)")
                }
                routes.append(route)
            }
            if routes.count > Self.mostRoutes {
                diagnostics.error(at: section.location, "routes", "more than \(Self.mostRoutes)")
                return []
            }
        }
        return routes
    }

    /// Reads a noun that has only one value: the first in the files; `nil` if there is none.
    private mutating func readSingle<T>(
        _ noun: String, _ entries: [ConfigNode.Entry], _ body: (inout OptionsReader) -> T
    ) -> T? {
        let sections = entries.filter { $0.key == noun }
        guard let first = sections.first else { return nil }
        for other in sections.dropFirst() {
            diagnostics.error(at: other.location, noun, "is defined twice; the first is at \(first.location)")
        }
        var options = OptionsReader(first.value, keyPath: noun)
        let value = body(&options)
        diagnostics.append(options.finish())
        return value
    }

    // MARK: Found services

    /// Services with found endpoints need a place where they are looked for.
    private mutating func checkDiscovered(_ services: [ConfiguredService], _ discover: DiscoverDefinition?) {
        guard discover == nil, !isForClient else { return }
        for service in services {
            guard let discovered = service.discovered else { continue }
            diagnostics.error(
                at: discovered.location, "services.\(service.name).discovered",
                "needs the section discover; write discover: { docker: {} } or discover: { folder: services.d }")
        }
    }

    /// Labels name only the chains that the file lists for them: a chain may send a credential, or read what a container must not.
    private mutating func checkGuests(
        _ routes: [RouteDefinition], _ listeners: [ListenerDefinition], _ discover: DiscoverDefinition?
    ) {
        for name in discover?.chains ?? [] where !builder.chainNames.contains(name.value) {
            let near = didYouMean(name.value, among: builder.chainNames.sorted())
            diagnostics.error(
                at: name.location, "discover.chains", "there is no chain \(name.value.quotedForErrors)\(near)")
        }
        for name in discover?.listeners ?? [] where !listeners.contains(where: { $0.name == name.value }) {
            let near = didYouMean(name.value, among: listeners.map(\.name).sorted())
            diagnostics.error(
                at: name.location, "discover.listeners", "there is no listener \(name.value.quotedForErrors)\(near)")
        }
    }

    // MARK: Names

    /// Resolves each service's fallback, the fallback of that one, and so on. The number of services limits them: a cycle
    /// is an error.
    private mutating func resolveFallbacks(_ services: inout [ConfiguredService]) {
        let names = services.map(\.name)
        let next = Dictionary(
            services.compactMap { service in service.fallbackName.map { (service.name, $0.value) } },
            uniquingKeysWith: { first, _ in first })
        for index in services.indices {
            guard let fallback = services[index].fallbackName else { continue }
            let keyPath = "services.\(services[index].name).fallback"
            guard names.contains(fallback.value) else {
                let isBuiltIn = fallback.value == ConfiguredService.passthroughName
                let why =
                    isBuiltIn
                    ? "passthrough goes where the client asks, and cannot be a fallback"
                    : "there is no service \(fallback.value.quotedForErrors)"
                        + didYouMean(fallback.value, among: names.sorted())
                diagnostics.error(at: fallback.location, keyPath, why)
                continue
            }
            var way: [String] = []
            var name: String? = fallback.value
            while let one = name, !way.contains(one), names.contains(one) {
                way.append(one)
                name = next[one]
            }
            if fallback.value == services[index].name {
                diagnostics.error(at: fallback.location, keyPath, "is the service itself; write another service")
                continue
            }
            // Services may be each other's fallback: a request walks to each of them once.
            way.removeAll { $0 == services[index].name }
            services[index].fallbacks = way
        }
    }

    private mutating func resolve(
        _ routes: inout [RouteDefinition], _ services: [ConfiguredService], _ listeners: [ListenerDefinition]
    ) {
        let byName = Dictionary(services.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let listenerNames = Set(listeners.map(\.name))
        for index in routes.indices {
            let keyPath = "routes[\(index)]"
            if let name = routes[index].serviceName {
                routes[index].service = byName[name.value]
                if byName[name.value] == nil {
                    let near =
                        name.value.contains("://")
                        ? "; write services: { NAME: { baseUrl: … } }, and service: NAME"
                        : didYouMean(name.value, among: byName.keys.sorted())
                    diagnostics.error(
                        at: name.location, "\(keyPath).service",
                        "there is no service \(name.value.quotedForErrors)\(near)")
                }
            }
            for share in routes[index].shares.indices {
                let name = routes[index].shares[share].name
                let shown = "\(keyPath).split[\(share)].service"
                routes[index].shares[share].service = byName[name.value]
                if byName[name.value] == nil {
                    let near = didYouMean(name.value, among: byName.keys.sorted())
                    diagnostics.error(
                        at: name.location, shown, "there is no service \(name.value.quotedForErrors)\(near)")
                } else if byName[name.value]?.isPassthrough == true {
                    diagnostics.error(
                        at: name.location, shown, "passthrough goes where the client asks, and cannot be a share")
                }
            }
            for name in routes[index].listeners where !listenerNames.contains(name.value) {
                let near = didYouMean(name.value, among: listenerNames.sorted())
                diagnostics.error(
                    at: name.location, "\(keyPath).listener",
                    "there is no listener \(name.value.quotedForErrors)\(near)")
            }
        }
    }

    // MARK: Chains

    private mutating func join(
        _ listeners: inout [ListenerDefinition], _ routes: [RouteDefinition], _ services: [ConfiguredService],
        _ chains: inout ChainTable
    ) {
        let ofListeners = listeners.map { chains.chain($0.chainName, for: "listeners.\($0.name).chain") }
        var ofServices: [String: ChainTable.Spliced] = [:]
        for service in services {
            ofServices[service.name] = chains.chain(service.chainName, for: "services.\(service.name).chain")
        }
        for index in listeners.indices {
            listeners[index].chain = WareChain.joining(listener: ofListeners[index], route: .init(), service: .init())
            references.note(ofListeners[index].captures, for: [])
        }
        var joined: [[String]: WareChain] = [:]
        var captures: [[String]: [NeededCapture]] = [:]
        for route in routes {
            let services = route.shares.isEmpty ? [route.service] : route.shares.map(\.service)
            // A chain that several shares have is changed only once, so that they have the same wares.
            var ofChain: [String: Int] = [:]
            var own = [chains.chain(route.chainName, for: "routes[\(route.index)].chain")]
            let places = services.map { service -> Int in
                let name = service?.chainName?.value ?? ""
                if let place = ofChain[name] { return place }
                ofChain[name] = own.count
                own.append(ofServices[service?.name ?? ""] ?? .init())
                return own.count - 1
            }
            var overrides = RouteOverrides(of: route)
            overrides.apply(to: &own, outOfReach: ofListeners, builder: &builder)
            diagnostics.append(overrides.diagnostics.all)
            let isShared = route.with.isEmpty
            for index in listeners.indices where route.serves(listeners[index]) {
                let chains = zip(services, places).map { service, place -> WareChain in
                    let names = [listeners[index].chainName, route.chainName, service?.chainName].map {
                        $0?.value ?? ""
                    }
                    let needed =
                        (isShared ? captures[names] : nil)
                        ?? ([own[0], own[place]] + [ofListeners[index]]).flatMap(\.captures)
                    references.note(needed, for: route.match.paths + route.match.capturesIgnoringCase)
                    let chain =
                        (isShared ? joined[names] : nil)
                        ?? WareChain.joining(listener: ofListeners[index], route: own[0], service: own[place])
                    if isShared {
                        joined[names] = chain
                        captures[names] = needed
                    }
                    return chain
                }
                listeners[index].routes.append(ResolvedRoute(route: route, chains: chains))
            }
        }
    }
}

extension RouteDefinition {
    /// Whether the route is used on the listener; `passthrough` is never used on a reverse listener.
    func serves(_ listener: ListenerDefinition) -> Bool {
        if !listeners.isEmpty, !listeners.contains(where: { $0.value == listener.name }) { return false }
        return listener.mode == .forward || service?.isPassthrough != true
    }
}
