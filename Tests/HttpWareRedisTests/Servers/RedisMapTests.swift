import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// Answers of sentinels and nodes about the places of servers.
@Suite struct RedisMapTests {
    private static func text(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }

    private static func node(_ port: Int64, _ host: RedisReply = text("127.0.0.1")) -> RedisReply {
        .array([host, .integer(port), text("id"), .array([])])
    }

    private static func range(_ first: Int64, _ last: Int64, _ nodes: RedisReply...) -> RedisReply {
        .array([.integer(first), .integer(last)] + nodes)
    }

    private let asked = RedisUrl.Place.host("192.0.2.7", port: 7000)

    private func read(_ ranges: [RedisReply]) -> RedisMap? { RedisMap(clusterSlots: .array(ranges), from: asked) }

    @Test func `each slot belongs to the master of its range, and a slot without a range to none`() throws {
        let ranges = [
            Self.range(0, 99, Self.node(7001), Self.node(7004)), Self.range(200, 16_383, Self.node(7002)),
            Self.range(100, 100, Self.node(7001), Self.node(7004)),
        ]
        let map = try #require(read(ranges))
        #expect(map.masters.map(\.place.description) == ["127.0.0.1:7001", "127.0.0.1:7002"])
        #expect(map.masters.map(\.replicas) == [1, 0])
        for (slot, port) in [(0, 7001), (100, 7001), (200, 7002), (16_383, 7002)] as [(UInt16, UInt16)] {
            #expect(map.master(of: slot)?.place == .host("127.0.0.1", port: port))
        }
        #expect(map.master(of: 101) == nil)
        #expect(map.master(of: 16_384) == nil)
        #expect(map.master(of: nil) != nil)
    }

    @Test(arguments: [RedisReply.null, .bytes([])])
    func `a node without a host is where the answer came from`(host: RedisReply) throws {
        let map = try #require(read([Self.range(0, 9, Self.node(7001, host))]))
        #expect(map.masters.map(\.place) == [.host("192.0.2.7", port: 7001)])
    }

    private static let impossible: [[RedisReply]] = [
        [], [.null], [.array([])], [range(0, 9)], [range(-1, 9, node(1))], [range(9, 8, node(1))],
        [range(0, 16_384, node(1))], [range(0, .max, node(1))], [range(.min, .max, node(1))],
        [range(0, 9, node(1)), range(9, 9, node(1))], [range(0, 9, node(0))], [range(0, 9, node(65_536))],
        [range(0, 9, node(1, text("?")))], [range(0, 9, node(1, text("a b")))],
        [range(0, 9, node(1, text(String(repeating: "a", count: 256))))], [range(0, 9, node(1, .integer(1)))],
        [range(0, 9, .null)], (0...1000).map { range($0, $0, node(1 + $0)) },
    ]

    @Test(arguments: impossible)
    func `a map that cannot be is refused as a whole`(ranges: [RedisReply]) { #expect(read(ranges) == nil) }

    @Test func `the master's address is a host and a port`() {
        func place(_ parts: [String]) -> RedisUrl.Place? {
            RedisUrl.Place(masterAddress: .array(parts.map(Self.text)))
        }
        #expect(place(["10.0.0.1", "6379"]) == .host("10.0.0.1", port: 6379))
        #expect(place(["::1", "6379"])?.description == "[::1]:6379")
        let others = [
            [], ["a"], ["a", ""], ["a", "0"], ["a", "65536"], ["a", "-1"], ["", "1"], ["a\r\nb", "1"], ["a", "1", "2"],
        ]
        for parts in others {
            #expect(place(parts) == nil, "\(parts)")
        }
        #expect(RedisUrl.Place(masterAddress: .null) == nil)
    }

    @Test func `a master reports its replicas, and a replica has none to report`() {
        let replicas = RedisReply.array([.array([Self.text("10.0.0.2"), Self.text("6379"), Self.text("14")])])
        #expect(RedisReply.array([Self.text("master"), .integer(14), replicas]).replicasOfMaster == 1)
        #expect(RedisReply.array([Self.text("master"), .integer(14), .array([])]).replicasOfMaster == 0)
        #expect(RedisReply.array([Self.text("slave"), Self.text("a"), .integer(1)]).replicasOfMaster == nil)
        #expect(RedisReply.array([Self.text("master")]).replicasOfMaster == nil)
        #expect(RedisReply.null.replicasOfMaster == nil)
    }

    @Test func `redirections are read, and any other text is a refusal`() {
        #expect(RedisRedirect("MOVED 3999 127.0.0.1:6381") == .moved(.host("127.0.0.1", port: 6381)))
        #expect(RedisRedirect("MOVED 3999 ::1:6381") == .moved(.host("::1", port: 6381)))
        #expect(RedisRedirect("MOVED 3999 :6381") == .moved(nil))
        #expect(RedisRedirect("MOVED 3999 ?:6381") == .moved(nil))
        #expect(RedisRedirect("ASK 3999 node-1.internal:6381") == .asked(.host("node-1.internal", port: 6381)))
        #expect(RedisRedirect("TRYAGAIN Multiple keys request during rehashing of slot") == .tryAgain)
        for text in [
            "", "MOVED", "MOVED 1", "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:123456", "ASK 1 :1", "ASK 1 a:1 b",
            "WRONGTYPE",
            "ASK 1 a:x", "moved 1 a:1",
        ] {
            #expect(RedisRedirect(text) == nil, "\(text)")
        }
    }
}
