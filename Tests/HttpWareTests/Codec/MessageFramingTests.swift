import Testing

@testable import HttpWare

/// RFC 9112 §6, §9; RFC 9110 §7.6.1: what framing and connection fields say.
@Suite struct MessageFramingTests {
    private func request(_ lines: String, method: String = "POST", version: String = "1.1") -> (
        outcome: Outcome, request: HttpRequest
    ) {
        Feeding.request(Wire("\(method) / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n\r\n"))
    }

    private func response(_ lines: String, _ code: Int = 200, to method: HttpMethod = .get, version: String = "1.1")
        -> (
            outcome: Outcome, response: HttpResponse
        )
    {
        Feeding.response(Wire("HTTP/\(version) \(code) \r\n\(lines.isEmpty ? "" : lines + "\r\n")\r\n"), to: method)
    }

    // MARK: Requests

    @Test(arguments: [
        // RFC 9110 §8.6: signed, hexadecimal, empty, a list with different values, over 2^63, repeated with other values.
        "Content-Length: +5", "Content-Length: -5", "Content-Length: 0x5", "Content-Length: 5a", "Content-Length:",
        "Content-Length: ,", "Content-Length: 5,", "Content-Length: ,5", "Content-Length: 5,,5", "Content-Length: 5, 6",
        "Content-Length: 5 5", "Content-Length: 5.0", "Content-Length: 5;", "Content-Length: \"5\"",
        "Content-Length: 9223372036854775808", "Content-Length: 18446744073709551616",
        "Content-Length: 99999999999999999999999999", "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 0\r\nContent-Length: 5", "Content-Length: 5\r\ncontent-length:",
        // RFC 9112 §6.1: with Content-Length.
        "Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        // RFC 9112 §6.1, §6.3: `chunked` is missing, repeated or not last.
        "Transfer-Encoding:", "Transfer-Encoding: ,", "Transfer-Encoding: identity", "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
        "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;q=1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: chunked chunked", "Transfer-Encoding: 'chunked'",
    ])
    func `framing that is not unambiguous is refused with 400`(lines: String) {
        guard case .refused(.badRequest, _) = request(lines).outcome else {
            Issue.record("\(request(lines).outcome)")
            return
        }
    }

    @Test func `Transfer-Encoding in an HTTP 1_0 request is refused`() {
        // RFC 9112 §6.1: "MUST treat the message as if the framing is faulty".
        guard case .refused(.badRequest, _) = request("Transfer-Encoding: chunked", version: "1.0").outcome else {
            Issue.record("was not refused")
            return
        }
    }

    @Test(arguments: ["gzip, chunked", "x, y, chunked", "gzip\r\nTransfer-Encoding: chunked", "identity, chunked"])
    func `another coding before a last chunked is refused with 501`(value: String) {
        // RFC 9112 §6.1.
        guard case .refused(.notImplemented, _) = request("Transfer-Encoding: \(value)").outcome else {
            Issue.record("was not refused with 501")
            return
        }
    }

    @Test(arguments: [
        ("Content-Length: 0", HttpContent.Extent.none), ("Content-Length: 5", .length(5)),
        ("Content-Length: 9223372036854775807", .length(.max)), ("Content-Length: 5, 5", .length(5)),
        ("Content-Length: 5 \t,5", .length(5)), ("Content-Length: 05", .length(5)),
        ("Content-Length: 5\r\nContent-Length: 5", .length(5)), ("Transfer-Encoding: chunked", .unknown),
        ("Transfer-Encoding: CHUNKED", .unknown), ("Transfer-Encoding: , chunked ,", .unknown), ("X: y", .none),
        ("Content-Length: 000000000000000000000000000000000000000005", .length(5)),
    ])
    func `content is as long as one field says`(lines: String, extent: HttpContent.Extent) {
        // RFC 9112 §6.3.
        #expect(request(lines).request.content.extent == extent)
    }

