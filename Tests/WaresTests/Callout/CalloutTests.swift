import Glibc
import HttpWareTesting
import Synchronization
import Testing

@testable import GatewayWares
@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) final class CalloutTests: Sendable {
    /// The servers of the test, which end with it.
    private let servers = Mutex<[Server]>([])

    /// A server that answers with these texts, the last one again and again, and the messages that it got.
    private final class Server: Sendable {
        private let left: Mutex<[String]>
        private let seen = Mutex<[(message: JsonValue, length: Int)]>([])
        private let origin = Mutex<LocalOrigin?>(nil)

        init(_ answers: String..., status: HttpStatus = .ok) throws {
            left = Mutex(answers)
            let origin = try LocalOrigin { [weak self] request in
                guard let self else { return HttpResponse(.internalServerError) }
                #expect(request.method == .post && request.fields[.contentType] == "application/json")
                let message = try JsonValue(request.content.bytes ?? [])
                seen.withLock { $0.append((message, request.content.bytes?.count ?? 0)) }
                let answer = left.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? "{}" }
                return HttpResponse(status, content: .text(answer))
            }
            self.origin.withLock { $0 = origin }
        }

        var url: String { origin.withLock { $0?.url ?? "" } + "/decide" }
        var messages: [JsonValue] { seen.withLock { $0.map(\.message) } }
        var lengths: [Int] { seen.withLock { $0.map(\.length) } }
        func connectionCount() async -> Int { await origin.withLock { $0 }?.connectionCount() ?? 0 }
    }

    private func chain(
        _ server: Server, _ options: ConfigNode = [:],
        _ change: (inout TestExchange.Setting) -> Void = { _ in }
    ) throws -> TestExchange {
        servers.withLock { $0.append(server) }
        var setting = TestExchange.Setting()
        change(&setting)
        var entries = options.entries ?? []
        entries.append(.init(key: "url", location: .code, value: ConfigNode(.scalar(server.url, isQuoted: true))))
        return try TestExchange(Callout.self, options: ConfigNode(.map(entries)), setting: setting)
    }

    private func get(_ url: String, _ fields: HttpFields = [:]) throws -> HttpRequest {
        try HttpRequest(.get, url, fields: fields)
    }

    private func text(_ response: HttpResponse) -> String {
        String(decoding: response.content.bytes ?? [], as: UTF8.self)
    }

    // MARK: Messages

    @Test func `a message has the facts about the exchange`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server)
        _ = try await exchange.send(try get("http://acme.example.com/a%20b?x=1", ["Accept": "*/*", "X-A": "ä"]))
        let message = try #require(server.messages.first)
        #expect(message["version"] == .number("1") && message["half"]?.string == "request")
        #expect(message["client"]?.string == "203.0.113.7" && message["route"]?.string == "test")
        #expect(message["listener"]?.string == "test" && message["principal"] == nil)
        #expect(message["id"]?.string?.count == 36 && message["exchange"]?.string?.isEmpty == false)
        let request = try #require(message["request"])
        #expect(request["method"]?.string == "GET" && request["version"]?.string == "HTTP/1.1")
        #expect(request["url"]?.string == "http://acme.example.com/a%20b?x=1")
        let fields = request["fields"]?.elements?.compactMap { $0.elements?.compactMap(\.string) }
        #expect(fields?.contains(["Accept", "*/*"]) == true && fields?.contains(["X-A", "ä"]) == true)
        #expect(request["content"] == nil && message["response"] == nil)
    }

    @Test func `both halves of an exchange have the same value, and different exchanges different ones`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["response": true])
        exchange.upstream.always(respondWith: HttpResponse(.notFound, content: .text("no")))
        _ = try await exchange.send(try get("http://a.example/"))
        _ = try await exchange.send(try get("http://a.example/"))
        let messages = server.messages
        #expect(messages.map { $0["half"]?.string } == ["request", "response", "request", "response"])
        let marks = messages.map { $0["exchange"]?.string }
        #expect(marks[0] == marks[1] && marks[2] == marks[3] && marks[0] != marks[2])
        #expect(messages[1]["response"]?["status"] == .number("404"))
        #expect(messages[1]["request"]?["url"]?.string == "http://a.example/")
        #expect(messages[1]["response"]?["content"] == nil)
    }

    @Test(arguments: [
        (Array("ä".utf8), "text", "ä"), ([0xff, 0x00], "base64", "/wA="), ([0x61, 0x00], "base64", "YQA="),
    ])
    func `content is text if it can be`(content: [UInt8], form: String, expected: String) async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["response": true, "content": ["request": "1KiB", "response": "1KiB"]])
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .bytes(content)))
        let request = try HttpRequest(.post, "http://a.example/", content: .bytes(content))
        let response = try await exchange.send(request)
        #expect(response.content.bytes == content && exchange.upstream.requests.first?.content.bytes == content)
        #expect(server.messages.first?["request"]?["content"]?[form]?.string == expected)
        #expect(server.messages.last?["response"]?["content"]?[form]?.string == expected)
        #expect(server.messages.last?["request"]?["content"] == nil)
    }

    @Test func `content is decoded, and larger content is refused`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["content": ["request": "1KiB"]])
        let encoder = try #require(ContentCoding.gzip.makeEncoder(level: 4))
        var coded: [UInt8] = []
        try Array("hello".utf8).withUnsafeBytes { try encoder.encode($0, .finish, into: &coded) }
        var request = try HttpRequest(.post, "http://a.example/", content: .bytes(coded))
        try request.fields.set(.contentEncoding, to: "gzip")
        #expect(try await exchange.send(request).status == .ok)
        #expect(server.messages.first?["request"]?["content"]?["text"]?.string == "hello")
        #expect(exchange.upstream.requests.first?.content.bytes == coded)
        let large = try HttpRequest(.post, "http://a.example/", content: .bytes(count: 1025))
        #expect(try await exchange.send(large).status == .contentTooLarge)
        try request.fields.set(.contentEncoding, to: "sdch")
        #expect(try await exchange.send(request).status == .contentTooLarge)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `events stream past a program that sees content`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["response": true, "content": ["response": "4B"]])
        exchange.upstream.always(
            respondWith: HttpResponse(.ok, fields: ["Content-Type": "text/event-stream"], content: .text("data: 1\n\n"))
        )
        #expect(text(try await exchange.send(try get("http://a.example/"))) == "data: 1\n\n")
        #expect(server.messages.last?["response"]?["content"] == nil)
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("12345")))
        #expect(try await exchange.send(try get("http://a.example/")).status == .badGateway)
    }

    // MARK: Answers

    @Test func `edits change the request`() async throws {
        let server = try Server(
            #"""
            {"set": {"X-Tenant": "acme", "X-List": ["a", "b"]}, "remove": ["Cookie", "X-List"], "append": [["X-List", "c"]],
             "method": "PUT", "url": "http://acme.example.com/acme/orders?y=2", "content": {"text": "new"},
             "notes": {"tenant": "acme"}}
            """#)
        let exchange = try chain(server)
        var request = try get("http://acme.example.com/orders?x=1", ["Cookie": "a=b", "Content-MD5": "x"])
        request.method = .post
        request.content = .text("old")
        #expect(try await exchange.send(request).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(sent.method == .put && sent.path == "/acme/orders" && sent.query == "y=2")
        #expect(sent.fields["X-Tenant"] == "acme" && sent.fields[.cookie] == nil && sent.fields["Content-MD5"] == nil)
        #expect(sent.fields.values(of: "X-List") == ["a", "b", "c"])
        #expect(sent.content.bytes == Array("new".utf8))
    }

    @Test func `another authority is where the chain sends the request`() async throws {
        let server = try Server(#"{"url": "http://other.example:8081/b"}"#)
        let exchange = try chain(server)
        #expect(try await exchange.send(try get("http://a.example/")).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(sent.host == "other.example" && sent.port == 8081 && sent.path == "/b")
    }

    @Test(arguments: [
        "https://a.example/", "ftp://a.example/", "//a.example/", "x", "", "http://", "http://a b/", "/ü\n",
    ])
    func `a URL that cannot be sent is a wrong answer`(url: String) async throws {
        let json = Json.object([("url", .text(url))]).text
        let exchange = try chain(try Server(json))
        #expect(try await exchange.send(try get("http://a.example/")).status == .internalServerError)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `edits change the response`() async throws {
        let server = try Server(
            "{}", #"{"status": 404, "remove": ["Set-Cookie"], "set": {"X-B": "1"}, "content": {"base64": "AAE="}}"#)
        let exchange = try chain(server, ["response": true])
        exchange.upstream.respond(
            with: HttpResponse(.ok, fields: ["Set-Cookie": "a=b", "ETag": "\"1\""], content: .text("old")))
        let response = try await exchange.send(try get("http://a.example/"))
        #expect(response.status == .notFound && response.content.bytes == [0, 1])
        #expect(response.fields[.setCookie] == nil && response.fields["X-B"] == "1" && response.fields[.etag] == nil)
    }

    @Test func `a response of the program answers the request, or replaces the response`() async throws {
        let answer = #"{"respond": {"status": 403, "fields": [["X-A", "1"]], "content": {"text": "no"}}}"#
        let first = try chain(try Server(answer))
        let refused = try await first.send(try get("http://a.example/"))
        #expect(refused.status == .forbidden && refused.fields["X-A"] == "1" && text(refused) == "no")
        #expect(first.upstream.requests.isEmpty)
        let second = try chain(try Server("{}", answer), ["response": true])
        #expect(text(try await second.send(try get("http://a.example/"))) == "no")
        #expect(second.upstream.requests.count == 1)
    }

    @Test func `a dropped exchange gets no response`() async throws {
        for answers in [[#"{"drop": true}"#, "{}"], ["{}", #"{"drop": true}"#]] {
            let exchange = try chain(try Server(answers[0], answers[1]), ["response": true])
            await #expect(throws: GatewayError.self) { try await exchange.send(try get("http://a.example/")) }
        }
    }

    @Test func `the request half may be left out`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["request": false, "response": true])
        _ = try await exchange.send(try get("http://a.example/"))
        #expect(server.messages.map { $0["half"]?.string } == ["response"])
    }

    @Test func `connections are kept`() async throws {
        let server = try Server("{}")
        let exchange = try chain(server, ["response": true])
        for _ in 0..<5 { _ = try await exchange.send(try get("http://a.example/")) }
        #expect(server.messages.count == 10)
        #expect(await server.connectionCount() == 1)
    }

    @Test func `content of three megabytes is written and read`() async throws {
        let content = [UInt8](repeating: 0xe4, count: 3 << 20)
        let answer = Json.object([("content", .object([("base64", .text(Base64.encode(content)))]))]).text
        let exchange = try chain(try Server(answer), ["content": ["request": "3MiB"]])
        let request = try HttpRequest(.post, "http://a.example/", content: .bytes(content))
        #expect(try await exchange.send(request).status == .ok)
        #expect(exchange.upstream.requests.first?.content.bytes == content)
    }

    // MARK: Failures

    /// Sends a request, and expects that it fails, or passes unchanged with `onError: open`.
    private func expectFailure(
        _ answer: String, status: HttpStatus = .ok, _ expected: HttpStatus, options: ConfigNode = [:]
    ) async throws {
        for mode in ["closed", "open"] {
            var entries = options.entries ?? []
            entries.append(.init(key: "onError", location: .code, value: ConfigNode(.scalar(mode, isQuoted: true))))
            let exchange = try chain(try Server(answer, status: status), ConfigNode(.map(entries)))
            let response = try await exchange.send(try get("http://a.example/a"))
            #expect(response.status == (mode == "open" ? .ok : expected), "\(answer)")
            #expect(exchange.upstream.requests.map(\.path) == (mode == "open" ? ["/a"] : []))
        }
    }

    @Test func `a wrong answer fails the exchange, or changes nothing`() async throws {
        try await expectFailure("no JSON", .internalServerError)
        try await expectFailure("{}", status: .internalServerError, .internalServerError)
        try await expectFailure("{}", status: .noContent, .internalServerError)
        try await expectFailure(#"{"set": {"A": "1"}, "url": "https://a.example/b"}"#, .internalServerError)
        let large = #"{"notes": {"a": "\#(String(repeating: "x", count: 2000))"}}"#
        try await expectFailure(large, .internalServerError, options: ["maxAnswer": "1KiB"])
    }

    @Test(arguments: [
        (#"{"error": "the table is missing"}"#, ": the table is missing"), (#"{"error": 1}"#, ""),
        (#"{"other": ""}"#, ""),
        ("the table is missing", ""), (#"{"error": "\#(String(repeating: "x", count: 20_000))"}"#, ""),
    ])
    func `an answer with another status says why`(answer: String, reason: String) async throws {
        let server = try Server(answer, status: .internalServerError)
        let exchange = try chain(server) { $0.peer = SocketAddress("127.0.0.1:50000") }
        let response = try await exchange.send(try get("http://a.example/"))
        let text = String(decoding: response.content.bytes ?? [], as: UTF8.self)
        #expect(text.contains("the status 500 in place of 200\(reason)\","), "\(text)")
    }

    @Test func `a wrong answer on the way back is a bad gateway`() async throws {
        let exchange = try chain(try Server("{}", #"{"status": 99}"#), ["response": true])
        #expect(try await exchange.send(try get("http://a.example/")).status == .badGateway)
        let open = try chain(try Server("{}", #"{"status": 99}"#), ["response": true, "onError": "open"])
        #expect(try await open.send(try get("http://a.example/")).status == .ok)
    }

    @Test func `a server that is not there refuses requests, or lets them pass`() async throws {
        let exchange = try TestExchange(Callout.self, options: ["url": "unix:/nowhere/decide.sock"])
        let response = try await exchange.send(try get("http://a.example/"))
        #expect(response.status == .serviceUnavailable && response.fields[.retryAfter] == "5")
        #expect(exchange.upstream.requests.isEmpty)
        let open = try TestExchange(
            Callout.self, options: ["url": "unix:/nowhere/decide.sock", "onError": "open"])
        #expect(try await open.send(try get("http://a.example/")).status == .ok)
    }

    @Test func `a late answer fails the exchange`() async throws {
        let origin = try LocalOrigin { _ in try await untilCancelled() }
        let exchange = try TestExchange(Callout.self, options: ["url": "\(origin.url)", "timeout": "200ms"])
        let pending = await exchange.start(try get("http://a.example/"))
        try await eventually { !origin.requests.isEmpty }
        await exchange.advance(by: .milliseconds(250))
        #expect(try await pending.response().status == .serviceUnavailable)
    }

    @Test func `a client that leaves ends the call`() async throws {
        let origin = try LocalOrigin { _ in try await untilCancelled() }
        let exchange = try TestExchange(Callout.self, options: ["url": "\(origin.url)"])
        let pending = await exchange.start(try get("http://a.example/"))
        try await eventually { !origin.requests.isEmpty }
        await pending.leave()
        try await eventually { await origin.connectionCount() == 0 }
    }

    @Test func `a message is sent again if a kept connection was closed`() async throws {
        // Messages about equal requests have the same length.
        let server = try Server("{}")
        let other = try chain(server)
        _ = try await other.send(try get("http://a.example/"))
        let length = try #require(server.lengths.first)
        let head = ScriptedOrigin.Step.expectHead(startingWith: "POST / HTTP/1.1")
        let ok = ScriptedOrigin.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        let origin = try ScriptedOrigin([
            head, .read(length), ok, head, .read(length), .close, .accept, head, .read(length), ok,
        ])
        let exchange = try TestExchange(Callout.self, options: ["url": "http://127.0.0.1:\(origin.port)/"])
        for _ in 0..<2 { #expect(try await exchange.send(try get("http://a.example/")).status == .ok) }
        #expect(exchange.upstream.requests.count == 2)
        try await origin.verify()
    }

    // MARK: Options

    @Test(
        arguments: [
            ([:], "needs url, command or mitmproxy"), (["url": "unix:/a", "command": ["a"]], "command"),
            (["url": "ftp://a/"], "is not"), (["url": "unix:"], "is not"), (["command": []], "is empty"),
            (["url": "unix:/a", "request": false], "does nothing"),
            (["url": "unix:/a", "options": ["a": 1]], "has no effect with url"),
            (["mitmproxy": "/nowhere/addon.py"], "cannot be read"),
            (["command": ["a"], "options": "a"], "is not a map"),
            (["url": "unix:/a", "content": ["request": "0B"]], "small"),
        ] as [(ConfigNode, String)])
    func `wrong options are errors`(options: ConfigNode, expected: String) {
        var reader = OptionsReader(options, keyPath: "callout")
        _ = Callout(options: &reader)
        let errors = reader.finish().filter { $0.severity == .error }
        #expect(errors.contains { "\($0)".contains(expected) }, "\(errors)")
    }

    @Test func `a URL in clear text is a warning`() {
        var reader = OptionsReader(["url": "http://decide.example/"], keyPath: "callout")
        _ = Callout(options: &reader)
        #expect(reader.finish().map(\.severity) == [.warning])
    }
}
