import HttpWareTesting
import Testing

@testable import HttpWare

/// The table against one that asks each route in turn.
@Suite struct RouteTableTests {
    /// The reference for the table: route by route, by the patterns' own word.
    private struct NaiveTable {
        let routes: [RouteTable.Route]

        /// The place of the first route that matches, and what its path captured; `nil` where none does.
        func route(for request: HttpRequest) throws(Pattern.LimitReached) -> (place: Int, captures: [String])? {
            for (place, route) in routes.enumerated() {
                if request.method == .connect, !route.takesConnect { continue }
                guard try route.match.matches(request, from: UnknownSource(), fence: .outside) else { continue }
                return (place, captures(route.match.paths, request.path))
            }
            return nil
        }

        private func captures(_ patterns: [PathPattern], _ path: String) -> [String] {
            let bytes = Array(path.utf8)
            for pattern in patterns where !pattern.captures.isEmpty {
                guard let ranges = bytes.withUnsafeBytes({ pattern.captured(in: $0) }) else { continue }
                return zip(pattern.captures, ranges).map { "\($0)=\(String(decoding: bytes[$1], as: UTF8.self))" }
            }
            return []
        }
    }

    /// Random tables and requests from few words, so that they meet often.
    private struct Dice {
        private var state: UInt64

        init(seed: Int) { state = UInt64(seed) &* 0x9e37_79b9_7f4a_7c15 &+ 1 }

        /// SplitMix64.
        mutating func roll(_ sides: Int) -> Int {
            state &+= 0x9e37_79b9_7f4a_7c15
            var bits = state
            bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
            bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
            return Int((bits ^ bits >> 31) % UInt64(sides))
        }

        mutating func one<T>(of values: [T]) -> T { values[roll(values.count)] }

        /// None as often as the sides say, else a few.
        mutating func few<T>(noneOutOf sides: Int, _ make: (inout Dice) throws -> T) rethrows -> [T] {
            guard roll(sides) == 0 else { return [] }
            return try (0...roll(3)).map { _ in try make(&self) }
        }

        mutating func host() -> String {
            one(of: ["a.test", "b.test", "x.a.test", "*.test", "*.a.test", "*.x.a.test", "A.test", "[::1]", "test"])
                + one(of: ["", "", "", ":80", ":8080"])
        }

        mutating func path() -> String {
            // Deep ones, too: more segments than the index has levels.
            let depth = roll(12) == 0 ? 10 + roll(6) : roll(5)
            var text = ""
            for level in 0..<depth {
                text += "/" + one(of: ["a", "b", "ab", "a*", "*b", "*", "{x\(level)}", "{y\(level)}", "", "%2F", "a"])
            }
            return text + (depth == 0 ? one(of: ["/", "/**"]) : one(of: ["", "", "/**", "/"]))
        }

        mutating func route() throws -> RouteTable.Route {
            var match = RequestMatch()
            match.hosts = try few(noneOutOf: 2) { try HostPattern(optionText: $0.host()) }
            match.paths = try few(noneOutOf: 1 + roll(2)) { try PathPattern(optionText: $0.path()) }
            match.methods = few(noneOutOf: 4) {
                $0.one(of: [.get, .post, .connect, HttpMethod("PURGE")].compactMap(\.self))
            }
            match.headers = try few(noneOutOf: 6) { try $0.named(["X-A", "accept"]) }
            match.query = try few(noneOutOf: 6) { try $0.named(["q", "a b", "é"]) }
            match.pathExpressions = try few(noneOutOf: 8) { try $0.expression() }
            match.schemes = few(noneOutOf: 10) { $0.one(of: UriScheme.allCases) }
            match.not = try few(noneOutOf: 6) { try $0.member() }
            match.any = try few(noneOutOf: 4) { try $0.member() }
            let plan = ExchangePlan(chain: .empty, service: nil, route: nil)
            return RouteTable.Route(match: match, takesConnect: roll(3) > 0, plan: plan)
        }

        mutating func expression() throws -> Pattern { try Pattern(one(of: ["^/a", "b$", "/a/b", "^/[^/]*$"])) }

        /// A member of `not` or `any`, which may have such members itself.
        mutating func member() throws -> RequestMatch {
            var match = RequestMatch()
            match.hosts = try few(noneOutOf: 2) { try HostPattern(optionText: $0.host()) }
            match.paths = try few(noneOutOf: 2) { try PathPattern(optionText: $0.path()) }
            match.pathExpressions = try few(noneOutOf: 6) { try $0.expression() }
            match.headers = try few(noneOutOf: 5) { try $0.named(["X-A", "accept"]) }
            if roll(5) == 0 { match.any = [try member()] }
            return match
        }