    @Test(arguments: [
        "Content-Length: 5, 5", "Content-Length: 5\r\nContent-Length: 5", "Content-Length: 05", "Content-Length: 5,005",
    ])
    func `a length said twice goes on as one number`(lines: String) {
        // RFC 9110 §8.6: "replace the duplicated field values with a single valid Content-Length".
        let request = request(lines).request
        #expect(request.fields[.contentLength] == "5")
        let text = Feeding.text(Feeding.encode(request, .init(framing: .length(5))))
        #expect(text == "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
        let response = response(lines, 304).response
        #expect(response.fields[.contentLength] == "5")
        #expect(
            Feeding.text(Feeding.encode(response, .init(framing: .asGiven)))
                == "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n")
    }

    @Test(arguments: ["CONNECT a:1", "TRACE /"])
    func `CONNECT and TRACE with content are refused`(start: String) {
        // RFC 9110 §9.3.6, §9.3.8.
        for line in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
            guard
                case .refused(.badRequest, _) = Feeding.request(Wire("\(start) HTTP/1.1\r\nHost: a\r\n\(line)\r\n\r\n"))
                    .outcome
            else {
                Issue.record("was not refused")
                return
            }
        }
    }

    @Test(arguments: [
        ("1.1", "", true), ("1.1", "Connection: close", false), ("1.1", "Connection: CLOSE", false),
        ("1.1", "Connection: x, close", false), ("1.1", "Connection: keep-alive", true),
        ("1.1", "Connection: keep-alive\r\nConnection: close", false), ("1.0", "", false),
        ("1.0", "Connection: keep-alive", true), ("1.0", "Connection: keep-alive, close", false),
        ("1.0", "Proxy-Connection: keep-alive", false), ("1.1", "Connection: closed", true),
    ])
    func `a connection stays as its version and Connection say`(version: String, lines: String, stays: Bool) {
        // RFC 9112 §9.3.
        #expect(
            Feeding.request(Wire("GET / HTTP/\(version)\r\nHost: a\r\n\(lines.isEmpty ? "" : lines + "\r\n")\r\n"))
                .request.isPersistent == stays)
    }

    @Test func `fields for one hop and fields that Connection names are taken off`() {
        // RFC 9110 §7.6.1.
        let request = request(
            "Connection: keep-alive, X-A, x-b ,cookie\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\n"
                + "Cookie: c\r\nHTTP2-Settings: x\r\nProxy-Authorization: Basic x\r\nUpgrade: y"
        ).request
        #expect(Feeding.text(Feeding.encode(request)) == "POST / HTTP/1.1\r\nHost: a\r\nX-C: 3\r\n\r\n")
        #expect(request.fields.received.map(\.name) == ["Host", "X-C"])
        #expect(request.proxyAuthorization == "Basic x")
    }

    @Test func `credentials for the proxy that are given twice are told`() {
        let once = request("Proxy-Authorization: Basic x").request
        #expect(!once.hasSeveralProxyAuthorizations)
        let twice = request("Proxy-Authorization: Basic x\r\nA: b\r\nproxy-authorization: Basic x").request
        #expect(twice.hasSeveralProxyAuthorizations)
        guard case .several = twice.withOnlyProxyAuthorization({ Array($0) }) else {
            Issue.record("one of them was taken")
            return
        }
    }

    @Test func `naming the framing or the host in Connection takes nothing away`() {
        let request = request("Connection: host, content-length, transfer-encoding\r\nContent-Length: 5").request
        #expect(request.content.extent == .length(5))
        #expect(request.fields[.host] == "a")
        #expect(request.fields[.contentLength] == "5")
    }

    @Test(arguments: [
        (0..<65).map { "x\($0)" }.joined(separator: ","),
        (0..<20).map { "\(String(repeating: "x", count: 90))\($0)" }.joined(separator: ","),
    ])
    func `Connection that names too much is refused`(value: String) {
        guard case .refused(.requestHeaderFieldsTooLarge, _) = request("Connection: \(value)").outcome else {
            Issue.record("was not refused with 431")
            return
        }
    }

    // MARK: Upgrade, Expect, TE

    @Test(arguments: [
        ("Connection: upgrade\r\nUpgrade: websocket", "websocket"),
        ("Connection: x, UPGRADE\r\nUpgrade: websocket", "websocket"),
        ("Connection: upgrade\r\nUpgrade: a/1\r\nUpgrade: b", "a/1, b"),
        // RFC 9110 §7.8: the sender names it in Connection as well.
        ("Upgrade: websocket", nil), ("Connection: keep-alive\r\nUpgrade: websocket", nil),
        // RFC 9113 §3.1: withdrawn.
        ("Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA", nil),
        ("Connection: upgrade\r\nUpgrade: H2C", nil), ("Connection: upgrade\r\nUpgrade: websocket, h2c", nil),
        ("Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c", nil),
        ("Connection: upgrade\r\nUpgrade: HTTP/2.0", nil),
        ("Connection: upgrade\r\nUpgrade:", nil), ("Connection: upgrade\r\nUpgrade: web socket", nil),
        ("Connection: upgrade\r\nUpgrade: \u{e9}", nil),
    ])
    func `an upgrade is asked for by both fields, and never to HTTP 2`(lines: String, upgrade: String?) {
        let request = request(lines).request
        #expect(request.upgrade == upgrade)
        let text = Feeding.text(Feeding.encode(request)).lowercased()
        #expect(!text.contains("h2c") && !text.contains("http2-settings") && !text.contains("upgrade"))
    }

    @Test func `an HTTP 1_0 request upgrades nothing`() {
        // RFC 9110 §7.8: "MUST ignore an Upgrade header field that is received in an HTTP/1.0 request".
        #expect(request("Connection: upgrade\r\nUpgrade: websocket", version: "1.0").request.upgrade == nil)
    }

    @Test func `an expectation counts with content, and not from HTTP 1_0`() {
        // RFC 9110 §10.1.1.
        #expect(request("Expect: 100-Continue\r\nContent-Length: 5").request.expectsContinue)
        #expect(request("Expect: 100-continue\r\nTransfer-Encoding: chunked").request.expectsContinue)
        let old = request("Expect: 100-continue\r\nContent-Length: 5", version: "1.0").request
        #expect(!old.expectsContinue)
        #expect(old.fields[.expect] == nil)
        let nominated = request("Connection: expect\r\nExpect: 100-continue\r\nContent-Length: 5").request
        #expect(!nominated.expectsContinue)
    }

    @Test(
        arguments: ["", "Content-Length: 0\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n"], ["GET", "POST", "X"])
    func `an expectation without content is not forwarded, RFC 9110 §10.1.1`(lines: String, method: String) {
        // "A client MUST NOT generate a 100-continue expectation in a request that does not include content."
        for value in ["Expect: 100-continue", "expect:100-Continue", "Expect: 100-continue\r\nExpect: 100-continue"] {
            let request = request(lines + value, method: method).request
            #expect(!request.expectsContinue)
            #expect(request.fields[.expect] == nil)
            #expect(!Feeding.text(Feeding.encode(request)).lowercased().contains("expect"))
        }
    }

    @Test(arguments: ["x-unknown", "100-continue, x", "100-continue x", "", "200-ok", "100-continue=1"])
    func `another expectation is forwarded, with content or without`(value: String) {
        for lines in ["", "Content-Length: 5\r\n", "Expect: 100-continue\r\n"] {
            let request = request("\(lines)Expect: \(value)").request
            #expect(request.fields.values(of: "Expect") == [value])
            #expect(!request.expectsContinue)
        }
    }

    @Test func `a line of Connection with more than 64 names is refused with 431 and that number, RFC 6585 §5`() {
        let names = { (count: Int) in "Connection: " + (0..<count).map { "x-\($0)" }.joined(separator: ",") }
        let reason = "Connection names more than 64 fields, or names of more than 1KiB together"
        #expect(request(names(65)).outcome == .refused(.requestHeaderFieldsTooLarge, reason))
        #expect(
            request("Connection: " + String(repeating: "x", count: 1025)).outcome
                == .refused(.requestHeaderFieldsTooLarge, reason))
        #expect(response("Content-Length: 0\r\n" + names(65)).outcome == .refused(.badGateway, reason))
        for lines in [names(64), "Connection: " + String(repeating: "x", count: 1024)] {
            guard case .head = request(lines).outcome else {
                Issue.record("was refused")
                return
            }
        }
    }

    @Test func `trailers are accepted where TE says so`() {
        #expect(request("Connection: te\r\nTE: gzip, Trailers").request.acceptsTrailers)
        #expect(!request("TE: gzip").request.acceptsTrailers)
    }

    // MARK: Host

    @Test(arguments: [
        ("http://Origin.example:8080/x", "Host: evil\r\n", "1.1", "origin.example:8080"),
        ("http://origin.example/x", "Host:\r\n", "1.1", "origin.example"),
        ("http://origin.example/x", "", "1.0", "origin.example"),
        ("http://origin.example/x", "Host: ORIGIN.example\r\n", "1.1", "ORIGIN.example"),
        ("http://origin.example:81/x", "Host: origin.example\r\n", "1.1", "origin.example:81"),
    ])
    func `the target in absolute form says what Host is`(target: String, line: String, version: String, host: String) {
        // RFC 9112 §3.2.2: "MUST ignore the received Host header field (if any) and instead replace it".
        let request = Feeding.request(Wire("GET \(target) HTTP/\(version)\r\n\(line)\r\n"), isReverse: false).request
        #expect(request.fields[.host] == host)
        #expect(Feeding.text(Feeding.encode(request)) == "GET /x HTTP/1.1\r\nHost: \(host)\r\n\r\n")
    }

    @Test func `an invalid Host is refused whatever the target says`() {
        for line in ["Host: a b", "Host: a\r\nHost: b"] {
            guard
                case .refused(.badRequest, _) = Feeding.request(Wire("GET http://a/ HTTP/1.1\r\n\(line)\r\n\r\n"))
                    .outcome
            else {
                Issue.record("was not refused")
                return
            }
        }
    }

    // MARK: Responses

    @Test(arguments: [
        "Content-Length: +5", "Content-Length: 5, 6", "Content-Length:", "Content-Length: 9223372036854775808",
        "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding:",
    ])
    func `a response whose framing is not unambiguous is refused with 502`(lines: String) {
        guard case .refused(.badGateway, _) = response(lines).outcome else {
            Issue.record("was not refused")
            return
        }
    }

    @Test func `Transfer-Encoding in an HTTP 1_0 response is refused`() {
        guard case .refused(.badGateway, _) = response("Transfer-Encoding: chunked", version: "1.0").outcome else {
            Issue.record("was not refused")
            return
        }
    }

    @Test(arguments: [
        (200, HttpMethod.get, "Content-Length: 5", ContentFraming.length(5), true),
        (200, .get, "Content-Length: 0", .none, true), (200, .get, "Transfer-Encoding: chunked", .chunked, true),
        (200, .get, "", .untilClose, false), (200, .get, "Connection: close", .untilClose, false),
        (200, .get, "Connection: close\r\nContent-Length: 5", .length(5), false),
        (200, .head, "Content-Length: 5", .none, true), (200, .head, "", .none, true),
        (200, .head, "Transfer-Encoding: chunked", .none, true), (304, .get, "Content-Length: 5", .none, true),
        (204, .get, "", .none, true), (100, .post, "", .none, true), (101, .get, "", .none, true),
        (200, .connect, "Content-Length: 5", .none, true),
        (299, .connect, "Transfer-Encoding: chunked", .none, true),
        (407, .connect, "Content-Length: 5", .length(5), true), (205, .get, "Content-Length: 0", .none, true),
        (500, .get, "", .untilClose, false),
        // A response that never has content but says it has may be followed by unexpected bytes: the connection is not used again.
        (204, .get, "Content-Length: 5", .none, false), (204, .get, "Transfer-Encoding: chunked", .none, false),
    ])
    func `a response's content is framed by method, status and fields`(
        code: Int, method: HttpMethod, lines: String, framing: ContentFraming, stays: Bool
    ) {
        // RFC 9112 §6.3.
        let (outcome, response) = response(lines, code, to: method)
        guard case .head(let description, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(description.hasSuffix(" \(framing)"))
        #expect(response.content.extent == framing.extent)
        #expect(response.isPersistent == stays)
    }

    @Test(arguments: [
        "Content-Length: 5", "Content-Length: 5, 6", "Content-Length: x", "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip", "Content-Length: 5\r\nTransfer-Encoding: chunked",
    ])
    func `an interim response ends at the empty line, whatever it states, and states it no more`(lines: String) {
        // RFC 9112 §6.3, RFC 9110 §8.6.
        for code in [100, 102, 103, 199] {
            let (outcome, response) = response(lines + "\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1", code)
            guard case .head(let description, _) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(description.hasSuffix(" \(ContentFraming.none)"))
            #expect(response.content.isEmpty && response.fields.description == "Link: </a>")
            #expect(Feeding.text(Feeding.encode(response)).contains("\r\nLink: </a>\r\n\r\n"))
        }
    }

    @Test(arguments: [
        ("websocket", "websocket"), ("TLS/1.2, HTTP/1.1", "TLS/1.2, HTTP/1.1"), ("HTTP/2.0", "HTTP/2.0"), ("", nil),
        ("web socket", nil), (String(repeating: "a", count: 1025), nil),
    ])
    func `a 426 keeps the protocols that it requires, RFC 9110 §15.5.22`(value: String, upgrade: String?) {
        let response = response("Content-Length: 0\r\nConnection: upgrade\r\nUpgrade: \(value)", 426).response
        #expect(response.upgrade == upgrade)
        #expect(!response.fields.contains("Upgrade"))
    }

    @Test(arguments: [("", false), ("Connection: keep-alive", true), ("Connection: keep-alive, close", false)])
    func `an HTTP 1_0 response keeps the connection only if it says so`(lines: String, stays: Bool) {
        #expect(response((lines + "\r\nContent-Length: 5").trimmed, version: "1.0").response.isPersistent == stays)
    }

    @Test(arguments: [("websocket", "websocket"), ("h2c", nil), ("web socket", nil)])
    func `a response switches to what it names, never to HTTP 2`(value: String, upgrade: String?) {
        #expect(response("Connection: upgrade\r\nUpgrade: \(value)", 101).response.upgrade == upgrade)
    }

    @Test func `fields for one hop are taken off a response`() {
        let response = response("Connection: X-A\r\nX-A: b\r\nKeep-Alive: x\r\nX-B: c\r\nContent-Length: 1").response
        #expect(
            Feeding.text(Feeding.encode(response, .init(framing: .length(1))))
                == "HTTP/1.1 200 OK\r\nX-B: c\r\nContent-Length: 1\r\n\r\n")
    }
}

extension String {
    /// Without a leading line end.
    fileprivate var trimmed: String { hasPrefix("\r\n") ? String(dropFirst()) : self }
}
