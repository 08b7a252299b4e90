import Glibc

extension UpstreamProxy {
    /// Makes a proxy from its URL, such as `http://user:password@proxy.corp:3128`, for all hosts except those in `except`, written as in
    /// `NO_PROXY`. Throws an `OptionMistake` if one of them is invalid.
    public init(url text: String, except: [String] = []) throws(OptionMistake) {
        let hop = try UpstreamProxy.hop(of: ProxyUrl(optionText: text))
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

    /// The proxies in the environment variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`; `nil` if they name none.
    /// Throws an `OptionMistake` if a URL is invalid.
    public static func ofEnvironment() throws(OptionMistake) -> UpstreamProxy? {
        var proxy = UpstreamProxy()
        proxy.plain = try environmentHop("http_proxy")
        proxy.secure = try environmentHop("https_proxy")
        for text in variable("no_proxy")?.split(whereSeparator: { $0 == "," || $0 == " " }) ?? [] {
            // Other programs skip invalid members, too.
            if let exception = Exception(environment: String(text)) { proxy.except.append(exception) }
        }
        return proxy.plain == nil && proxy.secure == nil ? nil : proxy
    }

    /// A variable in lower case, or else in upper case. `HTTP_PROXY` is ignored if a web server could have set it.
    package static func variable(_ name: String) -> String? {
        guard FileGate.refusal == nil else { return nil }
        let isSafe = name != "http_proxy" || getenv("REQUEST_METHOD") == nil
        let found = getenv(name) ?? (isSafe ? getenv(name.uppercased()) : nil)
        return found.map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func environmentHop(_ name: String) throws(OptionMistake) -> Hop? {
        guard let (name, text) = variable(name, "all_proxy") else { return nil }
        do throws(OptionMistake) {
            return try hop(of: ProxyUrl(optionText: text.contains("://") ? text : "http://\(text)"))
        } catch {
            // Often a SOCKS proxy, for the programs that support one.
            if name == "all_proxy" { return nil }
            throw error
        }
    }

    /// The first of these variables that is set.
    package static func variable(_ name: String, _ other: String) -> (name: String, text: String)? {
        variable(name).map { (name, $0) } ?? variable(other).map { (other, $0) }
    }

    /// The proxy of a URL. With `https`, the context verifies its certificate, or else the system's trust. Throws if there
    /// is no context for it.
    package static func hop(of url: ProxyUrl, _ context: TlsContext? = nil) throws(OptionMistake) -> Hop {
        let tls = url.isSecure ? context ?? SystemTrust.shared.client : nil
        if url.isSecure, tls == nil { throw OptionMistake("OpenSSL cannot make a context for TLS with the proxy") }
        return Hop(host: url.host, port: url.port, user: url.user, password: url.password, tls: tls)
    }
}

/// The URL of a proxy, which may contain a password.
package struct ProxyUrl: OptionValue {
    /// Whether the proxy is reached over TLS.
    package let isSecure: Bool
    let host: String
    let port: UInt16
    let user: String?
    let password: String

    package static let optionType = "proxy URL such as http://proxy.corp:3128"
    package static let isSecret = true
    package static let explainsMistakes = true
    package static var optionForm: OptionForm { .text }
    package var optionText: String { "***" }

    package init(optionText: String) throws(OptionMistake) {
        let hint = "write a URL such as http://proxy.corp:3128"
        if ["socks://", "socks4://", "socks4a://", "socks5://", "socks5h://"].contains(
            where: optionText.lowercased().hasPrefix)
        {
            throw OptionMistake(hint, problem: "an upstream proxy that speaks SOCKS is not supported")
        }
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

    /// The text percent-decoded; `nil` if that is impossible. RFC 3986 §2.1.
    private static func decoded(_ text: Substring) -> String? {
        PercentText.strictlyDecoded(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
