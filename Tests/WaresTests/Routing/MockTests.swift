import Glibc
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct MockTests {
    @Test func `a mock answers by itself`() async throws {
        let exchange = try TestExchange(
            Mock.self,
            options: ["status": 418, "headers": ["X-A": "1", "X-Path": "{request.path}"], "body": "tea {x}\n"])
        let response = try await exchange.send(.get("/p"))
        #expect(response.status.code == 418)
        #expect(response.content.text == "tea {x}\n")
        #expect(response.fields["X-A"] == "1")
        #expect(response.fields["X-Path"] == "/p")
        #expect(response.fields[.contentType] == "text/plain; charset=utf-8")
        #expect(exchange.upstream.requests.isEmpty)
        #expect(exchange.outcomes.first?.responder.name == "Mock")
    }

    @Test func `without options it is 200 without content or content type`() async throws {
        let response = try await TestExchange(Mock.self).send(.get("/"))
        #expect(response.status == .ok)
        #expect(response.content.isEmpty)
        #expect(!response.fields.contains(.contentType))
    }

    @Test func `json is written as JSON`() async throws {
        let options: ConfigNode = ["json": ["name": "x", "wares": [1, true, ["a": "b"]]]]
        let response = try await TestExchange(Mock.self, options: options).send(.get("/"))
        #expect(response.content.text == "{\"name\":\"x\",\"wares\":[1,true,{\"a\":\"b\"}]}")
        #expect(response.fields[.contentType] == "application/json")
    }

    @Test func `a content type that is given wins`() async throws {
        let options: ConfigNode = ["json": ["a": 1], "headers": ["content-type": "application/vnd.a+json"]]
        let response = try await TestExchange(Mock.self, options: options).send(.get("/"))
        #expect(response.fields.values(of: .contentType) == ["application/vnd.a+json"])
    }

    @Test func `a file is read at load, and its name tells its type`() async throws {
        let path = "/tmp/httpware-mock-\(getpid()).html"
        try write("<p>hi", to: path)
        defer { unlink(path) }
        let exchange = try TestExchange(Mock.self, options: ["file": ConfigNode(.scalar(path, isQuoted: true))])
        unlink(path)
        let response = try await exchange.send(.get("/"))
        #expect(response.content.text == "<p>hi")
        #expect(response.fields[.contentType] == "text/html; charset=utf-8")
    }

    @Test func `delay waits on the loop's clock, while other requests go on`() async throws {
        let exchange = try TestExchange(Mock.self, options: ["delay": "250ms", "body": "late"])
        let slow = await exchange.start(.get("/"))
        await exchange.advance(by: .milliseconds(249))
        #expect(exchange.outcomes.isEmpty)
        await exchange.advance(by: .milliseconds(1))
        #expect(try await slow.response().content.text == "late")
    }

    @Test func `a client that leaves while a mock waits is a 499, once`() async throws {
        let exchange = try TestExchange(Mock.self, options: ["delay": "1s"])
        let slow = await exchange.start(.get("/"))
        await slow.leave()
        await exchange.advance(by: .seconds(2))
        #expect(exchange.outcomes.map(\.end) == [.clientLeft])
    }

    @Test func `a sequence is answered in turn, and its last one stays`() async throws {
        let options: ConfigNode = ["sequence": [["status": 503], ["status": 429], ["body": "ok"]]]
        let exchange = try TestExchange(Mock.self, options: options)
        var codes: [Int] = []
        for _ in 0..<5 { codes.append(try await exchange.send(.get("/")).status.code) }
        #expect(codes == [503, 429, 200, 200, 200])
    }

    @Test(
        arguments: [
            ["status": 101], ["status": 600], ["body": "a", "json": ["a": 1]], ["file": "/nonexistent/x"],
            ["status": 204, "body": "a"], ["delay": "2"], ["sequence": []],
            ["status": 200, "sequence": [["status": 200]]],
            ["headers": ["Content-Length": "3"]], ["sequence": [["statuss": 200]]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Mock.self, options) }
    }

    private func write(_ text: String, to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count)
    }

    // MARK: Placeholders

    private func body(_ options: ConfigNode, _ request: HttpRequest) async throws -> String? {
        try await TestExchange(Mock.self, options: options).send(request).content.text
    }

    private static let request = HttpRequest.get("/a?b=1", fields: ["X-A": #"<"\&'"#])

    @Test(arguments: [
        ("{request.path} {request.header.X-A}", "text/plain", #"/a <"\&'"#),
        ("<p>{request.header.X-A}</p>", "text/html; charset=utf-8", #"<p>&lt;&quot;\&amp;&#39;</p>"#),
        ("<p>{request.header.X-A}</p>", "application/atom+xml", #"<p>&lt;&quot;\&amp;&#39;</p>"#),
        (#"{"a":"{request.header.X-A}","b":{"c":{}}}"#, "application/json", #"{"a":"<\"\\&'","b":{"c":{}}}"#),
        (#"{"{request.path}": 1}"#, "application/problem+json", #"{"/a": 1}"#),
        (
            "{{request.path} {{request.path}} {{{ {a.b} { {}", "text/plain",
            "{request.path} {request.path}} {{{ {a.b} { {}"
        ),
    ])
    func `placeholders in the body are escaped for its type`(body: String, type: String, filled: String) async throws {
        let options: ConfigNode = [
            "body": ConfigNode(.scalar(body, isQuoted: true)),
            "headers": ["Content-Type": ConfigNode(.scalar(type, isQuoted: true))],
        ]
        #expect(try await self.body(options, Self.request) == filled)
    }

    @Test func `placeholders in the texts of json are escaped`() async throws {
        let options: ConfigNode = ["json": ["a": ["{request.header.X-A}", 1], "{request.path}": "{x}"]]
        #expect(try await body(options, Self.request) == #"{"a":["<\"\\&'",1],"/a":"{x}"}"#)
    }

    @Test(arguments: [
        (#"{"a":{request.path}}"#, "application/json", "inside a JSON string"),
        (#"{"a":"\{request.path}"}"#, "application/json", "inside a JSON string"),
        ("<script>a='{request.path}'</script>", "text/html", "a script or a style"),
        ("a='{request.path}'", "text/javascript", "placeholders are filled in only for"),
        ("{request.path}", "{request.header.Accept}", "placeholders are filled in only for"),
        ("{request.pth}", "text/plain", "is not a placeholder"),
    ])
    func `a placeholder that cannot be made safe is refused at load`(body: String, type: String, text: String) {
        let options: ConfigNode = [
            "body": ConfigNode(.scalar(body, isQuoted: true)),
            "headers": ["Content-Type": ConfigNode(.scalar(type, isQuoted: true))],
        ]
        let error = #expect(throws: ConfigError.self) { try TestExchange(Mock.self, options: options) }
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
    }
}
