import Credentials
import HttpWare

extension GatewayConfiguration {
    /// Notes on settings that are valid and usual, and still worth knowing; `check` shows them.
    public var notes: [String] {
        listeners.compactMap(noteOnPaths) + credentials.compactMap { noteOnWindow($0.credential.definition) }
            + [noteOnSegments, noteOnClaims, noteOnKeyExchange].compactMap(\.self)
    }

    /// Paths that servers read differently are refused where they could get past a ware.
    private func noteOnPaths(_ listener: ListenerDefinition) -> String? {
        listener.ambiguityReason.map {
            "listener \(listener.name) answers paths with //, %2F, \\ or ; 400, because the path decides about \($0);"
                + " write paths: strict if that is right, or paths: lenient"
        }
    }

    /// A window that is too narrow for tokens as they usually live: an hour, or a few minutes.
    private func noteOnWindow(_ definition: CredentialDefinition) -> String? {
        guard definition.grant != .static, definition.shortfall(ofTokensLiving: Self.shortToken) != nil else {
            return nil
        }
        return
            "credential \(definition.name): window allows \(definition.window.text);"
            + " requests fail if its tokens live \(Self.shortToken.optionText) or less"
    }

    private static let shortToken = Duration.seconds(300)

    /// In other gateways a star at the end matches everything below it.
    private var noteOnSegments: String? {
        let written = Set(routes.flatMap { $0.match.paths.map(\.source) })
        var shown: [String] = []
        for route in routes where !route.services.isEmpty {
            for path in route.match.paths.map(\.source) where path.hasSuffix("/*") && path != "/*" {
                if !written.contains(path + "*"), !shown.contains(path) { shown.append(path) }
            }
        }
        guard let first = shown.first else { return nil }
        let others = shown.count > 1 ? "; \(shown.count - 1) more like it" : ""
        return "\(first) matches one segment, not what is below that; \(first)* matches everything below\(others)"
    }

    /// The key exchanges of listeners with TLS: whether they withstand quantum computers depends on the machine's OpenSSL.
    private var noteOnKeyExchange: String? {
        guard listeners.contains(where: { $0.tls != nil }) else { return nil }
        let groups = TlsContext.keyExchanges
        let advice = groups.contains("X25519MLKEM768") ? "" : "; X25519MLKEM768 needs OpenSSL 3.5"
        return "TLS key exchange, in order of preference: \(groups.joined(separator: ", "))\(advice)"
    }

    /// Names the routes whose requests keep the fields by which a client claims another address or host.
    private var noteOnClaims: String? {
        var names: [String] = []
        for listener in listeners where listener.mode == .reverse {
            for resolved in listener.routes where !resolved.route.services.isEmpty {
                let isOpen = resolved.chains.contains { chain in
                    !chain.entries.middlewares.contains { entry in
                        (type(of: entry.ware) as? any ConfigurableWare.Type)?.name == "forwarded"
                    }
                }
                if isOpen, !names.contains(resolved.route.name) { names.append(resolved.route.name) }
            }
        }
        guard !names.isEmpty else { return nil }
        let shown = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
        return
            "without forwarded in its chain, a route passes on fields such as X-Forwarded-For and X-Real-IP from any client, which an origin server may believe: \(shown)"
    }
}
