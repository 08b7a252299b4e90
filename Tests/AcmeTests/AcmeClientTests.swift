import HttpWare
import HttpWareTesting
import Testing

@testable import Acme
@testable import Credentials

@Suite struct AcmeClientTests {
    private static let limits = {
        var limits = AcmeLimits()
        limits.pause = .milliseconds(1) ... .milliseconds(2)
        limits.calls = 60
        return limits
    }()

    /// Orders a certificate for `a.test` of an authority that behaves like that.
    private static func order(
        _ authority: TestAuthority, _ challenges: PendingChallenges, kind: ChallengeKind = .http01,
        profile: String? = nil,
        replaced: String? = nil, external: ExternalAccount? = nil, limits: AcmeLimits = limits
    ) async throws -> CertificateFacts {
        let loop = try TestLoop()
        let place = try #require(TestAuthority.place)
        let result = await loop.beginTask { () -> Result<CertificateFacts, any Error> in
            do {
                let client = AcmeClient(
                    place, key: try CertificateKey(), account: nil, http: authority, limits: limits, loop: loop.loop)
                _ = try await client.makeAccount(email: "anna@a.test", external: external)
                let wanted = AcmeRequest(
                    names: ["a.test"], key: try CertificateKey(), challenge: kind, profile: profile, replaced: replaced)
                let chain = try await client.issue(wanted, answering: challenges)
                return .success(try CertificateFacts(TlsFile(name: "chain", bytes: chain)))
            } catch {
                return .failure(error)
            }
        }.value
        return try result.get()
    }

    /// The failure of an order.
    private static func failure(
        kind: ChallengeKind = .http01, profile: String? = nil, limits: AcmeLimits = limits,
        _ behave: (inout TestAuthority.Manner) -> Void
    ) async -> (failure: AcmeFailure?, authority: TestAuthority, challenges: PendingChallenges) {
        let challenges = PendingChallenges()
        let authority = TestAuthority(challenges, kind: kind)
        authority.behave(behave)
        do {
            _ = try await order(authority, challenges, kind: kind, profile: profile, limits: limits)
            return (nil, authority, challenges)
        } catch {
            return (error as? AcmeFailure, authority, challenges)
        }
    }

    @Test(arguments: ChallengeKind.allCases)
    func `a certificate is issued, and what was signed is in order`(kind: ChallengeKind) async throws {
        let challenges = PendingChallenges()
        let authority = TestAuthority(challenges, kind: kind)
        let facts = try await Self.order(authority, challenges, kind: kind)
        #expect(facts.names == ["a.test"])
        #expect(facts.chainCount == 2)
        #expect(authority.complaints.isEmpty)
        #expect(challenges.tls.isEmpty && !challenges.hasHttp)
        #expect(authority.calls.count < 15)
    }

    @Test func `every call is bounded in time and size, and follows no redirect`() async throws {
        let (failure, authority, _) = await Self.failure { _ in }
        #expect(failure == nil)
        for limits in authority.limits {
            #expect(limits.timeout <= .seconds(20) && limits.content == .kibibytes(256) && limits.redirects == 0)
        }
    }

    @Test func `a refused nonce is replaced a few times`() async throws {
        let (failure, authority, _) = await Self.failure { $0.refusedNonces = 5 }
        #expect(failure == nil)
        #expect(authority.count("POST /account") == 6)
    }

    @Test func `nonces that are refused for ever end the order after six tries`() async throws {
        let (failure, authority, _) = await Self.failure { $0.refusedNonces = .max }
        #expect(failure?.isRefusal("badNonce") == true)
        #expect(authority.calls.count == 8)
    }

    @Test func `an order that never becomes ready ends by the number of calls`() async throws {
        let (failure, authority, challenges) = await Self.failure { $0.isEndless = true }
        #expect(failure?.kind == .endless)
        #expect(authority.calls.count == 60)
        #expect(!challenges.hasHttp)
    }

    @Test func `an order that never becomes ready ends by time`() async throws {
        var limits = Self.limits
        limits.calls = 100_000
        limits.order = .milliseconds(300)
        let (failure, _, _) = await Self.failure(limits: limits) { $0.isEndless = true }
        #expect(failure?.reason == "the certificate authority did not issue the certificate in 300ms")
    }

