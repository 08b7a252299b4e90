import ArgumentParser
import FoundationEssentials
import Glibc
import HttpWare

/// `httpware reload`: a running gateway reads its configuration again.
struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", abstract: "Let a running gateway read its configuration again, and show the outcome.",
        discussion: """
            A configuration with errors is refused, and the previous one stays in force. Exit status: 0 in force, 1 refused, 3 no \
            answer. With --pid it sends SIGHUP, as service managers do, and does not wait; the outcome is in the log.
            """)

    @Option(help: "The process to signal, in place of asking the admin listener.")
    var pid: Int32?
    @OptionGroup var view: AdminView

    private struct Outcome: Decodable {
        let changes: Int
        let warnings: [String]
    }
    private struct Refusal: Decodable {
        let errors: [String]?
    }

    func run() throws {
        if let pid { return try RunningProcess(pid).send(SIGHUP) }
        let answer = try view.admin.client().post("/v1/reload")
        if answer.status == 422,
            let errors = try? JSONDecoder().decode(Refusal.self, from: Data(answer.content)).errors
        {
            if view.json { try Terminal.result(answer.text, end: "") }
            for error in errors { Terminal.error(TerminalStyle.plain.shown(error)) }
            Terminal.error("the configuration has errors; the previous one stays in force")
            throw ExitCode(1)
        }
        let outcome = try answer.decoded(Outcome.self)
        if view.json { return try Terminal.result(answer.text, end: "") }
        for warning in outcome.warnings { Terminal.error(TerminalStyle.plain.shown(warning)) }
        try Terminal.result(
            outcome.changes == 0
                ? "in force, without a change"
                : "in force, \(outcome.changes) change\(outcome.changes == 1 ? "" : "s")")
    }
}
