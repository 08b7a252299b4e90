import Credentials
import HttpWare

/// Errors: entries that are valid and would be unsafe to run.
struct Safety {
    private var diagnostics = Diagnostics()
    /// The joined chains, and the pairs of entries, that were checked for names.
    private var checkedChains: Set<ObjectIdentifier> = []
    private var checkedPairs: Set<[SourceLocation]> = []

    var found: [ConfigError] { diagnostics.all }

    init(listeners: [ListenerDefinition], admin: AdminDefinition?, credentials: [ConfiguredCredential] = []) {
        checkBinds(listeners, admin)
        checkAdmin(admin, listeners, credentials)
        for listener in listeners {
            checkIsClosed(listener)
            checkInterception(listener)
            checkSocks(listener)
            for chain in [listener.chain] + listener.routes.flatMap(\.chains) { checkOccupied(chain) }
        }
    }

    private mutating func checkBinds(_ listeners: [ListenerDefinition], _ admin: AdminDefinition?) {
        var places: [SocketAddress: ListenerDefinition] = [:]
        for listener in listeners where listener.bind.port != 0 {
            if let first = places[listener.bind] {
                diagnostics.error(
                    at: listener.bindLocation, "listeners.\(listener.name).bind",
                    "\(listener.bind) is taken by listener \(first.name) at \(first.bindLocation)")
            } else {
                places[listener.bind] = listener
            }
        }
        if let admin, let first = places[admin.bind] {
            diagnostics.error(
                at: admin.bindLocation, "admin.bind",
                "\(admin.bind) is taken by listener \(first.name) at \(first.bindLocation)")
        }
    }

    /// Requires a token: a program that must not see tokens could otherwise use the admin listener, which is on the
    /// same host.
    private mutating func checkAdmin(
        _ admin: AdminDefinition?, _ listeners: [ListenerDefinition], _ credentials: [ConfiguredCredential]
    ) {
        guard let admin, admin.token == nil else { return }
        let hasVariable = credentials.contains { $0.credential.definition.env != nil }
        guard hasVariable || listeners.contains(where: \.hasPlaceholders) else { return }
        diagnostics.error(
            at: admin.bindLocation, "admin.token",
            "is missing; programs that have placeholders in place of tokens could see and change the gateway here; write a token, or remove admin"
        )
    }

    /// Checks that no two wares of a type occupy the same name, such as a cookie. If both have an `if`, they may be for different requests.
    private mutating func checkOccupied(_ chain: WareChain) {
        guard checkedChains.insert(ObjectIdentifier(chain)).inserted else { return }
        let entries = chain.entries.middlewares.compactMap { entry in
            (entry.ware as? any OccupyingWare).map { (entry: entry, ware: $0) }
        }
        for (index, later) in entries.enumerated() {
            for earlier in entries[..<index] where type(of: earlier.ware) == type(of: later.ware) {
                if earlier.entry.condition != nil, later.entry.condition != nil { continue }
                // An entry that is joined twice is one ware.
                if earlier.entry.location == later.entry.location { continue }
                guard checkedPairs.insert([earlier.entry.location, later.entry.location]).inserted else { continue }
                let taken = earlier.ware.occupied
                let shared = later.ware.occupied.filter { one in taken.contains { $0 == one } }
                guard !shared.isEmpty else { continue }
                let names = shared.map { "\($0.option) (\($0.value))" }.joined(separator: ", ")
                diagnostics.error(
                    at: later.entry.location, later.entry.label,
                    "handles the same requests as \(earlier.entry.label), at \(earlier.entry.location), with the same \(names); write other ones, or an if for both"
                )
            }
        }
    }

    /// SOCKS5 supports a user name and a password, but no token.
    private mutating func checkSocks(_ listener: ListenerDefinition) {
        guard listener.socks else { return }
        for entry in listener.chain.entries.middlewares {
            guard let ware = entry.ware as? any AuthenticatingWare, ware.givesClaims else { continue }
            diagnostics.error(
                at: listener.socksLocation, "listeners.\(listener.name).socks",
                "its clients have no token for \(entry.label) at \(entry.location); use basicAuth or apiKey, or remove socks"
            )
        }
    }

    /// Checks that a listener that reads the tunnels of other machines knows its clients.
    private mutating func checkInterception(_ listener: ListenerDefinition) {
        guard let intercept = listener.intercept, !listener.bind.isLoopback else { return }
        let isKnown = listener.chain.entries.middlewares.contains { entry in
            entry.condition == nil && entry.ware is any AuthenticatingWare && WareRegistry.isGuard(entry.ware)
        }
        guard isKnown || listener.tls?.requiresCertificates == true else {
            diagnostics.error(
                at: intercept.location, "listeners.\(listener.name).intercept",
                "\(listener.bind) can be reached by others; bind to 127.0.0.1, or add authentication, without if, to the listener's chain"
            )
            return
        }
        if intercept.hosts.isAll {
            diagnostics.warning(
                at: intercept.location, "listeners.\(listener.name).intercept.hosts",
                "the tunnels of other machines are read whatever their host is; list the hosts that are meant")
        }
    }

    /// Checks that a forward listener is not an open proxy: one that others can reach needs a ware that identifies its
    /// clients.
    private mutating func checkIsClosed(_ listener: ListenerDefinition) {
        guard listener.mode == .forward, !listener.bind.isLoopback else { return }
        let isGuarded = { (chain: WareChain) in
            chain.entries.middlewares.contains { $0.condition == nil && WareRegistry.isGuard($0.ware) }
        }
        guard !isGuarded(listener.chain),
            listener.routes.isEmpty || !listener.routes.allSatisfy({ $0.chains.allSatisfy(isGuarded) })
        else {
            return
        }
        diagnostics.error(
            at: listener.bindLocation, "listeners.\(listener.name).bind",
            "\(listener.bind) would be an open proxy; bind to 127.0.0.1, or add ipRule with allow, or authentication, without if, to its chain"
        )
    }
}
