import Foundation
import HttpWareTesting

@testable import HttpWare

/// An intercepting proxy on a loop that turns by hand. Clients are sockets, the hosts' side is scripted.
final class InterceptStage {
    let hand: HandTurnedLoop
    let server: LoopListener
    let rules: InterceptRules
    let origin = ScriptedConnector()
    /// The reasons of the exchanges that failed, in order.
    private(set) var failures: [String] = []
    /// The failed handshakes inside tunnels.
    private(set) var handshakes: [LoopListener.InterceptFailure] = []

    /// The authority of all stages. A test that needs one without memories of clients makes its own.
    static let authority = Result { try makeAuthority() }

    static func makeAuthority() throws -> CertificateAuthority {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-intercept-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try CertificateAuthority.make(in: folder, name: "test")
        return try CertificateAuthority(folder: folder)
    }

    static func rules(
        hosts: HostList = HostList([], isAll: true), except: HostList = HostList([]), opaque: Bool = true,
        authority: CertificateAuthority? = nil, router: any ExchangeRouter,
        reaches: @escaping @Sendable (String, UInt16) -> Bool = { _, _ in true }
    ) throws -> InterceptRules {
        let authority = try authority ?? Self.authority.get()
        return InterceptRules(
            authority: authority, tls: try TlsContext(interceptingFor: authority, protocols: [.http11]), hosts: hosts,
            except: except, passPinned: .seconds(600), tunnelsOpaque: opaque, chain: .empty, opaqueRouter: router,
            reaches: reaches)
    }

    init(
        hosts: HostList = HostList([], isAll: true), except: HostList = HostList([]), opaque: Bool = true,
        authority: CertificateAuthority? = nil, unread: HostList? = nil
    ) throws {
        hand = try HandTurnedLoop()
        let service = UpstreamService(name: "passthrough", endpoints: [], isPassthrough: true)
        let router = SinglePlan(listenerPlan: ExchangePlan(chain: .empty, service: service, route: "all"))
        rules = try Self.rules(hosts: hosts, except: except, opaque: opaque, authority: authority, router: router)
        var settings = ServerSettings()
        settings.isForward = true
        var forward = ForwardRules()
        forward.deniesPrivate = false
        forward.unreadHosts = unread
        server = LoopListener(
            name: "proxy", transport: hand.transport, settings: settings, forward: forward, intercept: rules,
            router: router)
        server.connector = origin
        server.onFailure = { [weak self] exchange in self?.failures.append(exchange.failure?.reason ?? "") }
        server.onInterceptFailure = { [weak self] _, _, _, failure in self?.handshakes.append(failure) }
    }

    deinit {
        server.closeAll()
        hand.turn()
    }

    func turn() { hand.turn() }

    func advance(by duration: Duration) { hand.advance(by: duration) }

    /// A client whose CONNECT was answered, in an open tunnel.
    func tunnel(to host: String = "a.test:443") throws -> FarEnd {
        let client = try client()
        client.send("CONNECT \(host) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        turn()
        let head = client.readTexts().joined()
        guard head.hasPrefix("HTTP/1.1 200 ") else { throw Refused(head: head) }
        return client
    }

    struct Refused: Error { let head: String }

    /// A client that connected to a host itself, and was led to the listener.
    func direct(to destination: DirectDestination) throws -> FarEnd {
        let (near, far) = try hand.pair()
        server.accept(near.detach(), from: SocketAddress("127.0.0.1:5000"), to: destination)
        turn()
        return far
    }

    func client() throws -> FarEnd {
        let (near, far) = try hand.pair()
        server.accept(near.detach(), from: SocketAddress("192.0.2.9:5000"))
        turn()
        return far
    }

    /// Takes a client's handshake as far as it goes; answers the outcome.
    func shake(_ session: TlsSession) -> TlsSession.Outcome {
        var outcome = TlsSession.Outcome.wantsRead
        for _ in 0..<10 where outcome == .wantsRead {
            outcome = session.handshake()
            turn()
        }
        return outcome
    }

    /// A client's session in a tunnel, for a host.
    func session(_ client: FarEnd, for host: String, trusts: Bool = true) throws -> TlsSession {
        var options = TlsContext.Client()
        let authority = trusts ? rules.authority : try Self.makeAuthority()
        options.authorities = TlsFile(name: "ca.pem", bytes: authority.pem)
        let peer = TlsPeer(try TlsContext(client: options), name: host)
        guard let session = TlsSession(client: peer, offering: [.http11], descriptor: client.descriptor) else {
            throw SystemError("SSL_new")
        }
        return session
    }
}
