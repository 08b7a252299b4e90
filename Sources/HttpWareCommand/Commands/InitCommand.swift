import ArgumentParser
import FoundationEssentials
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// `httpware init`: writes a first configuration, or a package with a ware.
struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Write a commented configuration for one of the uses, or a package with a ware.",
        usage: """
            \(Program.name) init [<use>] [<file>] [--origin <origin>] [--force]
            \(Program.name) init ware <name> [--in <dir>] [--program <program>]
            """,
        discussion: """
            gateway: a reverse proxy with a request id, limits and a log. cache: the same, and a shared cache. tokens: adds the \
            gateway's own token to requests, and keeps it valid. agent: lets a program use a token that it never sees. site: \
            the files of a folder. proxy: a forward proxy for the programs of this machine.

            ware: a Swift package with a ware of its own, the ware's test, and a gateway that has every command of \(Program.name) and \
            knows the ware. In it, swift test and swift run my-gateway check pass as written.
            """)

    @Argument(
        help: "gateway, cache, tokens, agent, site, proxy or ware.",
        completion: .list(InitUse.allValueStrings))
    var use = InitUse.file(.gateway)
    @Argument(
        help: ArgumentHelp(
            "The file to write; - is standard output. Default: httpware.yaml. For ware: its name in files, such as methodRule.",
            valueName: "file"), completion: .file())
    var path: String?
    @Option(
        help: """
            The origin server, such as https://api.example.com; 3000 alone is a port of this machine. Default: \
            http://127.0.0.1:3000; for agent, https://api.example.com.
            """)
    var origin: String?
    @Flag(help: "Write over a file that exists.")
    var force = false
    @Option(
        name: .customLong("in"),
        help: ArgumentHelp("For ware: the folder of the package. Default: the program's name.", valueName: "dir"),
        completion: .directory)
    var folder: String?
    @Option(help: "For ware: the name of the program. Default: my-gateway.")
    var program: String?

    func validate() throws {
        switch use {
        case .file:
            if folder != nil || program != nil { throw ValidationError("--in and --program are for init ware") }
        case .ware:
            if origin != nil || force { throw ValidationError("--origin and --force are for configurations") }
            if folder == "" { throw ValidationError("--in names a folder; . is the present one") }
            _ = try package()
        }
    }

    func run() throws {
        switch use {
        case .file(let file): try write(file, to: path ?? "httpware.yaml")
        case .ware: try write(try package())
        }
    }

    // MARK: A package

    private func package() throws -> WarePackage {
        guard let path else { throw ValidationError("name the ware, such as: \(Program.name) init ware methodRule") }
        do throws(WarePackage.Problem) {
            return try WarePackage.named(ware: path, program: program ?? "my-gateway")
        } catch {
            throw ValidationError(error.text)
        }
    }

    private func write(_ package: WarePackage) throws {
        let folder = folder ?? package.program
        let files = package.files.map { (path: FilePath.joined(folder, $0.path), text: $0.text) }
        if let file = files.first(where: { OutputFile.exists($0.path) }) {
            Terminal.error("\(file.path) exists; name another folder with --in")
            throw ExitCode(3)
        }
        for file in files {
            do throws(SystemError) {
                try PrivateFile.makeFolders(FilePath.directory(of: file.path), rights: 0o755)
            } catch {
                Terminal.error("\(folder): cannot be written: \(SystemError.text(of: error.code))")
                throw ExitCode(3)
            }
            try OutputFile.write(file.text, to: file.path)
        }
        let first = folder == "." ? "" : "cd \(CommandText.quoted(folder)), then "
        Terminal.error(
            "wrote the package in \(folder); next: \(first)swift test and swift run \(package.program) check")
    }

    // MARK: A configuration

    private func write(_ file: StartingFile, to path: String) throws {
        let text = file.text(origin: LocalAddress.url(origin ?? file.usualOrigin))
        // An invalid origin is reported before anything is written. The authority that `agent` needs is made by `with`.
        let errors = BuiltinConfiguration.result(of: text, for: "init").errors.filter { !$0.isAboutMissingAuthority }
        guard errors.isEmpty else {
            for error in errors { Terminal.error("\(Program.name) init: \(error.message)") }
            throw ExitCode(1)
        }
        if path == "-" { return try Terminal.result(text, end: "") }
        try OutputFile.write(SchemaFile.mark + text, to: path, force: force)
        let schema = SchemaFile.write(beside: path)
        let cases = CaseFile.path(beside: path)
        if force || !OutputFile.exists(cases) {
            try OutputFile.write(file.cases, to: cases, force: force)
            Terminal.error(
                "wrote \(path), cases for \(Program.name) test in \(cases)\(schema); next: \(file.next(path))")
        } else {
            Terminal.error("wrote \(path)\(schema); next: \(file.next(path))")
        }
    }
}

