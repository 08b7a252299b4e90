import ArgumentParser
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware schema`: the JSON Schema of configuration files.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Print the JSON Schema (2020-12) of configuration files, for editors.")

    @Flag(help: "Print the schema of files of cases, which \(Program.name) test runs.")
    var cases = false

    func run() throws {
        if cases { return try Terminal.result(CaseFile.schema.prettyJson) }
        let schema = ConfigurationSchema(Program.allWares, stores: GatewayStores.all)
        try Terminal.result(schema.json.prettyJson)
    }
}
