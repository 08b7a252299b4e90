import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct ResponseHeadersTests {
    private func edited(
        _ options: ConfigNode, _ response: HttpResponse, setting: TestExchange.Setting = .init()
    ) async throws -> HttpResponse {
        let exchange = try TestExchange(ResponseHeaders.self, options: options, setting: setting)
        exchange.upstream.respond(with: response)
        return try await exchange.send(.get("/p"))
    }

    @Test func `fields of the response are set, removed and renamed`() async throws {
        let response = try await edited(
            ["set": ["X-Served-By": "bench"], "remove": ["X-Powered-By"], "rename": ["X-Old": "X-New"]],
            HttpResponse(.ok, fields: ["X-Powered-By": "PHP", "X-Served-By": "other", "X-Old": "1"]))
        #expect(response.fields.values(of: "X-Served-By") == ["bench"])
        #expect(!response.fields.contains("X-Powered-By"))
        #expect(response.fields["X-New"] == "1")
    }

    @Test(arguments: [(404, true), (500, false), (200, false)])
    func `only responses with one of the statuses are edited`(code: Int, isEdited: Bool) async throws {
        let response = try await edited(
            ["statuses": ["4xx"], "set": ["Cache-Control": "no-store"]], HttpResponse(try #require(HttpStatus(code))))
        #expect(response.fields.contains(.cacheControl) == isEdited)
    }

    @Test func `placeholders are filled from the request`() async throws {
        let response = try await edited(["set": ["X-Path": "{request.path}"]], HttpResponse(.ok))
        #expect(response.fields["X-Path"] == "/p")
    }

    @Test func `a placeholder that brings a control character makes a 502, not a response with it`() async throws {
        var setting = TestExchange.Setting()
        setting.captures = [("name", "a\r\nSet-Cookie: x=1")]
        let response = try await edited(["set": ["X-A": "{path.name}"]], HttpResponse(.ok), setting: setting)
        #expect(response.status == .badGateway)
        #expect(!response.fields.contains(.setCookie))
    }

    @Test func `replace changes the first match in each line, before the other verbs`() async throws {
        var fields = HttpFields()
        try fields.append("Location", "http://old.test/a?x=http://old.test/")
        try fields.append("Link", "</a>; rel=next")
        try fields.append("Link", "</b>; rel=prev")
        try fields.append("Link", "none")
        let response = try await edited(
            [
                "replace": [
                    ["name": "Location", "regex": "^http://([a-z]+)\\.test/", "to": "https://$1.example/$$"],
                    ["name": "link", "regex": "</(.)>", "to": "</x/$1>"],
                    ["name": "X-Absent", "regex": ".", "to": "y"],
                ], "append": ["Link": "</a>"],
            ], HttpResponse(.found, fields: fields))
        #expect(response.fields["Location"] == "https://old.example/$a?x=http://old.test/")
        #expect(response.fields.values(of: "Link") == ["</x/a>; rel=next", "</x/b>; rel=prev", "none", "</a>"])
        #expect(!response.fields.contains("X-Absent"))
    }

    @Test func `a replacement that no field may hold, or that takes too long, is a 502`() async throws {
        let spaced = try await edited(
            ["replace": [["name": "X-A", "regex": "^a", "to": " "]]], HttpResponse(.ok, fields: ["X-A": "ab"]))
        #expect(spaced.status == .badGateway)
        var fields = HttpFields()
        try fields.append("X-A", String(repeating: "a", count: 60) + "!")
        let endless = try await edited(
            ["replace": [["name": "X-A", "regex": "^(a+)+$", "to": ""]]], HttpResponse(.ok, fields: fields))
        #expect(endless.status == .badGateway)
    }

    @Test(
        arguments: [
            ["replace": []], ["replace": [["name": "X-A", "regex": "a"]]],
            ["replace": [["name": "Content-Length", "regex": "1", "to": "2"]]],
            ["replace": [["name": "X-A", "regex": "(", "to": "2"]]],
            ["replace": [["name": "X-A", "regex": "a", "to": "b\r\nc"]]],
        ] as [ConfigNode])
    func `a replacement with a mistake is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(ResponseHeaders.self, options) }
    }

    @Test func `Host means nothing in a response and is refused at load`() {
        #expect(throws: ConfigError.self) { try TestExchange.make(ResponseHeaders.self, ["set": ["Host": "a"]]) }
    }
}
