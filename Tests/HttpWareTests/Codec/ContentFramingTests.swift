import Testing

@testable import HttpWare

/// RFC 9112 §6.3, RFC 9110 §8.6, §9.3.6, RFC 9113 §8.1.1: where a message's content ends.
@Suite struct ContentFramingTests {
    private func facts(length: Int? = nil, coding: String? = nil) -> HeadFacts {
        var facts = HeadFacts()
        facts.contentLength = length
        if var coding { coding.withUTF8 { try? facts.readTransferEncoding($0) } }
        return facts
    }

    // MARK: Messages that came

    @Test(arguments: [
        (Int?.none, String?.none, HttpMethod.post, ContentFraming.none), (0, nil, .post, .none),
        (5, nil, .get, .length(5)),
        (nil, "chunked", .get, .chunked), (0, nil, .connect, .none), (0, nil, .trace, .none),
    ])
    func `a request over HTTP 1_1 has the content that one field states`(
        length: Int?, coding: String?, method: HttpMethod, framing: ContentFraming
    ) throws {
        let facts = facts(length: length, coding: coding)
        #expect(try ContentFraming.ofRequest(facts, method: method, version: .http11) == framing)
    }

    @Test(arguments: [
        (Int?.none, String?("chunked"), HttpMethod.post, HttpVersion.http10, FramingFault.transferEncodingInHttp10),
        (5, "chunked", .post, .http11, .lengthAndTransferEncoding), (nil, "gzip", .post, .http11, .notChunkedAtEnd),
        (nil, "gzip, chunked", .post, .http11, .otherCoding), (5, nil, .connect, .http11, .contentOfConnect),
        (nil, "chunked", .trace, .http11, .contentOfTrace),
    ])
    func `a request with ambiguous framing is refused`(
        length: Int?, coding: String?, method: HttpMethod, version: HttpVersion, fault: FramingFault
    ) {
        let facts = facts(length: length, coding: coding)
        #expect(throws: fault) { try ContentFraming.ofRequest(facts, method: method, version: version) }
        // RFC 9112 §6.1: only a coding that is not implemented is answered with 501.
        #expect(fault.inRequest.status == (fault == .otherCoding ? .notImplemented : .badRequest))
    }

    @Test func `a request over HTTP 2 has content until its stream ends`() throws {
        #expect(try ContentFraming.ofRequest(facts(), method: .post, endsStream: true) == .none)
        #expect(try ContentFraming.ofRequest(facts(length: 0), method: .post, endsStream: true) == .none)
        #expect(try ContentFraming.ofRequest(facts(length: 0), method: .post, endsStream: false) == .length(0))
        #expect(try ContentFraming.ofRequest(facts(length: 5), method: .get, endsStream: false) == .length(5))
        #expect(try ContentFraming.ofRequest(facts(), method: .get, endsStream: false) == .chunked)
        // The bytes behind it are for the tunnel. RFC 9113 §8.5.
        #expect(try ContentFraming.ofRequest(facts(), method: .connect, endsStream: false) == .none)
    }

