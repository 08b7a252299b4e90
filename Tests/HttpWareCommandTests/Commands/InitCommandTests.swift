import ArgumentParser
import Foundation
import GatewayConfig
import HttpGateway
import HttpWare
import Testing
import GatewayWares

@testable import HttpWareCommand

@Suite struct InitCommandTests {
    @Test(arguments: StartingFile.allCases)
    func `a configuration to begin with has neither errors nor warnings`(use: StartingFile) {
        let result = BuiltinConfiguration.result(of: use.text(origin: use.usualOrigin), for: "init")
        // A user who has read no TLS yet has no authority; `with` makes it.
        let errors = result.errors.filter { use != .agent || !$0.isAboutMissingAuthority }
        #expect(errors.map(\.description).isEmpty)
        #expect(result.configuration != nil || result.errors.count == 1)
    }

    @Test(arguments: StartingFile.allCases)
    func `the cases beside a configuration to begin with pass`(use: StartingFile) throws {
        func files(_ text: String) -> ConfigurationFiles {
            ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        }
        let configuration = files(use.text(origin: use.usualOrigin))
        let runner = CaseRunner {
            ConfigurationReader(
                wares: BuiltinWares.all, stores: StandInStores.all, environment: [:], files: configuration
            )
            .read(path: "httpware.yaml")
        }
        let read = CaseFile.read(
            path: "httpware.test.yaml", environment: [:], files: files(use.cases))
        #expect(read.errors == [])
        for one in try #require(read.file).cases {
            let outcome = runner.run(one)
            #expect(outcome.hasPassed, "\(CaseReport.text(outcome))")
        }
    }

    @Test func `the file for an agent lets the token reach the host of the origin server alone`() {
        let text = StartingFile.agent.text(origin: "https://api.example.org:8443/v1")
        #expect(text.contains("hostRule: { allow: [\"api.example.org\", httpware.proxy] }"))
        #expect(text.contains("match: { host: \"api.example.org\" }, chain: api"))
    }

    @Test(arguments: [
        ("3000", "http://127.0.0.1:3000"), (":3000", "http://127.0.0.1:3000"),
        ("localhost:3000", "http://localhost:3000"), ("app.test", "http://app.test"),
        ("https://app.test/x", "https://app.test/x"), ("nonsense", "nonsense"),
    ])
    func `an origin server is known as people write it`(text: String, url: String) {
        #expect(LocalAddress.url(text) == url)
    }

    @Test(arguments: [
        ("8083", "127.0.0.1:8083"), (":8083", "127.0.0.1:8083"), ("localhost:8083", "127.0.0.1:8083"),
        ("0.0.0.0:80", "0.0.0.0:80"), ("[::]:80", "[::]:80"), ("unix:/run/a", "unix:/run/a"),
    ])
    func `a port alone is on the loopback`(text: String, bind: String) { #expect(LocalAddress.bind(text) == bind) }

    @Test(arguments: [
        (["ware"], "name the ware, such as: httpware init ware methodRule"),
        (["ware", "rateLimit"], "is a built-in ware"),
        (["ware", "methodRule", "--in", ""], "--in names a folder"),
        (["ware", "methodRule", "--force"], "are for configurations"),
        (["gateway", "--in", "x"], "are for init ware"),
        (["site", "--program", "x"], "are for init ware"),
    ])
    func `arguments that do not belong together are refused`(arguments: [String], reason: String) {
        let error = #expect(throws: (any Error).self) { try InitCommand.parse(arguments) }
        #expect(error.map { InitCommand.message(for: $0) }?.contains(reason) == true)
    }

    @Test func `a package is written into its folder, and over no file`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-init-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let command = try InitCommand.parse(["ware", "methodRule", "--in", folder.path])
        try command.run()
        let package = try WarePackage.named(ware: "methodRule", program: "my-gateway")
        for file in package.files {
            #expect(try String(contentsOf: folder.appending(path: file.path), encoding: .utf8) == file.text)
        }
        try Data("own".utf8).write(to: folder.appending(path: "Package.swift"))
        try FileManager.default.removeItem(at: folder.appending(path: "Makefile"))
        #expect(throws: (any Error).self) { try command.run() }
        #expect(try String(contentsOf: folder.appending(path: "Package.swift"), encoding: .utf8) == "own")
        #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "Makefile").path))
    }
}
