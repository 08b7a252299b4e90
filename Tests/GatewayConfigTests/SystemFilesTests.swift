import Foundation
import GatewayConfig
import HttpWare
import Testing

/// The reader before real files.
@Suite struct SystemFilesTests {
    private func withDirectory(_ files: [String: String], _ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (name, text) in files {
            let url = directory.appendingPathComponent(name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        try body(directory.path)
    }

    private let reader = ConfigurationReader(
        wares: ScriptedWares.all, stores: ScriptedWares.stores, environment: ["PORT": "8080"])

    @Test func `includes, globs and secrets are found beside the file`() throws {
        let main = """
            version: 1
            include: [conf.d/*.yaml]
            listeners: { web: { bind: "127.0.0.1:${PORT}" } }
            """
        let files = [
            "main.yaml": main, "conf.d/2.yaml": "routes: [{ service: api }]\n",
            "conf.d/1.yaml": "services: { api: { baseUrl: \"${file:url}\" } }\n", "conf.d/url": "http://a\n",
            "conf.d/3.txt": "}",
        ]
        try withDirectory(files) { directory in
            let result = reader.read(path: directory + "/main.yaml")
            #expect(result.errors == [])
            #expect(result.configuration?.services.first?.endpoints.first?.host == "a")
            #expect(
                result.paths
                    == ["main.yaml", "conf.d/1.yaml", "conf.d/url", "conf.d/2.yaml"].map { "\(directory)/\($0)" })
        }
    }

    @Test func `a file that cannot be read is an error that names it`() throws {
        try withDirectory(["a/main.yaml": "version: 1\ninclude: [b.yaml, ../a]\n"]) { directory in
            #expect(
                reader.read(path: directory + "/none.yaml").errors.map(\.description)
                    == ["\(directory)/none.yaml: error: no such file or directory"])
            #expect(
                reader.read(path: directory + "/a").errors.map(\.description)
                    == ["\(directory)/a: error: is a directory"])
            #expect(
                reader.read(path: directory + "/a/main.yaml").errors.map(\.message)
                    == ["\(directory)/a/b.yaml: no such file or directory", "\(directory)/a/../a: is a directory"])
        }
    }
}
