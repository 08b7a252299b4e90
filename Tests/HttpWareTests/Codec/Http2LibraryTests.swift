import Testing

@testable import HttpWare

/// The settings of libnghttp2 that the sessions share, by what they allow.
@Suite struct Http2LibraryTests {
    @Test func `a callback without its objects does nothing`() {
        #expect(Http2Library.shared.callbacks != nil && Http2Library.shared.options != nil)
        // NGHTTP2_ERR_DEFERRED: no content yet.
        #expect(readContent(nil, 1, nil, 100, nil, nil, nil) == -508)
        var flags: UInt32 = 0
        #expect(readContent(nil, 1, nil, 100, &flags, nil, nil) == -508)
        #expect(flags == 0)
    }

    @Test func `a head as large as the largest limit is sent and read`() throws {
        var limits = HeadLimits()
        limits.head = 1 << 20
        let pair = SessionPair(responses: limits)
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "a.test")
        pair.talk()
        let served = try #require(pair.server.streams.first)
        var response = HttpResponse(.ok)
        for place in 0..<60 {
            try response.fields.append(
                #require(FieldName("x-\(place)")), String(repeating: "\(place % 10)", count: 17_000))
        }
        served.answer(response, content: "ok")
        pair.talk()
        let received = try #require(asked.response)
        #expect(received.fields["x-59"]?.count == 17_000 && asked.hasEnded)
    }

    /// A head in one HEADERS frame and this number of CONTINUATION frames, and what the server made of it.
    private func send(continuations count: Int, piece: Int) -> SessionEnd {
        func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
            [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
        }
        let server = SessionEnd(.server)
        // GET http://a/, and a line in each CONTINUATION frame. RFC 7541, appendix A.
        var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])
        bytes += frame(1, 0x1, 1, [0x82, 0x86, 0x84, 0x41, 1, 0x61])
        for place in 1...count { bytes += frame(9, place == count ? 0x4 : 0, 1, [0, 1, 0x78, 1, 0x79]) }
        for start in stride(from: 0, to: bytes.count, by: piece) {
            let part = bytes[start..<min(bytes.count, start + piece)]
            guard part.withUnsafeBytes({ server.session.receive($0) }) else { break }
        }
        server.session.send()
        return server
    }

    @Test(arguments: [1, 2, 10_000])
    func `a head may have 64 CONTINUATION frames, however its bytes arrive`(piece: Int) {
        let server = send(continuations: 64, piece: piece)
        #expect(server.streams.first?.request?.fields.values(of: "x").count == 64)
        #expect(!server.takeFrames().contains(.goAway))
    }

    @Test(arguments: [1, 2, 10_000])
    func `more CONTINUATION frames end the connection as a flood`(piece: Int) {
        let server = send(continuations: 65, piece: piece)
        #expect(server.streams.first?.request == nil)
        // ENHANCE_YOUR_CALM. RFC 9113 §7.
        #expect(server.output.suffix(4) == [0, 0, 0, 0x0b])
        #expect(server.takeFrames().contains(.goAway))
    }
}
