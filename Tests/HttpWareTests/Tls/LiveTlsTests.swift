import COpenSSL
import Testing

@testable import HttpWare

@Suite struct LiveTlsTests {
    private static let certificates = TestCertificates.shared

    private static func server(_ change: (inout TlsContext.Server) -> Void = { _ in }) throws -> TlsContext {
        var server = TlsContext.Server(identities: [certificates.identity("a"), certificates.identity("wild")])
        change(&server)
        return try TlsContext(server: server)
    }

    /// A client that asks for a name with these ALPN names, and trusts every server.
    private static func pair(_ context: TlsContext, name: String, offering: [String]) throws -> TlsPair {
        var client = TlsContext.Client()
        client.skipsVerification = true
        let peer = TlsPeer(try TlsContext(client: client), name: name)
        let pair = try #require(TlsPair(context, peer))
        let names = offering.flatMap { ApplicationProtocol.wire($0) }
        SSL_set_alpn_protos(pair.client.pointer, names, UInt32(names.count))
        return pair
    }

    private static let digest = (0..<32).map { UInt8($0) }

    @Test func `sessions begin with the context that took the listener's place`() throws {
        let live = LiveTls()
        let listener = try Self.server { $0.live = live }
        let first = try Self.pair(listener, name: "a.test", offering: ["http/1.1"])
        let other = try #require(try CertificateKey().selfSigned(for: "a.test"))
        live.use(try TlsContext(server: TlsContext.Server(identities: [other])))
        let second = try Self.pair(listener, name: "a.test", offering: ["http/1.1"])
        for pair in [first, second] { #expect(pair.shake().client == .bytes(0)) }
        #expect(first.client.facts.certificate?.subject == "CN=a")
        #expect(second.client.facts.certificate?.subject == "CN=httpware: no certificate yet")
    }

    @Test(arguments: [false, true])
    func `a challenge is answered with its digest, whatever the listener asks of clients`(isStrict: Bool) throws {
        let context = try Self.server { server in
            server.challenges = [TlsChallenge(name: "a.test", digest: Self.digest)]
            server.protocols = [.h2]
            if isStrict { server.clientAuthorities = Self.certificates.file("ca.pem") }
        }
        let pair = try Self.pair(context, name: "a.test", offering: ["acme-tls/1"])
        let (client, server) = pair.shake()
        #expect(client == .bytes(0) && server == .bytes(0))
        #expect(pair.server.wasChallenge)
        #expect(pair.client.facts.certificate?.subject == "CN=ACME challenge")
        let shown = SSL_get0_peer_certificate(pair.client.pointer)
        var der = [UInt8](repeating: 0, count: max(0, Int(i2d_X509(shown, nil))))
        der.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress
            i2d_X509(shown, &place)
        }
        #expect(der.firstRange(of: [4, 34, 4, 32] + Self.digest) != nil)
    }

    @Test func `acme-tls/1 beside other protocols, or for another name, is not a challenge`() throws {
        let context = try Self.server { $0.challenges = [TlsChallenge(name: "a.test", digest: Self.digest)] }
        for (name, offer) in [("a.test", ["acme-tls/1", "http/1.1"]), ("x.b.test", ["http/1.1"])] {
            let pair = try Self.pair(context, name: name, offering: offer)
            #expect(pair.shake().client == .bytes(0))
            #expect(!pair.server.wasChallenge)
            #expect(pair.server.applicationProtocol == .http11)
        }
        let other = try Self.pair(context, name: "x.b.test", offering: ["acme-tls/1"])
        #expect(other.shake().server == .failed)
    }

    @Test func `acme-tls/1 is refused while no challenge is pending`() throws {
        let pair = try Self.pair(try Self.server(), name: "a.test", offering: ["acme-tls/1"])
        #expect(pair.shake().server == .failed)
        #expect(!pair.server.wasChallenge)
    }

    @Test(
        arguments: [
            [], [0], [0, 0], [0, 4, 0, 0, 1, 65], [0, 4, 1, 0, 1, 65], [0, 9, 0, 0, 1, 65], [0, 4, 0, 0, 9, 65],
        ] as [[UInt8]])
    func `a server_name that is not one name is taken for none`(bytes: [UInt8]) {
        let name = bytes.withUnsafeBufferPointer { TlsContext.hostName(inHello: $0) }
        #expect(name == (bytes == [0, 4, 0, 0, 1, 65] ? "a" : nil))
    }
}
