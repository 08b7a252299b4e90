import Testing

@testable import HttpWare

@Suite struct ResponseScrubTests {
    private let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))

    private func scrubbed(
        _ method: HttpMethod, _ fields: HttpFields, extent: HttpContent.Extent = .none
    ) throws -> (response: HttpResponse, filters: Int) {
        let swaps = TokenSwaps()
        let token = Secret("secret-token")
        let search = try #require(TokenSearch(token))
        swaps.add(PlaceholderSwap(placeholder, by: token, in: .headers, search: search))
        swaps.use(placeholder)
        var response = HttpResponse(.ok, fields: fields)
        response.content = HttpContent(extent: extent)
        var filters = 0
        try ResponseScrub.apply(to: &response, swaps, method: method) { _ in filters += 1 }
        return (response, filters)
    }

    @Test(arguments: ["", "identity"])
    func `a response to HEAD keeps its length, because GET gets that many bytes`(coding: String) throws {
        var fields: HttpFields = ["Content-Length": "1000", "ETag": "\"a\"", "Accept-Ranges": "bytes"]
        if !coding.isEmpty { try fields.set(.contentEncoding, to: coding) }
        let response = try scrubbed(.head, fields).response
        #expect(response.fields[.contentLength] == "1000")
        #expect(response.fields[.etag] == "W/\"a\"")
        #expect(!response.fields.contains(.acceptRanges))
    }

    @Test(arguments: ["gzip", "br", "identity, zstd"])
    func `the length of a coded response is removed, because GET gets it decoded`(coding: String) throws {
        var fields: HttpFields = ["Content-Length": "1000"]
        try fields.set(.contentEncoding, to: coding)
        let response = try scrubbed(.head, fields).response
        #expect(!response.fields.contains(.contentLength))
        #expect(!response.fields.contains(.contentEncoding))
    }

    @Test func `a response to GET streams while it is searched, so its length is removed`() throws {
        let (response, filters) = try scrubbed(.get, ["Content-Length": "1000"], extent: .length(1000))
        #expect(!response.fields.contains(.contentLength))
        #expect(filters == 1)
    }

    @Test func `a coding that cannot be decoded is an error of the response`() throws {
        #expect(throws: GatewayError.self) { try scrubbed(.get, ["Content-Encoding": "snappy"], extent: .unknown) }
    }
}
