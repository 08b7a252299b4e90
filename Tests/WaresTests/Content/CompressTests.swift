import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite(.timeLimit(.minutes(2))) struct CompressTests {
    private static let text = String(repeating: "{\"id\": 1, \"name\": \"something\"},\n", count: 100)

    private func page(
        _ fields: HttpFields = [:], status: HttpStatus = .ok, type: String? = "application/json", text: String = text
    ) throws -> HttpResponse {
        var response = HttpResponse(status, fields: fields, content: .text(text))
        if let type { try response.fields.set(.contentType, to: type) }
        return response
    }

    private func get(
        _ response: HttpResponse, _ ware: Compress = Compress(), accept: String? = "gzip", method: HttpMethod = .get,
        _ fields: HttpFields = [:], before: [any Ware] = []
    ) async throws -> HttpResponse {
        let exchange = try TestExchange(before + [ware])
        exchange.upstream.always(respondWith: response)
        var fields = fields
        if let accept { try fields.append(.acceptEncoding, accept) }
        return try await exchange.send(.make(method, "/", fields: fields))
    }

    private func isPlain(_ response: HttpResponse) -> Bool {
        !response.fields.contains(.contentEncoding) && response.content.text == CompressTests.text
    }

    // MARK: Negotiation

    @Test(
        arguments: [
            ("zstd, br, gzip", "zstd"), ("br, gzip", "br"), ("gzip", "gzip"), ("gzip;q=1, br;q=0.9", "gzip"),
            ("*", "zstd"),
            ("identity;q=0, *;q=0.1", "zstd"), ("deflate", nil), ("gzip;q=0", nil), ("", nil), (nil, nil),
            ("identity, gzip;q=0.5", nil),
        ] as [(String?, String?)])
    func `the coding is what the client wants most, of several the first of encodings - RFC 9110 §12.5.3`(
        accept: String?, coding: String?
    ) async throws {
        let response = try await get(try page(), accept: accept)
        #expect(response.fields[.contentEncoding] == coding)
        #expect(response.fields[.vary] == "Accept-Encoding", "for other clients it is another representation")
        #expect(isPlain(response) == (coding == nil))
        if coding != nil { #expect((1..<500).contains(response.content.bytes?.count ?? 0)) }
    }

    @Test func `encodings says which there are, and the order`() async throws {
        let ware = try TestExchange.make(Compress.self, ["encodings": ["gzip", "zstd"]])
        #expect(try await get(try page(), ware, accept: "zstd, gzip, br").fields[.contentEncoding] == "gzip")
        #expect(isPlain(try await get(try page(), ware, accept: "br")))
    }

    /// Takes the field away, as some do before a cache.
    private struct Hide: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            request.fields.remove(.acceptEncoding as FieldName)
            return .pass
        }
    }

    @Test func `the field counts as it was received`() async throws {
        #expect(try await get(try page(), before: [Hide()]).fields[.contentEncoding] == "gzip")
    }

    // MARK: Which responses

    @Test(arguments: [
        ("text/html; charset=utf-8", true), ("TEXT/CSS", true), ("application/problem+json", true),
        ("image/svg+xml", true),
        ("image/png", false), ("application/octet-stream", false), ("text/event-stream", false), (nil, false),
    ])
    func `only types that compress well are meant, and never events unless they are listed`(
        type: String?, isCompressed: Bool
    )
        async throws
    {
        let response = try await get(try page(type: type))
        #expect(response.fields.contains(.contentEncoding) == isCompressed)
        #expect(response.fields.contains(.vary) == isCompressed)
    }

    @Test func `types says which`() async throws {
        let ware = try TestExchange.make(Compress.self, ["types": ["text/event-stream", "image/*"]])
        for type in ["text/event-stream", "image/bmp"] {
            #expect(try await get(try page(type: type), ware).fields.contains(.contentEncoding))
        }
        #expect(isPlain(try await get(try page(type: "text/html"), ware)))
        let texts = try TestExchange.make(Compress.self, ["types": ["text/*"]])
        #expect(isPlain(try await get(try page(type: "text/event-stream"), texts)))
    }

    @Test(arguments: [(1023, false), (1024, true)])
    func `content shorter than minSize goes as it is`(count: Int, isCompressed: Bool) async throws {
        let short = try page(text: String(repeating: "a", count: count))
        #expect(try await get(short).fields.contains(.contentEncoding) == isCompressed)
        let all = try TestExchange.make(Compress.self, ["minSize": "1B"])
        #expect(try await get(try page(text: "a"), all).fields.contains(.contentEncoding))
    }

    @Test func `no content is compressed to something`() async throws {
        let all = try TestExchange.make(Compress.self, ["minSize": "0B"])
        let response = try await get(try page(text: ""), all)
        #expect(!response.fields.contains(.contentEncoding))
        #expect(response.content.isEmpty)
    }

    @Test func `content that is compressed already is left alone`() async throws {
        let response = try await get(try page(["Content-Encoding": "br", "ETag": "\"1\""]))
        #expect(response.fields[.contentEncoding] == "br" && response.fields[.etag] == "\"1\"")
        #expect(response.content.text == CompressTests.text)
    }

    @Test(
        arguments: [
            ["Cache-Control": "no-transform"], ["Cache-Control": "max-age=60, No-Transform"],
            ["Cache-Control": "private,no-transform"],
        ] as [HttpFields])
    func `no-transform forbids it, in the response and in the request - RFC 9111 §5.2.1.6 and §5.2.2.6`(
        fields: HttpFields
    )
        async throws
    {
        #expect(isPlain(try await get(try page(fields))))
        #expect(isPlain(try await get(try page(), Compress(), fields)))
        #expect(try await get(try page(["Cache-Control": "no-transforms"])).fields.contains(.contentEncoding))
    }

    @Test func `a part keeps its bytes and has the Vary of the whole - RFC 9110 §15.3.7`() async throws {
        let part = try page(["Content-Range": "bytes 0-3199/9999", "ETag": "\"1\""], status: .partialContent)
        let response = try await get(part)
        #expect(!response.fields.contains(.contentEncoding) && response.fields[.vary] == "Accept-Encoding")
        #expect(response.fields[.etag] == "\"1\"")
        #expect(response.content.length == 3200)
    }

    @Test(
        arguments: [
            (["Content-Range": "bytes 0-9/*"], true),
            (["Content-Range": "bytes 0-9/1023"], false),
            (["Content-Range": "bytes 0-9/1024"], true),
            (["Content-Type": "image/png", "Content-Range": "bytes 0-9/9999"], false),
            (["Content-Type": "multipart/byteranges; boundary=b"], true),
            (["Content-Range": "bytes 0-9/9999", "Cache-Control": "no-transform"], false),
            (["Content-Range": "bytes 0-9/9999", "Content-Encoding": "br"], false),
        ] as [(HttpFields, Bool)])
    func `a part has Vary exactly if the whole has - RFC 9110 §15.3.7`(fields: HttpFields, hasVary: Bool) async throws {
        let type = fields[.contentType] ?? "application/json"
        let response = try await get(try page(fields, status: .partialContent, type: type))
        #expect(response.fields.contains(.vary) == hasVary)
    }

    @Test func `a part varies by the site that asks, as the whole does - RFC 9110 §15.3.7`() async throws {
        let part = try page(["Content-Range": "bytes 0-3199/9999"], status: .partialContent)
        let response = try await get(part, Compress(skipCrossSite: true))
        #expect(response.fields.listMembers(of: .vary) == ["Accept-Encoding", "Sec-Fetch-Site"])
    }

    @Test func `errors are compressed as any other content`() async throws {
        #expect(try await get(try page(status: .notFound)).fields[.contentEncoding] == "gzip")
    }

    // MARK: Fields

    @Test func `fields about the former bytes go, and a strong validator becomes a weak one - RFC 9110 §8.8.1`()
        async throws
    {
        let response = try await get(
            try page([
                "ETag": "\"abc\"", "Accept-Ranges": "bytes", "Content-MD5": "x", "Digest": "sha-256=x",
                "Content-Digest": "sha-256=:x:", "Repr-Digest": "sha-256=:x:",
                "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
                "Vary": "Origin", "Cache-Control": "max-age=60",
            ]))
        #expect(response.fields[.etag] == "W/\"abc\"")
        #expect(response.fields[.vary] == "Origin, Accept-Encoding")
        for name in [FieldName.acceptRanges, "Content-MD5", "Digest", "Content-Digest", "Repr-Digest"] {
            #expect(!response.fields.contains(name), "\(name)")
        }
        #expect(!response.fields.contains(.contentLength), "it is not known before")
        #expect(response.fields[.lastModified] != nil && response.fields[.cacheControl] == "max-age=60")
    }

    @Test func `a weak validator stays, and Vary names the field once`() async throws {
        let response = try await get(try page(["ETag": "W/\"abc\"", "Vary": "accept-encoding"]))
        #expect(response.fields[.etag] == "W/\"abc\"" && response.fields[.vary] == "accept-encoding")
        #expect(try await get(try page(["Vary": "*"])).fields[.vary] == "*")
    }

    @Test func `a 304 says what the 200 would have said - RFC 9110 §15.4.5`() async throws {
        let validation = HttpResponse(.notModified, fields: ["ETag": "\"abc\""])
        let response = try await get(validation)
        #expect(response.fields[.etag] == "W/\"abc\"" && response.fields[.vary] == "Accept-Encoding")
        #expect(!response.fields.contains(.contentEncoding) && !response.fields.contains(.contentLength))
        let plain = try await get(validation, accept: nil)
        #expect(plain.fields[.etag] == "\"abc\"" && plain.fields[.vary] == "Accept-Encoding")
    }

    @Test func `HEAD is answered with the fields of GET - RFC 9110 §9.3.2`() async throws {
        let fields: HttpFields = ["ETag": "\"abc\"", "Accept-Ranges": "bytes"]
        let head = try await get(try page(fields), method: .head)
        #expect(head.fields[.contentEncoding] == "gzip" && head.fields[.etag] == "W/\"abc\"")
        #expect(head.fields[.vary] == "Accept-Encoding" && !head.fields.contains(.acceptRanges))
        #expect(!head.fields.contains(.contentLength), "the length of the compressed content is not known")
        let short = try await get(try page(text: "short"), method: .head)
        #expect(!short.fields.contains(.contentEncoding) && short.fields[.contentLength] == "5")
    }

    // MARK: Resources

    @Test func `no more than max contents at once are compressed, and encoders are used again`() async throws {
        let ware = Compress(max: 2)
        let pool = try #require(ware.counter as? EncoderPool)
        let first = try #require(pool.takeEncoder(.gzip))
        let second = try #require(pool.takeEncoder(.zstd))
        #expect(isPlain(try await get(try page(), ware)), "not worth to wait for")
        pool.giveBack(first)
        pool.giveBack(second)
        #expect(pool.takeEncoder(.gzip).map { $0.encoder === first.encoder } == true)
        #expect(try await get(try page(), ware, accept: "zstd").fields[.contentEncoding] == "zstd")
        #expect(ware.counter.numbers.map(\.value) == [4, 1, 1])
    }

    @Test(arguments: ["gzip", "br", "zstd"])
    func `a higher level makes less of it`(coding: String) async throws {
        // Words in an order that does not come again soon.
        var number = 1
        let words = (0..<20_000).map { _ in
            number = number * 7919 % 1_000_003
            return String(number % 500 * 7919, radix: 36)
        }
        let text = words.joined(separator: " ")
        var sizes: [Int] = []
        for level in ["1", "9"] {
            let ware = try TestExchange.make(Compress.self, ["level": .init(.scalar(level, isQuoted: false))])
            let response = try await get(try page(text: text), ware, accept: coding)
            sizes.append(response.content.bytes?.count ?? 0)
        }
        #expect(sizes[1] > 0 && sizes[1] < sizes[0], "\(sizes)")
    }

    // MARK: Options

    @Test func `the defaults are those of the catalogue`() throws {
        let ware = try TestExchange.make(Compress.self)
        #expect(ware.encodings == [.zstd, .br, .gzip] && ware.minSize == .kibibytes(1) && ware.level == 4)
        #expect(ware.types == Compress.usualTypes && ware.types.count == 12)
    }

    @Test(
        arguments: [
            ["encodings": ["deflate"]], ["encodings": []], ["minSize": "2GiB"], ["types": ["html"]], ["level": 0],
            ["level": 10],
            ["max": 0], ["quality": 4],
        ] as [ConfigNode])
    func `invalid options of compress are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Compress.self, options) }
    }

    @Test(arguments: [("cross-site", false), ("same-origin", true), (nil, true)] as [(String?, Bool)])
    func `skipCrossSite leaves responses to pages of other sites as they are`(site: String?, isCoded: Bool) async throws
    {
        let ware = try TestExchange.make(Compress.self, ["skipCrossSite": true])
        var fields = HttpFields()
        if let site { try fields.append("Sec-Fetch-Site", site) }
        let response = try await get(try page(), ware, fields)
        #expect(isPlain(response) == !isCoded)
        #expect(response.fields.values(of: .vary) == ["Accept-Encoding", "Sec-Fetch-Site"])
        #expect(
            try await get(try page(), Compress(), fields).fields[.contentEncoding] == "gzip",
            "by default nothing is skipped")
    }
}
