import GatewayConfig
import HttpWare
import Testing
import GatewayWares

@testable import HttpGateway

/// Wares of one chain that occupy the same cookie or the same path.
@Suite struct OccupiedNamesTests {
    private static func errors(listener: String, route: String) -> [String] {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:1", chain: outer } }
            services: { app: { baseUrl: "http://127.0.0.1:2" } }
            chains:
              outer: { middlewares: [\(listener)] }
              inner: { middlewares: [\(route)] }
            routes: [{ service: app, chain: inner }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        return ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "test.yaml").errors.filter { $0.severity == .error }.map(\.description)
    }

    private static func login(_ more: String = "", name: String = "session", condition: String = "") -> String {
        """
        { oidcLogin: { issuer: "https://login.example.com", clientId: app, cookie: { name: \(name), \
        secret: "a random text of thirty-two bytes or more" }\(more) }\(condition) }
        """
    }

    @Test func `two logins with the same cookie or path in a joined chain are an error with both places`() {
        let same = Self.errors(listener: Self.login(), route: Self.login())
        #expect(
            same == [
                "test.yaml:6:26: error: oidcLogin: handles the same requests as oidcLogin, at test.yaml:5:26, with the same cookie.name (session), callback (/oauth2/callback), logout (/oauth2/logout); write other ones, or an if for both"
            ])
        let callback = Self.errors(
            listener: Self.login(), route: Self.login(", logout: /out", name: "second"))
        #expect(callback.count == 1 && callback.first?.contains("with the same callback (/oauth2/callback);") == true)
        let condition = ", if: { host: a.test }"
        #expect(Self.errors(listener: Self.login(), route: Self.login(condition: condition)).count == 1)
    }

    @Test func `logins with names of their own, and those for different requests, may stand in one chain`() {
        let other = Self.login(", callback: /second/callback, logout: /second/logout", name: "second")
        #expect(Self.errors(listener: Self.login(), route: other) == [])
        let (one, two) = (", if: { host: a.test }", ", if: { host: b.test }")
        #expect(Self.errors(listener: Self.login(condition: one), route: Self.login(condition: two)) == [])
        #expect(Self.errors(listener: Self.login(), route: "") == [])
    }
}
