import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct SecurityHeadersTests {
    private func sent(
        _ options: ConfigNode, _ fields: HttpFields = [:], setting: TestExchange.Setting = .init(),
        request: HttpFields = [:]
    ) async throws -> HttpFields {
        let exchange = try TestExchange(SecurityHeaders.self, options: options, setting: setting)
        exchange.upstream.respond(with: HttpResponse(.ok, fields: fields))
        return try await exchange.send(.get("/", fields: request)).fields
    }

    @Test func `without options the two fields that fit every site are added`() async throws {
        let fields = try await sent([:])
        #expect(fields["X-Content-Type-Options"] == "nosniff" && fields["X-Frame-Options"] == "DENY")
        #expect(!fields.contains("Content-Security-Policy") && !fields.contains("Referrer-Policy"))
    }

    @Test func `each option is a field, with the text that was written`() async throws {
        let fields = try await sent([
            "csp": "default-src 'self'", "cspReportOnly": "script-src 'none'", "frame": "SAMEORIGIN", "nosniff": false,
            "referrer": "no-referrer", "permissions": "camera=(), microphone=()",
            "crossOrigin": ["opener": "same-origin", "embedder": "require-corp", "resource": "same-site"],
        ])
        #expect(fields["Content-Security-Policy"] == "default-src 'self'")
        #expect(fields["Content-Security-Policy-Report-Only"] == "script-src 'none'")
        #expect(fields["X-Frame-Options"] == "SAMEORIGIN" && fields["Referrer-Policy"] == "no-referrer")
        #expect(fields["Permissions-Policy"] == "camera=(), microphone=()")
        #expect(fields["Cross-Origin-Opener-Policy"] == "same-origin")
        #expect(fields["Cross-Origin-Embedder-Policy"] == "require-corp")
        #expect(fields["Cross-Origin-Resource-Policy"] == "same-site")
        #expect(!fields.contains("X-Content-Type-Options"))
    }

    @Test(arguments: [(false, "ALLOWALL", "x"), (true, "DENY", "default-src 'self'")])
    func `fields of the response are kept unless override is set`(
        override: Bool, frame: String, policy: String
    ) async throws {
        let fields = try await sent(
            ["override": override ? true : false, "csp": "default-src 'self'"],
            ["X-Frame-Options": "ALLOWALL", "Content-Security-Policy": "x"])
        #expect(fields.values(of: "X-Frame-Options") == [frame])
        #expect(fields.values(of: "Content-Security-Policy") == [policy])
    }

    @Test func `the nonce is the same in the request and the response, and another in each exchange`() async throws {
        var seen: Set<String> = []
        for _ in 0..<3 {
            let edits = try TestExchange.make(RequestHeaders.self, ["set": ["X-Csp-Nonce": "{cspNonce}"]])
            let ware = try TestExchange.make(SecurityHeaders.self, ["csp": "script-src 'nonce-{cspNonce}'"])
            let exchange = try TestExchange([edits, ware])
            let response = try await exchange.send(.get("/"))
            let nonce = try #require(exchange.upstream.requests.first?.fields["X-Csp-Nonce"])
            #expect(response.fields["Content-Security-Policy"] == "script-src 'nonce-\(nonce)'")
            #expect(nonce.utf8.count == 24)
            seen.insert(nonce)
        }
        #expect(seen.count == 3)
    }

    @Test(
        arguments: [(false, nil, false), (true, "https", true), (false, "https", false), (true, "http", false)]
            as [(Bool, String?, Bool)])
    func `Strict-Transport-Security goes only to clients with TLS, RFC 6797 §7_2`(
        isTrusted: Bool, forwarded: String?, isSent: Bool
    ) async throws {
        var setting = TestExchange.Setting()
        if isTrusted { setting.trustedProxies = [try #require(IPNetwork("203.0.113.0/24"))] }
        var request = HttpFields()
        if let forwarded { try request.set(.xForwardedProto, to: forwarded) }
        let fields = try await sent(["hsts": "max-age=60"], setting: setting, request: request)
        #expect(fields.contains("Strict-Transport-Security") == isSent)
    }

    @Test(
        arguments: [
            ["frame": "ALLOW"], ["csp": ""], ["csp": "a\nb"], ["hsts": "includeSubDomains"], ["hsts": "max-age=x"],
            ["referrer": ""], ["csp": "{nonce}"], ["nosniff": false, "frame": "off"],
            ["crossOrigin": ["opener": "a\r\n"]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(SecurityHeaders.self, options) }
    }
}
