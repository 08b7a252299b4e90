import ArgumentParser
import Foundation
import GatewayConfig
import HttpWare
import Wares

/// `httpware proxy URL`: a reverse proxy before one URL, without a file.
struct ProxyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy", abstract: "Run a reverse proxy before URL, without a configuration; one line per request."
    )

    @Argument(help: "The origin server, such as http://127.0.0.1:3000.")
    var url: String
    @Option(help: "Where to listen.")
    var listen = "127.0.0.1:8080"

    func run() throws {
        let text = """
            version: 1
            listeners: { proxy: { bind: \(quoted(listen)) } }
            services: { origin: { baseUrl: \(quoted(url)) } }
            chains:
              show:
                postwares: [{ accessLog: { format: "\(ProxyCommand.line)", output: stdout } }]
            routes: [{ service: origin, chain: show }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(wares: BuiltinWares.all, environment: [:], files: files).read(path: "proxy")
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error("httpware proxy: \(error.message)") }
            throw ExitCode(1)
        }
        try GatewayRun.run(configuration, workers: nil)
    }

    /// A line of the log: what accessLog's template offers.
    private static let line = "combined"

    /// A scalar that YAML and the interpolation take as it is.
    private func quoted(_ text: String) -> String {
        "\""
            + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "$", with: "$$") + "\""
    }
}
