import ArgumentParser
import GatewayConfig
import HttpWare

/// `httpware diff`: the changes that a reload would make.
struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Show what a reload from one configuration to another would change.",
        discussion:
            "Compares the files after interpolation. Secrets are not shown. Exit status: 1 if a file has errors.")

    @Argument(help: "The present configuration.", completion: ConfigurationOption.completion)
    var old: String
    @Argument(help: "The new configuration.", completion: ConfigurationOption.completion)
    var new: String
    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let files = try [old, new].map { path in try ConfigurationOption.parse(["-c", path]) }
        let results = try files.map { try $0.read() }
        for error in results.flatMap(\.errors) where error.severity == .error { Terminal.error(error.description) }
        guard let before = results[0].configuration, let after = results[1].configuration else { throw ExitCode(1) }
        let difference = ConfigurationDifference(from: before, to: after)
        try Terminal.result(json ? DiffCommand.json(difference) : DiffCommand.text(difference))
    }

    // MARK: Text

    private static func text(_ difference: ConfigurationDifference) -> String {
        if difference.isEmpty { return "no change" }
        var lines: [String] = []
        for change in difference.changes {
            lines.append(
                "\(change.location): \(change.what): \(change.kind.rawValue)" + (change.effect.map { "; \($0)" } ?? ""))
            for key in change.keys { lines.append("    \(key.key): \(text(key))") }
        }
        for loss in difference.losses { lines.append("\(loss.location): \(loss.what) is lost") }
        return lines.joined(separator: "\n")
    }

    private static func text(_ key: ConfigurationDifference.KeyChange) -> String {
        switch (key.old, key.new) {
        case (let old?, let new?): "\(old) → \(new)"
        case (nil, let new?): "\(new), was not written"
        case (let old?, nil): "not written, was \(old)"
        case (nil, nil): ""
        }
    }

    // MARK: JSON

    private static func json(_ difference: ConfigurationDifference) -> String {
        let changes = difference.changes.map { change -> Json in
            let keys = change.keys.map { key -> Json in
                .object([
                    ("key", .text(key.key)), ("old", .optional(key.old)), ("new", .optional(key.new)),
                    ("place", .text("\(key.location)")),
                ])
            }
            return .object([
                ("what", .text(change.what)), ("kind", .text(change.kind.rawValue)),
                ("place", .text("\(change.location)")), ("effect", .optional(change.effect)), ("keys", .list(keys)),
            ])
        }
        let losses = difference.losses.map { loss -> Json in
            .object([("what", .text(loss.what)), ("place", .text("\(loss.location)"))])
        }
        return Json.object([("changes", .list(changes)), ("lost", .list(losses))]).text
    }
}
