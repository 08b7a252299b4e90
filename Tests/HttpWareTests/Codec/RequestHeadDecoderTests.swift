import Testing

@testable import HttpWare

/// RFC 9112 §2, §3, §5: what a request's head may be.
@Suite struct RequestHeadDecoderTests {
    static let malformed: [Wire] = [
        // RFC 9112 §5.1: "No whitespace is allowed between the field name and colon".
        "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        // RFC 9112 §2.2: white space before the first field line.
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n",
        // RFC 9112 §5.2: obsolete folding.
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
        // RFC 9110 §5.1: a field name is a token.
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX y: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\"X\": b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Leng\u{e9}th: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nProxy-Authentica ion-Info: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nProxy-Authentica(ion-Info: x\r\n\r\n",
        // RFC 9112 §2.2: bare CR, and LF as a line end.
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\rHost: a\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        // RFC 9110 §5.5: NUL and control characters.
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\u{0}c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\u{1}c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\u{7f}c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\u{0}: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \u{0b}chunked\r\n\r\n",
        // RFC 9112 §3.2: Host is missing, repeated or not host[:port].
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:-1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [1]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [:::]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a..\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: .\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: \u{e9}\r\n\r\n",
        // RFC 9112 §3.2: request targets.
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\u{0} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\u{7f} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET # HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a:x/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /../a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%2e%2e/a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /b/%2e%2e/a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /b/..%2fa HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /b%2f..%2fa HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /b/..%5Ca HTTP/1.1\r\nHost: a\r\n\r\n",
        // RFC 9112 §3: request line.
        "GET /\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
        "GET / HTTPS/1.1\r\nHost: a\r\n\r\n",
        "GET\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        " / HTTP/1.1\r\nHost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        // RFC 9112 §2.2: a few empty lines, not many.
        "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}",
    ]

    @Test(arguments: malformed)
    func `a malformed head is refused with 400`(wire: Wire) {
        guard case .refused(.badRequest, _) = Feeding.request(wire).outcome else {
            Issue.record("was not refused with 400: \(Feeding.request(wire).outcome)")
            return
        }
    }

    @Test(arguments: malformed)
    func `a malformed head gives the chain a request that can be read`(wire: Wire) {
        let request = Feeding.request(wire).request
        _ = request.fields[.userAgent]
        _ = request.path
        #expect(request.fields.received.count <= 100)
    }

    @Test(arguments: ["0.9", "2.0", "3.0", "9.9"])
    func `another major version is refused with 505`(version: String) {
        // RFC 9110 §15.6.6.
        guard
            case .refused(.versionNotSupported, _) = Feeding.request(Wire("GET / HTTP/\(version)\r\nHost: a\r\n\r\n"))
                .outcome
        else {
            Issue.record("was not refused with 505")
            return
        }
    }

    @Test func `a higher minor version is read as 1_1`() {
        // RFC 9110 §2.5.
        #expect(Feeding.request("GET / HTTP/1.9\r\nHost: a\r\n\r\n").request.version == .http11)
    }

    @Test(arguments: [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PROPFIND", "MKCALENDAR", "get",
        "X", "!#$%&'*+-.^_`|~", "VERSION-CONTROL", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF",
    ])
    func `a method is kept as it is, known or not`(name: String) {
        // RFC 9110 §9.1: methods are case-sensitive.
        let target = name == "CONNECT" ? "a:1" : "/"
        let request = Feeding.request(Wire("\(name) \(target) HTTP/1.1\r\nHost: a\r\n\r\n")).request
        #expect(request.method == HttpMethod(name))
        #expect(request.method.name == name)
    }

    @Test(arguments: [33, 34, 64, 1000, 20_000])
    func `a method longer than 32 bytes is refused with 501 and that number, RFC 9112 §3`(count: Int) {
        let refusal = Outcome.refused(.notImplemented, "the method is longer than 32 bytes, a limit that is fixed")
        let method = String(repeating: "M", count: count)
        for target in ["/", "", "a b", "/#"] {
            let wire = Wire("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
            // A line that is not complete is not judged yet, unless it is too long.
            let outcome = Feeding.request(wire).outcome
            #expect(outcome == refusal)
        }
        #expect(Feeding.request(Wire(method)).outcome == (count < 16 * 1024 ? .needsMore : refusal))
    }

    @Test(arguments: [
        "\(String(repeating: "M", count: 40))", "\(String(repeating: "M", count: 40))(M / HTTP/1.1",
        "\(String(repeating: "M", count: 40))\u{e9} / HTTP/1.1", "\(String(repeating: "M", count: 40))/ HTTP/1.1",
    ])
    func `a long beginning that is not a method and a space is refused with 400`(line: String) {
        #expect(
            Feeding.request(Wire("\(line)\r\nHost: a\r\n\r\n")).outcome
                == .refused(.badRequest, "the request line does not begin with a method and a space"))
    }

