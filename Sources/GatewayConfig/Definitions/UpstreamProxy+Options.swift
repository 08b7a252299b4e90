import Glibc
public import HttpWare

extension UpstreamProxy {
    /// Reads `listeners.NAME.forward.upstreamProxy`; `nil` when it is not given, wrong, or the environment names none.
    init?(options: inout OptionsReader, isGiven: Bool, files: ConfigurationFiles) {
        var url: ProxyUrl?
        var except: [HostPattern] = []
        var fromEnvironment = false
        options.read(
            "url", into: &url,
            doc:
                "the proxy, such as http://proxy.corp:3128, with user:password@ before its host if it requires them; with https:// it is reached by TLS"
        )
        let authorities = TlsFiles.read(
            "ca", &options, files,
            doc: "PEM: the authorities that sign the certificate of a proxy with https://, in place of the system's")
        options.read("except", into: &except, doc: "the hosts that are reached without it")
        options.read(
            "fromEnvironment", into: &fromEnvironment,
            doc: "takes the proxy from http_proxy, https_proxy and no_proxy, when the configuration is read")
        guard isGiven, !options.isDescribing else { return nil }
        if fromEnvironment, options.isGiven("url") {
            options.fail(at: "url", "cannot be used with fromEnvironment; remove one of them")
        }
        if !fromEnvironment, !options.isGiven("url") { options.require("url") }
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
        if let url, !url.isSecure, options.isGiven("ca") {
            options.fail(at: "ca", "has no effect: the proxy's URL does not begin with https://")
        }
        self.init()
        self.except = except.map(Exception.init)
        guard fromEnvironment else {
            guard let hop = url.flatMap({ UpstreamProxy.hop($0, context, at: "url", &options) }) else { return nil }
            plain = hop
            secure = hop
            return
        }
        plain = UpstreamProxy.hop("http_proxy", context, &options)
        secure = UpstreamProxy.hop("https_proxy", context, &options)
        for text in UpstreamProxy.variable("no_proxy")?.split(whereSeparator: { $0 == "," || $0 == " " }) ?? [] {
            // Other programs pass by what they do not understand, too.
            if let exception = Exception(environment: String(text)) { self.except.append(exception) }
        }
        if plain == nil, secure == nil { return nil }
    }

    /// A variable in lower case, or else in upper case. `HTTP_PROXY` is not looked at where a web server could have set it.
    private static func variable(_ name: String) -> String? {
        let isSafe = name != "http_proxy" || getenv("REQUEST_METHOD") == nil
        let found = getenv(name) ?? (isSafe ? getenv(name.uppercased()) : nil)
        return found.map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func hop(_ name: String, _ context: TlsContext?, _ options: inout OptionsReader) -> Hop? {
        guard let text = variable(name) else { return nil }
        do throws(OptionMistake) {
            let url = try ProxyUrl(optionText: text.contains("://") ? text : "http://\(text)")
            return hop(url, context, at: "fromEnvironment", &options)
        } catch {
            options.fail(at: "fromEnvironment", "\(name) in the environment is not a proxy: \(error.hint)")
            return nil
        }
    }

    /// The proxy of a URL, whose certificate the context verifies, or else what the system trusts.
    private static func hop(
        _ url: ProxyUrl, _ context: TlsContext?, at key: String, _ options: inout OptionsReader
    ) -> Hop? {
        let tls = url.isSecure ? context ?? SystemTrust.shared.client : nil
        if url.isSecure, tls == nil {
            options.fail(at: key, "OpenSSL cannot make a context for TLS with the proxy")
            return nil
        }
        return Hop(host: url.host, port: url.port, user: url.user, password: url.password, tls: tls)
    }
}

extension UpstreamProxy {
    /// A proxy by its URL, such as `http://user:password@proxy.corp:3128`, for all hosts but those that `except` names as `NO_PROXY`
    /// does. Throws an `OptionMistake` if one of them is not valid.
    public init(url text: String, except: [String] = []) throws(OptionMistake) {
        let hop = try UpstreamProxy.hop(ProxyUrl(optionText: text))
        self.init()
        plain = hop
        secure = hop
        for text in except {
            guard let exception = Exception(environment: text) else {
                throw OptionMistake("write a name, an address, a network, or *")
            }
            self.except.append(exception)
        }
    }

    /// The proxies that `http_proxy`, `https_proxy` and `no_proxy` of the process name; `nil` if they name none. Throws an
    /// `OptionMistake` if a URL is not valid.
    public static func ofEnvironment() throws(OptionMistake) -> UpstreamProxy? {
        var proxy = UpstreamProxy()
        proxy.plain = try environmentHop("http_proxy")
        proxy.secure = try environmentHop("https_proxy")
        for text in variable("no_proxy")?.split(whereSeparator: { $0 == "," || $0 == " " }) ?? [] {
            // Other programs pass by what they do not understand, too.
            if let exception = Exception(environment: String(text)) { proxy.except.append(exception) }
        }
        return proxy.plain == nil && proxy.secure == nil ? nil : proxy
    }

    private static func environmentHop(_ name: String) throws(OptionMistake) -> Hop? {
        guard let text = variable(name) else { return nil }
        return try hop(ProxyUrl(optionText: text.contains("://") ? text : "http://\(text)"))
    }

    private static func hop(_ url: ProxyUrl) throws(OptionMistake) -> Hop {
        let tls = url.isSecure ? SystemTrust.shared.client : nil
        if url.isSecure, tls == nil { throw OptionMistake("OpenSSL cannot make a context for TLS with the proxy") }
        return Hop(host: url.host, port: url.port, user: url.user, password: url.password, tls: tls)
    }
}

/// The URL of a proxy, which may contain a password.
private struct ProxyUrl: OptionValue {
    let text: String
    /// The proxy is reached by TLS.
    let isSecure: Bool
    let host: String
    let port: UInt16
    let user: String?
    let password: String

    static let optionType = "proxy URL such as http://proxy.corp:3128"
    static let isSecret = true
    static var optionForm: OptionForm { .text }
    var optionText: String { "***" }

    init(optionText: String) throws(OptionMistake) {
        text = optionText
        let hint = "write a URL such as http://proxy.corp:3128"
        isSecure = optionText.lowercased().hasPrefix("https://")
        guard isSecure || optionText.lowercased().hasPrefix("http://") else { throw OptionMistake(hint) }
        var rest = optionText.dropFirst(isSecure ? 8 : 7)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.flatMap(ProxyUrl.decoded), !name.contains(":"),
                let word = parts.count > 1 ? ProxyUrl.decoded(parts[1]) : ""
            else { throw OptionMistake(hint) }
            user = name
            password = word
            rest = rest[rest.index(after: at)...]
        } else {
            user = nil
            password = ""
        }
        guard let authority = Authority(String(rest)), authority.port != 0 else { throw OptionMistake(hint) }
        host = authority.host.hasPrefix("[") ? String(authority.host.dropFirst().dropLast()) : authority.host
        port = authority.port ?? (isSecure ? 443 : 80)
    }

    /// Percent-decoded; `nil` where that is not possible. RFC 3986 §2.1.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
