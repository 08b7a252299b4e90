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

    @Test(arguments: ["items=0-1", "bytes=x", "bytes=3-1", "bytes=0-5,3-8"])
    func `a range that is none, or overlaps, is answered whole, RFC 9110 §14.2`(range: String) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh], "0123456789")
        _ = try await stage.send()
        #expect(try await stage.send(.get, "/", ["Range: \(range)"]).status == 200)
    }

    @Test func `several parts come as multipart, RFC 9110 §14.6`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "Content-Type: text/plain"], "0123456789")
        _ = try await stage.send()
        let parts = try await stage.send(.get, "/", ["Range: bytes=0-1,8-9"])
        #expect(parts.status == 206)
        let type = try #require(parts[.contentType])
        let boundary = try #require(type.split(separator: "=").last)
        #expect(type.hasPrefix("multipart/byteranges; boundary="))
        #expect(
            parts.text
                == "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01"
                + "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89"
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

    @Test(arguments: ["bytes 2-5/x", "items 2-5/10", "bytes 5-2/10", "bytes 2-6/10"])
    func `a part that lies about itself is not stored`(field: String) async throws {
        let stage = try CacheStage()
        try stage.respond(206, [fresh, "ETag: \"a\"", "Content-Range: \(field)"], "2345", always: true)
        for _ in 0..<2 { _ = try await stage.send(.get, "/", ["Range: bytes=2-5"]) }
        #expect(stage.asked == 2 && stage.store.census.responses == 0)
    }
}
