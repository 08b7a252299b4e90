import Glibc
import Testing

@testable import HttpWare

@Suite struct ResolveErrorTests {
    /// The answer to a request whose origin server's name has no addresses.
    private func error(
        for host: String = "origin.test", after wait: Duration = .zero, isClosed: Bool = false, maxLookups: Int = 1024
    ) throws -> GatewayError {
        let stage = try HandTurnedLoop()
        // No server reads there, so no question is answered.
        let silent = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(silent) }
        #expect(SocketAddress.loopback.withSystemAddress { bind(silent, $0, $1) } == 0)
        var options = Resolver.Options()
        options.servers = [try #require(Socket.localAddress(silent))]
        options.maxLookups = maxLookups
        let resolver = try Resolver(loop: stage.loop, options: options)
        let transport = LoopTransport(loop: stage.loop, resolver: resolver)
        if isClosed { resolver.close() }
        let waiter = RecordingWaiter()
        _ = transport.connect(
            to: Endpoint(host: host, port: 80), need: .usual, timeout: .seconds(60), waiter: waiter)
        stage.turn()
        if wait > .zero {
            #expect(waiter.error == nil)
            stage.advance(by: wait)
        }
        defer { resolver.close() }
        return try #require(waiter.error)
    }

    @Test func `a name that does not exist is a fault of DNS, and another endpoint may be tried`() throws {
        let error = try error(for: "a..test")
        #expect(error.side == .upstream && error.fault == .dnsError && error.mayRetry)
        #expect(error.reason == "name not found")
    }

    @Test func `a name server that does not answer is a timeout of DNS`() throws {
        let error = try error(after: Resolver.Options().timeout)
        #expect(error.side == .upstream && error.fault == .dnsTimeout && error.mayRetry)
        #expect(error.reason == "name lookup timed out")
    }

    @Test func `a loop that makes too many lookups says so`() throws {
        let error = try error(maxLookups: 0)
        #expect(error.fault == .dnsError && error.mayRetry && error.reason == "too many name lookups")
    }

    @Test func `a resolver that was closed cancels lookups`() throws {
        let error = try error(isClosed: true)
        #expect(error.fault == .dnsError && error.reason == "name lookup cancelled")
    }

    @Test func `the reason of a name server is part of the text`() {
        #expect("\(ResolveError.serverFailure("refused"))" == "name server failure: refused")
    }
}
