import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct ConfigurationLinesTests {
    private func shown(_ value: String) throws -> String {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains:
              c:
                middlewares:
                  - requestHeaders:
                      set:
                        X-A: \(value)
                        X-B: b
            routes: [{ service: api, chain: c }]

            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: ["URL": "http://user:pw123@h/"],
            files: files
        ).read(path: "a.yaml")
        let configuration = try #require(result.configuration, "\(result.errors)")
        for value in configuration.values { #expect(value.text?.contains("pw123") != true) }
        let lines = ConfigurationLines(of: "a.yaml", in: configuration, secrets: configuration.secretTexts).masked(text)
        #expect(lines.count == text.split(separator: "\n").count && lines.contains("            X-B: b"))
        return lines[8].trimmingPrefix { $0 == " " }.description
    }

    @Test(arguments: [
        (#""http://user:pw123@h/""#, #"X-A: "http://…@h/""#), ("http://user:pw123@h/", "X-A: http://…@h/"),
        ("'http://user:pw123@h/' # a", "X-A: 'http://…@h/' # a"),
        (#""http://user:pw123 x@h/""#, #"X-A: "http://…@h/""#),
        (#""http://user:pw123\u0040h/""#, "X-A: ***"), (#""http://user:pw123\x40h/""#, "X-A: ***"),
        (#""http:\u002f/user:pw123@h/""#, "X-A: ***"), (#""http://user\u003apw123@h/""#, #"X-A: "http://…@h/""#),
        (#""a\tb""#, #"X-A: "a\tb""#), (#""\u0041 http://h/""#, #"X-A: "\u0041 http://h/""#), ("${URL}", "X-A: ${URL}"),
    ])
    func `lines of a file show no user information, however it is written`(value: String, line: String) throws {
        #expect(try shown(value) == line)
    }
}
