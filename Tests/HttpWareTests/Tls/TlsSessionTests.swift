import COpenSSL
import Glibc
import Testing

@testable import HttpWare

@Suite struct TlsSessionTests {
    private let files = TestCertificates.shared

    private func server(_ names: [String], _ change: (inout TlsContext.Server) -> Void = { _ in }) throws -> TlsContext
    {
        var options = TlsContext.Server(identities: names.map { files.identity($0) })
        change(&options)
        return try TlsContext(server: options)
    }

    private func peer(
        _ name: String = "a.test", authority: String = "ca", _ change: (inout TlsContext.Client) -> Void = { _ in }
    ) throws -> TlsPeer {
        var options = TlsContext.Client()
        options.authorities = files.file("\(authority).pem")
        change(&options)
        return TlsPeer(try TlsContext(client: options), name: name)
    }

    @Test func `a handshake ends with TLS 1.3 and the protocol that both speak, and bytes pass`() throws {
        let pair = try #require(TlsPair(try server(["a"]), try peer()))
        let (client, server) = pair.shake()
        #expect(client == .bytes(0) && server == .bytes(0))
        #expect(pair.server.version == "TLSv1.3")
        #expect(pair.server.applicationProtocol == .http11 && pair.client.applicationProtocol == .http11)
        #expect(TlsPair.write(pair.client, "hello") == .bytes(5))
        #expect(TlsPair.read(pair.server).1 == "hello")
        #expect(TlsPair.read(pair.server).0 == .wantsRead)
        #expect(TlsPair.write(pair.server, "world") == .bytes(5))
        #expect(TlsPair.read(pair.client).1 == "world")
        #expect(pair.server.clientIdentity == nil)
    }

    @Test func `both sides agree on the first group of the key exchange`() throws {
        let pair = try #require(TlsPair(try server(["a"]), try peer()))
        _ = pair.shake()
        let first = try #require(TlsContext.keyExchanges.first)
        #expect(pair.server.facts.group == first && pair.client.facts.group == first)
        #expect(pair.server.keyExchange?.name == first)
        // OpenSSL has ML-KEM since version 3.5.
        let isNew = OpenSSL_version_num() >= 0x3050_0000
        #expect(first == (isNew ? "X25519MLKEM768" : "x25519"))
    }

    @Test(arguments: [("X25519MLKEM768", KeyExchange.hybrid), ("SecP256r1", .secp256r1), ("ffdhe2048", .other)])
    func `a group is recognized by its registered name`(name: String, group: KeyExchange) {
        #expect(KeyExchange(name) == group)
    }

    @Test func `close_notify is an end, a closed socket alone is not`() throws {
        let pair = try #require(TlsPair(try server(["a"]), try peer()))
        pair.shake()
        pair.server.shutdown()
        pair.server.shutdown()  // once is enough
        #expect(TlsPair.read(pair.client).0 == .end)

        let cut = try #require(TlsPair(try server(["a"]), try peer()))
        cut.shake()
        shutdown(cut.descriptors[0], Int32(SHUT_WR))
        #expect(TlsPair.read(cut.client).0 == .failed)
        #expect(cut.client.fault?.kind == .truncated)
        #expect(TlsPair.read(cut.client).0 == .failed)
    }

    @Test func `sessions of a loop do not take each other's bytes, nor each other's end`() throws {
        let socket = try #require(TlsSocket())
        let context = try server(["a"])
        let one = try #require(TlsPair(context, try peer(), through: socket))
        let other = try #require(TlsPair(context, try peer(), through: socket))
        // Their handshakes go on in turns.
        var outcomes = [TlsSession.Outcome](repeating: .wantsRead, count: 4)
        for _ in 0..<10 {
            for (index, session) in [one.client, other.client, one.server, other.server].enumerated()
            where outcomes[index] == .wantsRead {
                outcomes[index] = session.handshake()
            }
        }
        #expect(outcomes == [.bytes(0), .bytes(0), .bytes(0), .bytes(0)])
        #expect(TlsPair.write(one.client, "one") == .bytes(3))
        #expect(TlsPair.read(other.server).0 == .wantsRead)
        #expect(TlsPair.write(other.client, "other") == .bytes(5))
        #expect(TlsPair.read(one.server).1 == "one")
        #expect(TlsPair.read(other.server).1 == "other")
        shutdown(one.descriptors[1], Int32(SHUT_WR))
        #expect(TlsPair.read(one.server).0 == .end)  // servers take a closed connection for an end
        #expect(TlsPair.read(other.server).0 == .wantsRead)
        #expect(TlsPair.write(other.server, "still") == .bytes(5))
        #expect(TlsPair.read(other.client).1 == "still")
    }

