import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct ExplanationMaskTests {
    private static let text = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        services: { api: { baseUrl: "http://192.0.2.1:3000" } }
        chains:
          c:
            middlewares:
              - requestHeaders: { set: { X-Upstream: "http://user:pw123@h/", X-Spaces: "http://user:pw123 pw123@h/" } }
              - script:
                  source: |
                    -- http://user:pw123@h/
                    return { request = function(req)
                      req.headers["X-B"] = "http://user:pw123@b/"
                    end }
              - callout: { command: [python3, decide.py, "--url=http://user:pw123@h/"], options: { to: "http://user:pw123@h/" } }
        routes: [{ service: api, chain: c }]
        """

    private func explanation(_ url: String) throws -> Explanation {
        let files = ConfigurationFiles(read: { _, _ in Array(Self.text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        var question = Explanation.Question(.get, url)
        question.fields = [("X-Asked", "http://user:pw123@h/")]
        return try Explanation(question, in: try #require(result.configuration, "\(result.errors)"))
    }

    @Test(arguments: ["/a", "/a?u=http://user:pw123@h/", "/a?u=http%3A%2F%2Fuser%3Apw123%40h%2F"])
    func `an explanation shows no user information, whatever the option is`(url: String) throws {
        let explanation = try explanation(url)
        let text = ExplanationJson(explanation).text
        #expect(!text.contains("pw123"), "\(text)")
        #expect(text.contains("X-Upstream: http://…@h/"))
        let mask = ExplanationMask(explanation)
        for entry in explanation.chain.entries.middlewares {
            #expect(!mask.text(entry.options.masked.flow).contains("pw123"))
        }
    }

    @Test(arguments: [
        ("GET /a?m=mailto:x@y HTTP/1.1", "GET /a?m=mailto:x@y HTTP/1.1"),
        ("GET /users/x:y@z HTTP/1.1", "GET /users/x:y@z HTTP/1.1"),
        ("GET http://u:p@h/a HTTP/1.1", "GET http://…@h/a HTTP/1.1"),
        ("GET /a?u=a%2F%2Fu:p@h HTTP/1.1", "GET /a?*** HTTP/1.1"),
    ])
    func `a target is shown without user information, and otherwise as it is`(target: String, shown: String) throws {
        #expect(ExplanationMask(try explanation("/a")).target(target) == shown)
    }

    @Test func `values of fields and parameters that are named like credentials are hidden`() throws {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains:
              c:
                middlewares:
                  - requestHeaders: { set: { X-Auth-Token: hush1, X-Session: "Bearer hush2", X-B: shown1 } }
                  - { requestHeaders: { set: { X-C: c } }, if: { headers: { X-Api-Key: hush3 }, query: { token: hush4 } } }
                  - rewrite: { query: { set: { access_token: hush5, a: shown2 } } }
            routes: [{ service: api, chain: c }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        let explanation = try Explanation(
            Explanation.Question(.get, "http://h/?sig=hush6"),
            in: try #require(result.configuration, "\(result.errors)"))
        let shown = ExplanationJson(explanation).text
        #expect(!shown.contains("hush"), "\(shown)")
        #expect(shown.contains("X-B: shown1") && shown.contains("a=shown2"))
        let mask = ExplanationMask(explanation)
        for entry in explanation.chain.entries.middlewares {
            #expect(!mask.text(entry.options.masked.flow).contains("hush"))
        }
    }

    @Test func `an alias of a secret is hidden wherever it stands`() throws {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains: { c: { middlewares: [{ requestHeaders: { set: { X-A: &a hush1 } } }, { tokenInject: { value: *a } }] } }
            routes: [{ service: api, chain: c }]
            """
        func configuration(_ text: String) throws -> GatewayConfiguration {
            let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
            let result = ConfigurationReader(
                wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
            ).read(path: "a.yaml")
            return try #require(result.configuration, "\(result.errors)")
        }
        let old = try configuration(text)
        #expect(!old.values.contains { $0.text?.contains("hush") == true })
        let explanation = try Explanation(Explanation.Question(.get, "http://h/"), in: old)
        #expect(!ExplanationJson(explanation).text.contains("hush"))
        let difference = ConfigurationDifference(
            from: old, to: try configuration(text.replacing("hush1", with: "hush2")))
        let keys = difference.changes.flatMap(\.keys)
        #expect(keys.contains { $0.key == "requestHeaders.set.X-A" } && !"\(keys)".contains("hush"), "\(keys)")
    }
}
