import ArgumentParser
import GatewayConfig
import Glibc
import HttpWare
import Importing

/// `httpware convert`: a configuration file between YAML and JSON.
struct ConvertCommand: ParsableCommand {
    enum Format: String, ExpressibleByArgument, CaseIterable { case yaml, json }

    static let configuration = CommandConfiguration(
        commandName: "convert", abstract: "Write a configuration file as JSON, or one in JSON as YAML.",
        discussion: """
            The values stay as they are written: variables such as ${env:NAME} are not replaced, files of include not joined, and \
            nothing is checked but the form. Comments are lost, and anchors written out. The gateway reads both.
            """)

    @Argument(
        help: ArgumentHelp("The file; - for standard input.", valueName: "file"),
        completion: ConfigurationOption.completion)
    var file: String
    @Option(help: "yaml or json. Default: the other form than that of the file.")
    var to: Format?
    @Option(
        name: [.customShort("o"), .long], help: "The file to write; standard output otherwise.", completion: .file())
    var output: String?
    @Flag(help: "Overwrite an existing file.")
    var force = false

    /// The largest file that is read, in bytes: as `check`.
    private static let mostBytes = 4 << 20

    /// The rights of the output: those of the file, whose secrets it has; of standard input, only this user's.
    private var rights: mode_t {
        var status = Glibc.stat()
        return file != "-" && stat(file, &status) == 0 ? status.st_mode & 0o666 : 0o600
    }

    func run() throws {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes =
                try file == "-"
                ? PrivateFile.content(STDIN_FILENO, upTo: Self.mostBytes)
                : PrivateFile.content(file, upTo: Self.mostBytes)
        } catch {
            Terminal.error("\(file): cannot be read: \(SystemError.text(of: error.code))")
            throw ExitCode(3)
        }
        let (node, diagnostics) = YamlReader.read(bytes, file: file == "-" ? "standard input" : file)
        for error in diagnostics.all { Terminal.error(error.description) }
        guard let node, !diagnostics.hasErrors else { throw ExitCode(1) }
        let isJson = bytes.first { !TextBytes.isSpace($0) } == UInt8(ascii: "{")
        let text =
            switch to ?? (isJson ? .yaml : .json) {
            case .json: node.prettyJson + "\n"
            case .yaml: YamlDocument.text(node)
            }
        guard let output else { return try Terminal.result(text, end: "") }
        try OutputFile.write(text, to: output, rights: rights, force: force)
    }
}