    @Test(arguments: [
        ("b.test", "ca", "a", "hostname mismatch"), ("a.test", "other-ca", "a", "local issuer"),
        ("a.test", "ca", "expired", "expired"), ("127.0.0.1", "ca", "a", "address mismatch"),
        ("x.y.b.test", "ca", "wild", "hostname mismatch"),
    ])
    func `a certificate that is another's, or not trusted, or out of date, is refused`(
        name: String, authority: String, shown: String, reason: String
    ) throws {
        let pair = try #require(TlsPair(try server([shown]), try peer(name, authority: authority)))
        let (client, server) = pair.shake()
        #expect(client == .failed && pair.client.fault?.kind == .certificate)
        #expect(pair.client.fault?.reason.contains(reason) == true, "\(pair.client.fault?.reason ?? "")")
        #expect(server == .failed && pair.server.fault?.kind == .alert)
    }

    @Test(
        "RFC 7469 §2.6: a server is accepted if its chain has a pinned key",
        arguments: [
            (["a"], nil), (["ca"], nil), (["wild", "a"], nil), (["wild"], "the server has none of the pinned keys"),
        ]
            as [([String], String?)])
    func pins(names: [String], reason: String?) throws {
        let pins = try names.map { try PublicKeyPin("sha256/" + files.keyDigest($0)) }
        let pair = try #require(TlsPair(try server(["a"]), try peer { $0.pins = pins }))
        let (client, _) = pair.shake()
        #expect((client == .bytes(0)) == (reason == nil))
        #expect(pair.client.fault?.reason == reason)
    }

    @Test func `a pinned key does not make an untrusted certificate trusted`() throws {
        let pin = try PublicKeyPin("sha256/" + files.keyDigest("stranger"))
        let pair = try #require(TlsPair(try server(["stranger"]), try peer { $0.pins = [pin] }))
        #expect(pair.shake().0 == .failed)
        #expect(pair.client.fault?.reason.contains("pinned") == false)
    }

    @Test(arguments: ["", "sha256/", "sha256/AAAA", "sha1/" + String(repeating: "A", count: 43) + "=", "sha256/ä"])
    func `an invalid pin is refused`(text: String) throws {
        #expect(throws: TlsFault.self) { try PublicKeyPin(text) }
        let pin = "sha256/" + String(repeating: "A", count: 43) + "="
        #expect(try PublicKeyPin(pin).description == pin)
        var options = TlsContext.Client()
        options.pins = [try PublicKeyPin(pin)]
        options.skipsVerification = true
        #expect(throws: TlsFault.self) { try TlsContext(client: options) }
    }

    @Test(arguments: [("a.test", "a"), ("www.a.test", "a"), ("x.b.test", "wild"), ("127.0.0.1", "address")])
    func `a certificate for the name is taken`(name: String, shown: String) throws {
        let pair = try #require(TlsPair(try server([shown]), try peer(name)))
        #expect(pair.shake().client == .bytes(0))
    }

    @Test(arguments: [("a.test", true), ("A.TEST", true), ("x.b.test", true), ("c.test", false)])
    func `the certificate is chosen by the name that is asked for, else the first is shown`(
        name: String, isKnown: Bool
    ) throws {
        let pair = try #require(TlsPair(try server(["address", "a", "wild"]), try peer(name)))
        let (client, _) = pair.shake()
        #expect((client == .bytes(0)) == isKnown)
    }

    @Test func `of an EC and an RSA certificate of the same names the client's ciphers choose`() throws {
        let context = try server(["rsa", "a"])
        #expect(context.others.isEmpty)
        let pair = try #require(TlsPair(context, try peer()))
        #expect(pair.shake().client == .bytes(0))
    }