        mutating func named(_ names: [String]) throws -> NamedMatch {
            let values = try (0...roll(2)).map { _ in
                try ValueMatch(optionText: one(of: ["1", "2", "~^[12]$", "~.", "a b"]))
            }
            return NamedMatch(name: one(of: names), values: values)
        }

        mutating func request() throws -> HttpRequest {
            let host = one(of: [
                "a.test", "b.test", "x.a.test", "y.x.a.test", "A.TEST.", "c.test", "test", "[::1]",
            ])
            let port = one(of: ["", "", ":80", ":8080", ":81"])
            if roll(12) == 0 { return try HttpRequest(.connect, host + (port.isEmpty ? ":443" : port)) }
            var path = ""
            for _ in 0..<(roll(12) == 0 ? 9 + roll(8) : roll(5)) {
                path += "/" + one(of: ["a", "b", "ab", "aab", "c", "", "%2f", "%61", "ba"])
            }
            if path.isEmpty { path = "/" }
            if roll(4) == 0 {
                path +=
                    "?"
                    + one(of: [
                        "q=1", "q=3&q=2", "a+b=1", "a%20b=a%20b", "%C3%A9=2", "q", "%71=%31", "q=%zz", "Q=1", "",
                    ])
            }
            var fields = HttpFields()
            if roll(3) == 0 { try fields.append("x-a", one(of: ["1", "2", "3", "a b"])) }
            if roll(3) == 0 { try fields.append("Accept", one(of: ["1", "2", "3"])) }
            let method = one(of: [.get, .get, .post, .options, HttpMethod("PURGE")].compactMap(\.self)) as HttpMethod
            if method == .options, roll(3) == 0 { return try HttpRequest(.options, "*", fields: fields) }
            let isAbsolute = roll(5) > 0
            return try HttpRequest(method, isAbsolute ? "http://\(host)\(port)\(path)" : path, fields: fields)
        }
    }

    @Test(arguments: 0..<40)
    func `whatever the routes, the first that matches wins`(seed: Int) throws {
        var dice = Dice(seed: seed)
        var found = 0
        for _ in 0..<75 {
            let routes = try (0...dice.roll(30)).map { _ in try dice.route() }
            let naive = NaiveTable(routes: routes)
            let none = ExchangePlan(chain: .empty, service: nil, route: nil)
            let first = RouteTable(routes, listenerPlan: none)
            for _ in 0..<25 {
                let request = try dice.request()
                var captures: [(name: String, value: String)] = []
                let plan = try first.plan(for: request, captures: &captures)
                let expected = try naive.route(for: request)
                let place = routes.firstIndex { $0.plan === plan }
                found += place == nil ? 0 : 1
                guard place == expected?.place, captures.map({ "\($0.name)=\($0.value)" }) == expected?.captures ?? []
                else {
                    Issue.record("\(request.method) \(request.receivedTarget): \(place as Any), not \(expected as Any)")
                    continue
                }
            }
        }
        // The dice are of use only if they meet.
        #expect((400..<1_800).contains(found))
    }

    @Test func `regular expressions of paths are searched in the normalised path, in the order of their routes`() throws
    {
        let (table, _) = try table([
            { $0.paths = [try PathPattern(optionText: "/first.php")] },
            { $0.pathExpressions = [try Pattern("\\.php$")] },
            {
                $0.hosts = [try HostPattern(optionText: "a.test")]
                $0.pathExpressions = [try Pattern("^/~a/[0-9]+$")]
            },
            { $0.paths = [try PathPattern(optionText: "/late.php")] },
            { _ in },
        ])
        #expect(try place(table, .get("/first.php")) == "0")
        #expect(try place(table, .get("/x/y%2Ephp?q")) == "1")
        #expect(try place(table, .get("/late.php")) == "1")
        #expect(try place(table, .get("http://a.test/%7ea/12")) == "2")
        #expect(try place(table, .get("http://b.test/~a/12")) == "4")
        #expect(try place(table, HttpRequest(.options, "*")) == "4")
    }

    @Test func `a path whose expression cannot be decided counts only where no earlier route matches`() throws {
        let (table, _) = try table([
            { $0.paths = [try PathPattern(optionText: "/a/**")] },
            { $0.pathExpressions = [try Pattern("^/[a-z]/(a+)+$")] }, { _ in },
        ])
        let row = String(repeating: "a", count: 60) + "!"
        #expect(try place(table, .get("/a/" + row)) == "0")
        #expect(throws: Pattern.LimitReached.self) { try place(table, .get("/b/" + row)) }
        #expect(try place(table, .get("/b/c")) == "2")
    }

