import ArgumentParser
import HttpWare

/// `httpware offline`: shows or sets the mode in which a running gateway answers from stored responses only.
struct OfflineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offline", abstract: "Show or set whether a running gateway answers from stored responses only.",
        discussion: """
            Without MODE, shows each entry of the ware offline with its mode. With MODE, overrides the configured mode for a \
            limited time; MODE configured ends the override.
            """)

    @Argument(help: "auto, always, never or configured.")
    var mode: String?
    @Option(name: .customLong("for"), help: "How long the mode holds, such as 10m. Default: 1h.")
    var time: String?
    @Option(help: "Only the entries with this label. Default: all.")
    var label: String?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var admin: AdminOption

    private struct Answer: Decodable {
        struct Switch: Decodable {
            let label: String
            let mode: String
            let configured: String
            let overridden: Bool
            let until: String?
        }

        let offline: [Switch]
    }

    func validate() throws {
        if let mode, !["auto", "always", "never", "configured"].contains(mode) {
            throw ValidationError("\(mode) is not a mode; write auto, always, never or configured")
        }
        if mode == nil, time != nil || label != nil { throw ValidationError("--for and --label need a mode") }
    }

    func run() throws {
        let client = try admin.client()
        let query = AdminQuery([("mode", mode), ("for", time), ("label", label)])
        let answer = try mode == nil ? client.get("/v1/offline") : client.post("/v1/offline\(query.text)")
        let switches = try answer.decoded(Answer.self).offline
        if json { return try Terminal.result(answer.text, end: "") }
        let rows = switches.map { one in
            [one.label, one.mode, one.configured, one.overridden ? one.until ?? "it is set again" : "-"]
                .map(TerminalStyle.plain.shown)
        }
        for line in TextTable.lines([["LABEL", "MODE", "CONFIGURED", "UNTIL"]] + rows) { try Terminal.result(line) }
    }
}
