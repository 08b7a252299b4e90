import GatewayConfig
import HttpWare
import Testing

/// Cases: `httpware.yaml` is the configuration that runs, `new.yaml` the one that shall.
@Suite struct ConfigurationDifferenceTests {
    @Test(arguments: ConfigurationCase.all(in: "Differences"))
    func `each change of a reload is reported with place, key and its losses`(_ both: ConfigurationCase) throws {
        let old = both.read()
        let new = both.read("new.yaml", keeping: old.configuration)
        let difference = ConfigurationDifference(
            from: try #require(old.configuration, "\(old.errors)"), to: try #require(new.configuration, "\(new.errors)")
        )
        #expect(difference.lines == both.expected)
    }

    @Test func `there are cases`() {
        #expect(ConfigurationCase.all(in: "Differences").count >= 20)
    }

    @Test(arguments: ConfigurationCase.all(in: "Differences"))
    func `nothing changes against itself, in either direction`(_ both: ConfigurationCase) throws {
        for path in ["httpware.yaml", "new.yaml"] {
            let configuration = try #require(both.read(path).configuration)
            #expect(ConfigurationDifference(from: configuration, to: configuration).isEmpty)
        }
    }

    @Test func `a service stays while its definition does, whatever chain it has`() throws {
        func configuration(_ services: String) throws -> GatewayConfiguration {
            let text = """
                version: 1
                listeners: { web: { bind: "127.0.0.1:1" } }
                services: { \(services) }
                chains: { c: { middlewares: [mock] } }
                routes: [{ service: a, chain: c }]
                """
            return try #require(ConfigurationCase(name: "", text: text).read().configuration)
        }
        let old = try configuration(
            #"a: { baseUrl: "http://a" }, b: { baseUrl: "http://b" }, c: { baseUrl: "http://c" }"#)
        let new = try configuration(#"a: { chain: c, baseUrl: http://a }, b: { baseUrl: "http://b2" }"#)
        let difference = ConfigurationDifference(from: old, to: new)
        #expect(difference.keptServices == ["a", "passthrough"])
        #expect(difference.losses.map(\.what) == ["services.c: its connections"])
    }
}

extension ConfigurationDifference {
    /// As the cases expect it.
    fileprivate var lines: [String] {
        var lines: [String] = []
        for change in changes {
            let effect = change.effect.map { " (\($0))" } ?? ""
            lines.append("\(change.location) \(change.what) \(change.kind.rawValue)\(effect)")
            for key in change.keys {
                lines.append(
                    "  \(key.location) \(key.key): \(key.old ?? "was not written"); \(key.new ?? "is not written")")
            }
        }
        return lines + losses.map { "lost: \($0.what) (\($0.location))" }
    }
}
