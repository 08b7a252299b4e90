import ArgumentParser
import FoundationEssentials
import HttpWare

/// `httpware rule`: the temporary rules of a running gateway.
struct RuleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rule", abstract: "Put wares in force on a running gateway for a while.",
        discussion: """
            A rule acts on the exchanges of its filter, behind the wares that check access and before the wares that answer, until its time is \
            over. It outlives \
            a reload, but not a restart. \(Program.name) rule save prints the same for the configuration file.
            """,
        subcommands: [Add.self, List.self, Remove.self, Save.self], defaultSubcommand: List.self)

    struct Rule: Decodable {
        let id: String
        let filter: String
        let ware: String
        let reason: String
        let until: String
        let count: Int?
        let hits: Int
        let missed: Int?
        let missedBecause: String?

        var row: [String] {
            [id, ware, filter, until, count.map { "\(hits) of \($0)" } ?? String(hits), reason]
        }

        /// Why the rule did not act on requests that its filter finds; `nil` if it acted on all of them.
        var miss: String? {
            guard let missed, missed > 0, let missedBecause else { return nil }
            return "rule \(id) did not act on \(missed == 1 ? "a request" : "\(missed) requests"): \(missedBecause)"
        }
    }

    static func show(_ rules: [Rule]) throws {
        let rows = rules.map { $0.row.map(TerminalStyle.plain.shown) }
        for line in TextTable.lines([["ID", "WARE", "FILTER", "UNTIL", "HITS", "REASON"]] + rows) {
            try Terminal.result(line)
        }
        for miss in rules.compactMap(\.miss) { try Terminal.result(TerminalStyle.plain.shown(miss)) }
    }

    /// `httpware rule add WARE`.
    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Put a ware in force for a while.",
            discussion: """
                For example: \(Program.name) rule add fault --filter '~u /orders' --for 10m --reason 'test retries' \
                --options '{"status": 503}'
                """)

        @Argument(
            help: "The ware, such as fault, throttle, break, mock or replay.", completion: WaresCommand.completion)
        var ware: String
        @Option(help: "The exchanges that it acts on, in the language of captures; ~all for every one.")
        var filter: String
        @Option(name: .customLong("for"), help: "How long, such as 10m; at most 24h.")
        var time: String
        @Option(help: "The number of exchanges that it acts on, at most. Default: no limit.")
        var count: Int?
        @Option(help: "Why the rule exists, for other operators.")
        var reason: String
        @Option(help: ArgumentHelp("The options of the ware as JSON.", valueName: "json"))
        var options: String?
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        func run() throws {
            if let options, (try? JsonValue(Array(options.utf8)))?.members == nil {
                throw ValidationError("--options is a JSON object, such as '{\"status\": 503}'")
            }
            let body = Json.object(given: [
                ("filter", .text(filter)), ("ware", .text(ware)), ("options", options.map(Json.raw)),
                ("for", .text(time)), ("count", count.map(Json.number)), ("reason", .text(reason)),
            ])
            let answer = try admin.client().send(.post, "/v1/rules", json: body.text)
            let rule = try answer.decoded(Rule.self)
            if json { return try Terminal.result(answer.text, end: "") }
            try RuleCommand.show([rule])
        }
    }

    /// `httpware rule ls`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "ls", abstract: "List the rules in force.")
        @OptionGroup var view: AdminView

        private struct Answer: Decodable { let rules: [Rule] }

        func run() throws {
            let answer = try view.admin.client().get("/v1/rules")
            let rules = try answer.decoded(Answer.self).rules
            if view.json { return try Terminal.result(answer.text, end: "") }
            try RuleCommand.show(rules)
        }
    }

    /// `httpware rule rm ID`.
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "rm", abstract: "End a rule.")
        @Argument(help: "The rule, as \(Program.name) rule ls shows it.")
        var id: Int
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        private struct Nothing: Decodable {}

        func run() throws {
            let answer = try admin.client().send(.delete, "/v1/rules/\(id)")
            if answer.status != 204 { _ = try answer.decoded(Nothing.self) }
            try Terminal.result(json ? Json.object([("removed", .text(String(id)))]).text : "rule \(id) has ended")
        }
    }

    /// `httpware rule save ID`.
    struct Save: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "save", abstract: "Print a rule as it is written in a configuration file.",
            discussion: """
                Wares without filter get the if that says the same as the rule's filter. If no if says it exactly, the command \
                names the place in the filter and prints nothing.
                """)
        @Argument(help: "The rule, as \(Program.name) rule ls shows it.")
        var id: Int
        @OptionGroup var view: AdminView

        private struct Answer: Decodable { let yaml: String }

        func run() throws {
            let answer = try view.admin.client().get("/v1/rules/\(id)/yaml")
            let yaml = try answer.decoded(Answer.self).yaml
            try Terminal.result(view.json ? answer.text : yaml, end: "")
        }
    }
}
