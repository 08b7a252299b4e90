import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ConfigurationTests {
    private static func file(_ text: String) throws -> String {
        let path = FileManager.default.temporaryDirectory.appending(path: "client-\(UUID()).yaml").path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test func `a chain of a configuration file is a client's chain`() async throws {
        let path = try ConfigurationTests.file(
            """
            version: 1
            credentials:
              key: { grant: static, value: "${KEY}" }
            chains:
              common:
                middlewares:
                  - requestHeaders: { set: { X-App: todo } }
              app:
                middlewares:
                  - use: common
                  - tokenInject: { credential: key }
                postwares:
                  - responseHeaders: { set: { X-Seen: "yes" } }
            """)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        let manager = try HttpManager(
            configuration: path, chain: "app", service: try .local(origin.port), environment: ["KEY": "secret"])
        let response = try await manager.response(of: DeleteTodo(id: 1))
        #expect(response.fields["X-Seen"] == "yes")
        #expect(origin.requests.first?.fields["X-App"] == "todo")
        #expect(origin.requests.first?.fields[.authorization] == "Bearer secret")
        let missing = #expect(throws: ConfigurationMistakes.self) {
            try HttpManager(
                configuration: path, chain: "web", service: try .local(origin.port), environment: ["KEY": "secret"])
        }
        #expect(missing?.description.contains("app, common") == true)
    }

    @Test func `every mistake of a file is told, with its place`() throws {
        let path = try ConfigurationTests.file(
            """
            version: 1
            chains:
              app:
                middlewares:
                  - bodyLimit: { max: 10 mb }
                  - nothing: {}
            """)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let mistakes = #expect(throws: ConfigurationMistakes.self) {
            try HttpManager(configuration: path, chain: "app", service: "http://127.0.0.1:9".service)
        }
        #expect(mistakes?.errors.map(\.location.line) == [5, 6])
        #expect(throws: ConfigurationMistakes.self) {
            try HttpManager(configuration: "/nowhere", chain: "app", service: "http://127.0.0.1:9".service)
        }
    }
}