    @Test(
        arguments: [
            ("newNonce", Json.null, "newNonce is missing"),
            ("newOrder", "http://ca.test/orders", "not a URL that can be used"),
            ("newAccount", "file:///etc/passwd", "not a URL that can be used"),
            ("account", "deactivated", "the account is deactivated"),
            ("status", "sideways", "has no status"),
            ("status", "invalid", "the order failed"),
            (
                "identifiers", .list([.object([("type", "dns"), ("value", "other.test")])]),
                "the order is for other names"
            ),
            ("authorizations", .list(["https://ca.test/1", "https://ca.test/2"]), "more authorizations than names"),
            ("authorizations", .list(["http://ca.test/1"]), "not a URL that can be used"),
            (
                "identifier", .object([("type", "dns"), ("value", "other.test")]),
                "an authorization is for another name"
            ),
            ("challenges", .list([]), "does not offer http-01 for a.test"),
            (
                "challenges",
                .list([.object([("type", "http-01"), ("url", "https://ca.test/challenge"), ("token", "../../etc")])]),
                "a challenge has no valid token"
            ),
            ("certificate", "http://ca.test/certificate", "not a URL that can be used"),
        ] as [(String, Json, String)])
    func `an answer that is not what RFC 8555 says ends the order`(name: String, lie: Json, reason: String) async throws
    {
        let (failure, authority, challenges) = await Self.failure { $0.lies = [name: lie] }
        #expect(failure?.reason.contains(reason) == true, "\(failure?.reason ?? "it was issued")")
        #expect(authority.calls.count < 20)
        #expect(!challenges.hasHttp)
    }

    @Test func `a failed proof tells what the authority saw`() async throws {
        let (failure, _, challenges) = await Self.failure { $0.isDoubtful = true }
        #expect(failure?.reason == "the proof of control of a.test failed: connection: no route to host")
        #expect(!challenges.hasHttp)
    }

    @Test func `a certificate for another key is refused`() async throws {
        let (failure, _, _) = await Self.failure { $0.usesOtherKey = true }
        #expect(failure?.kind == .badAnswer)
        #expect(failure?.reason.contains("is not the key of the certificate") == true)
    }

    @Test func `an authority that wants an external account gets its binding, or a clear error`() async throws {
        let challenges = PendingChallenges()
        let authority = TestAuthority(challenges)
        authority.behave { $0.needsExternalAccount = true }
        let external = ExternalAccount(keyId: "kid-1", macKey: TestAuthority.macKey)
        _ = try await Self.order(authority, challenges, external: external)
        let (failure, other, _) = await Self.failure { $0.needsExternalAccount = true }
        #expect(failure?.reason.contains("needs an external account") == true)
        #expect(other.count("POST /account") == 0)
    }

    @Test func `a profile goes into the order, and the error for an unknown one lists the known profiles`() async throws
    {
        let challenges = PendingChallenges()
        let authority = TestAuthority(challenges)
        authority.behave { $0.profiles = ["classic", "shortlived"] }
        _ = try await Self.order(authority, challenges, profile: "shortlived")
        #expect(authority.lastOrder?["profile"]?.string == "shortlived")
        let (failure, other, _) = await Self.failure(profile: "slow") { $0.profiles = ["classic"] }
        #expect(failure?.reason == "the certificate authority has no profile \"slow\"; it has classic")
        #expect(other.count("POST /orders") == 0)
    }

    @Test func `an order names the certificate that it replaces, unless the authority refuses that`() async throws {
        let challenges = PendingChallenges()
        let authority = TestAuthority(challenges)
        authority.behave { $0.window = (WallTime(seconds: 1), WallTime(seconds: 2)) }
        _ = try await Self.order(authority, challenges, replaced: "AAA.BBB")
        #expect(authority.lastOrder?["replaces"]?.string == "AAA.BBB")
        authority.behave { $0.refusesReplacing = true }
        _ = try await Self.order(authority, challenges, replaced: "AAA.BBB")
        #expect(authority.lastOrder?["replaces"] == nil)
    }