    @Test func `a session is taken up again, under another context too, but not with another trust`() throws {
        let peer = try peer()
        func resumes(_ context: TlsContext) throws -> Bool {
            let pair = try #require(TlsPair(context, peer))
            #expect(pair.shake().client == .bytes(0))
            // The ticket comes behind the handshake.
            #expect(TlsPair.read(pair.client).0 == .wantsRead)
            #expect(pair.server.isResumed == pair.client.isResumed)
            return pair.client.isResumed
        }
        let first = try server(["a"])
        #expect(try !resumes(first))
        #expect(try resumes(first))
        #expect(try resumes(server(["a"])))
        #expect(
            try !resumes(
                server(["a"]) {
                    $0.clientAuthorities = files.file("ca.pem")
                    $0.requiresClientCertificate = false
                }))
    }

    @Test func `a client's certificate is asked for, verified, and told`() throws {
        let context = try server(["a"]) { $0.clientAuthorities = files.file("ca.pem") }
        let pair = try #require(TlsPair(context, try peer { $0.identity = files.identity("anna") }))
        #expect(pair.shake().server == .bytes(0))
        let identity = try #require(pair.server.clientIdentity)
        #expect(identity.subject == "CN=anna,O=Example")
        #expect(
            identity.alternativeNames == "email:anna@a.test,URI:spiffe://a.test/anna%20b,IP:192.0.2.1")

        let none = try #require(TlsPair(context, try peer()))
        #expect(none.shake().server == .failed)
        #expect(none.server.fault?.kind == .certificate)

        let wrong = try #require(TlsPair(context, try peer { $0.identity = files.identity("stranger") }))
        #expect(wrong.shake().server == .failed)
        #expect(wrong.server.fault?.kind == .certificate)
    }

    @Test func `the facts of a handshake are the same on both sides, and one object`() throws {
        let context = try server(["rsa", "a"]) { $0.clientAuthorities = files.file("ca.pem") }
        let pair = try #require(TlsPair(context, try peer { $0.identity = files.identity("anna") }))
        #expect(pair.shake().server == .bytes(0))
        let facts = pair.server.facts
        #expect(facts === pair.server.facts)
        #expect(facts.version == "TLSv1.3" && facts.cipher.hasPrefix("TLS_") && facts.alpn == "http/1.1")
        #expect(facts.name == "a.test" && pair.client.facts.name == "a.test" && !facts.isResumed)
        let served = try #require(facts.certificate)
        #expect(served.issuer == "CN=ca" && served.names == ["DNS:a.test", "DNS:www.a.test"] && served.moreNames == 0)
        #expect(served.sha256.utf8.count == 64 && served.notBefore < served.notAfter)
        #expect(pair.client.facts.certificate == served)
        #expect(pair.client.facts.clientCertificate == facts.clientCertificate)
        #expect(facts.clientCertificate?.subject == "CN=anna,O=Example")
        #expect(facts.clientCertificate?.names.last == "IP:192.0.2.1")
    }

    @Test func `the memory of shared facts is counted for one holder`() throws {
        let pair = try #require(TlsPair(try server(["a"]), try peer()))
        pair.shake()
        let facts = pair.server.facts
        #expect(facts.memory(for: 7) > 256)
        #expect(facts.memory(for: 8) == 0 && facts.memory(for: 7) > 256)
    }

    @Test func `of a certificate with many names, some are told and the others counted`() throws {
        let pair = try #require(TlsPair(try server(["many"]), try peer("n1.test")))
        #expect(pair.shake().client == .bytes(0))
        let certificate = try #require(pair.client.facts.certificate)
        #expect(certificate.names.count == 16 && certificate.moreNames == 24)
        #expect(certificate.names[0] == "DNS:n1.test")
    }

    @Test func `a client without a certificate is served where one is only requested`() throws {
        let context = try server(["a"]) {
            $0.clientAuthorities = files.file("ca.pem")
            $0.requiresClientCertificate = false
        }
        let pair = try #require(TlsPair(context, try peer()))
        #expect(pair.shake().server == .bytes(0))
        #expect(pair.server.clientIdentity == nil)
        let wrong = try #require(TlsPair(context, try peer { $0.identity = files.identity("stranger") }))
        #expect(wrong.shake().server == .failed)
    }

    @Test func `a server that speaks TLS 1.3 only refuses 1.2, and garbage is not TLS`() throws {
        let pair = try #require(TlsPair(try server(["a"]) { $0.leastVersion = .tls13 }, try peer()))
        #expect(pair.shake().server == .bytes(0))
        let garbage = try #require(TlsPair(try server(["a"]), try peer()))
        _ = "GET / HTTP/1.1\r\n\r\n".withCString { Glibc.write(garbage.descriptors[1], $0, 18) }
        #expect(garbage.server.handshake() == .failed)
        #expect(garbage.server.fault?.kind == .plainHttp)
    }

    @Test func `a record that the socket does not take is written again later, from other memory`() throws {
        let pair = try #require(TlsPair(try server(["a"]), try peer()))
        pair.shake()
        let text = String(repeating: "0123456789abcdef", count: 65536)
        var sent = 0
        var got = ""
        for _ in 0..<10_000 where got.utf8.count < text.utf8.count {
            let rest = Array(text.utf8.dropFirst(sent))
            if !rest.isEmpty, case .bytes(let count) = rest.withUnsafeBytes({ pair.server.write($0) }) {
                #expect(count <= TlsSession.recordSize)
                sent += count
                continue
            }
            got += TlsPair.read(pair.client).1
        }
        #expect(got == text)
    }
}
