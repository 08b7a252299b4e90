import ArgumentParser
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// `httpware proxy URL`: a reverse proxy in front of one URL, without a file.
struct ProxyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Run a reverse proxy for URL, without a configuration; one line per request.",
        discussion: """
            Each line shows the time, method, target, status, duration and size of a request, and how its time was spent. \
            On a terminal, the last part is a bar; NO_COLOR turns colours off.
            """)

    @Argument(help: "The origin server, such as http://127.0.0.1:3000; 3000 alone is a port of this machine.")
    var url: String
    @Option(help: "The address to listen on; a port alone is on the loopback.")
    var listen = "127.0.0.1:8080"
    @Flag(help: "Open the admin page on a free port near 9900, and print its URL.")
    var inspect = false
    @Flag(help: "Print JSON, one object per line.")
    var json = false

    func run() throws {
        try WatchedRun.run(
            """
            version: 1
            listeners: { proxy: { bind: \(BuiltinConfiguration.quoted(LocalAddress.bind(listen))) } }
            services: { origin: { baseUrl: \(BuiltinConfiguration.quoted(LocalAddress.url(url))) } }
            routes: [{ service: origin }]
            """, for: "proxy", inspects: inspect, json: json)
    }
}

/// Addresses as people write them on a command line.
enum LocalAddress {
    /// The address to listen at. A port alone, with or without a colon before it, means the loopback address.
    static func bind(_ text: String) -> String {
        if let port = port(text) { return "127.0.0.1:\(port)" }
        return text.hasPrefix("localhost:") ? "127.0.0.1" + text.dropFirst(9) : text
    }

    /// The URL of an origin server. A port alone means this machine. A host without a scheme, if it has a dot or a port, is
    /// reached in clear text.
    static func url(_ text: String) -> String {
        if let port = port(text) { return "http://127.0.0.1:\(port)" }
        return text.contains("://") || !text.contains(where: { $0 == ":" || $0 == "." }) ? text : "http://\(text)"
    }

    private static func port(_ text: String) -> String? {
        let digits = text.hasPrefix(":") ? text.dropFirst() : text[...]
        return !digits.isEmpty && digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) ? String(digits) : nil
    }
}

/// Runs a configuration that the program wrote, and prints a line for each request.
enum WatchedRun {
    /// Runs until a signal ends it. `inspects` adds the admin page, on a free port.
    static func run(_ text: String, for command: String, inspects: Bool, json: Bool) throws {
        let token = InspectorToken()
        let admin = inspects ? BuiltinConfiguration.admin(FreePort.near(9900), token.secret) : ""
        let configuration = try BuiltinConfiguration.read("\(text)\n\(admin)", for: command)
        let gateway = try GatewayRun.start(configuration, workers: nil, observes: true, for: command)
        GatewayRun.tell(gateway)
        let file = gateway.status.now.adminAddress.flatMap { token.announce(at: $0) }
        defer { file?.remove() }
        let line = ExchangeLine(style: TerminalStyle(STDOUT_FILENO))
        if !json, let heading = line.heading { Terminal.print(heading) }
        let printer = gateway.records.map { records in
            RequestPrinter(records) { report in
                Terminal.print(json ? report.json : line.text(report))
            } note: {
                Terminal.error($0)
            }
        }
        gateway.run()
        printer?.finish()
    }
}

/// Configurations that the program itself writes.
enum BuiltinConfiguration {
    /// Reads the text; ends the program if one of the user's options in it is invalid.
    static func read(_ text: String, for command: String) throws -> GatewayConfiguration {
        let result = result(of: text, for: command)
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error("\(Program.name) \(command): \(error.message)") }
            throw ExitCode(1)
        }
        for notice in result.errors where notice.keyPath.hasSuffix("upstreamProxy.fromEnvironment") {
            Terminal.error("\(Program.name) \(command): \(notice.message)")
        }
        return configuration
    }

    /// The result of reading the text.
    static func result(of text: String, for command: String) -> ConfigurationReader.Result {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        return ConfigurationReader(
            wares: Program.allWares, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: command)
    }

    /// The admin listener, as a line of YAML.
    static func admin(_ bind: String, _ token: Secret?, _ capture: Capture = Capture()) -> String {
        let token = token.map { ", token: \(quoted($0.revealed))" } ?? ""
        return "admin: { bind: \(quoted(bind))\(token), capture: \(capture.text) }\n"
    }

    /// The limits of the captures of the admin listener.
    struct Capture {
        /// The memory as a configuration states it: `64MiB`.
        var memory = "64MiB"

        /// The absolute path of a folder.
        var disk: String?

        var text: String {
            "{ memory: \(quoted(memory))\(disk.map { ", disk: { path: \(quoted($0)) }" } ?? "") }"
        }
    }

    /// A scalar that YAML and the interpolation leave unchanged.
    static func quoted(_ text: String) -> String {
        "\""
            + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("$", with: "$$") + "\""
    }
}
