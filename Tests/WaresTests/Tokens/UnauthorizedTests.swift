import Credentials
import HttpWare
import HttpWareTesting
import Testing

@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct UnauthorizedTests {
    private func response(
        _ options: ConfigNode, _ request: HttpRequest = .get("/"), from origin: HttpResponse
    ) async throws -> HttpResponse {
        let exchange = try TestExchange(Unauthorized.self, options: options)
        exchange.upstream.respond(with: origin)
        return try await exchange.send(request)
    }

    @Test func `by default it passes`() async throws {
        let response = try await response([:], from: .refused("Bearer"))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate] == "Bearer")
    }

    @Test func `other content, with the status and the challenge, RFC 9110 §15.5.2`() async throws {
        let response = try await response(
            ["action": "body", "body": #"{"error":"login"}"#], from: .refused("Bearer"))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate] == "Bearer")
        #expect(response.fields[.contentType] == "application/json")
        #expect(response.content.text == #"{"error":"login"}"#)
    }

    @Test func `a redirect sends nothing twice`() async throws {
        let options: ConfigNode = ["action": "redirect", "location": "https://login.example/"]
        let read = try await response(options, from: .refused(nil))
        #expect(read.status == .found)
        #expect(read.fields[.location] == "https://login.example/")
        let write = try await response(options, .post("/", content: .text("a")), from: .refused(nil))
        #expect(write.status == .seeOther)
    }

    @Test(arguments: [
        (
            "https://login.example/?next={request.path}&h={request.header.X-A}",
            "https://login.example/?next=/a%20b%26c%3Dd&h=1%262%20%23%25"
        ),
        ("/login{request.path}?q={request.query.q}", "/login/a%20b&c%3Dd?q=x+%26y"),
        ("https://{request.host}/login", "https://app.test/login"),
        ("/{request.header.X-B}", "/evil.test"),
    ])
    func `placeholders in location are percent-encoded and never choose the host`(
        location: String, expected: String
    ) async throws {
        let options: ConfigNode = ["action": "redirect", "location": ConfigNode(.scalar(location, isQuoted: true))]
        let request = HttpRequest.get(
            "/a%20b&c%3Dd?q=x+%26y", fields: ["Host": "app.test", "X-A": "1&2 #%", "X-B": "/evil.test"])
        let response = try await response(options, request, from: .refused(nil))
        #expect(response.status == .found)
        #expect(response.fields[.location] == expected)
    }

    @Test func `placeholders in the body are escaped for JSON or go as they are`() async throws {
        let fields: HttpFields = ["X-A": #"a"b"#]
        let json = try await response(
            ["action": "body", "body": #"{"a":"{request.header.X-A}"}"#], .get("/", fields: fields), from: .refused(nil)
        )
        #expect(json.content.text == #"{"a":"a\"b"}"#)
        let text = try await response(
            ["action": "body", "body": "sign in: {request.header.X-A}"], .get("/", fields: fields),
            from: .refused(nil))
        #expect(text.content.text == #"sign in: a"b"#)
        #expect(text.fields[.contentType] == "text/plain; charset=utf-8")
    }

    @Test func `other statuses are left alone`() async throws {
        let response = try await response(["action": "body", "body": "x"], from: HttpResponse(.forbidden))
        #expect(response.status == .forbidden)
        #expect(response.content.isEmpty)
    }

    @Test func `a credential is forgotten`() async throws {
        let stage = try TokenStage(more: { [Unauthorized(.clear($0))] })
        try await stage.begin()
        // Not about the token's age, so nothing is sent again.
        stage.exchange.upstream.respond(with: .refused(#"Bearer error="insufficient_scope""#))
        #expect(try await stage.exchange.send(.get("/")).status == .unauthorized)
        #expect(stage.credential.report().token == 0)
    }

    @Test(
        arguments: [
            ["action": "body"], ["action": "redirect"], ["action": "clearCredential"], ["body": "x"],
            ["action": "redirect", "location": "a\nb"], ["action": "none"],
            ["action": "redirect", "location": "https://{request.header.X-A}/"],
            ["action": "redirect", "location": "{request.header.X-A}"],
            ["action": "body", "body": #"{"a":{request.path}}"#],
        ] as [ConfigNode])
    func `invalid options of unauthorized are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(Unauthorized.self, options: options) }
    }
}
