import ArgumentParser
import HttpWare

/// `httpware unread`: shows the hosts whose tunnels pass unread, and reads them again.
struct UnreadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unread", abstract: "Show the hosts that pass unread because a client refused the certificate.",
        discussion: """
            A program that refuses the certificate of a host twice within a minute pins the host's own. From then on, its tunnels to \
            the host pass unread for intercept.passPinned. With IDs or --all, they are read again.
            """)

    @Argument(help: "The ids of hosts to read again.")
    var ids: [Int] = []
    @Flag(help: "Read all hosts again.")
    var all = false
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var admin: AdminOption

    private struct Answer: Decodable {
        struct Host: Decodable {
            let id: String
            let host: String
            let client: String?
            let principal: String?
            let until: String
            let tunnels: Int
        }

        let unread: [Host]
    }

    func validate() throws {
        if all, !ids.isEmpty { throw ValidationError("write ids or --all, not both") }
    }

    func run() throws {
        let client = try admin.client()
        for path in all ? ["/v1/unread"] : ids.map({ "/v1/unread/\($0)" }) {
            _ = try client.send(.delete, path)
        }
        let answer = try client.get("/v1/unread")
        let hosts = try answer.decoded(Answer.self).unread
        if json { return try Terminal.result(answer.text, end: "") }
        let rows = hosts.map { one in
            [one.id, one.host, one.client ?? "-", one.principal ?? "-", String(one.tunnels), one.until]
                .map(TerminalStyle.plain.shown)
        }
        for line in TextTable.lines([["ID", "HOST", "CLIENT", "PRINCIPAL", "TUNNELS", "UNTIL"]] + rows) {
            try Terminal.result(line)
        }
    }
}
