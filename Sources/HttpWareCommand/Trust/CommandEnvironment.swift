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
        /// The file of options that curl reads by `CURL_HOME`.
        var curl: String { FilePath.joined(folder, ".curlrc") }
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
    /// Whether a wall leads the command's connections to the proxy: then no variable names it, and no other proxy.
    var isWalled = false
    /// The user's files of options, which count more than variables: where there is one, the command gets a file in its place.
    var own = UserFiles()

    var proxy: String { "http://\(host):\(port)" }

    /// Variables whose file replaces the system's roots.
    static let replacing = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE",
        "PERL_LWP_SSL_CA_FILE", "HTTPLIB2_CA_CERTS", "npm_config_cafile", "YARN_HTTPS_CA_FILE_PATH",
        "BUNDLE_SSL_CA_CERT", "HEX_CACERTS_PATH", "CONDA_SSL_VERIFY",
    ]
    /// Variables whose file is added to the program's own roots.
    static let adding = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"]
    /// Variables that are set only if the user has set them: other spellings of the ones above.
    static let optional = ["NPM_CONFIG_CAFILE"]

    /// Variables that name a proxy.
    private static let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]

    /// The environment of the command, derived from the user's.
    func variables(_ former: [String: String]) -> [String: String] {
        var variables = former
        let left = former["NO_PROXY"] ?? former["no_proxy"] ?? ""
        if isWalled {
            // No other proxy can be reached from behind a wall.
            for name in CommandEnvironment.proxies + ["NODE_USE_ENV_PROXY"] { variables[name] = nil }
        } else {
            nameProxy(in: &variables, former, left: left)
        }
        let options = javaOptions(left: left)
        if !options.isEmpty {
            variables["JAVA_TOOL_OPTIONS"] = CommandEnvironment.appended(former["JAVA_TOOL_OPTIONS"], options)
        }
        if own.curl != nil { variables["CURL_HOME"] = files.folder }
        if own.wget != nil || isTrusting { variables["WGETRC"] = files.wget }
        guard isTrusting else { return variables }
        for name in CommandEnvironment.replacing { variables[name] = files.bundle }
        for name in CommandEnvironment.optional where former[name] != nil { variables[name] = files.bundle }
        for name in CommandEnvironment.adding {
            variables[name] = former[name]?.isEmpty ?? true ? files.authority : files.bundle
        }
        variables["APT_CONFIG"] = files.apt
        return variables
    }

    private func nameProxy(in variables: inout [String: String], _ former: [String: String], left: String) {
        for name in CommandEnvironment.proxies { variables[name] = proxy }
        variables["NO_PROXY"] = left
        variables["no_proxy"] = former["no_proxy"] ?? left
        // LWP::UserAgent reads the proxy variables only if a program, or this variable, tells it to.
        variables["PERL_LWP_ENV_PROXY"] = "1"
        variables["NODE_USE_ENV_PROXY"] = "1"
        variables["NODE_OPTIONS"] = CommandEnvironment.appended(
            former["NODE_OPTIONS"], ["--require " + CommandEnvironment.inDoubleQuotes(files.node)])
    }

    private static func appended(_ former: String?, _ options: [String]) -> String {
        ((former.map { [$0] } ?? []) + options).filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// A path for NODE_OPTIONS and `.curlrc`: in double quotes, with a backslash before a quote or a backslash.
    private static func inDoubleQuotes(_ path: String) -> String {
        "\"" + path.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    private func javaOptions(left: String) -> [String] {
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        var options: [String] = []
        if !isWalled {
            options = ["http", "https"].flatMap { ["-D\($0).proxyHost=\(bare)", "-D\($0).proxyPort=\(port)"] }
            // Without this option, Java connects to servers on this machine directly.
            options.append("-Dhttp.nonProxyHosts=\(CommandEnvironment.javaHosts(left))")
        }
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
            + (isTrusting ? "ca_certificate = \(files.bundle)\n" : "")
            + (isWalled ? "use_proxy = off\n" : "use_proxy = on\nhttp_proxy = \(proxy)\nhttps_proxy = \(proxy)\n")
    }

    /// The user's lines for curl, followed by HttpWare's: the last line with a name counts.
    func curlText(_ former: String) -> String {
        CommandEnvironment.lines(former)
            + (isTrusting ? "cacert = \(CommandEnvironment.inDoubleQuotes(files.bundle))\n" : "")
            + "proxy = \"\(isWalled ? "" : proxy)\"\n"
    }

    /// The user's lines for apt, followed by HttpWare's.
    func aptText(_ former: String) -> String {
        CommandEnvironment.lines(former) + "Acquire::https::CaInfo \"\(files.bundle)\";\n"
    }

    private static func lines(_ text: String) -> String { text.isEmpty || text.hasSuffix("\n") ? text : text + "\n" }

    /// The certificate files that the user's lines for wget name.
    static func wgetCertificates(_ text: String) -> [String] { values(of: "cacertificate", in: text) }

    /// The certificate files that the user's lines for npm name.
    static func npmCertificates(_ text: String) -> [String] { values(of: "cafile", in: text) }

    /// The certificate files that the user's lines for curl name.
    static func curlCertificates(_ text: String) -> [String] {
        values(of: "cacert", in: text, apart: ["=", ":", " ", "\t"])
    }

    /// The values of an option in lines of names and values. Names are compared without case, hyphens and underscores; quotes around a
    /// value are left out.
    private static func values(of option: String, in text: String, apart: Set<Character> = ["="]) -> [String] {
        text.split(whereSeparator: \.isNewline).compactMap { line in
            let line = line.trimming(while: \.isWhitespace)
            guard let first = line.first, first != "#", first != ";", let end = line.firstIndex(where: apart.contains)
            else { return nil }
            guard line[..<end].lowercased().filter({ $0.isLetter || $0.isNumber }) == option else { return nil }
            let isOff = { (sign: Character) in sign.isWhitespace || sign == "=" || sign == "\"" || sign == "'" }
            let value = line[end...].trimming(while: { isOff($0) || apart.contains($0) })
            return value.isEmpty ? nil : String(value)
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

/// The files of options that programs of the user read.
struct UserFiles: Equatable {
    /// The file of wget's options; `nil` if the user has none.
    var wget: String?
    /// The file of curl's options; `nil` if the user has none.
    var curl: String?
    /// The places of npm's settings: the project's, the user's, and the system's of usual installations.
    var npm: [String] = []

    init() {}

    /// Looks where the programs look, by the user's variables.
    init(of user: [String: String]) {
        let home = user["HOME"] ?? "/"
        wget = UserFiles.first([user["WGETRC"].flatMap { $0.isEmpty ? nil : $0 } ?? FilePath.joined(home, ".wgetrc")])
        let folders = [user["CURL_HOME"] ?? "", home].filter { !$0.isEmpty }
        let settings = FilePath.joined(user["XDG_CONFIG_HOME"] ?? FilePath.joined(home, ".config"), "curlrc")
        curl = UserFiles.first(folders.map { FilePath.joined($0, ".curlrc") } + [settings])
        let named = ["npm_config_userconfig", "NPM_CONFIG_USERCONFIG", "npm_config_globalconfig"].compactMap {
            user[$0]
        }
        npm = [".npmrc", FilePath.joined(home, ".npmrc")] + named
        npm += ["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"]
    }

    private static func first(_ paths: [String]) -> String? { paths.first { CertificateBundle.text($0) != nil } }
}

extension Substring {
    fileprivate func trimming(while isOff: (Character) -> Bool) -> Substring {
        var text = drop(while: isOff)
        while let last = text.last, isOff(last) { text.removeLast() }
        return text
    }
}
