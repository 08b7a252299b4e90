import Glibc
import HttpWare
import Testing

@testable import Authentication
@testable import Credentials

@Suite struct JwtVerifierTests {
    private func verifier() -> JwtVerifier {
        var verifier = JwtVerifier()
        verifier.algorithms = VerifyingKey.Algorithm.allCases
        verifier.issuer = "https://login.example.com"
        verifier.audience = ["orders"]
        return verifier
    }

    private func fault(
        _ token: String, _ verifier: JwtVerifier, keys: JsonWebKeySet? = nil, at now: WallTime = Fixture.now
    ) throws -> JwtFault? {
        let keys = try keys ?? Fixture.keys()
        do {
            _ = try verifier.verify(Array(token.utf8), keys: keys, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the fixtures are there`() {
        #expect(Fixture.tokens().count > 100)
        #expect(Fixture.tokens().count { $0.expected == "good" } > 15)
    }

    @Test(arguments: Fixture.tokens())
    func `a token of another library is accepted, or refused for its one reason`(token: Fixture.Token) throws {
        let fault = try fault(token.text, verifier())
        if token.expected == "good" {
            #expect(fault == nil)
        } else {
            let text = try #require(fault).text
            #expect(text.contains(token.expected), "\(text)")
        }
    }

    @Test func `a token's claims are at hand, and until when they hold`() throws {
        let token = Array(try Fixture.good("ES384 by PyJWT").utf8)
        let accepted = try verifier().verify(token, keys: Fixture.keys(), at: Fixture.now)
        #expect(accepted["sub"] == .string("ada"))
        #expect(accepted.until == Fixture.now.seconds + 3660)
        #expect(accepted.lacking == nil)
    }

    @Test func `RFC 8725 §3.1, an algorithm counts only where it was asked for`() throws {
        var verifier = verifier()
        verifier.algorithms = [.ps256]
        #expect(try fault(Fixture.good("PS256 by PyJWT"), verifier) == nil)
        #expect(try fault(Fixture.good("RS256 by PyJWT"), verifier) == .invalid("the token's algorithm is not allowed"))
    }

    @Test(arguments: [0, 1]) func `HS256 counts with a secret, where it was asked for`(line: Int) throws {
        let token = String(try Fixture.text("hs256.txt").split(separator: "\n")[line])
        let secret = Array("a secret of the tests, thirty-two bytes and more".utf8)
        let keys = JsonWebKeySet([JsonWebKey(try #require(VerifyingKey(secret: secret)))])
        #expect(try fault(token, verifier(), keys: keys) == nil)
        var asDefault = JwtVerifier()
        asDefault.issuer = "https://login.example.com"
        #expect(try fault(token, asDefault, keys: keys) == .invalid("the token's algorithm is not allowed"))
        let other = JsonWebKeySet([JsonWebKey(try #require(VerifyingKey(secret: secret.reversed())))])
        #expect(try fault(token, verifier(), keys: other) == .invalid("the token's signature is invalid"))
    }

    @Test func `RFC 8725 §3.2, a key that is for one algorithm is for no other`() throws {
        let key = try #require(Fixture.keys().keys.first)
        let bound = JsonWebKeySet([JsonWebKey(key.key, identifier: "rsa-1", algorithm: .ps256)])
        #expect(try fault(Fixture.good("PS256 by PyJWT"), verifier(), keys: bound) == nil)
        #expect(try fault(Fixture.good("RS256 by PyJWT"), verifier(), keys: bound)?.text.contains("signature") == true)
    }

    @Test func `a token of a megabyte is refused before anything is decoded`() throws {
        let token = String(repeating: "A", count: 1 << 20) + ".e30.e30"
        #expect(try fault(token, verifier()) == .invalid("the token is too long"))
    }

    @Test func `a token with NUL is refused`() throws {
        let token = try Fixture.good("RS256 by PyJWT")
        for text in ["\0\(token)", "\(token)\0", token.replacing(".", with: ".\0", maxReplacements: 1)] {
            let reason = try #require(try fault(text, verifier())).text
            #expect(reason.contains("base64url") || reason.contains("signature"), "\(reason)")
        }
    }

    @Test func `the skew is the writer's`() throws {
        var verifier = verifier()
        let token = try Fixture.good("RS256 by PyJWT")
        verifier.clockSkew = .zero
        #expect(try fault(token, verifier, at: WallTime(seconds: Fixture.now.seconds + 3599)) == nil)
        #expect(try fault(token, verifier, at: WallTime(seconds: Fixture.now.seconds + 3600)) == .expired)
    }

    @Test(arguments: [
        (["read"], true), (["write", "read"], true), (["admin"], false), (["read", "admin"], false),
        (["read write"], true),
        (["rea"], false), ([], true),
    ])
    func `a requirement holds when the claim has each text`(values: [String], isHeld: Bool) throws {
        var verifier = verifier()
        verifier.requirements = [JwtVerifier.Requirement(claim: "scope", values: values)]
        let token = Array(try Fixture.good("RS256 by PyJWT").utf8)
        let accepted = try verifier.verify(token, keys: Fixture.keys(), at: Fixture.now)
        #expect((accepted.lacking == nil) == isHeld)
    }

    @Test(arguments: [
        ("[\"a\",\"b\"]", ["b"], true), ("[\"a b\"]", ["a"], false), ("\"a  b\"", ["b"], true), ("7", ["7"], true),
        ("true", ["true"], true), ("null", ["null"], false), ("{\"a\":1}", ["a"], false),
    ])
    func `lists, numbers and booleans can be asked for too`(json: String, texts: [String], isHeld: Bool) throws {
        #expect(JwtVerifier.holds(try JsonValue(json.utf8), texts) == isHeld)
    }

    // MARK: Algorithms

    /// Lines of an algorithm and a token, signed by the command `openssl` and by Python.
    private static let signed = ((try? Fixture.text("algorithms.txt")) ?? "").split(separator: "\n").map(String.init)

    @Test(arguments: signed)
    func `RFC 7518 §3.1, a token of each algorithm is accepted, and only as such`(line: String) throws {
        let parts = line.split(separator: "|").map(String.init)
        let algorithm = try #require(VerifyingKey.Algorithm(rawValue: parts[0]))
        let keys = try JsonWebKeySet(json: Fixture.bytes("algorithms.json"), hasSecrets: true)
        var verifier = verifier()
        #expect(try verifier.verify(Array(parts[1].utf8), keys: keys, at: Fixture.now).algorithm == algorithm)
        verifier.algorithms = VerifyingKey.Algorithm.allCases.filter { $0 != algorithm }
        #expect(try fault(parts[1], verifier, keys: keys) == .invalid("the token's algorithm is not allowed"))
        // The same signature under another algorithm of the same kind of key.
        for other in VerifyingKey.Algorithm.allCases where other != algorithm && other.kind == algorithm.kind {
            let key = try #require(keys.keys.first { $0.key.kind == other.kind }).key
            let token = Array(parts[1].utf8)
            let dot = try #require(token.lastIndex(of: 0x2e))
            let signature = try #require(Base64.decodeUrl(token[(dot + 1)...]))
            let isGood = token[..<dot].withUnsafeBytes { text in
                signature.withUnsafeBytes { key.isSignature($0, of: text, by: other) }
            }
            #expect(!isGood, "\(other)")
        }
        let end = parts[1].index(before: parts[1].endIndex)
        verifier.algorithms = [algorithm]
        let last = parts[1][end] == "A" ? "Q" : "A"
        #expect(try fault(String(parts[1][..<end].dropLast(3)) + "zzz" + last, verifier, keys: keys) != nil)
    }

    @Test func `every key that fits is tried for a token without a kid`() throws {
        let own = try JsonWebKeySet(json: Fixture.bytes("algorithms.json"), hasSecrets: true)
        let line = try #require(Self.signed.first { $0.hasPrefix("HS256|") })
        let token = String(line.dropFirst(6))
        let others = try (0..<99).map { number in
            JsonWebKey(try #require(VerifyingKey(secret: Array(repeating: UInt8(number), count: 40))))
        }
        let keys = JsonWebKeySet(others + own.keys.filter { $0.key.kind == .secret })
        #expect(try fault(token, verifier(), keys: keys) == nil)
        #expect(
            try fault(token, verifier(), keys: JsonWebKeySet(others)) == .invalid("the token's signature is invalid"))
    }

    @Test func `the time for trying keys is bounded`() throws {
        let own = try JsonWebKeySet(json: Fixture.bytes("algorithms.json"), hasSecrets: true)
        let line = try #require(Self.signed.first { $0.hasPrefix("ES512|") })
        let key = try #require(own.keys.first { $0.key.kind == .p521 })
        let keys = JsonWebKeySet(Array(repeating: key, count: JsonWebKeySet.most))
        let wrong = String(line.dropFirst(6).dropLast(4)) + "AAAA"
        let time = processorTime { for _ in 0..<5 { _ = try? fault(wrong, verifier(), keys: keys) } }
        #expect(time < .milliseconds(5 * 50))
    }
}

/// The time that the processor spends on this thread.
private func processorTime(_ work: () -> Void) -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let start = now()
    work()
    return now() - start
}
