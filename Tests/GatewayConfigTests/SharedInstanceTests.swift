import GatewayConfig
import HttpWare
import Testing

@Suite struct SharedInstanceTests {
    /// The `bodyLimit` instances of a route's chain on a listener.
    private func instances(_ text: String, _ listener: String, _ route: String) throws -> [ObjectIdentifier] {
        try instances(configuration(text), listener, route)
    }

    private func configuration(_ text: String) throws -> GatewayConfiguration {
        let result = ConfigurationCase(name: "", text: text).read()
        return try #require(result.configuration, "\(result.errors)")
    }

    private func instances(
        _ configuration: GatewayConfiguration, _ listener: String, _ route: String
    ) throws -> [ObjectIdentifier] {
        let listener = try #require(configuration.listeners.first { $0.name == listener })
        let resolved = try #require(listener.routes.first { $0.route.name == route })
        return resolved.chain.entries.middlewares.compactMap {
            ($0.ware as? ScriptedWares.BodyLimit).map(ObjectIdentifier.init)
        }
    }

    @Test func `one entry as written is one instance, and one that a route changes is its own`() throws {
        let configuration = try configuration(
            """
            version: 1
            listeners: { one: { bind: "127.0.0.1:1" }, two: { bind: "127.0.0.1:2" } }
            services: { api: { baseUrl: "http://a" } }
            chains:
              base: { middlewares: [bodyLimit] }
              a: { middlewares: [use: base, bodyLimit] }
              b: { middlewares: [use: base] }
            routes:
              - { name: a, service: api, chain: a, match: { path: /a } }
              - { name: b, service: api, chain: b, match: { path: /b } }
              - { name: c, service: api, chain: b, match: { path: /c }, with: { bodyLimit: { max: 1B } } }
            """)
        let a = try instances(configuration, "one", "a")
        #expect(a.count == 2 && a[0] != a[1])
        #expect(try instances(configuration, "two", "a") == a)
        #expect(try instances(configuration, "one", "b") == [a[0]])
        let c = try instances(configuration, "one", "c")
        #expect(c.count == 1 && c != [a[0]])
        #expect(try instances(configuration, "two", "c") == c)
    }
}
