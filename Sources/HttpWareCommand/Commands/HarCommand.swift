import ArgumentParser
import Capturing
import Glibc
import HttpGateway
import HttpWare

/// `httpware har`: archives of captured requests.
struct HarCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "har", abstract: "Export, import or show captured requests as HAR 1.2.",
        discussion: """
            A gateway captures requests if its configuration has admin.capture, and so do \(Program.name) inspect, with --inspect and \
            proxy --inspect.
            """,
        subcommands: [Export.self, Import.self, Show.self])

    /// `httpware har export`.
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Write the captured requests of a running gateway as HAR.",
            discussion: """
                Credentials are masked. --with-secrets writes them as they were, as far as the gateway still has them in memory, \
                and says how many are missing. Tokens that the gateway itself put into requests are never written.
                """)

        @Option(
            name: .shortAndLong, help: ArgumentHelp("The file to write. Default: standard output.", valueName: "file"),
            completion: .file())
        var output: String?
        @Option(help: ArgumentHelp("Only requests that match this filter.", valueName: "filter"))
        var filter: String?
        @Flag(help: "Write credentials as they were.")
        var withSecrets = false
        @OptionGroup var admin: AdminOption

        func run() throws {
            let query = AdminQuery([("filter", filter), ("secrets", withSecrets ? "true" : nil)])
            let answer = try admin.client().get("/v1/har\(query.text)", within: .seconds(600))
            guard answer.status == 200 else { throw answer.refusal }
            let facts = HarReader.facts(answer.content)
            if facts.missingSecrets > 0 {
                Terminal.error("\(facts.missingSecrets) masked values are no longer in memory, and stay masked")
            }
            if facts.leftOut > 0 {
                let requests = facts.leftOut == 1 ? "1 request has" : "\(facts.leftOut) requests have"
                Terminal.error("\(requests) no URL, and cannot be in an archive")
            }
            guard let output else { return try Terminal.result(answer.text, end: "") }
            try HarCommand.write(answer.content, to: output, isSecret: withSecrets)
        }
    }

    /// `httpware har import FILE`.
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Give a running gateway the requests of a HAR file, as if it had captured them.")

        @Argument(help: "The file; - reads standard input.", completion: .file(extensions: ["har"]))
        var file: String
        @OptionGroup var admin: AdminOption

        func run() throws {
            struct Imported: Decodable { let imported: Int, warnings: [String] }
            let answer = try admin.client().post("/v1/har", HarCommand.read(file))
            guard answer.status == 200 else { throw answer.refusal(of: file) }
            let result = try answer.decoded(Imported.self)
            for warning in result.warnings { Terminal.error(TerminalStyle.plain.shown("\(file): \(warning)")) }
            try Terminal.result("imported \(result.imported) requests")
        }
    }

    /// `httpware har show FILE`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "List the requests of a HAR file: start, duration, method, status, size, URL.")

        @Argument(help: "The file; - reads standard input.", completion: .file(extensions: ["har"]))
        var file: String
        @Option(help: ArgumentHelp("Only requests that match this filter.", valueName: "filter"))
        var filter: String?
        @Flag(help: "Print JSON, one object per line, as the admin listener describes captures.")
        var json = false

        func run() throws {
            let wanted: CaptureFilter?
            do throws(FilterFault) {
                wanted = try filter.map { text throws(FilterFault) in try CaptureFilter(text) }
            } catch {
                throw ValidationError("--filter, column \(error.column): \(error.sentence)")
            }
            let archive: HarReader
            do throws(HarReader.Refusal) {
                archive = try HarReader(HarCommand.read(file))
            } catch {
                Terminal.error(TerminalStyle.plain.shown("\(file): \(error)"))
                throw ExitCode(1)
            }
            for warning in archive.warnings { Terminal.error(TerminalStyle.plain.shown("\(file): \(warning)")) }
            let exchanges = archive.exchanges.filter { wanted?.matches($0) ?? true }
            if json {
                for exchange in exchanges { try Terminal.result(exchange.rowText) }
                return
            }
            let rows = exchanges.map { exchange in
                [
                    exchange.started.rfc3339, TerminalStyle.time(Double(exchange.duration) / 1e6), exchange.method,
                    exchange.status.map(String.init) ?? "---",
                    TerminalStyle.size(exchange.response?.content.size ?? 0), exchange.url,
                ].map(TerminalStyle.plain.shown)
            }
            for line in TextTable.lines(rows) { try Terminal.result(line) }
        }
    }

    // MARK: Files

    /// The largest file that is read, in bytes: more than the gateway takes.
    private static let mostBytes = 1 << 30

    private static func read(_ path: String) -> [UInt8] {
        do throws(SystemError) {
            return try path == "-"
                ? PrivateFile.content(STDIN_FILENO, upTo: mostBytes) : PrivateFile.content(path, upTo: mostBytes)
        } catch {
            Terminal.error("\(path) cannot be read: \(SystemError.text(of: error.code))")
            Glibc.exit(1)
        }
    }

    /// Writes to a temporary file first and then renames it, so that a file is never partial. With secrets, only this user can
    /// read it.
    private static func write(_ bytes: [UInt8], to path: String, isSecret: Bool) throws {
        do throws(SystemError) {
            try PrivateFile.write(bytes, to: path, rights: isSecret ? 0o600 : 0o666)
        } catch {
            Terminal.error("\(path) cannot be written: \(SystemError.text(of: error.code))")
            throw ExitCode(1)
        }
    }
}
