import Authentication
import HttpWareTesting
import Testing
import GatewayWares

@testable import HttpWare

@Suite struct BasicAuthTests {
    // htpasswd -nbBC 4 ada "correct horse"
    private static let users = "ada:$2y$04$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu\n"
    /// RFC 7617 §2: `ada:correct horse`.
    private static let good = "Basic YWRhOmNvcnJlY3QgaG9yc2U="
    private let file: CredentialFile

    init() throws { file = try CredentialFile(Self.users) }

    private func exchange(_ options: ConfigNode = [:], isForward: Bool = false, also: [any Ware] = []) throws
        -> TestExchange
    {
        var setting = TestExchange.Setting()
        setting.isForward = isForward
        let entries =
            (options.entries ?? []) + [ConfigNode.Entry(key: "usersFile", location: .code, value: file.option)]
        return try TestExchange(
            [try TestExchange.make(BasicAuth.self, ConfigNode(.map(entries)))] + also, setting: setting)
    }

    private func fields(_ value: String) throws -> HttpFields {
        var fields = HttpFields()
        try fields.append(.authorization, value)
        return fields
    }

    @Test func `a client that names a user and its password gets in, at once the second time`() async throws {
        let seen = Seen()
        let exchange = try exchange(also: [seen])
        for _ in 0..<2 {
            #expect(try await exchange.send(.get("/", fields: fields(Self.good))).status == .ok)
        }
        #expect(exchange.upstream.requests.allSatisfy { !$0.fields.contains(.authorization) })
        #expect(seen.principals == ["basicAuth ada", "basicAuth ada"])
    }

    @Test func `a right password is checked again after a minute, a wrong one each time`() async throws {
        let queue = OffloadQueue(name: "test", threads: 1, most: 8)
        var mistakes: [FileMistake] = []
        let ware = BasicAuth(PasswordFile(Array(Self.users.utf8), mistakes: &mistakes), queue: queue)
        let exchange = try TestExchange([ware])
        for (pause, taken) in [(0, 1), (59, 1), (1, 2)] {
            await exchange.advance(by: .seconds(pause))
            #expect(try await exchange.send(.get("/", fields: fields(Self.good))).status == .ok)
            #expect(queue.taken == taken)
        }
        for taken in 3...4 {
            #expect(try await exchange.send(.get("/", fields: fields("Basic YWRhOng="))).status == .unauthorized)
            #expect(queue.taken == taken)
        }
    }

    @Test(arguments: [
        "Basic YWRhOndyb25n", "Basic ZXZlOmNvcnJlY3QgaG9yc2U=", "Basic", "Basic ", "Basic !",
        "Bearer YWRhOmNvcnJlY3QgaG9yc2U=",
        "Basic YWRh", "YWRhOmNvcnJlY3QgaG9yc2U=", "BasicYWRhOmNvcnJlY3QgaG9yc2U=",
    ])
    func `RFC 7617 §2, others are refused with a challenge`(value: String) async throws {
        let exchange = try exchange(["realm": "staff \"only\""])
        let response = try await exchange.send(.get("/", fields: fields(value.hasSuffix(" ") ? "Basic" : value)))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate] == "Basic realm=\"staff \\\"only\\\"\", charset=\"UTF-8\"")
        #expect(response.fields[.contentType] == "application/problem+json")
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: ["basic YWRhOmNvcnJlY3QgaG9yc2U=", "BASIC   YWRhOmNvcnJlY3QgaG9yc2U"])
    func `RFC 9110 §11.1, the scheme is in any case`(value: String) async throws {
        #expect(try await exchange().send(.get("/", fields: fields(value))).status == .ok)
    }

    @Test func `a request with two pairs, or without one, is refused`() async throws {
        var twice = try fields(Self.good)
        try twice.append(.authorization, Self.good)
        #expect(try await exchange().send(.get("/", fields: twice)).status == .unauthorized)
        #expect(try await exchange().send(.get("/")).status == .unauthorized)
    }

    @Test func `without removeHeader the origin server sees the pair`() async throws {
        let exchange = try exchange(["removeHeader": "false"])
        _ = try await exchange.send(.get("/", fields: fields(Self.good)))
        #expect(exchange.upstream.requests.first?.fields[.authorization] == Self.good)
    }

    @Test func `RFC 9110 §11.7, on a forward listener it reads Proxy-Authorization`() async throws {
        let exchange = try exchange(isForward: true)
        let refused = try await exchange.send(.get("http://a.test/", fields: fields(Self.good)))
        #expect(refused.status == .proxyAuthenticationRequired)
        #expect(refused.fields[.proxyAuthenticate] == "Basic realm=\"httpware\", charset=\"UTF-8\"")
        var request = try HttpRequest(.get, "http://a.test/", fields: ["Authorization": "for the origin"])
        request.proxyAuthorization = Self.good
        #expect(try await exchange.send(request).status == .ok)
        #expect(exchange.upstream.requests.first?.fields[.authorization] == "for the origin")
    }

    @Test func `while too many wait, more are refused for now`() async throws {
        let queue = OffloadQueue(name: "test", threads: 1, most: 0)
        var mistakes: [FileMistake] = []
        let ware = BasicAuth(PasswordFile(Array(Self.users.utf8), mistakes: &mistakes), queue: queue)
        let exchange = try TestExchange([ware])
        let response = try await exchange.send(.get("/", fields: fields(Self.good)))
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.retryAfter] == "1")
    }

    @Test func `many who show one pair at once share the check`() async throws {
        let queue = OffloadQueue(name: "test", threads: 1, most: 1)
        var mistakes: [FileMistake] = []
        let ware = BasicAuth(PasswordFile(Array(Self.users.utf8), mistakes: &mistakes), queue: queue)
        let exchange = try TestExchange([ware])
        var pending: [TestExchange.Pending] = []
        for _ in 0..<20 { pending.append(await exchange.start(.get("/", fields: try fields(Self.good)))) }
        for one in pending { #expect(try await one.response().status == .ok) }
    }

    @Test func `a mistake in the file has its file, line and column`() throws {
        try file.write("ada:$apr1$x$y\n")
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(BasicAuth.self, ["usersFile": file.option])
        }
        #expect(
            error?.description.hasPrefix("\(file.path):1:5: error: basicAuth.usersFile: the hash is not bcrypt's")
                == true)
    }

    @Test(arguments: [[:], ["usersFile": "/nonexistent/users"]] as [ConfigNode])
    func `a file that is not there is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(BasicAuth.self, options) }
    }

    @Test(arguments: [["realm": ""], ["realm": "a\tb"], ["removeHeader": "no"]] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try exchange(options) }
    }

    @Test func `two Proxy-Authorization lines are refused`() async throws {
        let exchange = try exchange(isForward: true)
        var request = try HttpRequest(.get, "http://a.test/")
        request.proxyAuthorization = Self.good
        request.hasSeveralProxyAuthorizations = true
        #expect(try await exchange.send(request).status == .proxyAuthenticationRequired)
        #expect(exchange.upstream.requests.isEmpty)
    }
}
