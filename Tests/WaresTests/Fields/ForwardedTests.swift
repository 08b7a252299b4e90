import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct ForwardedTests {
    private func sent(
        _ style: String, _ fields: HttpFields = HttpFields(), trusted: String? = nil,
        peer: String = "203.0.113.7:50000",
        target: String = "/"
    ) async throws -> HttpFields {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress(peer)
        setting.trustedProxies = try [trusted].compactMap(\.self).map { try #require(IPNetwork($0)) }
        let exchange = try TestExchange(
            Forwarded.self, options: ["style": ConfigNode(.scalar(style, isQuoted: true))], setting: setting)
        _ = try await exchange.send(.get(target, fields: fields))
        return try #require(exchange.upstream.requests.first).fields
    }

    @Test func `the peer's address, the scheme and the host are told`() async throws {
        let fields = try await sent("x-forwarded")
        #expect(fields[.xForwardedFor] == "203.0.113.7")
        #expect(fields[.xForwardedProto] == "http")
        #expect(fields[.xForwardedHost] == "example.test")
        #expect(!fields.contains(.forwarded))
    }

    @Test func `claims of a stranger are replaced, in both styles`() async throws {
        let claims: HttpFields = [
            "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.test",
            "Forwarded": "for=10.0.0.1", "X-Forwarded-Port": "443", "X-Real-IP": "10.0.0.1",
        ]
        let fields = try await sent("x-forwarded", claims)
        #expect(fields.values(of: .xForwardedFor) == ["203.0.113.7"])
        #expect(fields.values(of: .xForwardedProto) == ["http"])
        #expect(fields.values(of: .xForwardedHost) == ["example.test"])
        #expect(!fields.contains(.forwarded))
        #expect(!fields.contains("X-Forwarded-Port"))
        #expect(!fields.contains("X-Real-IP"))
        let other = try await sent("forwarded", claims)
        #expect(other.values(of: .forwarded) == ["for=203.0.113.7;proto=http;host=example.test"])
        #expect(!other.contains(.xForwardedFor))
    }

    private static let claims: [FieldName] = [
        "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix",
        "X-Real-IP", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Ssl", "X-ProxyUser-IP", "X-Original-URI",
        "X-Url-Scheme", "X-Envoy-Original-Path", "Front-End-Https", "X-Rewrite-Host",
    ]

    @Test(arguments: claims)
    func `a field that applications believe is removed, unless a trusted proxy sent it`(name: FieldName) async throws {
        var fields = HttpFields()
        try fields.append(name, "10.0.0.1")
        #expect(try await !sent("x-forwarded", fields).contains(name))
        #expect(try await sent("x-forwarded", fields, trusted: "203.0.113.0/24")[name] == "10.0.0.1")
    }

    @Test func `the list of further fields can be chosen`() async throws {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("203.0.113.7:50000")
        let exchange = try TestExchange(
            Forwarded.self, options: ["remove": ["Fly-Client-IP"]], setting: setting)
        let fields: HttpFields = [
            "Fly-Client-IP": "10.0.0.1", "X-Real-IP": "10.0.0.1", "X-Forwarded-For": "10.0.0.1", "Fly_Client_IP": "1",
        ]
        _ = try await exchange.send(.get("/", fields: fields))
        let sent = try #require(exchange.upstream.requests.first).fields
        #expect(!sent.contains("Fly-Client-IP") && !sent.contains("Fly_Client_IP"))
        #expect(sent["X-Real-IP"] == "10.0.0.1")
        #expect(sent.values(of: .xForwardedFor) == ["203.0.113.7"])
    }

    @Test func `fields of a trusted proxy are kept, and its address is appended`() async throws {
        let fields = try await sent(
            "both",
            [
                "X-Forwarded-For": "192.0.2.1", "X-Forwarded-For": "192.0.2.2", "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "shop.test", "Forwarded": "for=192.0.2.1",
            ], trusted: "203.0.113.0/24")
        #expect(fields.values(of: .xForwardedFor) == ["192.0.2.1, 192.0.2.2, 203.0.113.7"])
        #expect(fields[.xForwardedProto] == "https")
        #expect(fields[.xForwardedHost] == "shop.test")
        #expect(fields.values(of: .forwarded) == ["for=192.0.2.1, for=203.0.113.7;proto=http;host=example.test"])
    }

    @Test(arguments: ["203.0.113.0/24", nil])
    func `twins of fields that identify the client are taken away, from every sender`(trusted: String?) async throws {
        let fields = try await sent(
            "both",
            [
                "X_Forwarded_For": "10.0.0.1", "X-Forwarded_Proto": "https", "x_forwarded_host": "evil.test",
                "X_Real_IP": "10.0.0.1", "X_Forwarded-Port": "1", "X_Other": "stays",
            ], trusted: trusted)
        #expect(fields.map(\.name).filter { $0.contains("_") } == ["X_Other"])
        #expect(fields[.xForwardedFor] == "203.0.113.7")
    }

    @Test func `a proxy's word about an IPv4-mapped address means the IPv4 address`() async throws {
        let seen = Seen("{client.ip} {peer.ip}")
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("[::ffff:203.0.113.7]:1")
        setting.trustedProxies = [try #require(IPNetwork("::ffff:203.0.113.0/120"))]
        let limit = RateLimit(Rate(1, per: .hour))
        let exchange = try TestExchange([seen, limit, Forwarded()], setting: setting)
        var statuses: [Int] = []
        for address in ["192.0.2.1", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80", "::ffff:c000:201"] {
            var fields = HttpFields()
            try fields.append(.xForwardedFor, address)
            statuses.append(try await exchange.send(.get("/", fields: fields)).status.code)
        }
        #expect(statuses == [200, 429, 429, 429])
        #expect(seen.principals == Array(repeating: "192.0.2.1 203.0.113.7", count: 4))
    }

    @Test func `an IPv6 address is in brackets and quotes - RFC 7239 §6`() async throws {
        let fields = try await sent("both", peer: "[2001:db8::1]:50000")
        #expect(fields[.forwarded] == "for=\"[2001:db8::1]\";proto=http;host=example.test")
        #expect(fields[.xForwardedFor] == "2001:db8::1")
    }

    @Test func `an IPv4 address that arrived on an IPv6 socket is told as IPv4`() async throws {
        #expect(try await sent("x-forwarded", peer: "[::ffff:192.0.2.9]:1")[.xForwardedFor] == "192.0.2.9")
    }

    @Test func `a host with a port is a quoted string - RFC 7239 §4`() async throws {
        let fields = try await sent("both", ["Host": "example.test:8080"])
        #expect(fields[.forwarded] == "for=203.0.113.7;proto=http;host=\"example.test:8080\"")
        #expect(fields[.xForwardedHost] == "example.test:8080")
    }

    @Test func `a client on a Unix socket is unknown - RFC 7239 §6.2`() async throws {
        let fields = try await sent("both", ["X-Forwarded-For": "10.0.0.1"], peer: "unix:/x")
        #expect(fields[.forwarded] == "for=unknown;proto=http;host=example.test")
        #expect(!fields.contains(.xForwardedFor))
    }

    @Test func `an unknown style is refused at load`() {
        #expect(throws: ConfigError.self) { try TestExchange.make(Forwarded.self, ["style": "all"]) }
    }
}
