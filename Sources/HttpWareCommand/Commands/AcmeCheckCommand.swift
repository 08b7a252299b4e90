import Acme
import ArgumentParser
import GatewayConfig
import HttpWare
import Synchronization

/// `httpware acme check`: whether the authorities can be used, and whether an order at their staging directory succeeds.
struct AcmeCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Ask each authority for its directory, and try an order for each name at the staging directory.",
        discussion: """
            The running gateway makes each trial: account, order, challenge and certificate, with the settings of the name. Neither \
            the certificate nor the account of the real directory is used or replaced, nor are its limits. Where no staging \
            directory is known, nothing is ordered; tls.acme.staging names one. Exits 1 if an authority cannot be used or a trial fails.
            """)

    @Argument(help: "The DNS names to try. Default: all.")
    var names: [String] = []
    @Flag(help: "Ask for the directories only, and order nothing. The gateway need not run.")
    var directoryOnly = false
    @OptionGroup var admin: AdminOption

    func run() throws {
        let keepers = try AcmeCommand.keepers(admin.file)
        let wanted = names.map { $0.lowercased() }
        for name in wanted where !keepers.contains(where: { $0.keeper.settings.domains.contains(name) }) {
            Terminal.error(TerminalStyle.plain.shown("no listener of the configuration gets certificates for \(name)"))
            throw ExitCode(1)
        }
        var isWhole = true
        for (listener, keeper) in keepers {
            for authority in try AcmeCheckCommand.ask(keeper) {
                isWhole = try AcmeCheckCommand.show(authority, listener) && isWhole
            }
        }
        if !directoryOnly { isWhole = try tryOrders(keepers, wanted) && isWhole }
        if !isWhole { throw ExitCode(1) }
    }

    private static func show(_ authority: CertificateKeeper.Authority, _ listener: String) throws -> Bool {
        let place = "\(listener): \(authority.directory)"
        if let failure = authority.failure {
            Terminal.error(TerminalStyle.plain.shown("\(place): \(failure.reason)"))
            return false
        }
        let profiles = authority.profiles.isEmpty ? "none" : authority.profiles.joined(separator: ", ")
        let info = authority.hasRenewalInfo ? "yes" : "no"
        try Terminal.result(
            TerminalStyle.plain.shown("\(place): ok; renewal information: \(info); profiles: \(profiles)"))
        return true
    }

    // MARK: Trials

    /// Tries an order for each name. Returns whether all succeeded.
    private func tryOrders(
        _ keepers: [(listener: String, keeper: CertificateKeeper)], _ wanted: [String]
    ) throws -> Bool {
        var names: [String] = []
        for (listener, keeper) in keepers {
            let own = keeper.settings.domains.filter { wanted.isEmpty || wanted.contains($0) }
            if keeper.settings.staging != nil {
                names += own.filter { !names.contains($0) }
            } else if !own.isEmpty {
                try Terminal.result(
                    TerminalStyle.plain.shown(
                        "\(listener): no order was tried: no staging directory of \(keeper.settings.directory) is known; write tls.acme.staging"
                    ))
            }
        }
        guard !names.isEmpty else { return true }
        let gateway: AcmeGateway
        do {
            gateway = AcmeGateway(client: try admin.client())
            var isWhole = true
            for name in names { isWhole = try gateway.tryOrder(name) && isWhole }
            return isWhole
        } catch let code as ExitCode {
            Terminal.error(
                "not every order was tried; \(Program.name) acme check --directory-only asks for the directories only")
            throw code
        }
    }

    // MARK: Directories

    /// The result of the task. Guarded by a mutex.
    private final class Told: Sendable {
        let result = Mutex<[CertificateKeeper.Authority]>([])
    }

    /// Asks for the directories on this thread, with a separate loop.
    private static func ask(_ keeper: CertificateKeeper) throws -> [CertificateKeeper.Authority] {
        let loop = try EventLoop(name: "acme")
        let transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop))
        let told = Told()
        Task(executorPreference: loop) {
            let found = await keeper.checkAuthorities(on: loop)
            told.result.withLock { $0 = found }
            loop.stop()
        }
        loop.run()
        transport.closeIdle()
        return told.result.withLock { $0 }
    }
}
