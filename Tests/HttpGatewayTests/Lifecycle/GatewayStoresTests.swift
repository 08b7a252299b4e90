import GatewayConfig
import HttpCaching
import HttpWare
import HttpWareRedis
import Testing

@testable import HttpGateway

@Suite struct GatewayStoresTests {
    @Test func `a reload passes the longest use of a name on to each store in Redis`() throws {
        let stage = try AdminStage(
            """
            version: 1
            listeners: { web: { bind: "127.0.0.1:0" } }
            resolver: { maxTtl: 7s }
            stores:
              pages: { redis: { url: "redis://redis.test" } }
              small: { memory: { maxSize: 1MiB } }
              more: { redis: { url: "redis://other.test" } }
            services: { a: { baseUrl: "http://127.0.0.1:1" } }
            routes: [{ service: a }]
            """)
        GatewayStores.refreshNames(of: stage.configuration)
        let clients = stage.configuration.stores.compactMap { ($0.store.store as? RedisStore)?.client }
        #expect(clients.map(\.longestNameUse) == [.seconds(7), .seconds(7)])
    }
}
