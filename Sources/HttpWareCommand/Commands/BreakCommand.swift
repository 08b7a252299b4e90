import ArgumentParser
import HttpWare

/// `httpware break`: the messages that the ware `break` holds in a running gateway.
struct BreakCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "break", abstract: "Resume, edit or abort the messages that a running gateway holds.",
        discussion:
            "\(Program.name) rule add break holds messages for a while, an entry of a chain as long as it is there.",
        subcommands: [List.self, Resume.self, Abort.self], defaultSubcommand: List.self)

    private struct Done: Decodable { let id: String }

    /// `httpware break ls`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "ls", abstract: "List the held messages.")
        @OptionGroup var view: AdminView

        private struct Answer: Decodable {
            struct Held: Decodable {
                let id: String
                let capture: String?
                let side: String
                let method: String
                let url: String
                let status: Int?
                let since: String
            }

            let breaks: [Held]
        }

        func run() throws {
            let answer = try view.admin.client().get("/v1/breaks")
            let held = try answer.decoded(Answer.self).breaks
            if view.json { return try Terminal.result(answer.text, end: "") }
            let rows = held.map { one in
                [
                    one.id, one.capture ?? "-", one.side, one.method, one.status.map(String.init) ?? "-", one.since,
                    one.url,
                ].map(TerminalStyle.plain.shown)
            }
            for line in TextTable.lines([["ID", "CAPTURE", "SIDE", "METHOD", "STATUS", "SINCE", "URL"]] + rows) {
                try Terminal.result(line)
            }
        }
    }

    /// `httpware break resume ID`.
    struct Resume: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resume", abstract: "Let a held message go on, as it is or edited.")
        @Argument(help: "The message, as \(Program.name) break ls shows it.")
        var id: Int
        @Option(
            help: ArgumentHelp(
                """
                What becomes of the message: method, url, headers and body of a request; status, headers and body of a response, \
                such as '{"status": 503, "body": "no"}'.
                """, valueName: "json"))
        var edit: String?
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        func run() throws {
            let answer = try admin.client().send(.post, "/v1/breaks/\(id)/resume", json: edit)
            let done = try answer.decoded(Done.self)
            if json { return try Terminal.result(answer.text, end: "") }
            try Terminal.result("\(TerminalStyle.plain.shown(done.id)) goes on")
        }
    }

    /// `httpware break abort ID`.
    struct Abort: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "abort", abstract: "Reset the connection of a held message's client, or its stream.")
        @Argument(help: "The message, as \(Program.name) break ls shows it.")
        var id: Int
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        func run() throws {
            let answer = try admin.client().send(.post, "/v1/breaks/\(id)/abort")
            let done = try answer.decoded(Done.self)
            if json { return try Terminal.result(answer.text, end: "") }
            try Terminal.result("\(TerminalStyle.plain.shown(done.id)) is aborted")
        }
    }
}
