import ArgumentParser
import HttpWare

/// `httpware maintenance`: makes a running gateway answer 503 for a while.
struct MaintenanceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "maintenance", abstract: "Let a running gateway answer 503 for a while.",
        discussion: """
            Requests are answered 503 with Retry-After, before any ware of their chain. Requests in flight go on. It outlives a \
            reload, but not a restart.
            """,
        subcommands: [On.self, Off.self, Show.self], defaultSubcommand: Show.self)

    private struct Answer: Decodable {
        let on: Bool
        let until: String?
        let routes: [String]?
        let allow: [String]?
        let message: String?

        var lines: [String] {
            guard on else { return ["off"] }
            let parts = [
                until.map { "until \($0)" } ?? "until it is ended",
                routes.flatMap { $0.isEmpty ? nil : "for \($0.joined(separator: ", "))" },
                allow.flatMap { $0.isEmpty ? nil : "but not for \($0.joined(separator: ", "))" },
            ]
            return ["on, " + parts.compactMap(\.self).joined(separator: ", ")] + (message.map { [$0] } ?? [])
        }
    }

    private static func show(_ answer: AdminClient.Answer, json: Bool) throws {
        let decoded = try answer.decoded(Answer.self)
        if json { return try Terminal.result(answer.text, end: "") }
        for line in decoded.lines { try Terminal.result(TerminalStyle.plain.shown(line)) }
    }

    /// `httpware maintenance on`.
    struct On: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "on", abstract: "Begin, or change what holds.")

        @Option(name: .customLong("for"), help: "How long, such as 30m; at most 30 days. Default: until it is ended.")
        var time: String?
        @Option(help: "The time at which it ends, such as 2026-11-21T05:20:00Z.")
        var until: String?
        @Option(name: .customLong("route"), help: "Only this route; may be repeated. Default: all.")
        var routes: [String] = []
        @Option(help: "A client or network that is still served, such as 10.0.0.0/8; may be repeated.")
        var allow: [String] = []
        @Option(help: "One sentence for clients.")
        var message: String?
        @OptionGroup var view: AdminView

        func validate() throws {
            if time != nil, until != nil { throw ValidationError("write --for or --until, not both") }
        }

        func run() throws {
            let body = Json.object(given: [
                ("on", .bool(true)), ("for", time.map(Json.text)), ("until", until.map(Json.text)),
                ("routes", .list(routes.map(Json.text))), ("allow", .list(allow.map(Json.text))),
                ("message", message.map(Json.text)),
            ])
            try MaintenanceCommand.show(
                view.admin.client().send(.post, "/v1/maintenance", json: body.text), json: view.json)
        }
    }

    /// `httpware maintenance off`.
    struct Off: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "off", abstract: "End it.")
        @OptionGroup var view: AdminView

        func run() throws {
            let body = Json.object([("on", .bool(false))])
            try MaintenanceCommand.show(
                view.admin.client().send(.post, "/v1/maintenance", json: body.text), json: view.json)
        }
    }

    /// `httpware maintenance show`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "show", abstract: "Show whether it is on.")
        @OptionGroup var view: AdminView

        func run() throws { try MaintenanceCommand.show(view.admin.client().get("/v1/maintenance"), json: view.json) }
    }
}
