import Acme
import ArgumentParser
import GatewayConfig
import HttpWare
import Synchronization

/// `httpware acme`: the certificates that listeners obtain automatically.
struct AcmeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "acme",
        abstract: "Show, check or order the certificates that listeners get by themselves (tls.acme).",
        subcommands: [AcmeStatusCommand.self, AcmeCheckCommand.self, AcmeIssueCommand.self])

    /// The listeners that obtain certificates automatically, with the content of their stores. Ends the program if a store cannot
    /// be read.
    fileprivate static func keepers(_ file: ConfigurationOption) throws -> [(
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

struct AcmeCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Ask each authority for its directory: whether it answers and fits the configuration.",
        discussion: "Orders nothing and makes no account. Exits 1 if an authority cannot be used.")

    @OptionGroup var file: ConfigurationOption

    func run() throws {
        var isWhole = true
        for (listener, keeper) in try AcmeCommand.keepers(file) {
            let place = "\(listener): \(keeper.settings.directory)"
            switch try AcmeCheckCommand.ask(keeper) {
            case .success(let authority):
                let profiles = authority.profiles.isEmpty ? "none" : authority.profiles.joined(separator: ", ")
                let info = authority.hasRenewalInfo ? "yes" : "no"
                try Terminal.result(
                    TerminalStyle.plain.shown("\(place): ok; renewal information: \(info); profiles: \(profiles)"))
            case .failure(let failure):
                isWhole = false
                Terminal.error(TerminalStyle.plain.shown("\(place): \(failure.reason)"))
            }
        }
        if !isWhole { throw ExitCode(1) }
    }

    /// The result of the task. Guarded by a mutex.
    private final class Told: Sendable {
        let result = Mutex<Result<CertificateKeeper.Authority, AcmeFailure>?>(nil)
    }

    /// Asks the authority on this thread, with a separate loop.
    private static func ask(_ keeper: CertificateKeeper) throws -> Result<CertificateKeeper.Authority, AcmeFailure> {
        let loop = try EventLoop(name: "acme")
        let transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop))
        let told = Told()
        Task(executorPreference: loop) {
            do throws(AcmeFailure) {
                let authority = try await keeper.checkAuthority(on: loop)
                told.result.withLock { $0 = .success(authority) }
            } catch {
                told.result.withLock { $0 = .failure(error) }
            }
            loop.stop()
        }
        loop.run()
        transport.closeIdle()
        guard let result = told.result.withLock({ $0 }) else { throw ExitCode(3) }
        return result
    }
}

struct AcmeIssueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "issue",
        abstract: "Let a running gateway order a certificate for NAME now.",
        discussion: """
            The present certificate stays in use until the new one is there; httpware acme status shows how far it is. Authorities \
            limit the number of orders: try new settings with the staging directory first.
            """)

    @Argument(help: "The DNS name.")
    var name: String
    @OptionGroup var admin: AdminOption

    func run() throws {
        _ = try admin.client().post("/v1/acme\(AdminQuery([("name", name)]).text)")
        try Terminal.result("a certificate for \(TerminalStyle.plain.shown(name)) is being ordered")
    }
}
