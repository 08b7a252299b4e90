import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct HttpCacheValidationTests {
    private let fresh = "Cache-Control: max-age=60"

    /// A cache that holds one response, which is 70 seconds old.
    private func stale(
        _ lines: [String], _ text: String = "old", _ change: (inout HttpCache) -> Void = { _ in }
    ) async throws -> CacheStage {
        let stage = try CacheStage(change)
        try stage.respond(["Cache-Control: max-age=60"] + lines, text)
        _ = try await stage.send()
        await stage.advance(70)
        return stage
    }

    @Test func `a stale response is validated by what it has, RFC 9111 §4.3.1`() async throws {
        let modified = "Wed, 31 Dec 2025 00:00:00 GMT"
        let stage = try await stale(["ETag: W/\"a\"", "Last-Modified: \(modified)"])
        try stage.respond(304, ["ETag: W/\"a\"", fresh, "X-New: 1"], "")
        let second = try await stage.send()
        #expect(stage.last[.ifNoneMatch] == "W/\"a\"" && stage.last[.ifModifiedSince] == modified)
        #expect(second.status == 200 && second.text == "old" && second["X-New"] == "1")
        #expect(second.cacheStatus == "httpware; fwd=stale; fwd-status=304; ttl=60")
        let third = try await stage.send()
        #expect(third.isHit && third["X-New"] == "1" && third[.age] == "0")
        #expect(stage.asked == 2)
    }

    @Test func `another response takes the place of a stale one, RFC 9111 §4.3.3`() async throws {
        let stage = try await stale(["ETag: \"a\""])
        try stage.respond([fresh, "ETag: \"b\""], "new")
        #expect(try await stage.send().text == "new")
        #expect(try await stage.send().text == "new")
        #expect(stage.asked == 2 && stage.store.census.responses == 1)
    }

    @Test func `after 304 about another representation the whole is requested, RFC 9111 §4.3.4, RFC 9110 §15.4.5`()
        async throws
    {
        let stage = try await stale(["ETag: \"a\""])
        try stage.respond(304, ["ETag: \"b\""], "")
        try stage.respond([fresh, "ETag: \"b\""], "new")
        let second = try await stage.send()
        #expect(second.status == 200 && second.text == "new")
        #expect(try await stage.send().text == "new")
        #expect(stage.asked == 3 && stage.store.census.responses == 1)
    }

    @Test func `304 about another representation goes on to a client that asked by a condition`() async throws {
        let stage = try await stale(["ETag: \"a\""])
        try stage.respond(304, ["ETag: \"b\""], "")
        #expect(try await stage.send(.get, "/", ["If-None-Match: \"b\""]).status == 304)
        #expect(stage.store.census.responses == 0)
    }

    @Test func `304 with the strong tag of a weak one lets the stored response be sent, not updated, RFC 9110 §13.1.2`()
        async throws
    {
        let stage = try await stale(["ETag: W/\"a\""])
        for _ in 0..<2 {
            try stage.respond(304, ["ETag: \"a\"", "X-New: 1", fresh], "")
            let next = try await stage.send()
            #expect(next.status == 200 && next.text == "old" && next["X-New"] == nil && next[.etag] == "W/\"a\"")
        }
        #expect(stage.asked == 3 && stage.store.census.responses == 1)
    }

    @Test func `no-cache is validated each time, RFC 9111 §5.2.2.4`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: no-cache", "ETag: \"a\""])
        _ = try await stage.send()
        for _ in 0..<2 {
            try stage.respond(304, ["ETag: \"a\""], "")
            #expect(try await stage.send().text == "x")
        }
        #expect(stage.asked == 3)
    }

    // MARK: Conditional clients

    @Test(arguments: [
        (["If-None-Match: \"a\""], 304), (["If-None-Match: W/\"a\""], 304), (["If-None-Match: \"b\", \"a\""], 304),
        (["If-None-Match: *"], 304), (["If-None-Match: \"b\""], 200),
        (["If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"], 304),
        (["If-Modified-Since: Tue, 30 Dec 2025 00:00:00 GMT"], 200), (["If-Modified-Since: x"], 200),
        (["If-None-Match: \"b\"", "If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"], 200),
    ])
    func `conditional clients are answered from the store, RFC 9111 §4.3.2`(lines: [String], status: Int) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\"", "Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT", "Content-Type: a/b"])
        _ = try await stage.send()
        let second = try await stage.send(.get, "/", lines)
        #expect(second.status == status && stage.asked == 1)
        #expect(second[.etag] == "\"a\"")
        #expect(second[.contentType] == (status == 304 ? nil : "a/b"))
        #expect(second.text == (status == 304 ? "" : "x"))
    }

    /// The directives behind `max-age=60`, and whether a response that is long stale is used when no origin server answers.
    @Test(arguments: [
        ("max-stale", true), ("must-revalidate", false), ("proxy-revalidate", false), ("no-cache", false),
        ("s-maxage=60", false),
    ])
    func `with staleOnDisconnect a stale response is used if the origin server does not answer, RFC 9111 §4.2.4`(
        directive: String, may: Bool
    ) async throws {
        for isOn in [true, false] {
            for hasTag in [true, false] {
                let stage = try CacheStage { $0.policy.staleOnDisconnect = isOn }
                try stage.respond(["Cache-Control: max-age=60, \(directive)"] + (hasTag ? ["ETag: \"a\""] : []), "old")
                _ = try await stage.send()
                await stage.advance(1_000_000)
                try stage.respond(503, [])
                #expect(try await stage.send().status == 503)
                stage.exchange.upstream.refuse()
                let seen = try await stage.send()
                #expect(seen.status == (may && isOn ? 200 : 502))
                if may, isOn { #expect(seen.text == "old" && seen.cacheStatus.contains("fwd=stale")) }
            }
        }
    }

    @Test func `a client's own tags are asked about too, and answered with its 304`() async throws {
        let stage = try await stale(["ETag: \"a\""])
        try stage.respond(304, ["ETag: \"mine\""], "")
        let second = try await stage.send(.get, "/", ["If-None-Match: \"mine\""])
        #expect(stage.last[.ifNoneMatch] == "\"a\", \"mine\"")
        #expect(second.status == 304)
    }

    @Test func `a conditional request for what is not stored goes on as it is`() async throws {
        let stage = try CacheStage()
        try stage.respond(304, ["ETag: \"a\""], "")
        #expect(try await stage.send(.get, "/", ["If-None-Match: \"a\""]).status == 304)
        #expect(stage.last[.ifNoneMatch] == "\"a\"")
        #expect(stage.store.census.responses == 0)
    }

    // MARK: Updates without Date

    @Test(arguments: [HttpMethod.get, .head], [true, false])
    func `an update without Date is as of its receipt, RFC 9110 §6.6.1`(method: HttpMethod, isDated: Bool)
        async throws
    {
        let stage = try CacheStage()
        let lines = ["Cache-Control: max-age=60", "ETag: \"a\""]
        let date = "Date: \(HttpDate.text(stage.exchange.clock.wallNow()))"
        try stage.respond(isDated ? lines + [date] : lines, "old")
        _ = try await stage.send()
        await stage.advance(90)
        if method == .head { try stage.respond(lines, "") } else { try stage.respond(304, lines, "") }
        _ = try await stage.send(method)
        let seen = try await stage.send()
        #expect(seen.isHit && seen.text == "old" && seen[.age] == "0" && seen.cacheStatus == "httpware; hit; ttl=60")
        #expect(seen[.date] == HttpDate.text(stage.exchange.clock.wallNow()))
        await stage.advance(30)
        #expect(try await stage.send()[.age] == "30")
        #expect(stage.asked == 2)
    }

    @Test func `an update with Age and without Date has that age, RFC 9111 §4.2.3`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60", "ETag: \"a\"", "Age: 5"], "old")
        _ = try await stage.send()
        await stage.advance(90)
        try stage.respond(304, ["Cache-Control: max-age=60", "ETag: \"a\"", "Age: 50"], "")
        #expect(try await stage.send()[.age] == "50")
        #expect(try await stage.send().cacheStatus == "httpware; hit; ttl=10")
    }

    // MARK: HEAD

    @Test func `HEAD is answered from what is stored for GET, RFC 9111 §4`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh], "12345")
        _ = try await stage.send()
        let head = try await stage.send(.head)
        #expect(head.isHit && head.text == "" && stage.asked == 1)
    }

    @Test(
        arguments: [("ETag: \"a\"", true), ("ETag: \"b\"", false), ("Content-Length: 99", false)],
        CacheStage.Kind.allCases)
    func `a HEAD's response tells whether what is stored holds, RFC 9111 §4.3.5`(
        trial: (line: String, holds: Bool), kind: CacheStage.Kind
    ) async throws {
        let (line, holds) = trial
        let stage = try await CacheStage(kind: kind)
        try stage.respond([fresh, "ETag: \"a\""])
        _ = try await stage.send()
        try await stage.holds(nil)
        var lines = [fresh, "X-New: 1"]
        if !line.hasPrefix("Content-Length") { lines.append(line) }
        let content = line.hasPrefix("Content-Length") ? String(repeating: "y", count: 99) : "x"
        try stage.respond(lines, content)
        _ = try await stage.send(.head, "/", ["Cache-Control: no-cache"])
        stage.settle()
        try stage.respond([fresh], "other")
        let third = try await stage.send()
        #expect(third.isHit == holds)
        if holds { #expect(third["X-New"] == "1") }
    }

    @Test(arguments: CacheStage.Kind.allCases)
    func `a HEAD's response is about what was stored since it was sent, too, RFC 9111 §4.3.5`(kind: CacheStage.Kind)
        async throws
    {
        let stage = try await CacheStage(kind: kind)
        let fields = try CacheStage.fields([fresh, "ETag: \"a\"", "X-New: 1"])
        stage.exchange.upstream.respond(
            with: HttpResponse(.ok, fields: fields, content: .text("x")), after: .seconds(5))
        let head = await stage.exchange.start(.make(.head, "/", fields: HttpFields()))
        while stage.asked < 1 { await Task.yield() }
        try stage.respond([fresh, "ETag: \"a\""])
        #expect(try await !stage.send().isHit)
        try await stage.holds(nil)
        await stage.advance(5)
        _ = try await head.response()
        for _ in 0..<1000 {
            if try await stage.send()["X-New"] == "1" { break }
            stage.settle()
        }
        #expect(try await stage.send()["X-New"] == "1" && stage.asked == 2)
    }

    // MARK: Stale responses

    @Test func `stale-while-revalidate answers at once and validates behind it, RFC 5861 §3`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-while-revalidate=30", "ETag: \"a\""], "old")
        _ = try await stage.send()
        await stage.advance(70)
        try stage.respond([fresh], "new")
        let second = try await stage.send()
        #expect(second.text == "old" && second.cacheStatus == "httpware; hit; ttl=-10")
        while stage.asked < 2 { await Task.yield() }
        #expect(stage.last[.ifNoneMatch] == "\"a\"")
        while try await stage.send().text != "new" { await Task.yield() }
        #expect(stage.asked == 2)
        #expect(stage.exchange.outcomes.allSatisfy { $0.end == .completed })
    }

    @Test func `while one validates in the background no other does`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-while-revalidate=30"], "old")
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.neverRespond()
        for _ in 0..<5 { #expect(try await stage.send().text == "old") }
        while stage.asked < 2 { await Task.yield() }
        #expect(try await stage.send().text == "old")
        #expect(stage.asked == 2)
    }

    @Test func `the ware's own window counts where the response has none`() async throws {
        let stage = try await stale([]) { $0.policy.staleWhileRevalidate = 30 }
        #expect(try await stage.send().text == "old")
    }

    @Test(arguments: [500, 502, 503, 504])
    func `an error of the origin server lets a stale response do, where it says so, RFC 5861 §4`(status: Int)
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-if-error=30"], "old")
        _ = try await stage.send()
        await stage.advance(90)
        try stage.respond(status, [], always: true)
        let second = try await stage.send()
        #expect(second.text == "old")
        #expect(second.cacheStatus == "httpware; fwd=stale; fwd-status=\(status); ttl=-30")
        await stage.advance(1)
        #expect(try await stage.send().status == status)
    }

    @Test func `an origin server that is gone lets a stale response do, where it says so`() async throws {
        let stage = try await stale([]) { $0.policy.staleIfError = 3600 }
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().text == "old")
        await stage.advance(3600)
        #expect(try await stage.send().status == 502)
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"])
    func `no error excuses what the response forbids, RFC 9111 §4.2.4`(directive: String) async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-if-error=100, \(directive)", "ETag: \"a\""])
        _ = try await stage.send()
        await stage.advance(70)
        try stage.respond(503, [])
        #expect(try await stage.send().status == 503)
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 502)
    }

    @Test(arguments: [503, nil])
    func `after a failure, requests get the stale response and do not wait for the next failure`(status: Int?)
        async throws
    {
        let stage = try await stale([]) { $0.policy.staleIfError = 3600 }
        if let status { try stage.respond(status, [], always: true) } else { stage.exchange.upstream.refuse() }
        let seen = try await stage.send()
        #expect(seen.text == "old")
        let asked = stage.asked
        for _ in 0..<5 {
            await stage.advance(0)
            let again = try await stage.send()
            #expect(again.text == "old" && again.cacheStatus.hasPrefix("httpware; hit; ttl=-"))
        }
        #expect(stage.asked == asked)
        guard status != nil else { return }
        await stage.advance(5)
        try stage.respond([fresh], "new", always: true)
        #expect(try await stage.send().text == "new")
        #expect(try await stage.send().text == "new")
    }

    @Test(arguments: ["Cache-Control: no-cache", "Cache-Control: max-age=0", "Cache-Control: min-fresh=1"])
    func `a client that asks for a fresh response waits for the origin server in spite of a failure`(line: String)
        async throws
    {
        let stage = try await stale([]) { $0.policy.staleIfError = 3600 }
        try stage.respond(503, [])
        _ = try await stage.send()
        try stage.respond([fresh], "new")
        #expect(try await stage.send(.get, "/", [line]).text == "new")
        #expect(try await stage.send().text == "new")
    }

    @Test func `a failure is remembered for its own target, and within the time that allows a stale response`()
        async throws
    {
        let stage = try await stale([]) { $0.policy.staleIfError = 12 }
        try stage.respond(503, [], always: true)
        #expect(try await stage.send().text == "old")
        #expect(try await stage.send().text == "old" && stage.asked == 2)
        #expect(try await stage.send(.get, "/other").status == 503 && stage.asked == 3)
        await stage.advance(4)
        #expect(try await stage.send().status == 503 && stage.asked == 4)
    }

    @Test func `a validation in the background that fails is not repeated by every request`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-while-revalidate=300"], "old")
        _ = try await stage.send()
        await stage.advance(70)
        try stage.respond(503, [], always: true)
        #expect(try await stage.send().text == "old")
        while stage.asked < 2 { await Task.yield() }
        for _ in 0..<100 { await Task.yield() }
        for _ in 0..<5 { #expect(try await stage.send().text == "old") }
        for _ in 0..<100 { await Task.yield() }
        #expect(stage.asked == 2)
        await stage.advance(5)
        #expect(try await stage.send().text == "old")
        while stage.asked < 3 { await Task.yield() }
    }

    @Test func `an error does not take away what is stored`() async throws {
        let stage = try await stale(["ETag: \"a\""])
        try stage.respond(503, [])
        #expect(try await stage.send().status == 503)
        try stage.respond(304, [fresh], "")
        #expect(try await stage.send().text == "old")
    }
}
