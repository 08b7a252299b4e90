import HttpWare
import Testing

@testable import HttpGateway

@Suite struct AdminOfflineTests {
    private func stage() throws -> AdminStage {
        try AdminStage(
            """
            version: 1
            listeners: { web: { bind: "127.0.0.1:0" } }
            services: { a: { baseUrl: "http://127.0.0.1:1" } }
            chains:
              one: { middlewares: [{ offline: { mode: never }, as: first }] }
              two: { middlewares: [{ use: one }, { offline: {}, as: second }] }
            routes:
              - { match: { path: /one }, service: a, chain: one }
              - { service: a, chain: two }
            """)
    }

    private func modes(_ answer: (status: Int, json: [String: Any])) -> [String] {
        (answer.json["offline"] as? [[String: Any]] ?? []).map { one in
            let words = [one["label"], one["mode"], one["configured"]].map { $0 as? String ?? "?" }
            return words.joined(separator: " ") + (one["overridden"] as? Bool == true ? " set" : "")
        }
    }

    @Test func `a mode is set for all or for one label, and ends`() async throws {
        let stage = try stage()
        #expect(modes(try await stage.ask("/v1/offline")) == ["first never never", "second auto auto"])
        let set = try await stage.ask("/v1/offline?mode=always&for=10m&label=second", .post)
        #expect(set.status == 200)
        #expect(modes(set) == ["second always auto set"])
        #expect((set.json["offline"] as? [[String: Any]])?.first?["until"] as? String == "2026-01-01T00:10:00.000Z")
        _ = try await stage.ask("/v1/offline?mode=never", .post)
        #expect(modes(try await stage.ask("/v1/offline")) == ["first never never set", "second never auto set"])
        await stage.advance(by: .seconds(3599))
        #expect(modes(try await stage.ask("/v1/offline")) == ["first never never set", "second never auto set"])
        await stage.advance(by: .seconds(1))
        #expect(modes(try await stage.ask("/v1/offline")) == ["first never never", "second auto auto"])
        _ = try await stage.ask("/v1/offline?mode=always", .post)
        #expect(
            modes(try await stage.ask("/v1/offline?mode=configured", .post)) == [
                "first never never", "second auto auto",
            ])
    }

    @Test(arguments: [
        ("/v1/offline", 400), ("/v1/offline?mode=", 400), ("/v1/offline?mode=off", 400),
        ("/v1/offline?mode=auto&for=0s", 400), ("/v1/offline?mode=auto&for=10", 400),
        ("/v1/offline?mode=auto&for=721h", 400), ("/v1/offline?mode=auto&until=1h", 400),
        ("/v1/offline?mode=auto&label=other", 404),
    ])
    func `invalid requests about offline are refused, and change nothing`(path: String, status: Int) async throws {
        let stage = try stage()
        #expect(try await stage.ask(path, .post).status == status)
        #expect(modes(try await stage.ask("/v1/offline")) == ["first never never", "second auto auto"])
    }

    @Test func `a method other than GET and POST is answered with both in Allow`() async throws {
        #expect(
            try await stage().ask("/v1/offline", .delete).json["detail"] as? String == "use GET or POST for this path")
    }
}