    @Test(arguments: 0...4)
    func `up to four empty lines before a request are passed over`(count: Int) {
        // RFC 9112 §2.2: "SHOULD ignore at least one empty line (CRLF) received prior to the request-line".
        let head = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        let wire = Wire(String(repeating: "\r\n", count: count) + head)
        let (outcome, request) = Feeding.request(wire)
        guard case .head(_, let length) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(length == wire.bytes.count)
        #expect(request.path == "/a")
    }

    @Test func `the length ends where the next request begins`() {
        let first = "GET /a HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"
        guard case .head(_, let length) = Feeding.request(Wire(first + "GET /b HTTP/1.1\r\n")).outcome else {
            Issue.record("no head")
            return
        }
        #expect(length == first.utf8.count)
    }

    @Test(arguments: [
        ("X: a", "a"), ("X:a", "a"), ("X:  a", "a"), ("X: a ", "a"), ("X:\ta\t", "a"), ("X:", ""), ("X: ", ""),
        ("X: \t ", ""),
        ("X: a b\tc", "a b\tc"), ("X: a:b", "a:b"), ("x: \u{e9}", "\u{e9}"),
    ])
    func `white space around a value is not part of it, and is not passed on`(line: String, value: String) {
        // RFC 9112 §5.1.
        let request = Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\n\(line)\r\nY: z\r\n\r\n")).request
        #expect(request.fields["x"] == value)
        #expect(
            Feeding.text(Feeding.encode(request))
                == "GET / HTTP/1.1\r\nHost: a\r\n\(line.prefix(1)): \(value)\r\nY: z\r\n\r\n")
    }

    @Test func `octets above ASCII in a value are passed on as they are`() {
        // RFC 9110 §5.5: obs-text is opaque.
        let wire = Wire(Array("GET / HTTP/1.1\r\nHost: a\r\nX: ".utf8) + [0x80, 0xff, 0xc3] + Array("\r\n\r\n".utf8))
        let (_, request) = Feeding.request(wire)
        #expect(Feeding.encode(request) == wire.bytes)
    }

    // MARK: Limits

    @Test func `a target over the limit is refused with 414, at it is not`() {
        // RFC 9110 §15.5.15.
        var limits = HeadLimits()
        limits.requestTarget = 20
        for (count, isRefused) in [(20, false), (21, true), (40, true), (200, true)] {
            let wire = Wire("GET /\(String(repeating: "a", count: count - 1)) HTTP/1.1\r\nHost: a\r\n\r\n")
            let outcome = Feeding.request(wire, limits: limits).outcome
            if case .refused(let status, _) = outcome {
                #expect(isRefused && status == .uriTooLong)
            } else {
                #expect(!isRefused)
            }
        }
    }

    @Test func `a request line that never ends is refused`() {
        var limits = HeadLimits()
        limits.requestTarget = 100
        for text in [String(repeating: "A", count: 4000), "GET /" + String(repeating: "a", count: 4000)] {
            guard case .refused = Feeding.request(Wire(text), limits: limits).outcome else {
                Issue.record("was not refused")
                return
            }
        }
    }

    @Test func `a head over the limit is refused with 431, at it is not`() {
        // RFC 6585 §5.
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "b", count: 50))\r\n\r\n"
        for slack in [-40, -2, -1, 0, 1] {
            var limits = HeadLimits()
            limits.head = head.utf8.count + slack
            let outcome = Feeding.request(Wire(head + "GET / HTTP/1.1\r\n"), limits: limits).outcome
            if case .refused(let status, _) = outcome {
                #expect(slack < 0 && status == .requestHeaderFieldsTooLarge)
            } else {
                #expect(slack >= 0)
            }
        }
    }

    @Test func `a head over the limit is refused for its size, not for a mistake behind it`() {
        var limits = HeadLimits()
        limits.head = 60
        let wire = Wire("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "b", count: 50))\u{0}\r\n\r\n")
        guard case .refused(.requestHeaderFieldsTooLarge, _) = Feeding.request(wire, limits: limits).outcome else {
            Issue.record("was not refused with 431")
            return
        }
    }

    @Test func `too many field lines are refused with 431`() {
        for (count, isRefused) in [(99, false), (100, true)] {
            let lines = String(repeating: "X: y\r\n", count: count)
            let outcome = Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")).outcome
            if case .refused(let status, _) = outcome {
                #expect(isRefused && status == .requestHeaderFieldsTooLarge)
            } else {
                #expect(!isRefused)
            }
        }
    }

    @Test func `a field name over 1,024 bytes is refused with 431 and that number, RFC 6585 §5`() {
        let refusal = Outcome.refused(
            .requestHeaderFieldsTooLarge, "a field name is longer than 1KiB, a limit that is fixed")
        for (count, isRefused) in [(1023, false), (1024, false), (1025, true), (4000, true), (30_000, true)] {
            let name = "X-" + String(repeating: "a", count: count - 2)
            let (outcome, request) = Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\n\(name): b\r\n\r\n"))
            #expect((outcome == refusal) == isRefused)
            if !isRefused { #expect(request.fields[FieldName(name) ?? "x"] == "b") }
        }
        // Only a name is too long as a name.
        for name in ["X y", "X(", "X\u{e9}"] {
            let line = name + String(repeating: "a", count: 2000) + ": b"
            #expect(
                Feeding.request(Wire("GET / HTTP/1.1\r\nHost: a\r\n\(line)\r\n\r\n")).outcome
                    == .refused(.badRequest, "a field name is not a token"))
        }
    }

    @Test func `limits as large as can be do not trap`() {
        var limits = HeadLimits()
        limits.head = .max
        limits.requestTarget = .max
        limits.fieldLines = .max
        guard case .head = Feeding.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits).outcome else {
            Issue.record("was refused")
            return
        }
    }

    // MARK: Cost

    static let generous: HeadLimits = {
        var limits = HeadLimits()
        limits.head = 2 << 20
        limits.fieldLines = 20_000
        return limits
    }()

    /// How long one decode takes, of three.
    private func cost(_ bytes: [UInt8], step: Int? = nil) -> Duration {
        (0..<3).map { _ in
            processorTime {
                var decoder = RequestHeadDecoder()
                var request = HttpRequest()
                var end = step ?? bytes.count
                while end <= bytes.count {
                    let answer = try? decoder.decode(
                        bytes.span.bytes.extracting(first: end), into: &request, limits: Self.generous, isReverse: true)
                    if answer != nil { break }
                    end = end == bytes.count ? .max : min(bytes.count, end + (step ?? 1))
                }
            }
        }.min() ?? .zero
    }

    /// Costs that grow with the square would be a hundred times over this, even without optimisation.
    static let affordable = Duration.milliseconds(1500)

    @Test func `ten thousand field lines cost linear time`() {
        let lines = (0..<10_000).map { "X-Field-\($0): value\r\n" }.joined()
        #expect(cost(Array("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n".utf8)) < Self.affordable)
    }

    @Test func `a megabyte of Connection tokens costs linear time`() {
        for token in ["a,", ",", "close,", "x-0123456789abcdef,", "te,"] {
            let value = String(repeating: token, count: (1 << 20) / token.utf8.count)
            #expect(cost(Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: \(value)\r\n\r\n".utf8)) < Self.affordable)
        }
    }

    @Test func `many nominated names and many long field lines cost linear time`() {
        let prefix = String(repeating: "x", count: 90)
        let names = (10..<74).map { "\(prefix)\($0)" }.joined(separator: ",")
        let lines = (0..<10_000).map { "\(prefix)\($0 % 90 + 10): v\r\n" }.joined()
        #expect(cost(Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: \(names)\r\n\(lines)\r\n".utf8)) < Self.affordable)
    }

    @Test func `a head that comes byte by byte is not scanned again`() {
        let value = String(repeating: "v", count: 500_000)
        #expect(cost(Array("GET / HTTP/1.1\r\nHost: a\r\nX: \(value)\r\n\r\n".utf8), step: 1) < Self.affordable)
        let lines = String(repeating: "X: y\r\n", count: 10_000)
        #expect(cost(Array("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n".utf8), step: 1) < Self.affordable)
    }

    // MARK: Properties

    @Test(arguments: 1...20)
    func `an encoded request is decoded as it was`(seed: UInt64) throws {
        var random = Seeded(seed)
        for _ in 0..<4 {
            let wire = Wire(RandomHead.request(&random))
            let (outcome, request) = Feeding.request(wire)
            guard case .head = outcome else {
                Issue.record("\(outcome): \(wire.testDescription)")
                return
            }
            var options = HeadEncoder.RequestOptions()
            options.framing = .ofRequest(
                sending: request.content.extent, method: request.method, statesLength: request.fields.statesLength)
            options.closes = !request.isPersistent
            let encoded = Feeding.encode(request, options)
            let (second, again) = Feeding.request(Wire(encoded))
            guard case .head(_, let length) = second else {
                Issue.record("\(second): \(Wire(encoded).testDescription)")
                return
            }
            #expect(length == encoded.count)
            #expect(again.upstreamTarget == request.upstreamTarget)
            #expect(again.content.extent == request.content.extent)
            #expect(again.isPersistent == request.isPersistent)
            options.closes = !again.isPersistent
            #expect(Feeding.encode(again, options) == encoded)
        }
    }

    @Test(arguments: [
        "/a/../b", "/a/%2e%2e/b", "/../../etc/passwd", "/100%", "/a%zz", "/a%00b", "/x/%7Ey", "/q%2fR?x=%7e",
        "/a;p=1/../b", "/%",
    ])
    func `RFC 9110 §7.7, a proxy passes the path on as received`(path: String) {
        for target in [path, "http://a" + path] {
            let request = Feeding.request(Wire("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n"), isReverse: false).request
            #expect(request.upstreamTarget == path)
        }
    }

    @Test(arguments: 1...20)
    func `random bytes change the outcome in no way of feeding`(seed: UInt64) {
        var random = Seeded(seed)
        for _ in 0..<5 {
            var bytes = RandomHead.request(&random)
            for _ in 0...Int.random(in: 0...2, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = RandomHead.nasty.randomElement(using: &random) ?? 0
                case 1: bytes.insert(RandomHead.nasty.randomElement(using: &random) ?? 0, at: index)
                default: bytes.remove(at: index)
                }
            }
            Feeding.request(Wire(bytes))
            Feeding.request(Wire(bytes), isReverse: false)
        }
    }
}

