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
        try Terminal.result(SchemaFile.schema.prettyJson)
    }
}

/// The schema in a file beside a configuration, where editors find it by the first line of the configuration.
enum SchemaFile {
    static let name = "httpware.schema.json"
    /// The line for editors with a YAML language server.
    static let mark = "# yaml-language-server: $schema=\(name)\n"

    static var schema: ConfigNode { ConfigurationSchema(Program.allWares, stores: GatewayStores.all).json }

    /// Writes the file, unless there is another one of its name. Returns what to say about it.
    static func write(beside path: String) -> String {
        let file = FilePath.joined(name, writtenIn: path)
        let text = schema.json + "\n"
        if let present = try? PrivateFile.content(file, upTo: 8 << 20),
            (try? JsonValue(present))?["title"]?.string != ConfigurationSchema.title
        {
            return ""
        }
        let isWritten = (try? PrivateFile.write(Array(text.utf8), to: file, rights: 0o644)) != nil
        return isWritten ? ", the schema for editors in \(file)" : ""
    }
}
