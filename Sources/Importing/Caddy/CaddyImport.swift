import HttpWare

/// Turns a Caddyfile into listeners, services and routes.
struct CaddyImport {
    /// What a site says about TLS.
    private struct SiteTls {
        var certificates: [(cert: String, key: String)] = []
        var isInternal = false
        var email: String?
        var clientCa: String?
        var minVersion: String?
        var refusal: String?
    }

    private var draft = GatewayDraft()
    private var options: CaddyOptions
    private var redirected: [(host: String, place: SourceLocation)] = []

    /// Reads a Caddyfile, with the files that it imports. Throws if it is none.
    static func read(
        _ bytes: [UInt8], file: String, files: @escaping CaddyfileParser.Files
    ) throws(CaddyfileFault) -> GatewayDraft {
        translate(try CaddyfileParser.read(bytes, file: file, files: files))
    }

    /// Translates what a Caddyfile, or adapted JSON, says.
    static func translate(_ result: CaddyfileParser.Result) -> GatewayDraft {
        var draft = GatewayDraft()
        for (variable, file) in result.variables {
            let name = variable.name.lowercased().replacing("_", with: "-")
            draft.note(
                SourceLocation(file: file, line: variable.line, column: 1), "{$\(variable.name)}",
                variable.hasDefault
                    ? "the default of the variable is taken, whatever the environment says"
                    : "the variable is not known here: in hosts and upstreams it is \(name).invalid; replace that by its value"
            )
        }
        for missing in result.missing {
            draft.note(
                SourceLocation(file: missing.file, line: missing.line, column: 1), missing.text,
                "there is no such file or snippet")
        }
        let options = CaddyOptions(result.options, &draft)
        var reader = CaddyImport(draft: draft, options: options)
        reader.readSites(result)
        return reader.draft
    }

    private init(draft: GatewayDraft, options: CaddyOptions) {
        self.draft = draft
        self.options = options
    }

    private mutating func readSites(_ result: CaddyfileParser.Result) {
        struct Site {
            var site: CaddyfileSite
            var addresses: [(address: CaddyAddress, token: CaddyfileToken)]
            var rank: (Int, Int)
        }
        var sites: [Site] = []
        for site in result.sites {
            var addresses: [(CaddyAddress, CaddyfileToken)] = []
            for token in site.addresses {
                let known = ForeignVariables.replaced(token.text, open: "{$").text
                if let address = CaddyAddress(known) {
                    addresses.append((address, token))
                } else {
                    let place = SourceLocation(file: token.file, line: token.line, column: 1)
                    draft.note(
                        place, token.text, "the address has no counterpart, or depends on a variable that is not known")
                }
            }
            guard !addresses.isEmpty else { continue }
            let rank = addresses.map(\.0.rank).max { $0 < $1 } ?? (0, 0)
            sites.append(Site(site: site, addresses: addresses.map { (address: $0.0, token: $0.1) }, rank: rank))
        }
        // The most exact names first, as Caddy does; a stable sort.
        let sorted = sites.enumerated().sorted {
            $0.element.rank == $1.element.rank ? $0.offset < $1.offset : $0.element.rank > $1.element.rank
        }
        var flow = CaddyFlow(draft: draft, order: options.order, namedRoutes: result.namedRoutes)
        // Listeners in file order, routes by rank.
        var made: [Int: [(listeners: [String], test: RequestTest, place: SourceLocation)]] = [:]
        var refusals: [Int: String] = [:]
        for (index, site) in sites.enumerated() {
            let tls = readTls(site.site)
            refusals[index] = tls.refusal
            for (address, token) in site.addresses {
                let place = SourceLocation(file: token.file, line: token.line, column: 1)
                let listeners = listeners(address, tls, site.site, place)
                var tests: [RequestTest] = []
                if !address.host.isEmpty { tests.append(CaddyMatchers.host(address.host)) }
                if !address.path.isEmpty { tests.append(CaddyMatchers.path(address.path)) }
                var entries = made[index] ?? []
                // Addresses of one site on the same listeners share its routes.
                if let same = entries.firstIndex(where: { $0.listeners == listeners }) {
                    entries[same].test = .any([entries[same].test, .all(tests)])
                } else {
                    entries.append((listeners, .all(tests), place))
                }
                made[index] = entries
            }
        }
        flow.draft = draft
        for (index, site) in sorted {
            for entry in made[index] ?? [] {
                flow.listeners = entry.listeners
                var context = CaddyContext(test: entry.test.simplified())
                context.refusal = refusals[index]
                flow.follow(site.site.segments, context, at: entry.place)
            }
        }
        draft = flow.draft
        addRedirects()
    }