    @Test func `routes that name paths only in any are found by these`() throws {
        let index = RouteIndex(
            try (0..<1000).map { number in
                var match = RequestMatch()
                match.any = try ["/a", "/b"].map { text in
                    var member = RequestMatch()
                    member.paths = [try PathPattern(optionText: "\(text)/\(number)")]
                    return member
                }
                return match
            })
        let root = index.nodes[0]
        #expect(root.exact.range.isEmpty && root.prefixes.range.isEmpty)
        #expect(index.candidates.count == 2000)
    }

    @Test func `without a client no network holds, and its opposite does`() throws {
        let network = try IPNetwork(optionText: "0.0.0.0/0")
        let (table, _) = try table([
            { $0.clients = [network] },
            {
                var inside = RequestMatch()
                inside.clients = [network]
                $0.not = [inside]
            },
        ])
        #expect(try place(table, .get("/")) == "1")
    }

    // MARK: By hand

    private func table(_ matches: [(inout RequestMatch) throws -> Void]) throws -> (RouteTable, [ExchangePlan]) {
        let routes = try matches.enumerated().map { place, change in
            var match = RequestMatch()
            try change(&match)
            return RouteTable.Route(match: match, plan: ExchangePlan(chain: .empty, service: nil, route: "\(place)"))
        }
        let none = ExchangePlan(chain: .empty, service: nil, route: nil)
        return (RouteTable(routes, listenerPlan: none), routes.map(\.plan))
    }

    private func place(_ table: RouteTable, _ request: HttpRequest) throws -> String? {
        var captures: [(name: String, value: String)] = []
        return try table.plan(for: request, captures: &captures).route
    }

    @Test func `a pattern that cannot be decided counts only where no earlier route matches`() throws {
        let endless = NamedMatch(name: "x-row", values: [try ValueMatch(optionText: "~^(a+)+$")])
        let (table, _) = try table([
            { $0.paths = [try PathPattern(optionText: "/a/**")] },
            {
                $0.paths = [try PathPattern(optionText: "/a/b")]
                $0.headers = [endless]
            },
            {
                $0.paths = [try PathPattern(optionText: "/c")]
                $0.headers = [endless]
            },
            { $0.paths = [try PathPattern(optionText: "/**")] },
        ])
        var fields = HttpFields()
        try fields.append("x-row", String(repeating: "a", count: 60) + "!")
        #expect(try place(table, .get("/a/b", fields: fields)) == "0")
        #expect(throws: Pattern.LimitReached.self) { try place(table, .get("/c", fields: fields)) }
        #expect(try place(table, .get("/c")) == "3")
    }

    @Test func `a copy finds the same, in plans of its own`() throws {
        let (table, plans) = try table([{ $0.paths = [try PathPattern(optionText: "/{id}")] }, { _ in }])
        let copy = RouteTable(copying: table)
        var captures: [(name: String, value: String)] = []
        let plan = try copy.plan(for: .get("/7"), captures: &captures)
        #expect(plan.route == "0")
        #expect(plan !== plans[0])
        #expect(captures.map(\.value) == ["7"])
        #expect(try place(copy, .get("/7/8")) == "1")
        let (open, openPlans) = try self.table([{ _ in }])
        #expect(try RouteTable(copying: open).plan(for: .get("/7"), captures: &captures) !== openPlans[0])
    }

    @Test func `the index stays small, whatever a route lists`() throws {
        var match = RequestMatch()
        match.hosts = try (0..<1000).map { try HostPattern(optionText: "h\($0).test") }
        match.paths = try (0..<1000).map {
            try PathPattern(optionText: "/p\($0)" + String(repeating: "/{a\($0)}", count: 1))
        }
        var deep = RequestMatch()
        deep.paths = [try PathPattern(optionText: String(repeating: "/*", count: 2000))]
        let index = RouteIndex([match, deep])
        #expect(index.nodes.count < 2100)
        #expect(index.candidates.count < 1100)
        let (table, _) = try table([{ $0 = match }, { $0 = deep }])
        #expect(try place(table, .get("http://h7.test/p8/x")) == "0")
        #expect(try place(table, .get("http://h1000.test/p8/x")) == nil)
        #expect(try place(table, .get("http://a.test" + String(repeating: "/x", count: 2000))) == "1")
        #expect(try place(table, .get("http://a.test" + String(repeating: "/x", count: 1999))) == nil)
    }

    @Test func `a host of many labels costs no more than the longest wildcard`() throws {
        let (table, _) = try table([{ $0.hosts = [try HostPattern(optionText: "*.a.test")] }])
        let long = String(repeating: "a.", count: 4000) + "a.test"
        #expect(try place(table, .get("http://\(long)/")) == "0")
        #expect(try place(table, .get("http://\(long)x/")) == nil)
    }
}
