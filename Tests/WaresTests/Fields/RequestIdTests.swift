import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct RequestIdTests {
    private var loopback: TestExchange.Setting {
        var setting = TestExchange.Setting()
        setting.bind = SocketAddress("127.0.0.1:8080")
        return setting
    }

    private func isUuid(_ text: String?, version: Character) -> Bool {
        guard let text else { return false }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.count) == [8, 4, 4, 4, 12] && parts[2].first == version
            && "89ab".contains(parts[3].first ?? "x") && text.allSatisfy { $0 == "-" || $0.isHexDigit }
    }

    @Test func `a request gets an id that goes upstream and back`() async throws {
        let exchange = try TestExchange(RequestId.self)
        let response = try await exchange.send(.get("/"))
        let id = exchange.upstream.requests.first?.fields[.xRequestId]
        #expect(isUuid(id, version: "7"))
        #expect(response.fields[.xRequestId] == id)
        #expect(exchange.outcomes.first?.id == id)
    }

    @Test func `a twin of the field goes upstream neither with a new id nor with a trusted one`() async throws {
        for setting in [TestExchange.Setting(), loopback] {
            let exchange = try TestExchange(RequestId.self, setting: setting)
            _ = try await exchange.send(.get("/", fields: ["X_Request_Id": "evil", "X-Request-Id": "mine"]))
            let fields = try #require(exchange.upstream.requests.first).fields
            #expect(!fields.contains("X_Request_Id") && fields.values(of: .xRequestId).count == 1)
        }
    }

    @Test func `an id of version 4 is random`() async throws {
        let exchange = try TestExchange(RequestId.self, options: ["generator": "uuidv4"])
        _ = try await exchange.send(.get("/"))
        _ = try await exchange.send(.get("/"))
        let ids = exchange.upstream.requests.map { $0.fields[.xRequestId] }
        #expect(ids.allSatisfy { isUuid($0, version: "4") })
        #expect(ids.first != ids.last)
    }

    @Test func `a listener that strangers reach replaces what the client sent`() async throws {
        let exchange = try TestExchange(RequestId.self)
        _ = try await exchange.send(.get("/", fields: ["X-Request-Id": "mine"]))
        #expect(isUuid(exchange.upstream.requests.first?.fields[.xRequestId], version: "7"))
    }

    @Test func `a listener bound to the loopback keeps what the client sent`() async throws {
        let exchange = try TestExchange(RequestId.self, setting: loopback)
        let response = try await exchange.send(.get("/", fields: ["X-Request-Id": "mine-1"]))
        #expect(exchange.upstream.requests.first?.fields.values(of: .xRequestId) == ["mine-1"])
        #expect(response.fields[.xRequestId] == "mine-1")
        #expect(exchange.outcomes.first?.id == "mine-1")
    }

    @Test func `trustInbound wins over what the listener is bound to`() async throws {
        let off = try TestExchange(RequestId.self, options: ["trustInbound": "false"], setting: loopback)
        _ = try await off.send(.get("/", fields: ["X-Request-Id": "mine"]))
        #expect(off.upstream.requests.first?.fields[.xRequestId] != "mine")
        let on = try TestExchange(RequestId.self, options: ["trustInbound": "true"])
        _ = try await on.send(.get("/", fields: ["X-Request-Id": "mine"]))
        #expect(on.upstream.requests.first?.fields[.xRequestId] == "mine")
    }

    @Test(arguments: ["", "a b", "a\tb", "caf\u{e9}", String(repeating: "x", count: 129)])
    func `an id that is not 1 to 128 visible ASCII characters is replaced`(id: String) async throws {
        var fields = HttpFields()
        try fields.append(.xRequestId, id)
        let exchange = try TestExchange(RequestId.self, setting: loopback)
        _ = try await exchange.send(.get("/", fields: fields))
        #expect(isUuid(exchange.upstream.requests.first?.fields[.xRequestId], version: "7"))
    }

    @Test func `two ids in one request are replaced by one`() async throws {
        let exchange = try TestExchange(RequestId.self, setting: loopback)
        _ = try await exchange.send(.get("/", fields: ["X-Request-Id": "a", "X-Request-Id": "b"]))
        #expect(exchange.upstream.requests.first?.fields.values(of: .xRequestId).count == 1)
    }

    @Test func `without echo the client is not told, and another field may carry it`() async throws {
        let exchange = try TestExchange(RequestId.self, options: ["echo": "false", "header": "X-Trace"])
        let response = try await exchange.send(.get("/"))
        #expect(!response.fields.contains("X-Trace"))
        #expect(isUuid(exchange.upstream.requests.first?.fields["X-Trace"], version: "7"))
    }

    @Test(arguments: [["header": "Content-Length"], ["header": "Host"], ["generator": "random"]] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(RequestId.self, options) }
    }
}
