import Acme
import ArgumentParser
import GatewayConfig
import HttpWare

/// `httpware acme`: the certificates that listeners obtain automatically.
struct AcmeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "acme",
        abstract: "Show, check or order the certificates that listeners get by themselves (tls.acme).",
        subcommands: [AcmeStatusCommand.self, AcmeCheckCommand.self, AcmeIssueCommand.self])

    /// The listeners that obtain certificates automatically, with the content of their stores. Ends the program if a store cannot
    /// be read.
    static func keepers(_ file: ConfigurationOption) throws -> [(
        listener: String, keeper: CertificateKeeper
    )] {
        let result = try file.read()
        guard let configuration = result.configuration else {
            for error in result.errors { Terminal.error(error.description) }
            throw ExitCode(1)
        }
        return try configuration.listeners.compactMap { listener in
            guard let settings = listener.tls?.acme else { return nil }
            do throws(AcmeFailure) {
                return (listener.name, try CertificateKeeper(settings, challenges: PendingChallenges()) {})
            } catch {
                Terminal.error("listeners.\(listener.name).tls.acme: \(error.reason)")
                throw ExitCode(3)
            }
        }
    }
}

struct AcmeStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show each name, its certificate, and when the next order begins.",
        discussion:
            "Reads the store; the gateway need not run. Exits 1 if a name has no valid certificate.")

    @OptionGroup var file: ConfigurationOption
    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let now = SystemLoopClock().wallNow()
        let reports = try AcmeCommand.keepers(file).flatMap { listener, keeper in
            keeper.report(at: now).map { (listener, "\(keeper.settings.directory)", $0) }
        }
        if json {
            let members = reports.map { AcmeStatusCommand.json($0.0, directory: $0.1, $0.2) }
            try Terminal.result(Json.list(members).prettyText)
        } else if reports.isEmpty {
            try Terminal.result("no listener has tls.acme")
        } else {
            let head = ["LISTENER", "NAME", "VALID UNTIL", "NEXT ORDER", "FAILURES", "LAST PROBLEM"]
            let rows = reports.map { AcmeStatusCommand.row($0.0, $0.2, at: now) }
            for line in TextTable.lines([head] + rows) { try Terminal.result(line) }
        }
        let isWhole = reports.allSatisfy { $0.2.certificate.map { $0.end > now } ?? false }
        if !isWhole { throw ExitCode(1) }
    }

    private static func row(_ listener: String, _ report: CertificateKeeper.Report, at now: WallTime) -> [String] {
        let end = report.certificate.map { $0.end > now ? $0.end.rfc3339 : "expired" } ?? "none"
        return [
            listener, report.name, end, report.due > now ? report.due.rfc3339 : "now", String(report.failures),
            report.problem ?? "-",
        ].map(TerminalStyle.plain.shown)
    }

    private static func json(_ listener: String, directory: String, _ report: CertificateKeeper.Report) -> Json {
        .object([
            ("listener", .text(listener)), ("name", .text(report.name)), ("directory", .text(directory)),
            ("issuer", .optional(report.certificate?.issuer)), ("start", .optional(report.certificate?.start.rfc3339)),
            ("end", .optional(report.certificate?.end.rfc3339)), ("due", .text(report.due.rfc3339)),
            ("failures", .number(report.failures)), ("problem", .optional(report.problem)),
        ])
    }
}
