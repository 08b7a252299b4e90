import HttpWare

/// The environment of a command whose requests go through a proxy, and the texts of the files that its variables name.
///
/// The user's settings are kept: options are appended to existing ones, and certificates are joined with the user's.
struct CommandEnvironment {
    /// The files of one command, in a separate folder.
    struct Files {
        let folder: String

        /// The certificate of HttpWare's authority alone.
        var authority: String { FilePath.joined(folder, "ca.pem") }
        /// The roots of the system, the certificates that the user's variables name, and HttpWare's authority.
        var bundle: String { FilePath.joined(folder, "bundle.pem") }
        /// The same certificates with the JDK's own roots, for Java.
        var java: String { FilePath.joined(folder, "java.p12") }
        var wget: String { FilePath.joined(folder, "wgetrc") }
        var apt: String { FilePath.joined(folder, "apt.conf") }
        /// Sets the proxy in versions of Node that do not support the variables.
        var node: String { FilePath.joined(folder, "proxy.cjs") }
    }

    /// The proxy's host, in brackets if it is an IPv6 address, and its port.
    let host: String
    let port: UInt16
    let files: Files
    /// Whether the proxy shows certificates of HttpWare's authority.
    let isTrusting: Bool

    var proxy: String { "http://\(host):\(port)" }

    /// Variables whose file replaces the system's roots.
    static let replacing = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE",
        "PERL_LWP_SSL_CA_FILE", "HTTPLIB2_CA_CERTS",
    ]
    /// Variables whose file is added to the program's own roots.
    static let adding = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"]
    /// Variables that are set only if the user has set them. Without them, their programs use the system's roots.
    static let optional = ["npm_config_cafile", "NPM_CONFIG_CAFILE", "BUNDLE_SSL_CA_CERT", "HEX_CACERTS_PATH"]

    /// The environment of the command, derived from the user's.
    func variables(_ former: [String: String]) -> [String: String] {
        var variables = former
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] { variables[name] = proxy }
        let left = former["NO_PROXY"] ?? former["no_proxy"] ?? ""
        variables["NO_PROXY"] = left
        variables["no_proxy"] = former["no_proxy"] ?? left
        // LWP::UserAgent reads the proxy variables only if a program, or this variable, tells it to.
        variables["PERL_LWP_ENV_PROXY"] = "1"
        variables["NODE_USE_ENV_PROXY"] = "1"
        variables["NODE_OPTIONS"] = CommandEnvironment.appended(
            former["NODE_OPTIONS"], ["--require " + CommandEnvironment.quotedForNode(files.node)])
        variables["JAVA_TOOL_OPTIONS"] = CommandEnvironment.appended(
            former["JAVA_TOOL_OPTIONS"], javaOptions(left: left))
        guard isTrusting else { return variables }
        for name in CommandEnvironment.replacing { variables[name] = files.bundle }
        for name in CommandEnvironment.optional where former[name] != nil { variables[name] = files.bundle }
        for name in CommandEnvironment.adding {
            variables[name] = former[name]?.isEmpty ?? true ? files.authority : files.bundle
        }
        variables["WGETRC"] = files.wget
        variables["APT_CONFIG"] = files.apt
        return variables
    }

    private static func appended(_ former: String?, _ options: [String]) -> String {
        ((former.map { [$0] } ?? []) + options).filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// Quotes a path for NODE_OPTIONS: double quotes, with a backslash before a quote or a backslash.
    private static func quotedForNode(_ path: String) -> String {
        "\"" + path.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    private func javaOptions(left: String) -> [String] {
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        var options = ["http", "https"].flatMap { ["-D\($0).proxyHost=\(bare)", "-D\($0).proxyPort=\(port)"] }
        // Without this option, Java connects to servers on this machine directly.
        options.append("-Dhttp.nonProxyHosts=\(CommandEnvironment.javaHosts(left))")
        if isTrusting {
            options += [
                "-Djavax.net.ssl.trustStore=\(files.java)", "-Djavax.net.ssl.trustStoreType=PKCS12",
                "-Djavax.net.ssl.trustStorePassword=\(CaExportCommand.password)",
            ]
        }
        return options.map { $0.contains(where: \.isWhitespace) ? "\"\($0)\"" : $0 }
    }

    /// The hosts of NO_PROXY in Java's form, which allows `*` at the beginning of a name and separates names by `|`.
    static func javaHosts(_ left: String) -> String {
        left.split { $0 == "," || $0.isWhitespace }.flatMap { entry -> [String] in
            if entry == "*" { return ["*"] }
            let name = entry.hasPrefix("*.") ? entry.dropFirst(2) : entry.drop { $0 == "." }
            // Java's form has neither networks nor ports.
            if name.contains("/") || name.contains(":") && !name.hasPrefix("[") { return [] }
            return name.count < entry.count ? ["*.\(name)"] : ["\(name)", "*.\(name)"]
        }.joined(separator: "|")
    }

    // MARK: The texts of files

    /// The user's lines for wget, followed by HttpWare's: the last line with a name counts.
    func wgetText(_ former: String) -> String {
        CommandEnvironment.lines(former)
            + """
            ca_certificate = \(files.bundle)
            use_proxy = on
            http_proxy = \(proxy)
            https_proxy = \(proxy)

            """
    }

    /// The user's lines for apt, followed by HttpWare's.
    func aptText(_ former: String) -> String {
        CommandEnvironment.lines(former) + "Acquire::https::CaInfo \"\(files.bundle)\";\n"
    }

    private static func lines(_ text: String) -> String { text.isEmpty || text.hasSuffix("\n") ? text : text + "\n" }

    /// The certificate files that the user's lines for wget name.
    static func wgetCertificates(_ text: String) -> [String] {
        text.split(whereSeparator: \.isNewline).compactMap { line in
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimming(while: \.isWhitespace) }
            guard parts.count == 2 else { return nil }
            // Names are compared without case, hyphens and underscores.
            let name = parts[0].lowercased().filter { $0 != "-" && $0 != "_" }
            return name == "cacertificate" ? String(parts[1]) : nil
        }
    }

    /// The trust store that options for Java name, and its password.
    static func javaStore(_ options: String) -> (path: String, password: String)? {
        func last(_ name: String) -> String? {
            options.split(whereSeparator: \.isWhitespace).map { $0.filter { $0 != "\"" && $0 != "'" } }
                .last { $0.hasPrefix("-D\(name)=") }.map { String($0.dropFirst(name.count + 3)) }
        }
        return last("javax.net.ssl.trustStore").map {
            ($0, last("javax.net.ssl.trustStorePassword") ?? CaExportCommand.password)
        }
    }
}

extension Substring {
    fileprivate func trimming(while isOff: (Character) -> Bool) -> Substring {
        var text = drop(while: isOff)
        while let last = text.last, isOff(last) { text.removeLast() }
        return text
    }
}