    @Test func `a request over HTTP 2 that announces content and has none is refused`() {
        // RFC 9113 §8.1.1.
        for (length, method, ends, fault) in [
            (Int?(5), HttpMethod.post, true, FramingFault.contentMissing), (5, .connect, false, .contentMissing),
            (nil, .trace, false, .contentOfTrace),
        ] {
            #expect(throws: fault) {
                try ContentFraming.ofRequest(facts(length: length), method: method, endsStream: ends)
            }
        }
    }

    @Test(arguments: [
        (Int?.none, String?.none, HttpStatus.ok, HttpMethod.get, ContentFraming.untilClose), (0, nil, .ok, .get, .none),
        (5, nil, .ok, .get, .length(5)), (nil, "chunked", .ok, .get, .chunked), (5, nil, .ok, .head, .none),
        (5, nil, .notModified, .get, .none), (5, nil, .noContent, .get, .none), (5, nil, .ok, .connect, .none),
        (5, nil, .notFound, .connect, .length(5)), (nil, nil, .switchingProtocols, .get, .none),
        (nil, nil, .continue, .post, .none),
    ])
    func `a response over HTTP 1_1 is framed by method, status and fields, in that order`(
        length: Int?, coding: String?, status: HttpStatus, method: HttpMethod, framing: ContentFraming
    ) throws {
        let facts = facts(length: length, coding: coding)
        #expect(try ContentFraming.ofResponse(facts, status: status, to: method, version: .http11) == framing)
    }

    @Test(arguments: [
        (Int?.none, String?("chunked"), HttpStatus.ok, HttpVersion.http10, FramingFault.transferEncodingInHttp10),
        (5, "chunked", .ok, .http11, .lengthAndTransferEncoding), (nil, "gzip", .ok, .http11, .notChunkedAtEnd),
        (nil, "gzip, chunked", .ok, .http11, .otherCoding),
    ])
    func `a response with ambiguous framing is refused with 502`(
        length: Int?, coding: String?, status: HttpStatus, version: HttpVersion, fault: FramingFault
    ) {
        let facts = facts(length: length, coding: coding)
        #expect(throws: fault) {
            try ContentFraming.ofResponse(facts, status: status, to: .get, version: version)
        }
        #expect(fault.inResponse.status == .badGateway)
    }

    @Test func `a response over HTTP 2 has content until its stream ends`() throws {
        func framing(
            _ length: Int?, _ status: HttpStatus = .ok, to method: HttpMethod = .get, ends: Bool
        ) throws(FramingFault) -> ContentFraming {
            try ContentFraming.ofResponse(facts(length: length), status: status, to: method, endsStream: ends)
        }
        #expect(try framing(nil, ends: true) == .none)
        #expect(try framing(nil, ends: false) == .chunked)
        #expect(try framing(5, ends: false) == .length(5))
        #expect(try framing(5, to: .head, ends: true) == .none)
        #expect(try framing(5, .notModified, ends: true) == .none)
        // RFC 9113 §8.1.1.
        #expect(throws: FramingFault.contentMissing) { try framing(5, ends: true) }
    }

    // MARK: Messages that are sent

    @Test(arguments: [HttpMethod.get, .head, .delete, .options, .post, .put, .patch])
    func `a request without content says so if its method usually has some, or if the client said so`(
        method: HttpMethod
    ) {
        // RFC 9110 §8.6.
        let usuallyHasContent = [HttpMethod.post, .put, .patch].contains(method)
        let framing = ContentFraming.ofRequest(sending: .none, method: method, statesLength: false)
        #expect(framing == (usuallyHasContent ? .length(0) : .none))
        #expect(ContentFraming.ofRequest(sending: .none, method: method, statesLength: true) == .length(0))
    }

    @Test func `a request keeps its length unless a filter changes it`() {
        func framing(_ extent: HttpContent.Extent, keepsLength: Bool) -> ContentFraming {
            .ofRequest(sending: extent, method: .post, statesLength: true, keepsLength: keepsLength)
        }
        #expect(framing(.length(5), keepsLength: true) == .length(5))
        #expect(framing(.length(5), keepsLength: false) == .chunked)
        #expect(framing(.unknown, keepsLength: true) == .chunked)
        #expect(framing(.none, keepsLength: false) == .length(0))
    }

    private static let extents: [HttpContent.Extent] = [.none, .length(5), .unknown]

    @Test(arguments: [HttpStatus.continue, .earlyHints, .switchingProtocols, .noContent])
    func `a status that never has content goes out without framing fields`(status: HttpStatus) {
        // RFC 9110 §8.6; RFC 9112 §6.1.
        for extent in ContentFramingTests.extents {
            for method in [HttpMethod.get, .head] {
                for version in [HttpVersion.http10, .http11, .http2] {
                    let framing = ContentFraming.ofResponse(
                        sending: extent, status: status, to: method, version: version)
                    #expect(framing == .none)
                }
            }
        }
    }

    @Test func `a 2xx to CONNECT goes out without framing fields`() {
        // RFC 9110 §9.3.6.
        for extent in ContentFramingTests.extents {
            let opening = ContentFraming.ofResponse(sending: extent, status: .ok, to: .connect, version: .http11)
            #expect(opening == .none)
        }
        let refusal = ContentFraming.ofResponse(
            sending: .length(5), status: .badGateway, to: .connect, version: .http11)
        #expect(refusal == .length(5))
    }

    @Test(arguments: [(HttpStatus.ok, HttpMethod.head), (.notFound, .head), (.notModified, .get)])
    func `HEAD and 304 announce a length and have no content`(status: HttpStatus, method: HttpMethod) {
        // RFC 9110 §8.6.
        for (extent, expected) in zip(ContentFramingTests.extents, [ContentFraming.asGiven, .announced(5), .asGiven]) {
            let framing = ContentFraming.ofResponse(sending: extent, status: status, to: method, version: .http11)
            #expect(framing == expected)
            #expect(!framing.hasContent)
            #expect(framing.extent == .none)
        }
    }

    @Test(arguments: [
        (HttpVersion.http10, ContentFraming.untilClose), (.http11, .chunked), (.http2, .chunked),
    ])
    func `content of unknown length is framed by the client's version`(
        version: HttpVersion, unknown: ContentFraming
    ) {
        // RFC 9112 §6.3, §7.1.
        func framing(_ extent: HttpContent.Extent) -> ContentFraming {
            .ofResponse(sending: extent, status: .ok, to: .get, version: version)
        }
        #expect(framing(.unknown) == unknown)
        #expect(framing(.length(5)) == .length(5))
        #expect(framing(.none) == .length(0))
    }
}