    // MARK: Listeners

    private mutating func listeners(
        _ address: CaddyAddress, _ tls: SiteTls, _ site: CaddyfileSite, _ place: SourceLocation
    ) -> [String] {
        let isPlain =
            address.scheme == "http" || (address.scheme.isEmpty && address.port == options.httpPort)
            || (address.scheme.isEmpty && (address.host.isEmpty || !options.automatesTls) && tls.certificates.isEmpty
                && !tls.isInternal
                && address.port != options.httpsPort)
        let port = address.port ?? (isPlain ? options.httpPort : options.httpsPort)
        var binds = site.segments.filter { $0.name == "bind" }.flatMap(\.arguments)
        if binds.isEmpty { binds = options.defaultBind }
        if binds.isEmpty { binds = [""] }
        var names: [String] = []
        for written in binds {
            let text: String
            var bind = written
            for network in ["tcp/", "tcp4/", "tcp6/"] where bind.hasPrefix(network) {
                bind = String(bind.dropFirst(network.utf8.count))
            }
            if bind.hasPrefix("["), bind.hasSuffix("]"), bind == "[::]" { bind = "::" }
            if bind.hasPrefix("unix/") {
                text = "unix:" + bind.dropFirst(5).split(separator: "|")[0]
            } else if bind.isEmpty || bind == "0.0.0.0" || bind == "::" {
                text = "\(bind == "::" ? "[::]" : "0.0.0.0"):\(port)"
            } else if HostText.isAddress(bind) || bind == "localhost" {
                text = bind.contains(":") && !bind.hasPrefix("[") ? "[\(bind)]:\(port)" : "\(bind):\(port)"
            } else {
                draft.note(place, "bind " + bind, "a listener is bound to an address, not to a name")
                text = "0.0.0.0:\(port)"
            }
            names.append(listener(text, port, isPlain, address, tls, place))
        }
        return names
    }

    private mutating func listener(
        _ bind: String, _ port: Int, _ isPlain: Bool, _ address: CaddyAddress, _ tls: SiteTls, _ place: SourceLocation
    ) -> String {
        var index = draft.listeners.firstIndex { $0.bind == bind } ?? -1
        if index < 0 {
            let base =
                isPlain && port == options.httpPort
                ? "http" : !isPlain && port == options.httpsPort ? "https" : "port-\(port)"
            let isTaken = draft.listeners.contains { $0.name == base }
            var listener = ListenerDraft(
                name: isTaken ? "\(base)-\(draft.listeners.count + 1)" : base, bind: bind, place: place)
            if !options.trustedProxies.isEmpty {
                listener.options.append(("trustedProxies", .list(options.trustedProxies)))
            }
            if !options.proxyProtocolFrom.isEmpty {
                listener.options.append(("proxyProtocol", .map(["from": .list(options.proxyProtocolFrom)])))
            }
            index = draft.listeners.count
            draft.listeners.append(listener)
        }
        guard !isPlain else { return draft.listeners[index].name }
        draft.listeners[index].isTls = true
        if let ca = tls.clientCa, !draft.listeners[index].tlsOptions.contains(where: { $0.key == "clientCa" }) {
            draft.listeners[index].tlsOptions.append(("clientCa", .text(ca)))
        }
        if let version = tls.minVersion, !draft.listeners[index].tlsOptions.contains(where: { $0.key == "minVersion" })
        {
            draft.listeners[index].tlsOptions.append(("minVersion", .text(version)))
        }
        for certificate in tls.certificates
        where !draft.listeners[index].certificates.contains(where: { $0 == certificate }) {
            draft.listeners[index].certificates.append(certificate)
        }
        if !tls.certificates.isEmpty {
            // The files are named.
        } else if tls.isInternal || options.usesLocalCertificates || address.host.isEmpty || address.host.hasPrefix("*")
            || HostText.isLocal(address.host)
        {
            let name =
                address.host.isEmpty ? "site" : GatewayDraft.nameText(address.host.replacingBytes("*", by: "wildcard"))
            draft.note(
                place, address.host.isEmpty ? "tls" : address.host,
                address.host.hasPrefix("*") && !tls.isInternal
                    ? "a wildcard certificate needs a challenge by DNS: put a certificate and its key where tls names them"
                    : "Caddy signs this certificate itself: put a certificate and its key where tls names them")
            draft.listeners[index].certificates.append(("\(name).pem", "\(name).key"))
        } else if !draft.listeners[index].acmeDomains.contains(address.host) {
            draft.listeners[index].acmeDomains.append(address.host)
            draft.listeners[index].acmeEmail = draft.listeners[index].acmeEmail ?? tls.email ?? options.email
            draft.listeners[index].acmeDirectory = options.authority
        }
        if options.redirects, address.scheme.isEmpty || address.scheme == "https", port == options.httpsPort {
            redirected.append((address.host, place))
        }
        return draft.listeners[index].name
    }

