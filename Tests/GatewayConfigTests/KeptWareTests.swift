import Credentials
import GatewayConfig
import HttpCaching
import HttpWare
import Testing

@Suite struct KeptWareTests {
    private let text = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:1" } }
        services: { api: { baseUrl: "http://a" } }
        chains:
          c: { middlewares: [bodyLimit, { bodyLimit: { max: 2MiB } }, { bodyLimit: { max: 3MiB }, as: third }] }
        routes:
          - { name: a, service: api, chain: c, match: { path: /a } }
          - { name: b, service: api, chain: c, with: { third: { status: 404 } } }
        """

    private func read(_ text: String, keeping former: GatewayConfiguration? = nil) throws -> GatewayConfiguration {
        let result = ConfigurationCase(name: "", text: text).read(keeping: former)
        return try #require(result.configuration, "\(result.errors)")
    }

    private func instances(_ configuration: GatewayConfiguration, _ route: Int) -> [ObjectIdentifier] {
        configuration.listeners[0].routes[route].chain.entries.middlewares
            .compactMap { $0.ware as? ScriptedWares.BodyLimit }.map(ObjectIdentifier.init)
    }

    /// Which of the six instances – three of each route – are the same as before.
    private func kept(_ change: (String) -> String) throws -> [Bool] {
        let former = try read(text)
        let next = try read(change(text), keeping: former)
        return (0..<2).flatMap { route in
            zip(instances(former, route), instances(next, route)).map(==)
        }
    }

    @Test func `wares that are written the same are the same instances`() throws {
        #expect(try kept { "# moved\n" + $0 } == [true, true, true, true, true, true])
    }

    @Test func `without a former configuration all are new`() throws {
        let (one, other) = (try read(text), try read(text))
        #expect(zip(instances(one, 0), instances(other, 0)).allSatisfy { $0 != $1 })
    }

    @Test func `changed options make a new instance, for every route`() throws {
        #expect(try kept { $0.replacing("2MiB", with: "4MiB") } == [true, false, true, true, false, true])
    }

    @Test func `a route's own options concern its instance only`() throws {
        #expect(try kept { $0.replacing("404", with: "413") } == [true, true, true, true, true, false])
    }

    @Test func `another label is another ware`() throws {
        #expect(try kept { $0.replacing("third", with: "fourth") } == [true, true, false, true, true, false])
    }

    @Test func `an entry whose relative paths change is made again`() throws {
        func output(_ text: String, keeping former: GatewayConfiguration? = nil) throws -> (
            GatewayConfiguration, String
        ) {
            let next = try read(text, keeping: former)
            let ware = try #require(next.listeners[0].chain.entries.postwares.first?.ware as? ScriptedWares.AccessLog)
            return (next, ware.output.optionText)
        }
        let start = """
            version: 1
            include: [NAME]
            listeners: { web: { bind: "127.0.0.1:1", chain: c } }
            === NAME
            chains: { c: { postwares: [{ accessLog: { output: "file:access.log" } }] } }
            """
        let (former, before) = try output(start.replacing("NAME", with: "one/a.yaml"))
        #expect(before == "file:one/access.log")
        let (next, after) = try output(start.replacing("NAME", with: "two/a.yaml"), keeping: former)
        #expect(after == "file:two/access.log")
        #expect(try output(start.replacing("NAME", with: "two/b.yaml"), keeping: next).1 == after)
    }

    @Test func `another name of the chain makes all new`() throws {
        let changed = try kept { $0.replacing("  c: {", with: "  d: {").replacing("chain: c", with: "chain: d") }
        #expect(changed == [false, false, false, false, false, false])
    }

    @Test func `a condition, an order and other entries beside it leave an instance`() throws {
        let former = try read(text)
        let next = try read(
            text.replacing(
                "[bodyLimit,", with: "[requestHeaders, { bodyLimit: {}, if: { method: POST }, order: late },"),
            keeping: former)
        #expect(instances(former, 0) != instances(next, 0))
        #expect(Set(instances(former, 0)) == Set(instances(next, 0)))
    }

    // MARK: Credentials

    private let tokens = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:1" } }
        services: { api: { baseUrl: "http://a" } }
        credentials:
          o: { grant: clientCredentials, tokenUrl: "https://a.example/t", clientId: a, clientSecret: b }
        chains: { c: { middlewares: [{ tokenRefresh: { credential: o } }, { tokenInject: { credential: o } }] } }
        routes: [{ service: api, chain: c }]
        """

