import ArgumentParser
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare
import Importing

/// `httpware import`: writes a configuration from the files of another gateway.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Write a configuration from the files of another gateway, such as nginx.",
        usage: "\(Program.name) import <format> <file> ... [-o <output>] [--force]",
        discussion: """
            The file that is written names, beside each part, the line from which it comes. At its head are all lines that were not \
            translated, each with the reason, and the lines that are not needed here. If a rule that restricts access is not understood, \
            its route answers 503 and says so.

            Several files are read in their order. Files that they include are read, too; nothing else is, and nothing is sent.

            Exit statuses: 0 the file is written, even if lines were not translated; 1 \(Program.name) would not accept the file; \
            3 a file cannot be read or written.
            """)

    @Argument(
        help: ArgumentHelp(
            "The gateway of the files: " + ImportedFormat.allValueStrings.joined(separator: ", ") + ".",
            valueName: "format"),
        completion: .list(ImportedFormat.allValueStrings))
    var named: ImportedFormat
    @Argument(help: ArgumentHelp("The files; - is standard input.", valueName: "file"), completion: .file())
    var paths: [String]
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write; - is standard output. Default: standard output.", valueName: "output"),
        completion: ConfigurationOption.completion)
    var output = "-"
    @Flag(help: "Write over files that exist.")
    var force = false

    func validate() throws {
        if paths.count(where: { $0 == "-" }) > 1 { throw ValidationError("standard input can be read once") }
    }

    func run() throws {
        let sources = try paths.map(source)
        let imported = named.format.translate(sources, files: Self.files, command: commandLine)
        if output == "-" {
            try Terminal.result(imported.text, end: "")
            for file in imported.files {
                Terminal.error("\(file.name) is needed beside the configuration; -o writes both")
            }
        } else {
            try write(imported)
        }
        Terminal.error(Self.summary(imported))
        try check(imported)
    }

    /// The command as it is named in the head of the file.
    private var commandLine: String {
        "\(Program.name) import \(named.format.rawValue) " + paths.map(CommandText.quoted).joined(separator: " ")
    }

    /// A line such as `12 parts translated, 3 lines not translated, 1 not needed`.
    private static func summary(_ imported: ImportedGateway) -> String {
        func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
        return
            "\(count(imported.partCount, "part")) translated, \(count(imported.untranslated, "line")) not translated, "
            + "\(imported.unneeded) not needed"
    }

    // MARK: Reading

    private static let files = ImportFiles(
        read: { path in try? ConfigurationFiles.system.read(path, ImportSource.mostBytes) },
        list: { ConfigurationFiles.system.list($0) })

    private func source(_ path: String) throws -> ImportSource {
        do {
            let bytes = try ConfigurationFiles.system.read(path, ImportSource.mostBytes)
            return ImportSource(name: path == "-" ? "stdin" : path, bytes: bytes)
        } catch {
            Terminal.error("\(path == "-" ? "standard input" : path): \(error.reason)")
            throw ExitCode(3)
        }
    }

    // MARK: Writing

    private func write(_ imported: ImportedGateway) throws {
        let folder = FilePath.directory(of: output)
        let files = imported.files.map {
            (path: folder.isEmpty ? $0.name : "\(folder)/\($0.name)", text: $0.text)
        }
        if !force, let file = files.first(where: { OutputFile.exists($0.path) }) {
            Terminal.error("\(file.path) exists; name another folder with -o, or use --force")
            throw ExitCode(3)
        }
        try OutputFile.write(imported.text, to: output, force: force)
        for file in files { try OutputFile.write(file.text, to: file.path, rights: 0o600, force: force) }
    }

    // MARK: Checking

    /// Reads the configuration as `check` does. Files of the machine that it names may be missing here; any other error is our own fault.
    private func check(_ imported: ImportedGateway) throws {
        let path = output == "-" ? "imported.yaml" : output
        let text = Array(imported.text.utf8)
        let files = ConfigurationFiles(
            read: { other, limit throws(ConfigurationFiles.Fault) in
                other == path ? text : try ConfigurationFiles.system.read(other, limit)
            },
            list: { ConfigurationFiles.system.list($0) }, isOpenToAll: { ConfigurationFiles.system.isOpenToAll($0) })
        let result = ConfigurationReader(
            wares: Program.allWares, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: path)
        let own = Set(imported.files.map(\.name))
        let errors = result.errors.filter { error in
            error.severity == .error && !(output == "-" && own.contains { error.message.contains($0) })
        }
        let (missing, faults) = (errors.filter(Self.isAboutFile), errors.filter { !Self.isAboutFile($0) })
        for error in missing { Terminal.error("\(error); put the file there, or change the path") }
        guard faults.isEmpty else {
            Terminal.error(
                "\(Program.name) import made a file that it does not accept; please report this fault of \(Program.name):"
            )
            for error in faults { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        let warnings = result.errors.filter { $0.severity == .warning }
        for warning in warnings.prefix(Self.mostWarnings) { Terminal.error(warning.description) }
        if warnings.count > Self.mostWarnings {
            Terminal.error("\(warnings.count - Self.mostWarnings) more; see \(Program.name) check")
        }
    }

    private static let mostWarnings = 10

    /// Whether the error is about the content or the absence of another file, such as a certificate.
    private static func isAboutFile(_ error: ConfigError) -> Bool {
        let keys = ["cert", "key", "clientCa", "ca", "ocsp", "usersFile", "file", "root", "keysFile"]
        let last = error.keyPath.split(separator: ".").last.map(String.init) ?? ""
        return keys.contains(last) || error.keyPath.contains(".tls.certificates") || error.keyPath.hasSuffix(".tls")
    }
}

/// The first argument of `import`.
struct ImportedFormat: ExpressibleByArgument {
    /// The format that it names.
    let format: ImportFormat

    init?(argument: String) {
        guard let format = ImportFormat(rawValue: argument) else { return nil }
        self.format = format
    }

    static let allValueStrings = ImportFormat.allCases.map(\.rawValue)
}
