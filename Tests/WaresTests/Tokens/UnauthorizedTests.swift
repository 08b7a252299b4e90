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

    @Test func `other statuses are none of its business`() async throws {
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
        ] as [ConfigNode])
    func `what makes no sense is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(Unauthorized.self, options: options) }
    }
}