    // MARK: Authorities that lie

    @Test(
        arguments: [
            ("/dir", HttpResponse(.found, fields: ["Location": "https://ca.test/dir"]), "the directory: status 302", 1),
            ("/dir", HttpResponse(.ok, content: .text("<html>")), "it is not a JSON object", 1),
            ("/dir", HttpResponse(.ok, content: .text("[]")), "it is not a JSON object", 1),
            ("/dir", HttpResponse(.ok), "it is not a JSON object", 1),
            ("/nonce", HttpResponse(.ok), "a nonce is missing", 2),
            ("/nonce", HttpResponse(.ok, fields: ["Replay-Nonce": "a b"]), "a nonce is missing", 2),
            ("/nonce", HttpResponse(.internalServerError), "a nonce: status 500", 2),
            (
                "/account", HttpResponse(.movedPermanently, fields: ["Location": "https://ca.test/account"]),
                "the account: status 301", 3
            ),
            ("/account", HttpResponse(.created, content: .text("{}")), "the account has no URL", 3),
            ("/orders", HttpResponse(.created, content: .text("{}")), "the order has no URL", 5),
            ("/certificate", HttpResponse(.ok), "the certificate", 20),
            (
                "/certificate", HttpResponse(.ok, content: .text("-----BEGIN CERTIFICATE-----\nAAAA")),
                "the certificate", 20
            ),
        ] as [(String, HttpResponse, String, Int)])
    func `an answer that cannot be used ends the order at once`(
        path: String, answer: HttpResponse, reason: String, calls: Int
    ) async throws {
        let (failure, authority, challenges) = await Self.failure { $0.raw = [path: answer] }
        #expect(failure?.reason.contains(reason) == true, "\(failure?.reason ?? "it was issued")")
        #expect(authority.calls.count <= calls, "\(authority.calls)")
        #expect(!challenges.hasHttp)
    }

    @Test(
        arguments: [
            { @Sendable (manner: inout TestAuthority.Manner) in manner.staysPending = true },
            { @Sendable (manner: inout TestAuthority.Manner) in manner.staysProcessing = true },
            { @Sendable (manner: inout TestAuthority.Manner) in manner.isEndless = true },
        ]
            as [@Sendable (inout TestAuthority.Manner) -> Void])
    func `an authority that never comes to an end is left after the limit of calls`(
        behave: @Sendable (inout TestAuthority.Manner) -> Void
    ) async throws {
        let (failure, authority, challenges) = await Self.failure { behave(&$0) }
        #expect(failure?.kind == .endless)
        #expect(authority.calls.count == 60)
        #expect(!challenges.hasHttp)
    }

    @Test(arguments: ["999999999", "99999999999999999999", "-1", "soon", "", "Thu, 01 Jan 1970 00:00:00 GMT"])
    func `whatever Retry-After says, a pause has its bounds`(text: String) async throws {
        let (failure, authority, _) = await Self.failure {
            $0.isEndless = true
            $0.retryAfter = text
        }
        #expect(failure?.kind == .endless)
        #expect(authority.calls.count == 60)
    }

    @Test func `a nonce that is longer than 256 bytes is ignored`() async throws {
        let (failure, authority, _) = await Self.failure { $0.nonce = String(repeating: "a", count: 257) }
        #expect(failure?.reason.contains("a nonce is missing") == true)
        #expect(authority.calls.count == 2)
    }

    @Test func `one nonce for ever is refused for ever, and that ends the order`() async throws {
        let (failure, authority, _) = await Self.failure {
            $0.nonce = "again"
            $0.refusedNonces = .max
        }
        #expect(failure?.isRefusal("badNonce") == true)
        #expect(authority.calls.count == 8)
    }

    @Test func `a certificate for other names, and a chain without end, are refused`() async throws {
        let (other, _, _) = await Self.failure { $0.certified = ["b.test"] }
        #expect(other?.reason.contains("is for other names") == true)
        let (long, _, _) = await Self.failure { $0.roots = 10 }
        #expect(long?.reason.contains("more than 10 certificates") == true)
    }
}
