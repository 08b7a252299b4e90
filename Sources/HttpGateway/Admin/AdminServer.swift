import GatewayConfig
import Glibc
import HttpWare
import Synchronization

/// The admin listener: a separate HTTP server with its own loop and thread, so that its load does not affect the loops that carry
/// exchanges.
///
/// Unchecked: `server` and `acceptor` are used only on the loop; the rest is constant.
final class AdminServer: @unchecked Sendable {
    /// The address of the listener; for port 0, with the port that the system chose.
    let address: SocketAddress
    /// The listening socket while it is open. The acceptor closes it.
    let descriptor: Int32
    /// Whether this process removes the file of a Unix socket.
    let ownsFile: Bool
    private let loop: EventLoop
    private let transport: LoopTransport
    private let sessions = AdminSessions()
    private let tokenFile: AdminTokenFile
    private let log: GatewayLog
    private var server: LoopListener?
    private var acceptor: Acceptor?
    /// The token that clients send now. Guarded, because a reload changes it on another thread.
    private let token: Mutex<Secret?>

    /// The maximum number of connections; further ones wait.
    private static let mostConnections = 64

    /// Binds the listener, or takes over an inherited socket, and starts to serve. Throws if the address cannot be bound.
    init(
        _ definition: AdminDefinition, subject: AdminSubject, log: GatewayLog, inherited: [InheritedSocket] = [],
        tokenFile: AdminTokenFile = .ofUser
    ) throws {
        self.log = log
        self.tokenFile = tokenFile
        let passed = inherited.first { $0.fits(definition.bind, name: InheritedSocket.adminName) }
        ownsFile = passed?.isManagers != true
        do {
            descriptor =
                try passed.map { try Socket.copy($0.descriptor) }
                ?? Socket.listen(on: definition.bind, backlog: 128, sharesPort: false, mode: 0o600)
        } catch {
            throw AdminListenError(definition: definition, reason: PortHolder.reason(error, definition.bind))
        }
        address = Socket.localAddress(descriptor) ?? definition.bind
        do {
            loop = try EventLoop.start(name: "admin")
        } catch {
            Socket.close(descriptor)
            throw error
        }
        transport = LoopTransport(loop: loop, resolver: nil)
        let shown = AdminServer.token(for: definition, former: nil, tokenFile, address, log)
        token = Mutex(shown)
        let router = AdminRouter(definition, token: shown, sessions, subject: subject)
        loop.execute { [self, descriptor] in
            let server = LoopListener(
                name: "admin", transport: transport, settings: AdminServer.settings, bindAddress: address,
                router: router)
            self.server = server
            acceptor = Acceptor(
                descriptor: descriptor, loop: loop, server: server, mostConnections: AdminServer.mostConnections,
                reports: { log.write(.warning, $0) })
        }
    }

    private static let settings: ServerSettings = {
        var settings = ServerSettings()
        settings.limits.head = 16 * 1024
        settings.limits.fieldLines = 64
        settings.limits.requestTarget = 4 * 1024
        settings.headTimeout = .seconds(5)
        settings.idleTimeout = .seconds(15)
        settings.bodyMinRate = 1024
        return settings
    }()

    /// Takes over the changes of a reload, except for the address. Safe from any thread.
    func use(_ definition: AdminDefinition, subject: AdminSubject) {
        let shown = token.withLock { token in
            let next = AdminServer.token(for: definition, former: token, tokenFile, address, log)
            if next?.revealed != token?.revealed { sessions.end() }
            token = next
            return next
        }
        let router = AdminRouter(definition, token: shown, sessions, subject: subject)
        loop.execute { [self] in
            server?.update(
                name: "admin", settings: AdminServer.settings, forward: ForwardRules(), trustedProxies: [],
                router: router)
        }
    }

    /// The token that clients must send; `nil` if none is needed. A definition without a token has the one that this user's gateways
    /// keep.
    private static func token(
        for definition: AdminDefinition, former: Secret?, _ file: AdminTokenFile, _ address: SocketAddress,
        _ log: GatewayLog
    ) -> Secret? {
        guard definition.makesToken else { return definition.token }
        let kept = file.takeOrMake()
        if let path = kept.path {
            if kept.isNew { log.write(.notice, "made a token for the admin listener on \(address): \(path)") }
            return Secret(kept.token)
        }
        if let former { return former }
        log.write(
            .warning,
            "the admin listener on \(address) has a token that cannot be kept for other programs; write admin.token, bind it to a Unix socket, or let this user write to $XDG_STATE_HOME"
        )
        return Secret(kept.token)
    }

    /// Stops accepting, lets responses in progress finish for at most two seconds, and ends. Safe from any thread. If another
    /// process takes over the socket (`handsOver`), the file of a Unix socket stays.
    func leave(handsOver: Bool = false) {
        loop.execute { [self] in
            acceptor?.close()
            acceptor = nil
            server?.drain()
            loop.schedule(after: .seconds(2)) { [self] in
                server?.closeAll()
                server = nil
                loop.stop()
            }
        }
        if !handsOver { removeSocketFile() }
    }

    /// Closes everything now, and waits until the thread has ended. Must not be called from the admin loop.
    func close() {
        loop.execute { [self] in
            acceptor?.close()
            server?.closeAll()
            acceptor = nil
            server = nil
        }
        loop.stop()
        loop.join()
        removeSocketFile()
    }

    private func removeSocketFile() { if ownsFile, case .unix(let path) = address { unlink(path) } }
}

/// The plans of the admin listener. Each has one chain, which answers all requests.
struct AdminRouter: ExchangeRouter {
    let listenerPlan: ExchangePlan
    /// The plans of endpoints that accept much content.
    private let uploads: [(endpoint: AdminEndpoint, plan: ExchangePlan)]

    init(_ definition: AdminDefinition, token: Secret?, _ sessions: AdminSessions, subject: AdminSubject) {
        var subject = subject
        subject.rulesDir = definition.rulesDir.path
        subject.hasToken = token != nil
        let guarding = AdminGuard(bind: definition.bind, token: token, sessions: sessions)
        let api = AdminApi(
            guarding: guarding,
            endpoints: AdminEndpoint.all(subject, ui: definition.ui) + AdminEndpoint.sessions(guarding))
        listenerPlan = AdminRouter.plan([ChainEntry(api, label: "admin")])
        let gate = ChainEntry(AdminGate(api: api), label: "gate")
        uploads = api.endpoints.filter { $0.mostContent > AdminApi.mostContent }.map { endpoint in
            var large = api
            large.limit = endpoint.mostContent
            return (endpoint, AdminRouter.plan([gate, ChainEntry(large, label: "admin")]))
        }
    }

    private static func plan(_ middlewares: [ChainEntry]) -> ExchangePlan {
        // Cannot throw: every entry is on its side.
        let chain = try? WareChain(
            middlewares: middlewares, postwares: [ChainEntry(AdminFields(), label: "adminFields")])
        return ExchangePlan(chain: chain ?? .empty, service: nil, route: nil)
    }

    func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]) -> ExchangePlan {
        guard request.method == .post else { return listenerPlan }
        let path = request.path
        return uploads.first { $0.endpoint.argument(in: path) != nil }?.plan ?? listenerPlan
    }
}

/// The admin listener cannot be bound.
struct AdminListenError: Error, CustomStringConvertible {
    let definition: AdminDefinition
    let reason: String

    var description: String { "\(definition.bindLocation): admin: cannot listen on \(definition.bind): \(reason)" }
}
