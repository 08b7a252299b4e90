import GatewayConfig
import GatewayWares
import HttpGateway
import HttpWare
import Testing

@testable import Importing

/// The result of an import of a text, and the opinion of the gateway of it.
struct Imported {
    let gateway: ImportedGateway
    /// The errors of the configuration, except for files that do not exist here.
    let errors: [ConfigError]
    let configuration: GatewayConfiguration?

    init(_ format: ImportFormat, _ text: String, files: ImportFiles = .none) {
        let made = format.translate([ImportSource(name: "file", text: text)], files: files, command: "import")
        let bytes = Array(made.text.utf8)
        let source = ConfigurationFiles(
            read: { path, limit throws(ConfigurationFiles.Fault) in
                path == "a.yaml" ? bytes : try ConfigurationFiles.system.read(path, limit)
            }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: source
        ).read(path: "a.yaml")
        gateway = made
        configuration = result.configuration
        errors = result.errors.filter { $0.severity == .error && !$0.message.lowercased().contains("no such file") }
    }

    /// The file without its comments.
    var body: String {
        gateway.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.joined(separator: "\n")
    }

    /// The head of the file.
    var head: String {
        gateway.text.split(separator: "\n").filter { $0.hasPrefix("#") }.joined(separator: "\n")
    }
}
