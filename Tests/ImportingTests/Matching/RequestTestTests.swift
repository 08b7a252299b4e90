import HttpWare
import Testing

@testable import Importing

@Suite struct RequestTestTests {
    private func map(_ test: RequestTest) -> String? { MatchMap(test)?.node.flow }

    @Test(arguments: [
        ("Host(`a.test`) && PathPrefix(`/api`)", "{ host: a.test, path: \"~^/api\" }"),
        ("Host(`a.test`) || Host(`b.test`)", "{ host: [a.test, b.test] }"),
        ("Host(`a.test`) && (Path(`/x`) || Method(`POST`))", "{ host: a.test, any: [{ path: /x }, { method: POST }] }"),
        ("!Header(`X-A`, `1`) && ClientIP(`10.0.0.0/8`)", "{ client: 10.0.0.0/8, not: { headers: { X-A: 1 } } }"),
        ("PathPrefix(`/`)", "{}"),
        ("Host(`a.test`) && Host(`b.test`)", "{ host: a.test, any: [{ host: b.test }] }"),
        ("Query(`a`, `~b`)", "{ query: { a: \"~^~b$\" } }"),
    ])
    func `rules of Traefik become matches`(rule: String, match: String) {
        #expect(map(TraefikRule.read(rule)) == match)
    }
}