/// The argument of `init`.
enum InitUse: ExpressibleByArgument {
    /// A first configuration.
    case file(StartingFile)
    /// A package with a ware.
    case ware

    init?(argument: String) {
        guard argument != "ware" else {
            self = .ware
            return
        }
        guard let file = StartingFile(rawValue: argument) else { return nil }
        self = .file(file)
    }

    var defaultValueDescription: String {
        if case .file(let file) = self { file.rawValue } else { "ware" }
    }

    static let allValueStrings = StartingFile.allCases.map(\.rawValue) + ["ware"]
}

/// The kinds of first configurations.
enum StartingFile: String, CaseIterable, ExpressibleByArgument {
    case gateway, cache, tokens, agent, site, proxy

    /// The origin server if none is named.
    var usualOrigin: String { self == .agent ? "https://api.example.com" : "http://127.0.0.1:3000" }

    /// The next step with the file.
    func next(_ path: String) -> String {
        switch self {
        case .gateway, .cache, .site: "\(Program.name) run \(path), then open http://127.0.0.1:8080/"
        case .tokens: "set API_CLIENT_ID and API_CLIENT_SECRET and the tokenUrl, then \(Program.name) run \(path)"
        case .agent: "set API_TOKEN, then \(Program.name) with -c \(path) -- COMMAND"
        case .proxy: "\(Program.name) run \(path), then curl -x http://127.0.0.1:8888 http://example.com/"
        }
    }

    /// The line that lets a forward listener reach an origin server at another port than 443, or in a private network; empty for others.
    private static func forward(to url: String) -> String {
        let parts = URLComponents(string: url)
        let host = (parts?.host ?? "").trimmingBrackets
        let isHere = host == "localhost" || host.hasSuffix(".localhost")
        let isNear = IPAddress(host).map { $0.isLoopback || $0.isPrivate } ?? isHere
        var options: [String] = []
        if parts?.scheme?.lowercased() == "https", let port = parts?.port, port != 443 {
            options.append("connectPorts: [443, \(port)]")
        }
        if isNear { options.append("denyPrivate: false") }
        let line = "\n    forward: { \(options.joined(separator: ", ")) } # the host below is there"
        return options.isEmpty ? "" : line
    }