    @Test func `a credential whose definition is unchanged keeps its state`() throws {
        let former = try read(tokens)
        let next = try read("# moved\n" + tokens, keeping: former)
        #expect(former.credentials[0].credential === next.credentials[0].credential)
    }

    @Test func `a changed credential is a new one, and so are the wares that use it`() throws {
        let former = try read(tokens)
        let next = try read(tokens.replacing("clientSecret: b", with: "clientSecret: c"), keeping: former)
        #expect(former.credentials[0].credential !== next.credentials[0].credential)
        let users = next.listeners[0].routes[0].chain.entries.middlewares.compactMap {
            $0.ware as? any CredentialUser
        }
        #expect(users.count == 2)
        #expect(users.allSatisfy { $0.credential === next.credentials[0].credential })
    }

    // MARK: Stores

    private let stores = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:1" } }
        services: { api: { baseUrl: "http://a" } }
        stores: { pages: { memory: { maxSize: 2MiB } } }
        chains: { c: { middlewares: [httpCache, { httpCache: { store: pages }, as: other }] } }
        routes: [{ service: api, chain: c }]
        """

    private func stores(_ configuration: GatewayConfiguration) -> [NamedStore?] {
        configuration.listeners[0].routes[0].chain.entries.middlewares.map {
            ($0.ware as? ScriptedWares.HttpCache)?.store
        }
    }

    @Test func `wares have the store that they name, and memory where they name none`() throws {
        let configuration = try read(stores)
        #expect(configuration.stores.map(\.name) == ["pages", "memory"])
        #expect(stores(configuration).map(\.?.name) == ["memory", "pages"])
        #expect(stores(configuration)[0] === configuration.stores[1].store)
        #expect(stores(configuration)[1]?.store.census.limit == 2 << 20)
    }

    @Test func `a store whose definition is unchanged keeps its content`() throws {
        let former = try read(stores)
        let next = try read("# moved\n" + stores, keeping: former)
        #expect(zip(stores(former), stores(next)).allSatisfy { $0 === $1 })
        #expect(ConfigurationDifference(from: former, to: next).losses.isEmpty)
    }

    @Test func `a changed store is a new one, for the wares that name it too`() throws {
        let former = try read(stores)
        let next = try read(stores.replacing("2MiB", with: "3MiB"), keeping: former)
        #expect(stores(former)[0] === stores(next)[0])
        #expect(stores(former)[1] !== stores(next)[1])
        #expect(stores(next)[1] === next.stores[0].store)
        let difference = ConfigurationDifference(from: former, to: next)
        #expect(difference.changes.map(\.what) == ["stores.pages"])
        #expect(difference.losses.map(\.what) == ["stores.pages: its stored responses"])
    }

    @Test func `secrets of a credential are shown nowhere`() throws {
        let configuration = try read(tokens.replacing("clientSecret: b", with: "clientSecret: s3cret"))
        #expect(configuration.secretTexts.contains("s3cret"))
        #expect(!configuration.values.contains { $0.text?.contains("s3cret") == true })
        let other = try read(tokens)
        let difference = ConfigurationDifference(from: other, to: configuration)
        #expect(difference.changes.map(\.what) == ["credentials.o"])
        #expect(!"\(difference.changes)".contains("s3cret"))
        #expect(difference.losses.contains { $0.what.hasPrefix("credentials.o") })
    }

    @Test func `secrets of certificates are shown nowhere`() throws {
        let text = """
            version: 1
            listeners:
              web:
                bind: "127.0.0.1:8443"
                tls: { acme: { domains: [a.test], store: shared, key: [s3cret-0123456789, s3cret-9876543210], externalAccount: { keyId: k, macKey: s3cretAAAAAAAAAAAAAAAAAA } } }
            stores: { shared: { redis: { url: "redis://127.0.0.1" } } }
            services: { api: { baseUrl: "http://a" } }
            routes: [{ service: api }]
            """
        let configuration = try read(text)
        #expect(configuration.listeners.first?.tls?.acme != nil)
        #expect(configuration.values.contains { $0.path == "listeners.web.tls.acme.store" && $0.text == "shared" })
        #expect(!configuration.values.contains { $0.text?.contains("s3cret") == true })
    }
}
