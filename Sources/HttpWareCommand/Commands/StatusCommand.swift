import ArgumentParser
import HttpWare

/// `httpware status`: a running gateway at a glance.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show a running gateway at a glance: addresses, services, the last reload.",
        discussion: "Exit status: 0 ready, 1 starting or draining, 3 no answer.")

    @OptionGroup var view: AdminView

    private struct Status: Decodable {
        struct Listener: Decodable {
            let name: String
            let mode: String
            let tls: Bool
            let address: String

            var line: String { "\(name): \(address), \(mode)\(tls ? ", TLS" : "")" }
        }
        struct Reload: Decodable {
            let time: String
            let success: Bool
            let reloads: Int
        }

        let version: String
        let phase: String
        let process: Int
        let started: String
        let files: [String]
        let lastReload: Reload
        let listeners: [Listener]
        let admin: String?
        let routes: Int
        let services: [String]
        let servicesWithFailures: [String]
        let memoryBytes: Int

        var rows: [[String]] {
            var rows = [
                ["state", "\(phase), process \(process), version \(version)"],
                ["started", "\(started), \(TerminalStyle.size(memoryBytes)) of memory"],
            ]
            rows += files.prefix(1).map { ["file", $0 + (files.count > 1 ? " and \(files.count - 1) more" : "")] }
            if lastReload.reloads > 0 || !lastReload.success {
                let outcome = lastReload.success ? "in force" : "refused; the previous configuration is in force"
                rows.append(["last reload", "\(lastReload.time), \(outcome)"])
            }
            rows += listeners.map { ["listener", $0.line] }
            if let admin { rows.append(["page", "http://\(admin)/ (\(Program.name) page opens it)"]) }
            rows.append(["routes", "\(routes)"])
            let failing = servicesWithFailures.joined(separator: ", ")
            rows.append(["services", "\(services.count)" + (failing.isEmpty ? "" : ", with failures: \(failing)")])
            return rows
        }
    }

    func run() throws {
        let answer = try view.admin.client().get("/v1/status", within: .seconds(10))
        let status = try answer.decoded(Status.self)
        if view.json {
            try Terminal.result(answer.text, end: "")
        } else {
            let rows = status.rows.map { $0.map(TerminalStyle.plain.shown) }
            for line in TextTable.lines(rows) { try Terminal.result(line) }
        }
        if status.phase != "ready" { throw ExitCode(1) }
    }
}
