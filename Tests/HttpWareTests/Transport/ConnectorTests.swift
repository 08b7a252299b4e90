import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ConnectorTests {
    private let stage: HandTurnedLoop
    private let origin: UnixOrigin
    private let files = TestCertificates.shared
    private let gone = SocketAddress.unix(path: "/tmp/httpware-no-such-socket")

    init() throws {
        stage = try HandTurnedLoop()
        // A step that began at 0 has not begun.
        stage.advance(by: .seconds(1))
        origin = try UnixOrigin()
    }

    private final class Outcome {
        var results: [Result<Connector.Link, GatewayError>] = []
        var times = Connector.Times()

        var link: Connector.Link? { try? results.first?.get() }
        var error: GatewayError? {
            if case .failure(let error) = results.first { error } else { nil }
        }
    }

    private func connect(
        _ endpoint: Endpoint, speaking version: Endpoint.Version = .auto, timeout: Duration = .seconds(5)
    ) -> Outcome {
        let outcome = Outcome()
        Connector.connect(
            to: endpoint, speaking: version, loop: stage.loop, resolver: nil, timeout: timeout
        ) { result, times in
            // There is no notice about an unused socket.
            if case .success(let link) = result { link.socket.disableReading() }
            outcome.results.append(result)
            outcome.times = times
        }
        return outcome
    }

    private func plain(_ addresses: [SocketAddress]) -> Endpoint {
        Endpoint(host: "a.test", port: 80).fixed(at: addresses)
    }

    private func secure(_ addresses: [SocketAddress], named name: String = "a.test") throws -> Endpoint {
        var options = TlsContext.Client()
        options.authorities = files.file("ca.pem")
        return Endpoint(host: name, port: 443, tls: try TlsContext(client: options)).fixed(at: addresses)
    }

    /// A server's session on a connection that was made.
    private func session(_ far: FarEnd, _ protocols: [ApplicationProtocol]) throws -> TlsSession {
        var options = TlsContext.Server(identities: [files.identity("a")])
        options.protocols = protocols
        let socket = try #require(TlsSocket())
        return try #require(
            TlsSession(server: try TlsContext(server: options), socket: socket, descriptor: far.descriptor))
    }

    private func shake(_ session: TlsSession) {
        for _ in 0..<6 {
            stage.turn()
            _ = session.handshake()
        }
        stage.turn()
    }

    @Test func `an address that refuses the connection is passed over for the next one`() throws {
        let outcome = connect(plain([gone, origin.address]))
        #expect(outcome.link != nil && origin.accept() != nil)
        #expect(outcome.results.count == 1)
    }

    @Test func `when no address can be reached the last one's error is reported, and the request may be tried again`()
        throws
    {
        let outcome = connect(plain([gone, gone]))
        let error = try #require(outcome.error)
        #expect(error.fault == .connectionRefused && error.mayRetry)
        #expect(error.reason.hasSuffix(": no such file or directory"))
        #expect(outcome.results.count == 1)
    }

    @Test(arguments: ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254"])
    func `a private address is refused where private addresses are denied, without a connection`(host: String) throws {
        let outcome = connect(Endpoint(host: host, port: 80, deniesPrivate: true))
        #expect(outcome.error?.fault == .destinationProhibited)
        #expect(outcome.times.connectStarted == 0)
    }

    @Test func `a metadata address is refused where these are denied, and other private addresses are not`() throws {
        for host in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"] {
            let outcome = connect(Endpoint(host: host, port: 80, deniesMetadata: true))
            #expect(outcome.error?.fault == .destinationProhibited, "\(host)")
            #expect(outcome.error?.reason.contains("metadata") == true && outcome.times.connectStarted == 0)
        }
        let other = connect(Endpoint(host: "127.0.0.1", port: 9, deniesMetadata: true))
        #expect(other.error?.fault != .destinationProhibited)
    }

    @Test func `a name fails at once where no resolver is there`() throws {
        #expect(connect(Endpoint(host: "a.test", port: 80)).error?.fault == .destinationUnavailable)
    }

    @Test func `a handshake that does not end fails at the timeout, and its socket is closed`() throws {
        let outcome = connect(try secure([origin.address]), timeout: .seconds(3))
        let far = try #require(origin.accept())
        stage.advance(by: .milliseconds(2999))
        #expect(outcome.results.isEmpty)
        stage.advance(by: .milliseconds(1))
        let error = try #require(outcome.error)
        #expect(error.fault == .connectionTimeout && error.mayRetry)
        #expect(error.reason.hasPrefix("the TLS handshake with ") && error.reason.hasSuffix(" took too long"))
        _ = far.read()
        #expect(far.isEnded)
    }

    @Test(arguments: [([ApplicationProtocol.h2, .http11], true), ([.http11], false)])
    func `HTTP/2 is spoken where the origin server agrees to it`(protocols: [ApplicationProtocol], isHttp2: Bool) throws
    {
        let outcome = connect(try secure([origin.address]))
        let far = try #require(origin.accept())
        let session = try session(far, protocols)
        stage.clock.advance(by: .milliseconds(7))
        shake(session)
        let link = try #require(outcome.link)
        #expect(link.isHttp2 == isHttp2 && link.tls != nil)
        #expect(outcome.times.secured - outcome.times.connected == 7_000_000)
    }

    @Test func `an origin server without HTTP/2 is refused where HTTP/2 is required`() throws {
        let outcome = connect(try secure([origin.address]), speaking: .h2)
        let far = try #require(origin.accept())
        shake(try session(far, [.http11]))
        // The server's alert no_application_protocol. RFC 7301 §3.2.
        #expect(outcome.error?.fault == .tlsAlertReceived)
        _ = far.read()
        #expect(far.isEnded)
    }

    @Test func `after a failed handshake the next address is tried`() throws {
        let second = try UnixOrigin()
        let outcome = connect(try secure([origin.address, second.address]))
        let first = try #require(origin.accept())
        first.send("this is no TLS")
        stage.turn()
        #expect(outcome.results.isEmpty)
        let far = try #require(second.accept())
        shake(try session(far, [.http11]))
        #expect(outcome.link?.isHttp2 == false)
    }

    @Test func `a certificate for another name fails the connection`() throws {
        let outcome = connect(try secure([origin.address], named: "b.test"))
        let far = try #require(origin.accept())
        shake(try session(far, [.http11]))
        #expect(outcome.error?.fault == .tlsCertificateError)
    }
}
