import ArgumentParser
import Foundation
import GatewayConfig
import HttpWare

/// `httpware wares`: all wares, or one of them, described by their declarations.
struct WaresCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wares", abstract: "Show all wares, or one ware's options, defaults, side and source.")

    /// The names of all wares.
    static let completion = CompletionKind.list(WareDescription.all(Program.allWares).map(\.name))

    @Argument(help: "A ware, such as bodyLimit.", completion: WaresCommand.completion)
    var name: String?
    @Flag(help: "Print JSON.")
    var json = false
    @Flag(help: "Print Markdown: the list of all wares, or the page of one.")
    var markdown = false
    @Option(
        name: .customLong("into"),
        help: ArgumentHelp(
            "With --markdown: write the list and a page for each ware into the folder of a documentation, whose articles they name.",
            valueName: "dir"), completion: .directory)
    var folder: String?

    func validate() throws {
        if markdown, json { throw ValidationError("--markdown and --json exclude each other") }
        if folder != nil, !markdown || name != nil { throw ValidationError("--into is for --markdown without a ware") }
        if folder == "" { throw ValidationError("--into names a folder; . is the present one") }
    }

    func run() throws {
        if let folder { return try write(into: folder) }
        if markdown, name == nil {
            return try Terminal.result(WareReference(Program.allWares).index, end: "")
        }
        let wares = WareDescription.all(Program.allWares)
        guard let name else {
            try Terminal.result(json ? ConfigNode.list(wares.map(\.json)).prettyJson : WaresCommand.table(wares))
            return
        }
        guard let ware = wares.first(where: { $0.name == name }) else {
            let near = WareDescription.didYouMean(name, among: Program.allWares)
            Terminal.error("there is no ware \(name.quotedForErrors)\(near); \(Program.name) wares lists them")
            throw ExitCode(1)
        }
        if markdown, let page = WareReference(Program.allWares).page(of: ware.name) {
            return try Terminal.result(page, end: "")
        }
        try Terminal.result(json ? ware.json.prettyJson : WaresCommand.page(ware))
    }

    private func write(into folder: String) throws {
        let root = URL(filePath: folder)
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".md") }
                .sorted()
            let articles = try names.map { name in
                WareReference.Article(
                    name: String(name.dropLast(3)),
                    text: try String(contentsOf: root.appending(path: name), encoding: .utf8))
            }
            let files = WareReference(Program.allWares, articles: articles).files
            for file in files {
                let place = root.appending(path: file.path)
                try FileManager.default.createDirectory(
                    at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(file.text.utf8).write(to: place)
            }
            Terminal.error("wrote \(files.count) files in \(folder)")
        } catch {
            Terminal.error("\(folder): cannot be read or written: \(error.localizedDescription)")
            throw ExitCode(3)
        }
    }

    private static func table(_ wares: [WareDescription]) -> String {
        columns(wares.map { [$0.name, $0.side.rawValue, $0.about.sentence] }).joined(separator: "\n")
    }

    private static func page(_ ware: WareDescription) -> String {
        let side =
            switch ware.side {
            case .middleware: "middleware: listed under middlewares, acts on requests"
            case .postware: "postware: listed under postwares, acts on responses"
            case .both: "both: listed under middlewares, its response half runs on the way back"
            case .either: "either: acts on requests under middlewares, on responses under postwares"
            }
        var parts = ["\(ware.name)\n\(ware.about.sentence)", side]
        if !ware.shownOptions.isEmpty {
            parts.append(
                "Options (option, type, default, meaning):\n"
                    + columns(ware.shownOptions.map { [$0.key, $0.type, $0.shownDefault, $0.meaning] })
                    .map { "  \($0)" }.joined(separator: "\n"))
        }
        if !ware.about.details.isEmpty { parts.append(ware.about.details) }
        parts.append("Example:\n" + ware.example.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))
        if !ware.about.source.isEmpty { parts.append("Source: \(ware.about.source)") }
        return parts.joined(separator: "\n\n")
    }

    /// Rows with aligned cells. The last cell is not padded, and a very long cell shifts only its own row.
    private static func columns(_ rows: [[String]]) -> [String] {
        let widths = (rows.first ?? []).indices.map { column in
            rows.map { min(36, $0[column].count) }.max() ?? 0
        }
        return rows.map { row in
            row.indices.map { column in
                let padding = column == row.count - 1 ? 0 : max(0, widths[column] - row[column].count)
                return row[column] + String(repeating: " ", count: padding)
            }.joined(separator: "  ")
        }
    }
}
