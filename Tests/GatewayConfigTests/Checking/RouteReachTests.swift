import GatewayConfig
import HttpWare
import Testing

/// A route is told to be never reached exactly where no request reaches it: compared with a matcher that tries them all.
@Suite struct RouteReachTests {
    /// Always the same numbers, so that what failed fails again.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    /// The parts of patterns, and the requests that distinguish them: each with one that no pattern names.
    private struct World {
        var methods: [String] = []
        var hosts: [String] = []
        var paths: [String] = []
        var headers: [String] = []
        var queries: [String] = []
        var requests: [HttpRequest] = []
    }

    private static let segments = ["", "a", "b", "ab", "~", "a~", "~b", "a~b"]
    private static let allPaths: [String] = {
        let one = segments.map { "/\($0)" }
        let two = one.flatMap { first in one.map { first + $0 } }
        return one + two + two.flatMap { first in ["/", "/a", "/~"].map { first + $0 } }
    }()
    private static let patterns: [String] = {
        let parts = ["a", "b", "{x}", "*", "a*", "*b", "a*b", ""]
        let one = parts.map { "/\($0)" }
        let two = one.flatMap { first in one.map { first + $0.replacing("{x}", with: "{y}") } }
        return one + two + ["/**"] + one.map { $0 + "/**" } + two.map { $0 + "/**" }
    }()

    private static func world(_ kind: Int) throws -> World {
        var world = World()
        var targets = ["/a"]
        var methods = ["GET", "POST", "OPTIONS", "ZZZ"]
        switch kind {
        case 0:
            world.paths = patterns
            targets = allPaths
            methods = ["GET", "ZZZ"]
        case 1:
            world.paths = ["/a", "/a/**", "/**", "/{x}", "/a*"]
            world.hosts = ["a.test", "*.test", "*.a.test", "a.test:81", "*.test:81", "b.test"]
            let hosts = ["a.test", "b.test", "~.test", "~.a.test", "~", "b.a.test"]
            targets = (hosts + hosts.map { $0 + ":81" } + hosts.map { $0 + ":82" }).flatMap { host in
                ["/a", "/a~", "/~", "/a/~", "/", "/~/~"].map { "http://\(host)\($0)" }
            }
            methods = ["GET"]
        default:
            world.methods = ["GET", "POST", "OPTIONS"]
            world.headers = ["X-A: 1", "X-A: 2", "x-a: [1, 2]", "X-B: 1", "X-B: \"~1\"", "X-B: [1, 12]", "X-A: \"~\""]
            world.queries = ["v: 1", "v: [1, 2]", "w: \"~^2\"", "w: [2, 23]"]
            targets = [
                "", "v=1", "v=2", "w=2", "w=23", "w=24", "v=1&w=24", "v=2&w=24", "v=1&w=2", "v=2&w=23", "v=1&v=2",
            ].map { "/a?\($0)" }
        }
        var fields = [HttpFields()]
        if !world.headers.isEmpty {
            for a in ["", "1", "2", "3"] {
                for b in ["", "1", "12", "3"] where !(a + b).isEmpty {
                    var both = HttpFields()
                    if !a.isEmpty { try both.append("X-A", a) }
                    if !b.isEmpty { try both.append("X-B", b) }
                    fields.append(both)
                }
            }
        }
        for method in methods {
            let method = try #require(HttpMethod(method))
            for target in targets + (method == .options ? ["*"] : []) {
                for fields in fields { world.requests.append(try HttpRequest(method, target, fields: fields)) }
            }
        }
        if kind == 0 { world.requests.append(try HttpRequest(.options, "*")) }
        // Without a path, OPTIONS asks for `*`. RFC 9112 §3.2.4.
        let hosts = Set(targets.filter { $0.hasPrefix("http://") }.map { $0.split(separator: "/")[1] })
        for host in hosts { world.requests.append(try HttpRequest(.options, "http://\(host)")) }
        return world
    }

    private func match(_ world: World, _ random: inout Numbers) -> String {
        func some(_ key: String, _ values: [String]) -> String? {
            guard !values.isEmpty, Int.random(in: 0..<4, using: &random) > 0 else { return nil }
            let chosen = (0..<Int.random(in: 1...2, using: &random)).compactMap { _ in
                values.randomElement(using: &random)
            }
            return "\(key): [\(Set(chosen).sorted().map { "\"\($0)\"" }.joined(separator: ", "))]"
        }
        func named(_ key: String, _ values: [String]) -> String? {
            guard let one = values.randomElement(using: &random), Int.random(in: 0..<2, using: &random) > 0 else {
                return nil
            }
            return "\(key): { \(one) }"
        }
        return [
            some("method", world.methods), some("host", world.hosts), some("path", world.paths),
            named("headers", world.headers), named("query", world.queries),
        ].compactMap(\.self).joined(separator: ", ")
    }

    private func matches(_ match: RequestMatch, _ request: HttpRequest) throws -> Bool {
        try match.mismatch(with: request, from: Anywhere()) == nil
    }

    private final class Anywhere: RequestSource {
        let client: IPAddress? = nil
        var patternTime = PatternTime()
        func clientScheme(of request: HttpRequest) -> String { "http" }
    }

    @Test(arguments: 0..<3)
    func `a route is reported exactly where no request reaches it`(kind: Int) throws {
        let world = try RouteReachTests.world(kind)
        var hidden = 0
        for seed in 0..<50 {
            var random = Numbers(state: UInt64(seed) &* 7919 &+ UInt64(kind))
            var text = """
                version: 1
                listeners: { web: { bind: "127.0.0.1:1" } }
                services: { api: { baseUrl: "http://a" } }
                routes:

                """
            for index in 0..<7 {
                text += "  - { name: r\(index), service: api, match: { \(match(world, &random)) } }\n"
            }
            let result = ConfigurationCase(name: "", text: text).read()
            let routes = try #require(result.configuration?.routes, "\(result.errors)\n\(text)")
            let told = Set(
                result.errors.filter { $0.message.contains("never reached") }.compactMap { error in
                    routes.first { $0.location == error.location }?.index
                })
            var reached: Set<Int> = []
            for request in world.requests {
                if let first = try routes.first(where: { try matches($0.match, request) }) {
                    reached.insert(first.index)
                }
            }
            let unreached = Set(routes.map(\.index)).subtracting(reached)
            #expect(told == unreached, "told \(told), unreached \(unreached)\n\(text)\(result.errors)")
            hidden += told.count
        }
        #expect(hidden > 20, "too few to say anything")
    }

    @Test func `many routes of which nothing is known in advance take no more than seconds`() {
        // Hosts with a wildcard and paths that begin alike leave the most to compare.
        var text =
            "version: 1\nlisteners: { l: { bind: \"127.0.0.1:1\" } }\nservices: { s: { baseUrl: \"http://a\" } }\n"
        text += "routes:\n"
        for index in 0..<4_000 {
            text += "  - { service: s, match: { host: \"*.h\(index % 97).test\", path: \"/api/{x}/*\(index)/**\" } }\n"
        }
        let begin = ContinuousClock.now
        _ = ConfigurationCase(name: "", text: text).read()
        #expect(begin.duration(to: .now) < .seconds(60))
    }
}
