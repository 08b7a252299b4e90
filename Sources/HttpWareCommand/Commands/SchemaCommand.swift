import ArgumentParser
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware schema`: the JSON Schema of configuration files.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Print the JSON Schema (2020-12) of configuration files, for editors.")

    func run() throws {
        let schema = ConfigurationSchema(Program.allWares, stores: GatewayStores.all)
        try Terminal.result(schema.json.prettyJson)
    }
}
