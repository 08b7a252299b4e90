import Testing

@testable import HttpWare

/// RFC 9112 §4, §5: what a response's head may be. Origin servers are untrusted too.
@Suite struct ResponseHeadDecoderTests {
    @Test(
        arguments: [
            "HTTP/1.1 200\nX: y\r\n\r\n", "HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "HTTP/1.1 200 OK\r\n X: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", "HTTP/1.1 200 OK\r\n: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\u{0}\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "HTTP/1.1 200 OK\rX: a\r\n\r\n", "HTTP/1.1 200 O\u{1}K\r\n\r\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 +20 OK\r\n\r\n", "HTTP/1.1 200OK\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
            "HTTP/1.1\t200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "\r\n\r\n", "<html></html>\r\n\r\n",
        ] as [Wire])
    func `a malformed head is refused with 502`(wire: Wire) {
        guard case .refused(.badGateway, _) = Feeding.response(wire).outcome else {
            Issue.record("\(Feeding.response(wire).outcome)")
            return
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200, "OK"), ("HTTP/1.1 200 ", 200, "OK"), ("HTTP/1.1 200", 200, "OK"),
        ("HTTP/1.0 200 Fine by me", 200, "Fine by me"), ("HTTP/1.1 404 \tx", 404, "\tx"), ("HTTP/1.1 299 ", 299, ""),
        ("HTTP/1.1 999 Odd", 999, "Odd"), ("HTTP/1.1 600 ", 600, ""), ("HTTP/1.1 200 ok", 200, "ok"),
        ("HTTP/1.1 404 Not Found, alas", 404, "Not Found, alas"), ("HTTP/1.1 404 Not", 404, "Not"),
    ])
    func `a status line keeps its code and its reason phrase`(line: String, code: Int, reason: String) {
        // RFC 9112 §4; unknown codes are forwarded, RFC 9110 §15.
        let response = Feeding.response(Wire("\(line)\r\n\r\n")).response
        #expect(response.status.code == code)
        #expect((response.receivedReason ?? response.status.reasonPhrase) == reason)
        #expect(Feeding.text(Feeding.encode(response)) == "HTTP/1.1 \(code) \(reason)\r\n\r\n")
    }

    @Test func `a head over the limit is refused with 502`() {
        var limits = HeadLimits()
        limits.head = 60
        for text in [
            "HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 80))\r\n\r\n",
            "HTTP/1.1 200 " + String(repeating: "x", count: 90),
        ] {
            let (outcome, _) = Feeding.response(Wire(text), limits: limits)
            #expect(
                outcome == .refused(.badGateway, "the head is larger than 60B, the limit in limits.response.head"))
        }
    }

    @Test func `a response with too many lines is refused, with the limit, its value and its key`() {
        var limits = HeadLimits.response
        limits.fieldLines = 3
        let lines = { (count: Int) in Wire("HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: count) + "\r\n")
        }
        guard case .head = Feeding.response(lines(3), limits: limits).outcome else {
            Issue.record("was refused")
            return
        }
        #expect(
            Feeding.response(lines(4), limits: limits).outcome
                == .refused(
                    .badGateway, "the head has more than 3 field lines, the limit in limits.response.fieldLines"))
    }

    @Test func `a field name over 1,024 bytes is refused with 502 and that number`() {
        let lines = { (count: Int) in Wire("HTTP/1.1 200 OK\r\n\(String(repeating: "x", count: count)): y\r\n\r\n") }
        guard case .head = Feeding.response(lines(1024)).outcome else {
            Issue.record("was refused")
            return
        }
        #expect(
            Feeding.response(lines(1025)).outcome
                == .refused(.badGateway, "a field name is longer than 1KiB, a limit that is fixed"))
        let error = HeadFault.nameTooLong.inResponse(.response)
        #expect(error.side == .upstream && error.fault == .responseHeadTooLarge)
    }

    @Test func `by default a response has 256 KiB and 1,000 lines`() throws {
        #expect(HeadLimits.response.head == 256 * 1024 && HeadLimits.response.fieldLines == 1000)
        func read(_ text: String) throws -> Int? {
            var decoder = ResponseHeadDecoder()
            var response = HttpResponse(.ok)
            return try decoder.decode(
                Array(text.utf8).span.bytes, into: &response, method: .get, limits: .response)
        }
        let cookies = String(repeating: "Set-Cookie: a=b\r\n", count: 1000)
        #expect(try read("HTTP/1.1 200 OK\r\n\(cookies)\r\n") != nil)
        #expect(throws: GatewayError.self) { try read("HTTP/1.1 200 OK\r\n\(cookies)X: y\r\n\r\n") }
        #expect(try read("HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 250 * 1024))\r\n\r\n") != nil)
        #expect(throws: GatewayError.self) {
            try read("HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 257 * 1024))\r\n\r\n")
        }
    }

    @Test func `a head exactly at the limit is read`() {
        let head = "HTTP/1.1 200 OK\r\nX: yyy\r\n\r\n"
        var limits = HeadLimits()
        limits.head = head.utf8.count
        guard case .head = Feeding.response(Wire(head + "more"), limits: limits).outcome else {
            Issue.record("was refused")
            return
        }
    }

    @Test(arguments: 1...20)
    func `an encoded response is decoded as it was`(seed: UInt64) {
        var random = Seeded(seed)
        for _ in 0..<4 {
            let wire = Wire(RandomHead.response(&random))
            let (outcome, response) = Feeding.response(wire)
            guard case .head = outcome else {
                Issue.record("\(outcome): \(wire.testDescription)")
                return
            }
            var options = HeadEncoder.ResponseOptions()
            options.framing = .ofResponse(
                sending: response.content.extent, status: response.status, to: .get, version: .http11)
            options.closes = !response.isPersistent
            let encoded = Feeding.encode(response, options)
            let (second, again) = Feeding.response(Wire(encoded))
            guard case .head(_, let length) = second else {
                Issue.record("\(second): \(Wire(encoded).testDescription)")
                return
            }
            #expect(length == encoded.count)
            #expect(again.status == response.status)
            #expect(again.content.extent == response.content.extent)
            #expect(Feeding.encode(again, options) == encoded)
        }
    }

    @Test(arguments: 1...20)
    func `random bytes change the outcome in no way of feeding`(seed: UInt64) {
        var random = Seeded(seed)
        for _ in 0..<5 {
            var bytes = RandomHead.response(&random)
            let index = Int.random(in: 0..<bytes.count, using: &random)
            if Bool.random(using: &random) {
                bytes[index] = RandomHead.nasty.randomElement(using: &random) ?? 0
            } else {
                bytes.insert(RandomHead.nasty.randomElement(using: &random) ?? 0, at: index)
            }
            Feeding.response(Wire(bytes))
        }
    }
}