    func text(origin url: String) -> String {
        let origin = BuiltinConfiguration.quoted(url)
        let host = BuiltinConfiguration.quoted(URLComponents(string: url)?.host ?? url)
        return switch self {
        case .gateway:
            """
            # A gateway in front of one application. After a change: \(Program.name) check FILE; a running gateway reads the file again on
            # SIGHUP. All wares with their options: \(Program.name) wares.
            version: 1

            admin: {} # requests, services, metrics; \(Program.name) page prints the URL of the page

            listeners:
              web: { bind: "127.0.0.1:8080" } # "0.0.0.0:8080" listens on all addresses

            services:
              app:
                baseUrl: \(origin)
                timeouts: { connect: 2s, response: 30s }

            chains:
              app:
                middlewares: # in this order, before the request is forwarded
                  - requestId
                  - bodyLimit: { max: 10MiB }
                  - rateLimit: { rate: 100/s, burst: 200 } # for each client address
                postwares: # for the response
                  - compress
                  - accessLog: { format: combined }

            routes: # the first that matches is used
              - { name: app, service: app, chain: app }

            """
        case .cache:
            """
            # A shared cache in front of one application: RFC 9111. \(Program.name) cache ls shows what is stored.
            version: 1

            admin: {} # \(Program.name) page prints the URL of the page

            listeners:
              web: { bind: "127.0.0.1:8080" }

            services:
              app: { baseUrl: \(origin) }

            stores:
              pages: { memory: { maxSize: 256MiB } }

            chains:
              app:
                middlewares:
                  - requestId
                  - httpCache:
                      store: pages
                      key: { ignoreQuery: [utm_source, utm_medium, utm_campaign] }
                      staleWhileRevalidate: 30s # stale responses are used while they are validated
                      staleIfError: 1h # and while the application fails
                postwares:
                  - compress
                  - accessLog: { format: combined }

            routes:
              - { name: app, service: app, chain: app }

            """
        case .tokens:
            """
            # Tokens for an API. Programs send requests without a token to this gateway; it gets one, keeps it valid, and adds it.
            # The secrets come from the environment: export API_CLIENT_ID=… API_CLIENT_SECRET=…
            version: 1

            admin: {} # \(Program.name) token ls shows the state of the token, never the token

            listeners:
              web: { bind: "127.0.0.1:8080" }

            services:
              api: { baseUrl: \(origin) }

            credentials:
              api:
                grant: clientCredentials # refreshToken is for the consent of a user
                tokenUrl: "https://login.example.com/oauth2/token"
                clientId: "${API_CLIENT_ID:-change-me}"
                clientSecret: "${API_CLIENT_SECRET:-change-me}"
                refreshBefore: 2m # from then on it is renewed in the background

            chains:
              api:
                middlewares:
                  - requestId
                  - tokenRefresh: { credential: api } # requests wait while the token is renewed, and are sent again after a 401
                  - tokenInject: { credential: api }
                postwares:
                  - accessLog

            routes:
              - { name: api, service: api, chain: api }

            """
        case .agent:
            """
            # For a program or an agent that uses a token and never sees it:
            #
            #   export API_TOKEN=…                      the real token
            #   \(Program.name) with -c FILE -- COMMAND        the command finds a placeholder in API_TOKEN
            #
            # The gateway puts the token in place of the placeholder, for the host below alone. Other hosts are answered 403.
            version: 1

            credentials:
              api:
                grant: static # clientCredentials and refreshToken get tokens and renew them: \(Program.name) wares tokenRefresh
                value: "${API_TOKEN:-change-me}" # or "${file:/run/secrets/api-token}"
                env: API_TOKEN # the variable in which the command finds the placeholder

            listeners:
              agent:
                mode: forward
                bind: "127.0.0.1:8899" # with takes a free port instead
                intercept: { hosts: ["*"] } # TLS is read with an authority that only the command trusts\(Self.forward(to: url))
                chain: sandbox

            chains:
              sandbox:
                middlewares:
                  - hostRule: { allow: [\(host), httpware.proxy] } # add the other hosts that the command needs
              api:
                middlewares:
                  - tokenInject:
                      credential: api
                      placeholder: { in: [headers] } # also path, query, form, json
                      scrub: true # a response that repeats the token shows the placeholder
                      # audit: { output: "file:audit.log" } # a line for each use

            routes:
              - { name: api, match: { host: \(host) }, chain: api, service: passthrough }
              - { name: others, service: passthrough } # those that hostRule allows, without the token

            """
        case .site:
            """
            # The files of a folder. It is opened once at the start; links that lead out of it answer 404.
            version: 1

            listeners:
              web: { bind: "127.0.0.1:8080" }

            chains:
              site:
                middlewares:
                  - files:
                      root: .
                      # fallback: index.html # a single-page app: this file in place of 404
                  # - basicAuth: { usersFile: /etc/httpware/users.htpasswd } # above files; not in the folder that is served
                postwares:
                  - compress
                  - securityHeaders
                  - accessLog: { format: combined }

            routes:
              - { name: site, chain: site }

            """
        case .proxy:
            """
            # A forward proxy for the programs of this machine:
            #
            #   export http_proxy=http://127.0.0.1:8888 https_proxy=http://127.0.0.1:8888
            #
            # To see what programs send, start with \(Program.name) inspect instead; it needs no file.
            version: 1

            admin: {} # \(Program.name) page prints the URL of the page

            listeners:
              proxy:
                bind: "127.0.0.1:8888"
                mode: forward
                forward: { connectPorts: [80, 443] } # a tunnel to another port is answered 403

            chains:
              outgoing:
                middlewares:
                  - hostRule: { deny: ["*.telemetry.example.com"] }
                postwares:
                  - accessLog

            routes:
              - { name: outgoing, service: passthrough, chain: outgoing }

            """
        }
    }
}

extension String {
    /// An address without the brackets of a URL. RFC 3986 §3.2.2.
    fileprivate var trimmingBrackets: String {
        hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
    }
}