/// Heads made at random that are well-formed.
enum RandomHead {
    static let nasty: [UInt8] = Array("\r\n\t :,;#%./\\\"\u{0}\u{7f}0aA[]@".utf8) + [0x80, 0xff]

    static func request(_ random: inout Seeded) -> [UInt8] {
        let method = ["GET", "POST", "PUT", "DELETE", "X-Y"].randomElement(using: &random) ?? "GET"
        let target =
            ["/", "/a/b?c=d", "/%41/%2f", "/a/./b", "http://h:8/x?y", "http://h"].randomElement(using: &random) ?? "/"
        let version = Bool.random(using: &random) ? "1.1" : Bool.random(using: &random) ? "1.0" : "1.1"
        var head = "\(method) \(target) HTTP/\(version)\r\nHost: h:8\r\n"
        head += fields(&random, chunked: version == "1.1")
        return Array((head + "\r\n").utf8)
    }

    static func response(_ random: inout Seeded) -> [UInt8] {
        let status =
            ["200 OK", "200 Fine", "204 No Content", "304 Not Modified", "404 ", "799 What"]
            .randomElement(using: &random) ?? ""
        return Array(("HTTP/1.1 \(status)\r\n" + fields(&random, chunked: true) + "\r\n").utf8)
    }

    private static func fields(_ random: inout Seeded, chunked: Bool) -> String {
        var lines = ""
        switch Int.random(in: 0..<(chunked ? 4 : 3), using: &random) {
        case 0: lines += "Content-Length: \(Int.random(in: 0...9999, using: &random))\r\n"
        case 1: lines += "content-length: 7, 7\r\nContent-Length:07\r\n"
        case 3: lines += "Transfer-Encoding: chunked\r\n"
        default: break
        }
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let name =
                ["X-A", "Accept", "cookie", "Connection", "User-Agent", "x-b", "Keep-Alive", "Via"].randomElement(
                    using: &random)
                ?? "X"
            let space = ["", " ", "\t", "  "].randomElement(using: &random) ?? ""
            let value =
                ["", "a", "close", "x-b, X-A", "a b", "\"q,\"", "keep-alive"].randomElement(using: &random) ?? ""
            lines += "\(name):\(space)\(value)\(space)\r\n"
        }
        return lines
    }
}
