import Acme
import GatewayConfig
import HttpWare
import Synchronization

/// The certificates that listeners obtain by ACME: the keepers that renew them, and what listeners currently show and answer.
///
/// `prepare`, `use` and `router` are called on the control loop, or before it runs. The parts that loops share guard themselves.
final class ListenerCertificates: Sendable {
    typealias Keepers = [AcmeSettings: CertificateKeeper]

    private let board = Board()
    private let challenges: PendingChallenges
    private let keepers = Mutex<Keepers>([:])

    init() {
        challenges = PendingChallenges { [board] in await board.use($0) }
    }

    /// The keepers of the certificates of these listeners: the current ones, and new ones that have read their store but not
    /// started. Throws if a store cannot be used.
    func prepare(_ listeners: [ListenerDefinition]) throws -> Keepers {
        let present = keepers.withLock { $0 }
        var next: Keepers = [:]
        for listener in listeners {
            guard let settings = listener.tls?.acme, next[settings] == nil else { continue }
            next[settings] =
                try present[settings]
                ?? CertificateKeeper(settings, challenges: challenges) { [board] in await board.renew() }
        }
        return next
    }

    /// Makes these listeners use their certificates, before loops serve them, and starts new keepers on this loop.
    func use(_ next: Keepers, for listeners: [ListenerDefinition], on loop: EventLoop) {
        let former = keepers.withLock { keepers in
            let former = keepers
            keepers = next
            return former
        }
        board.use(
            listeners.compactMap { listener in
                guard let tls = listener.tls, let settings = tls.acme, let keeper = next[settings] else { return nil }
                return Board.Entry(listener: listener.name, tls: tls, keeper: keeper)
            })
        for (settings, keeper) in former where next[settings] !== keeper { keeper.stop() }
        for (settings, keeper) in next where former[settings] !== keeper { keeper.start(on: loop) }
    }

    /// The state of each name.
    func reports(at now: WallTime) -> [(settings: AcmeSettings, report: CertificateKeeper.Report)] {
        keepers.withLock { $0 }.flatMap { settings, keeper in keeper.report(at: now).map { (settings, $0) } }
            .sorted { $0.report.name < $1.report.name }
    }

    /// Orders a certificate for a name now, on this loop. Returns false if no listener has the name.
    func orderNow(_ name: String, on loop: EventLoop) -> Bool {
        keepers.withLock { $0 }.values.map { $0.orderNow(name, on: loop) }.contains(true)
    }

    /// Begins to try an order for a name at the staging directory, on this loop. Returns false if no listener has the name, or no
    /// staging directory is known for it.
    func tryNow(_ name: String, on loop: EventLoop) -> Bool {
        keepers.withLock { $0 }.values.map { $0.tryNow(name, on: loop) }.contains(true)
    }

    /// Stops the keepers. Certificates are still shown while loops serve.
    func stop() { for keeper in keepers.withLock({ $0 }).values { keeper.stop() } }

    /// A router that answers challenges before its routes, if the listener has to.
    func router(
        _ routes: RouteTable, for listener: ListenerDefinition, among listeners: [ListenerDefinition]
    ) -> any ExchangeRouter {
        let answers = listeners.contains { $0.tls?.acme.map { listener.answersHttp01(of: $0) } ?? false }
        return answers ? ChallengeRouter(routes, challenges: challenges) : routes
    }

    /// Updates the TLS contexts of listeners. Contexts are made under a lock, so that one from older parts is never used last.
    private final class Board: Sendable {
        struct Entry: Sendable {
            let listener: String
            let tls: ListenerTls
            let keeper: CertificateKeeper
        }

        private struct State {
            var entries: [Entry] = []
            var challenges: [TlsChallenge] = []
        }

        private let state = Mutex(State())

        func use(_ entries: [Entry]) { state.withLock { publish(&$0) { $0.entries = entries } } }

        /// Runs on another thread than the loop's, because a context takes about a millisecond for each certificate.
        func use(_ challenges: [TlsChallenge]) async {
            await Task.detached { self.state.withLock { self.publish(&$0) { $0.challenges = challenges } } }.value
        }

        func renew() async {
            await Task.detached { self.state.withLock { self.publish(&$0) { _ in } } }.value
        }

        private func publish(_ state: inout State, _ change: (inout State) -> Void) {
            change(&state)
            for entry in state.entries {
                do {
                    try entry.tls.use(entry.keeper.identities, challenges: state.challenges)
                } catch {
                    WareLog.shared.log(
                        .error, "acme: \(entry.listener): the certificates cannot be used: \(error.reason)")
                }
            }
        }
    }
}
