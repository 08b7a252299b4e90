import Foundation
import HttpWareClient
import HttpWareClientConfiguration
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

    @Test func `a service of a configuration file is a client's service`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let path = try ConfigurationTests.file(
            """
            version: 1
            services:
              api:
                baseUrl: "\(origin.url)/v1"
                headers: { X-App: todo }
                timeouts: { connect: 600s, response: 600s, idle: 600s, total: 700s }
                pool: { maxIdle: 3, maxPerEndpoint: 4 }
                chain: usual
              two: { endpoints: ["http://127.0.0.1:1", "http://127.0.0.1:2"] }
              other: { baseUrl: "http://127.0.0.1:1", host: example.com }
            chains:
              usual: { middlewares: [{ requestHeaders: { set: { X-Chain: usual } } }] }
              rare: { middlewares: [{ requestHeaders: { set: { X-Chain: rare } } }] }
            """)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let manager = try HttpManager(configuration: path, service: "api")
        #expect(manager.service.timeouts.total == .seconds(700))
        #expect(manager.service.pool.maxIdle == 3 && manager.service.pool.maxPerEndpoint == 4)
        _ = try await manager.send(DeleteTodo(id: 1))
        let rare = try HttpManager(configuration: path, service: "api", chain: "rare") { $0.responseLimit = .bytes(9) }
        #expect(rare.service.responseLimit == .bytes(9))
        _ = try await rare.send(DeleteTodo(id: 2))
        #expect(origin.requests.map(\.path) == ["/v1/todos/1", "/v1/todos/2"])
        #expect(origin.requests.map { $0.fields["X-App"] } == ["todo", "todo"])
        #expect(origin.requests.map { $0.fields["X-Chain"] } == ["usual", "rare"])
        for (name, word) in [
            ("none", "there are: api, other, two"), ("two", "one origin server"), ("other", "only for gateways"),
        ] {
            let mistakes = #expect(throws: ConfigurationMistakes.self) {
                try HttpManager(configuration: path, service: name)
            }
            #expect(mistakes?.description.contains(word) == true)
        }
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
