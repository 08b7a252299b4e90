import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct RecentPoolsTests {
    private let transport: LoopTransport

    init() throws { transport = LoopTransport(loop: try EventLoop(name: "pools"), resolver: nil) }

    private func endpoint(_ number: Int) -> Endpoint {
        Endpoint(unixPath: "/nowhere/\(number)")
    }

    @Test func `a pool is found by its endpoint alone`() throws {
        var recent = RecentPools()
        let (first, twin, other) = (endpoint(1), endpoint(1), endpoint(2))
        let pool = ConnectionPool(transport: transport, endpoint: first)
        recent[first] = pool
        #expect(recent[first] === pool)
        #expect(recent[twin] == nil)
        #expect(recent[other] == nil)
    }

    @Test func `a removed pool is found by none of its endpoints`() throws {
        var recent = RecentPools()
        let endpoints = (0..<4).map { _ in endpoint(1) }
        let pool = ConnectionPool(transport: transport, endpoint: endpoints[0])
        for endpoint in endpoints { recent[endpoint] = pool }
        recent.remove(pool)
        #expect(endpoints.allSatisfy { recent[$0] == nil })
    }

    @Test func `more endpoints than places replace each other`() throws {
        var recent = RecentPools()
        let endpoints = (1...1000).map { endpoint($0) }
        var pools: [ConnectionPool] = []
        for endpoint in endpoints {
            pools.append(ConnectionPool(transport: transport, endpoint: endpoint))
            recent[endpoint] = pools.last
            #expect(recent[endpoint] === pools.last)
        }
        let found = zip(endpoints, pools).filter { recent[$0] === $1 }
        #expect(found.count <= RecentPools.count && found.count > RecentPools.count / 2)
        #expect(zip(endpoints, pools).allSatisfy { recent[$0] == nil || recent[$0] === $1 })
    }

    @Test func `endpoints in turns keep their pools until these are forgotten`() throws {
        let (first, second) = (endpoint(1), endpoint(2))
        let pools = [transport.pool(for: first), transport.pool(for: second)]
        #expect(pools[0] !== pools[1])
        for _ in 0..<3 {
            #expect(transport.pool(for: first) === pools[0])
            #expect(transport.pool(for: second) === pools[1])
        }
        // Another endpoint of the same key.
        #expect(transport.pool(for: endpoint(1)) === pools[0])
        transport.forget(pools[0])
        #expect(transport.pool(for: second) === pools[1])
        #expect(transport.pool(for: first) !== pools[0])
        #expect(transport.pools.count == 2)
    }
}