    /// What Caddy answers in clear text for the names that have certificates.
    private mutating func addRedirects() {
        let hosts = redirected.filter { !$0.host.isEmpty }
        guard let first = redirected.first else { return }
        let bind = "0.0.0.0:\(options.httpPort)"
        var name = draft.listeners.first { $0.bind == bind }?.name
        if name == nil {
            let isTaken = draft.listeners.contains { $0.name == "http" }
            let listener = ListenerDraft(name: isTaken ? "http-redirects" : "http", bind: bind, place: first.place)
            draft.listeners.append(listener)
            name = listener.name
        }
        var seen: Set<String> = []
        let tests = hosts.filter { seen.insert($0.host).inserted }.map { CaddyMatchers.host($0.host) }
        let redirect = WareDraft(
            "redirect",
            [
                "scheme": .word("https"), "status": .word("308"),
                "port": options.httpsPort == 443 ? nil : .word(String(options.httpsPort)),
            ], at: first.place)
        draft.add(
            RouteDraft(
                listeners: name.map { [$0] } ?? [], test: hosts.count < redirected.count ? .always : .any(tests),
                middlewares: [redirect], target: .answered, place: first.place))
    }

    // MARK: TLS

    private mutating func readTls(_ site: CaddyfileSite) -> SiteTls {
        var tls = SiteTls()
        for segment in site.segments where segment.name == "tls" {
            let arguments = segment.arguments
            if arguments == ["internal"] {
                tls.isInternal = true
            } else if arguments.count == 2 {
                tls.certificates.append((arguments[0], arguments[1]))
            } else if arguments.count == 1, CaddyOptions.isEmail(arguments[0]) {
                tls.email = arguments[0]
            } else if !arguments.isEmpty {
                draft.note(CaddyFlow.place(of: segment), segment.shown, "the form of tls has no counterpart")
            }
            for option in segment.block ?? [] {
                let place = CaddyFlow.place(of: option)
                switch option.name {
                case "protocols":
                    tls.minVersion = option.arguments.first == "tls1.3" ? "1.3" : nil
                case "client_auth": readClientAuth(option, &tls)
                case "issuer" where option.arguments.first == "internal": tls.isInternal = true
                case "ca": draft.note(place, option.shown, "write the directory to listeners.NAME.tls.acme.directory")
                case "dns", "propagation_timeout", "propagation_delay", "dns_ttl", "resolvers":
                    draft.note(place, option.shown, "the challenge by DNS is not known: tls-alpn-01 or http-01 is used")
                default: draft.note(place, option.shown, "the option of tls has no counterpart")
                }
            }
        }
        return tls
    }

    private mutating func readClientAuth(_ segment: CaddyfileSegment, _ tls: inout SiteTls) {
        var mode = "require_and_verify"
        var file: String?
        for option in segment.block ?? [] {
            switch option.name {
            case "mode": mode = option.arguments.first ?? mode
            case "trusted_ca_cert_file": file = option.arguments.first
            case "trust_pool" where option.arguments.count == 2 && option.arguments[0] == "file":
                file = option.arguments[1]
            default: file = nil
            }
        }
        guard mode == "require_and_verify", let file else {
            draft.note(
                CaddyFlow.place(of: segment), segment.shown, "client certificates in this form are not understood")
            tls.refusal = "client_auth of Caddy is not understood"
            return
        }
        tls.clientCa = file
        draft.note(
            CaddyFlow.place(of: segment), segment.shown,
            "clientCa belongs to the listener: all names on it require a certificate")
    }
}
