import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct HttpCacheRangeTests {
    private let fresh = "Cache-Control: max-age=60"

    @Test(arguments: [
        ("bytes=0-3", "0123", "bytes 0-3/10"), ("bytes=4-", "456789", "bytes 4-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=9-99", "9", "bytes 9-9/10"),
    ])
    func `a part is answered from what is stored whole, RFC 9110 §14.2`(range: String, text: String, field: String)
        async throws
    {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\""], "0123456789")
        _ = try await stage.send()
        let part = try await stage.send(.get, "/", ["Range: \(range)"])
        #expect(part.status == 206 && part.text == text && part[.contentRange] == field && part.isHit)
        #expect(stage.asked == 1)
    }

    @Test func `a part behind the end is 416, RFC 9110 §15.5.17`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh], "0123456789")
        _ = try await stage.send()
        let part = try await stage.send(.get, "/", ["Range: bytes=10-"])
        #expect(part.status == 416 && part[.contentRange] == "bytes */10" && part.text == "")
    }

    @Test(arguments: ["items=0-1", "bytes=x", "bytes=3-1"])
    func `an invalid range is answered whole, RFC 9110 §14.2`(range: String) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh], "0123456789")
        _ = try await stage.send()
        #expect(try await stage.send(.get, "/", ["Range: \(range)"]).status == 200)
    }

    @Test func `several parts come as multipart, RFC 9110 §14.6`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "Content-Type: text/plain"], String(repeating: "0123456789", count: 20))
        _ = try await stage.send()
        let parts = try await stage.send(.get, "/", ["Range: bytes=0-1,198-199"])
        #expect(parts.status == 206)
        let type = try #require(parts[.contentType])
        let boundary = try #require(type.split(separator: "=").last)
        #expect(type.hasPrefix("multipart/byteranges; boundary="))
        #expect(
            parts.text
                == "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/200\r\n\r\n01"
                + "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 198-199/200\r\n\r\n89"
                + "\r\n--\(boundary)--\r\n")
    }

    @Test(arguments: [("\"a\"", 206), ("\"b\"", 200), ("W/\"a\"", 200), ("Wed, 31 Dec 2025 00:00:00 GMT", 206)])
    func `If-Range asks whether the part fits, RFC 9110 §13.1.5`(value: String, status: Int) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\"", "Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], "0123456789")
        _ = try await stage.send()
        let part = try await stage.send(.get, "/", ["Range: bytes=0-1", "If-Range: \(value)"])
        #expect(part.status == status)
    }

    // MARK: Parts that are stored

    private func part(_ stage: CacheStage, _ range: ClosedRange<Int>, tag: String = "a") throws {
        let text = "0123456789"
        let start = text.index(text.startIndex, offsetBy: range.lowerBound)
        let end = text.index(text.startIndex, offsetBy: range.upperBound)
        try stage.respond(
            206, [fresh, "ETag: \"\(tag)\"", "Content-Range: bytes \(range.lowerBound)-\(range.upperBound)/10"],
            String(text[start...end]))
    }

    @Test(arguments: CacheStage.Kind.allCases)
    func `a part is stored, and answers requests for what it has, RFC 9111 §3.3`(kind: CacheStage.Kind) async throws {
        let stage = try await CacheStage(kind: kind)
        try part(stage, 2...5)
        #expect(try await stage.send(.get, "/", ["Range: bytes=2-5"]).status == 206)
        try await stage.holds(2..<6)
        let inner = try await stage.send(.get, "/", ["Range: bytes=3-4"])
        #expect(inner.text == "34" && inner[.contentRange] == "bytes 3-4/10" && inner.isHit)
        try part(stage, 0...3)
        #expect(try await !stage.send(.get, "/", ["Range: bytes=0-3"]).isHit)
        #expect(stage.asked == 2)
    }

    @Test(arguments: CacheStage.Kind.allCases)
    func `a part is never taken for the whole, RFC 9111 §3.3`(kind: CacheStage.Kind) async throws {
        let stage = try await CacheStage(kind: kind)
        try part(stage, 2...5)
        _ = try await stage.send(.get, "/", ["Range: bytes=2-5"])
        try await stage.holds(2..<6)
        try stage.respond([fresh], "0123456789")
        let whole = try await stage.send()
        #expect(whole.status == 200 && whole.text == "0123456789" && stage.asked == 2)
    }

    @Test(arguments: CacheStage.Kind.allCases)
    func `parts of the same bytes are put together, until they are whole, RFC 9111 §3.4`(kind: CacheStage.Kind)
        async throws
    {
        let stage = try await CacheStage(kind: kind)
        for (range, stored) in [(0...3, 0..<4), (4...6, 0..<7), (6...9, nil)] {
            try part(stage, range)
            _ = try await stage.send(.get, "/", ["Range: bytes=\(range.lowerBound)-\(range.upperBound)"])
            try await stage.holds(stored)
        }
        let whole = try await stage.send()
        #expect(whole.isHit && whole.status == 200 && whole.text == "0123456789" && whole[.contentRange] == nil)
        #expect(stage.asked == 3)
    }

    @Test func `a part that is all there is, is the whole`() async throws {
        let stage = try CacheStage()
        try part(stage, 0...9)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-9"])
        let whole = try await stage.send()
        #expect(whole.isHit && whole.status == 200 && whole.text == "0123456789" && whole[.contentRange] == nil)
    }

    @Test(arguments: CacheStage.Kind.allCases)
    func `parts of other bytes are not, RFC 9111 §3.4`(kind: CacheStage.Kind) async throws {
        let stage = try await CacheStage(kind: kind)
        try part(stage, 0...3)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        try await stage.holds(0..<4)
        try part(stage, 4...9, tag: "b")
        _ = try await stage.send(.get, "/", ["Range: bytes=4-9"])
        try await stage.holds(4..<10)
        #expect(try await stage.send(.get, "/", ["Cache-Control: only-if-cached"]).status == 504)
    }

    /// Of the part 4-9 of ten bytes, which was asked for by its length.
    @Test(
        arguments: [
            ("bytes=-6", "456789", "bytes 4-9/10"), ("bytes=4-9", "456789", "bytes 4-9/10"),
            ("bytes=6-8", "678", "bytes 6-8/10"), ("bytes=6-", "6789", "bytes 6-9/10"),
            ("bytes=-1", "9", "bytes 9-9/10"), ("bytes=8-99", "89", "bytes 8-9/10"),
        ], CacheStage.Kind.ownOnes)
    func `a part answers the same, contained, open and suffix ranges, RFC 9111 §3.3`(
        asked: (range: String, text: String, field: String), kind: CacheStage.Kind
    ) async throws {
        let stage = try await CacheStage(kind: kind)
        try part(stage, 4...9)
        _ = try await stage.send(.get, "/", ["Range: bytes=-6"])
        try await stage.holds(4..<10)
        let seen = try await stage.send(.get, "/", ["Range: \(asked.range)"])
        #expect(seen.isHit && seen.status == 206 && seen.text == asked.text && seen[.contentRange] == asked.field)
        #expect(stage.asked == 1)
    }

    @Test(arguments: ["bytes=3-5", "bytes=-7", "bytes=0-", "bytes=4-5,200-300,8-9,0-1"])
    func `a part does not answer ranges that it does not hold, RFC 9111 §3.3`(range: String) async throws {
        let stage = try CacheStage()
        try part(stage, 4...9)
        _ = try await stage.send(.get, "/", ["Range: bytes=4-9"])
        _ = try await stage.send(.get, "/", ["Range: \(range)"])
        #expect(stage.asked == 2 && stage.last[.range] == range)
    }

    @Test func `of an unknown length, a part answers ranges that are counted from the beginning, RFC 9110 §14.4`()
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "Content-Range: bytes 4-9/*"], "456789")
        _ = try await stage.send(.get, "/", ["Range: bytes=4-9"])
        let inner = try await stage.send(.get, "/", ["Range: bytes=5-6"])
        #expect(inner.isHit && inner.text == "56" && inner[.contentRange] == "bytes 5-6/*")
        for range in ["bytes=5-", "bytes=-1", "bytes=8-10"] {
            #expect(try await !stage.send(.get, "/", ["Range: \(range)"]).isHit)
        }
    }

    @Test func `a stored part is 304 for a client that has the representation, RFC 9110 §13.2.2`() async throws {
        let stage = try CacheStage()
        try part(stage, 4...9)
        for lines in [["Range: bytes=4-9"], ["Range: bytes=4-5", "If-None-Match: \"a\""]] {
            let seen = try await stage.send(.get, "/", lines)
            #expect(seen.status == (lines.count == 1 ? 206 : 304))
        }
        #expect(stage.asked == 1)
    }

    /// Its `Content-Range` claims one byte more than there is.
    @Test(arguments: [
        ("bytes=-5", "45678", "bytes 4-8/9"), ("bytes=6-8", "678", "bytes 6-8/9"), ("bytes=6-", "678", "bytes 6-8/9"),
        ("bytes=-1", "8", "bytes 8-8/9"),
    ])
    func `a part that ends before its Content-Range tells where the end is, RFC 9110 §15.3.7`(
        range: String, text: String, field: String
    ) async throws {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: bytes 4-9/10"], "45678")
        let first = try await stage.send(.get, "/", ["Range: bytes=-5"])
        #expect(first.text == "45678" && first[.contentRange] == "bytes 4-9/10")
        let seen = try await stage.send(.get, "/", ["Range: \(range)"])
        #expect(seen.isHit && seen.status == 206 && seen.text == text && seen[.contentRange] == field)
    }

    @Test func `a part from 0 that is shorter than its Content-Range is not stored as the whole, RFC 9111 §3.3`()
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: bytes 0-9/10"], "01234")
        _ = try await stage.send(.get, "/", ["Range: bytes=0-"])
        #expect(stage.store.census.responses == 0)
    }

    // MARK: What is completed

    /// The stored part, the question for the rest, and the rest.
    @Test(
        arguments: [(0...5, "bytes=6-", 6...9), (4...9, "bytes=0-3", 0...3)], CacheStage.Kind.allCases)
    func `a request for the whole asks for the rest, and both are stored as one, RFC 9111 §3.4`(
        trial: (stored: ClosedRange<Int>, question: String, rest: ClosedRange<Int>), kind: CacheStage.Kind
    ) async throws {
        let stage = try await CacheStage(kind: kind)
        try part(stage, trial.stored)
        _ = try await stage.send(.get, "/", ["Range: bytes=\(trial.stored.lowerBound)-\(trial.stored.upperBound)"])
        try await stage.holds(trial.stored.lowerBound..<(trial.stored.upperBound + 1))
        try part(stage, trial.rest)
        let whole = try await stage.send()
        #expect(stage.last[.range] == trial.question && stage.last[.ifRange] == "\"a\"")
        #expect(whole.status == 200 && whole.text == "0123456789" && whole[.contentRange] == nil)
        #expect(whole[.contentLength] == "10" && whole.cacheStatus == "httpware; fwd=partial; stored")
        try await stage.holds(nil)
        let again = try await stage.send()
        #expect(again.isHit && again.status == 200 && again.text == "0123456789" && stage.asked == 2)
    }

    @Test func `the fields of the rest take the place of the stored ones, RFC 9111 §3.4`() async throws {
        let stage = try CacheStage()
        try stage.respond(
            206, [fresh, "ETag: \"a\"", "Content-Range: bytes 0-3/10", "X-A: 1", "X-B: 1", "Set-Cookie: a=b"], "0123")
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: bytes 4-9/10", "X-A: 2"], "456789")
        let whole = try await stage.send()
        #expect(whole["X-A"] == "2" && whole["X-B"] == "1" && whole["Set-Cookie"] == nil)
    }

    @Test func `fields that a later part lacks are kept from the earlier part, RFC 9111 §3.4`() async throws {
        let stage = try CacheStage()
        for (range, text, line) in [("0-3", "0123", "Content-Type: a/b"), ("4-9", "456789", "X-A: 1")] {
            try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: bytes \(range)/10", line], text)
            _ = try await stage.send(.get, "/", ["Range: bytes=\(range)"])
        }
        let whole = try await stage.send()
        #expect(whole.isHit && whole[.contentType] == "a/b" && whole["X-A"] == "1")
    }

    @Test func `requests for the whole that wait meanwhile get it too`() async throws {
        let stage = try CacheStage()
        try part(stage, 0...5)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-5"])
        stage.exchange.upstream.respond(
            with: HttpResponse(
                .partialContent,
                fields: try CacheStage.fields([fresh, "ETag: \"a\"", "Content-Range: bytes 6-9/10"]),
                content: .text("6789")), after: .seconds(1))
        let first = try await stage.start()
        let second = try await stage.start()
        while stage.asked < 2 { await Task.yield() }
        await stage.advance(1)
        for pending in [first, second] { #expect(try await pending.response().content.text == "0123456789") }
        #expect(stage.asked == 2)
    }

    /// The validators of the part and of the rest. Where they are not strong, or not the same, nothing is put together.
    @Test(arguments: [
        ("ETag: \"a\"", "ETag: \"b\"", "\"a\""), ("ETag: W/\"a\"", "ETag: W/\"a\"", nil), ("X-A: 1", "X-A: 1", nil),
        ("ETag: \"a\"", "X-A: 1", "\"a\""),
        (
            "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", nil
        ),
    ])
    func `without a strong validator that matches the whole is requested, RFC 9111 §3.4`(
        own: String, other: String, condition: String?
    ) async throws {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, own, "Content-Range: bytes 0-3/10"], "0123")
        _ = try await stage.send(.get, "/p%61ge", ["Range: bytes=0-3"])
        try stage.respond(206, [fresh, other, "Content-Range: bytes 4-9/10"], "efghij")
        try stage.respond([fresh, other, "Set-Cookie: a=b"], "abcdefghij")
        let whole = try await stage.send(.get, "/p%61ge")
        let asked = stage.exchange.upstream.requests
        #expect(asked.map { $0.receivedTarget } == ["/page", "/page", "/page"])
        #expect(asked.map { $0.fields[.range] } == ["bytes=0-3", "bytes=4-", nil])
        #expect(asked.map { $0.fields[.ifRange] } == [nil, condition, nil])
        #expect(whole.status == 200 && whole.text == "abcdefghij" && whole["Set-Cookie"] == "a=b")
        let again = try await stage.send(.get, "/page")
        #expect(again.isHit && again.text == "abcdefghij" && stage.asked == 3)
    }

    @Test func `a date that is strong names the bytes, too, RFC 9110 §8.8.2.2`() async throws {
        let stage = try CacheStage()
        let modified = "Wed, 31 Dec 2025 00:00:00 GMT"
        let date = "Date: Thu, 01 Jan 2026 00:00:00 GMT"
        for (range, text) in [("0-3", "0123"), ("4-9", "456789")] {
            try stage.respond(
                206, [fresh, date, "Last-Modified: \(modified)", "Content-Range: bytes \(range)/10"], text)
        }
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        #expect(try await stage.send().text == "0123456789")
        #expect(stage.last[.ifRange] == modified)
    }

    @Test func `an answer with the whole is taken as it is, RFC 9110 §13.1.5`() async throws {
        let stage = try CacheStage()
        try part(stage, 0...4)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-4"])
        try stage.respond([fresh, "ETag: \"b\""], "new")
        #expect(try await stage.send().text == "new")
        #expect(try await stage.send().isHit)
        #expect(stage.asked == 2)
    }

    @Test(arguments: [(416, ["Content-Range: bytes */3"]), (206, ["Content-Range: bytes 5-9/10", "ETag: \"a\""])])
    func `an answer that does not fit is let go, and the whole is requested`(status: Int, lines: [String]) async throws
    {
        let stage = try CacheStage()
        try part(stage, 0...3)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        try stage.respond(status, lines, "56789")
        try stage.respond([fresh], "new")
        #expect(try await stage.send().text == "new")
        #expect(stage.asked == 3)
    }

    @Test(arguments: [
        ["Range: bytes=0-9"], ["If-None-Match: \"x\""], ["Cache-Control: no-cache"], ["Cache-Control: no-store"],
    ])
    func `only a plain request for the whole asks for the rest`(lines: [String]) async throws {
        let stage = try CacheStage()
        try part(stage, 0...3)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        _ = try await stage.send(.get, "/", lines)
        #expect(stage.last[.range] == (lines[0].hasPrefix("Range") ? "bytes=0-9" : nil))
        #expect(!stage.last.contains(.ifRange))
    }

    @Test func `a representation larger than maxObject is asked for whole`() async throws {
        let stage = try CacheStage { $0.maxObject = .bytes(9) }
        try part(stage, 0...3)
        _ = try await stage.send(.get, "/", ["Range: bytes=0-3"])
        try stage.respond([fresh], "0123456789")
        #expect(try await stage.send().text == "0123456789")
        #expect(stage.last[.range] == nil)
    }

    @Test(arguments: ["bytes 2-5/x", "items 2-5/10", "bytes 5-2/10", "bytes 2-6/10"])
    func `a part that lies about itself is not stored`(field: String) async throws {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: \(field)"], "2345", always: true)
        for _ in 0..<2 { _ = try await stage.send(.get, "/", ["Range: bytes=2-5"]) }
        #expect(stage.asked == 2 && stage.store.census.responses == 0)
    }

    // MARK: Reports

    @Test(arguments: CacheStage.Kind.ownOnes)
    func `a request for more than the stored part is forwarded as partial, RFC 9211 §2.2`(kind: CacheStage.Kind)
        async throws
    {
        let stage = try await CacheStage(kind: kind)
        try stage.respond(206, [fresh, "Content-Range: bytes 2-4/10", "ETag: \"a\""], "234")
        _ = try await stage.send(.get, "/", ["Range: bytes=2-4"])
        try await stage.holds(2..<5)
        try stage.respond(206, ["Cache-Control: no-store", "Content-Range: bytes 6-7/10", "ETag: \"a\""], "67")
        #expect(try await stage.send(.get, "/", ["Range: bytes=6-7"]).cacheStatus == "httpware; fwd=partial")
        try stage.respond(["Cache-Control: no-store"], "0123456789")
        #expect(try await stage.send().cacheStatus == "httpware; fwd=partial")
    }

    @Test func `a part for other request fields is a miss by Vary, RFC 9211 §2.2`() async throws {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "Content-Range: bytes 2-4/10", "ETag: \"a\"", "Vary: X-A"], "234")
        _ = try await stage.send(.get, "/", ["Range: bytes=2-4", "X-A: 1"])
        try stage.respond(["Cache-Control: no-store"], "0123456789")
        #expect(try await stage.send(.get, "/", ["X-A: 2"]).cacheStatus == "httpware; fwd=vary-miss")
    }
}
