import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct RouteSplitTests {
    private let clock = ManualClock()
    private let loop: EventLoop
    private let key = SealingKey(Array("the first secret".utf8), for: "sticky")

    init() throws { loop = try EventLoop(name: "split", clock: clock) }

    private func split(
        _ weights: [(String, Int)], _ sticky: RouteSplit.Sticky? = nil, route: String = "shop"
    ) -> RouteSplit {
        RouteSplit(
            weights.map { name, weight in
                let endpoint = Endpoint(host: "127.0.0.1", port: 1)
                let service = UpstreamService(name: name, endpoints: [endpoint])
                return .init(plan: ExchangePlan(chain: .empty, service: service, route: route), weight: weight)
            }, route: route, sticky: sticky)
    }

    private func cookie(_ keys: [SealingKey]? = nil, ttl: Duration = .seconds(60)) -> RouteSplit.Sticky {
        .cookie("share", ttl: ttl, keys: keys ?? [key])
    }

    private func exchange(_ fields: [(FieldName, String)] = []) throws -> Exchange {
        let exchange = Exchange(loop: loop)
        var all = HttpFields()
        for (name, value) in fields { try all.append(name, value) }
        exchange.heldRequest = HttpRequest.get("/", fields: all)
        exchange.heldRequest.fields.receivedCount = exchange.heldRequest.fields.lines.count
        return exchange
    }

    private func name(_ split: RouteSplit, _ exchange: Exchange) -> String {
        split.plan(for: exchange).service?.name ?? ""
    }

    /// The value of the cookie, or of the field, that a new client is given.
    private func given(_ exchange: Exchange) throws -> String {
        let value = String(decoding: try #require(exchange.shareMark).value, as: UTF8.self)
        return String(value.split(separator: ";")[0].replacing("share=", with: ""))
    }

    // MARK: Drawing

    @Test func `each share gets its part of the requests, within four and a half standard deviations`() throws {
        let split = split([("a", 5), ("none", 0), ("b", 95)])
        let exchange = try exchange()
        var counts: [String: Int] = [:]
        for _ in 0..<10_000 { counts[name(split, exchange), default: 0] += 1 }
        #expect((402...598).contains(counts["a"] ?? 0), "\(counts)")
        #expect(counts["none"] == nil && counts.values.reduce(0, +) == 10_000)
        #expect(exchange.shareMark == nil)
    }

    @Test func `a hash gives a key one share, each share its part, and a new weight moves only to or from its share`()
        throws
    {
        func shares(_ weights: [(String, Int)]) throws -> [String] {
            let split = split(weights, .hash(.header("x-user")))
            return try (0..<4000).map { name(split, try exchange([("x-user", "user-\($0)")])) }
        }
        let before = try shares([("a", 10), ("b", 30), ("c", 60)])
        #expect(try shares([("c", 60), ("a", 10), ("b", 30)]) == before)
        #expect((315...485).contains(before.count { $0 == "a" }))
        let more = try shares([("a", 40), ("b", 30), ("c", 60)])
        #expect(zip(before, more).allSatisfy { $0 == $1 || $1 == "a" })
        #expect(more.count { $0 == "a" } > 2 * before.count { $0 == "a" })
        let gone = try shares([("a", 10), ("b", 30)])
        #expect(zip(before, gone).allSatisfy { $0 == $1 || $0 == "c" })
    }

    @Test func `a request without the key is drawn`() throws {
        let split = split([("a", 1), ("b", 1)], .hash(.header("x-user")))
        let exchange = try exchange()
        #expect(Set((0..<100).map { _ in name(split, exchange) }) == ["a", "b"])
    }

    // MARK: Shares that are down

    /// Two shares, and their services.
    private func services(_ fallbacks: [UpstreamService] = []) -> [(UpstreamService, ExchangePlan)] {
        ["a", "b"].map { name in
            let service = UpstreamService(name: name, endpoints: [Endpoint(host: "127.0.0.1", port: 1)])
            return (
                service,
                ExchangePlan(
                    chain: .empty, service: service, route: "shop", fallbacks: name == "a" ? fallbacks : [])
            )
        }
    }

    @Test(arguments: ["drawn", "hash", "cookie"])
    func `a share whose service is down gets no requests while another one is up`(how: String) throws {
        let sticky: RouteSplit.Sticky? =
            how == "hash" ? .hash(.header("x-user")) : how == "cookie" ? cookie() : nil
        let services = services()
        let split = RouteSplit(services.map { .init(plan: $0.1, weight: 1) }, route: "shop", sticky: sticky)
        func names() throws -> Set<String> {
            try Set((0..<100).map { name(split, try exchange([("x-user", "user-\($0)")])) })
        }
        #expect(try names() == ["a", "b"])
        services[0].0.notes.reachability.setUnhealthy(true)
        #expect(try names() == ["b"])
        services[1].0.notes.reachability.setUnhealthy(true)
        #expect(try names() == ["a", "b"])
        services[0].0.notes.reachability.setUnhealthy(false)
        #expect(try names() == ["a"])
    }

    @Test func `a client whose share is down moves to another one, by a new cookie`() throws {
        let services = services()
        let split = RouteSplit(services.map { .init(plan: $0.1, weight: 1) }, route: "shop", sticky: cookie())
        for _ in 0..<20 {
            let first = try exchange()
            let share = name(split, first)
            let value = try given(first)
            let service = try #require(services.first { $0.0.name == share }).0
            service.notes.reachability.setUnhealthy(true)
            let next = try exchange([("cookie", "share=\(value)")])
            #expect(name(split, next) != share && next.shareMark != nil)
            service.notes.reachability.setUnhealthy(false)
        }
    }

    @Test func `a share whose fallback is up keeps its clients`() throws {
        let standIn = UpstreamService(name: "c", endpoints: [Endpoint(host: "127.0.0.1", port: 1)])
        let services = services([standIn])
        let split = RouteSplit(services.map { .init(plan: $0.1, weight: 1) }, route: "shop")
        services[0].0.notes.reachability.setUnhealthy(true)
        let names = try (0..<100).map { _ in name(split, try exchange()) }
        #expect(Set(names) == ["a", "b"])
        standIn.notes.reachability.setUnhealthy(true)
        #expect(try Set((0..<100).map { _ in name(split, try exchange()) }) == ["b"])
    }

    // MARK: Tokens

    @Test func `a client stays with its share by the cookie that it was given, which goes no further`() throws {
        let split = split([("a", 1), ("b", 1)], cookie())
        for _ in 0..<20 {
            let first = try exchange()
            let share = name(split, first)
            let value = try given(first)
            let mark = String(decoding: try #require(first.shareMark).value, as: UTF8.self)
            #expect(mark == "share=\(value); Path=/; Max-Age=60; HttpOnly; SameSite=Lax")
            for _ in 0..<10 {
                let next = try exchange([("cookie", "a=b; share=\(value); c=\"d\""), ("x", "y")])
                #expect(name(split, next) == share)
                #expect(next.shareMark == nil)
                #expect(next.heldRequest.fields[.cookie] == "a=b; c=\"d\"")
                #expect(next.heldRequest.fields.received[.cookie] == "a=b; c=\"d\"")
            }
            let alone = try exchange([("cookie", "share=\(value)"), ("x", "y")])
            #expect(name(split, alone) == share)
            #expect(!alone.heldRequest.fields.contains(.cookie))
            #expect(!alone.heldRequest.fields.received.contains(.cookie))
        }
    }

    @Test func `the cookie holds until its end, for its route, and for every key of the list`() throws {
        let first = split([("a", 0), ("b", 1)], cookie())
        let client = try exchange()
        #expect(name(first, client) == "b")
        let value = try given(client)
        func share(_ split: RouteSplit) throws -> (name: String, isNew: Bool) {
            let exchange = try exchange([("cookie", "share=\(value)")])
            return (name(split, exchange), exchange.shareMark != nil)
        }
        // A reload with other weights, in another order: who sticks stays.
        let later = split([("b", 0), ("a", 100)], cookie())
        #expect(try share(later) == ("b", false))
        #expect(try share(split([("b", 0), ("a", 1)], cookie(), route: "other")) == ("a", true))
        #expect(try share(split([("c", 1), ("a", 1)], cookie())).isNew)
        let another = SealingKey(Array("the next secret".utf8), for: "sticky")
        #expect(try share(split([("b", 0), ("a", 1)], cookie([another, key]))) == ("b", false))
        #expect(try share(split([("b", 0), ("a", 1)], cookie([another]))) == ("a", true))
        clock.advance(by: .seconds(59))
        #expect(try share(later) == ("b", false))
        clock.advance(by: .seconds(1))
        #expect(try share(later) == ("a", true))
    }

    @Test func `a split cookie without a valid seal is ignored, and drawn again`() throws {
        let split = split([("a", 0), ("b", 1), ("c", 0)], cookie())
        let client = try exchange()
        _ = name(split, client)
        let value = try given(client)
        #expect(value.utf8.count == StickyToken.length)
        var garbage = [
            "", "a", "b", value + "A", String(value.dropLast()), value.uppercased(), String(value.reversed()),
        ]
        garbage += (0..<value.utf8.count).map { place in
            var bytes = Array(value.utf8)
            bytes[place] = bytes[place] == 0x41 ? 0x42 : 0x41
            return String(decoding: bytes, as: UTF8.self)
        }
        for text in garbage where text != value {
            let exchange = try exchange([("cookie", "share=\(text); x=1")])
            #expect(name(split, exchange) == "b")
            #expect(exchange.shareMark != nil, "\(text)")
            #expect(exchange.heldRequest.fields[.cookie] == "x=1")
        }
        // One of another path stands before it.
        let both = try exchange([("cookie", "share=old; share=\(value)")])
        _ = name(split, both)
        #expect(both.shareMark == nil && !both.heldRequest.fields.contains(.cookie))
        let many = try exchange([("cookie", String(repeating: "share=old; ", count: 4) + "share=\(value)")])
        _ = name(split, many)
        #expect(many.shareMark != nil)
    }

    @Test func `clients of one second share a token, and https clients get a secure cookie`() throws {
        let split = split([("a", 1)], cookie())
        let one = try exchange()
        let other = try exchange()
        #expect(name(split, one) == name(split, other))
        #expect(try given(one) == given(other))
        clock.advance(by: .seconds(1))
        let next = try exchange()
        _ = name(split, next)
        #expect(try given(next) != given(one))
        let secure = try exchange()
        secure.heldRequest.target.isSecure = true
        secure.isForward = true
        _ = name(split, secure)
        #expect(String(decoding: try #require(secure.shareMark).value, as: UTF8.self).hasSuffix("; Secure"))
    }

    @Test(
        arguments: [
            ([], ["private"], []), ([("Cache-Control", "max-age=60")], ["max-age=60", "private"], []),
            ([("Cache-Control", "Private, max-age=60")], ["Private, max-age=60"], []),
            ([("Cache-Control", "no-store")], ["no-store"], []),
            (
                [("Cache-Control", "no-store"), ("CDN-Cache-Control", "max-age=60")], ["no-store"],
                ["max-age=60", "private"]
            ),
        ] as [([(FieldName, String)], [String], [String])])
    func `shared caches do not store what marks a client`(
        fields: [(FieldName, String)], control: [String], targeted: [String]
    ) throws {
        var response = HttpFields()
        for (name, value) in fields { try response.append(name, value) }
        ShareMark(name: .setCookie, value: Array("a=b".utf8)).add(to: &response)
        #expect(response[.setCookie] == "a=b")
        #expect(response.values(of: .cacheControl) == control)
        #expect(response.values(of: "CDN-Cache-Control") == targeted)
    }

    @Test func `a field does the same for clients without cookies`() throws {
        let split = split([("a", 1), ("b", 1)], .header("x-share", ttl: .seconds(60), keys: [key]))
        let first = try exchange()
        let share = name(split, first)
        #expect(first.shareMark?.name == "x-share")
        let value = try given(first)
        for _ in 0..<10 {
            let next = try exchange([("x-share", value)])
            #expect(name(split, next) == share && next.shareMark == nil)
            #expect(!next.heldRequest.fields.contains("x-share"))
        }
        let twice = try exchange([("x-share", value), ("x-share", value)])
        _ = name(split, twice)
        #expect(twice.shareMark != nil && !twice.heldRequest.fields.contains("x-share"))
    }
}
