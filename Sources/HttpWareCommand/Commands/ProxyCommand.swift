import ArgumentParser
import Foundation
import GatewayConfig
import HttpGateway
import HttpWare
import Wares

/// `httpware proxy URL`: a reverse proxy before one URL, without a file.
struct ProxyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy",
        abstract: "Run a reverse proxy for URL, without a configuration; one line per request.",
        discussion: """
            Each line shows the time, method, target, status, duration and size of a request, and how its time was spent. \
            On a terminal, the last part is a bar; NO_COLOR turns colours off.
            """)

    @Argument(help: "The origin server, such as http://127.0.0.1:3000.")
    var url: String
    @Option(help: "The address to listen on.")
    var listen = "127.0.0.1:8080"
    @Flag(help: "Print JSON, one object per line.")
    var json = false

    func run() throws {
        let text = """
            version: 1
            listeners: { proxy: { bind: \(BuiltinConfiguration.quoted(listen)) } }
            services: { origin: { baseUrl: \(BuiltinConfiguration.quoted(url)) } }
            routes: [{ service: origin }]
            """
        let configuration = try BuiltinConfiguration.read(text, for: "proxy")
        let gateway = try GatewayRun.start(configuration, workers: nil, observes: true)
        GatewayRun.tell(gateway)
        let style = TerminalStyle(STDOUT_FILENO)
        let (line, json) = (ExchangeLine(style: style), json)
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
    /// Reads the text; ends the program when what the user brought into it is wrong.
    static func read(_ text: String, for command: String) throws -> GatewayConfiguration {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: command)
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error("httpware \(command): \(error.message)") }
            throw ExitCode(1)
        }
        return configuration
    }

    /// A scalar that YAML and the interpolation take as it is.
    static func quoted(_ text: String) -> String {
        "\""
            + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "$", with: "$$") + "\""
    }
}
