import ArgumentParser
import Foundation
import Testing

@testable import HttpWareCommand

@Suite struct TestCommandTests {
    private static let configuration = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        services: { api: { baseUrl: "http://192.0.2.1:3000" } }
        routes: [{ service: api }]
        """

    /// Runs the command in a folder with these files, and returns its exit status.
    private func run(_ files: [String: String], _ arguments: [String]) throws -> Int32 {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
        }
        let command = try TestCommand.parse(arguments.map { $0.hasPrefix("-") ? $0 : folder.appending(path: $0).path })
        do {
            try command.run()
            return 0
        } catch let code as ExitCode {
            return code.rawValue
        }
    }

    private static let passing = "cases: [{ name: a, request: { url: / }, expect: { upstream: { service: api } } }]"
    private static let failing = "cases: [{ name: a, request: { url: / }, expect: { upstream: none } }]"

    @Test func `the exit status says whether all cases passed`() throws {
        #expect(try run(["a.yaml": Self.configuration, "a.test.yaml": Self.passing], ["-c", "a.yaml"]) == 0)
        #expect(try run(["a.yaml": Self.configuration, "a.test.yaml": Self.passing], ["a.test.yaml", "--json"]) == 0)
        #expect(
            try run(["a.yaml": Self.configuration, "a.test.yaml": Self.failing], ["-c", "a.yaml", "--junit"]) == 1)
    }

    @Test func `errors in a file, and files that cannot be read, have statuses of their own`() throws {
        #expect(try run(["a.yaml": Self.configuration, "a.test.yaml": "cases: 7"], ["-c", "a.yaml"]) == 1)
        #expect(try run(["a.yaml": "version: 2", "a.test.yaml": Self.passing], ["-c", "a.yaml"]) == 1)
        #expect(try run(["a.yaml": Self.configuration], ["-c", "a.yaml"]) == 3)
        #expect(try run(["a.test.yaml": Self.passing], ["a.test.yaml", "-c", "a.yaml"]) == 3)
    }

    @Test func `a check covers the cases beside the file`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "a.yaml")
        try Self.configuration.write(to: file, atomically: true, encoding: .utf8)
        try CheckCommand.parse([file.path]).run()
        let cases = folder.appending(path: "a.test.yaml")
        try Self.failing.write(to: cases, atomically: true, encoding: .utf8)
        try CheckCommand.parse([file.path]).run()
        try "cases: [{ nam: a }]".write(to: cases, atomically: true, encoding: .utf8)
        #expect(throws: ExitCode(1)) { try CheckCommand.parse([file.path]).run() }
    }

    @Test(arguments: [["--json", "--junit"], ["-c", "-"], ["-", "-"]])
    func `arguments that do not belong together are refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try TestCommand.parse(arguments) }
    }
}
