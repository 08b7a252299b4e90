import HttpWare

extension UpstreamProxy {
    /// Reads `listeners.NAME.forward.upstreamProxy`; `nil` if it is missing or invalid, or the environment names no
    /// proxy.
    init?(options: inout OptionsReader, files: ConfigurationFiles, of listener: SocketAddress) {
        var url: ProxyUrl?
        var except: [HostPattern] = []
        var fromEnvironment = false
        options.read(
            "url", into: &url,
            doc:
                "the proxy, such as http://proxy.corp:3128, with user:password@ before its host if it requires them; with https:// it is reached by TLS"
        )
        let authorities = TlsFiles(files).read(
            "ca", &options,
            doc: "PEM: the authorities that sign the certificate of a proxy with https://, in place of the system's")
        options.read("except", into: &except, doc: "the hosts that are reached without it")
        options.read(
            "fromEnvironment", into: &fromEnvironment,
            doc: "takes the proxy from http_proxy, https_proxy, all_proxy and no_proxy, when the configuration is read")
        options.useless("url", with: "fromEnvironment", fromEnvironment, is: true)
        options.require("url", with: "fromEnvironment", fromEnvironment, is: false)
        guard options.isWritten else { return nil }
        var context: TlsContext?
        if let authorities {
            var client = TlsContext.Client()
            client.authorities = authorities
            do throws(TlsFault) {
                context = try TlsContext(client: client)
            } catch {
                options.fail(at: "ca", error.reason)
                return nil
            }
        }
        if let url, !url.isSecure, authorities != nil {
            options.fail(at: "ca", "has no effect: the proxy's URL does not begin with https://")
        }
        self.init()
        self.except = except.map(Exception.init)
        guard fromEnvironment else {
            guard let hop = url.flatMap({ UpstreamProxy.hop($0, context, at: "url", &options) }) else { return nil }
            guard !hop.leads(to: listener) else {
                options.fail(at: "url", "is the address of this listener; write that of another proxy")
                return nil
            }
            plain = hop
            secure = hop
            return
        }
        plain = UpstreamProxy.hop("http_proxy", context, &options)
        secure = UpstreamProxy.hop("https_proxy", context, &options)
        // A shell that is set up for this proxy names it.
        if [plain, secure].contains(where: { $0?.leads(to: listener) == true }) {
            options.warn(
                at: "fromEnvironment",
                "the environment names this listener itself as the proxy, which is ignored")
            if plain?.leads(to: listener) == true { plain = nil }
            if secure?.leads(to: listener) == true { secure = nil }
        }
        for text in UpstreamProxy.variable("no_proxy")?.split(whereSeparator: { $0 == "," || $0 == " " }) ?? [] {
            // Members that are not understood are ignored, as other programs do.
            if let exception = Exception(environment: String(text)) { self.except.append(exception) }
        }
        if plain == nil, secure == nil { return nil }
    }

    private static func hop(_ name: String, _ context: TlsContext?, _ options: inout OptionsReader) -> Hop? {
        guard let (name, text) = variable(name, "all_proxy") else { return nil }
        do throws(OptionMistake) {
            let url = try ProxyUrl(optionText: text.contains("://") ? text : "http://\(text)")
            return hop(url, context, at: "fromEnvironment", &options)
        } catch {
            if name == "all_proxy" {
                // Often a SOCKS proxy, for the programs that support one.
                options.warn(
                    at: "fromEnvironment",
                    "all_proxy in the environment is ignored: \(error.problem ?? "it is not a proxy URL such as http://proxy.corp:3128")"
                )
                return nil
            }
            options.fail(
                at: "fromEnvironment",
                error.problem.map { "\(name) in the environment: \($0); \(error.hint)" }
                    ?? "\(name) in the environment is not a proxy: \(error.hint)")
            return nil
        }
    }

    /// The proxy of a URL. If the URL is invalid, records an error and returns `nil`.
    private static func hop(
        _ url: ProxyUrl, _ context: TlsContext?, at key: String, _ options: inout OptionsReader
    ) -> Hop? {
        do throws(OptionMistake) {
            return try hop(of: url, context)
        } catch {
            options.fail(at: key, error.hint)
            return nil
        }
    }
}
