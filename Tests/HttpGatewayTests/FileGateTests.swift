import Foundation
import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

/// A configuration whose options must not look at this machine.
@Suite struct FileGateTests {
    private func errors(_ text: String) -> [String] {
        let files = ConfigurationFiles(
            read: { path, _ throws(ConfigurationFiles.Fault) in
                guard path == "test.yaml" else { throw ConfigurationFiles.Fault("only the text itself is read here") }
                return Array(text.utf8)
            }, list: { _ in [] }, isOfMachine: false)
        return ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "test.yaml").errors.map(\.message)
    }

    private static let options = [
        "apiKey: { keysFile: P }", "basicAuth: { usersFile: P }", "mock: { file: P }", "files: { root: P }",
        "replay: { file: P }", "jwt: { issuer: \"https://a.test\", jwksFile: P }", "tokenInject: { file: P }",
        "awsSigV4: { from: P, region: eu-west-1, service: s3 }", "accessLog: { output: P }", "record: { file: P }",
        "errorPage: { file: P }",
    ]

    @Test(arguments: options)
    func `no ware says anything about a file`(option: String) {
        /// The errors with a path in place of P, where its text does not matter.
        func told(_ path: String) -> [String] {
            let list = option.hasPrefix("accessLog") || option.hasPrefix("errorPage") ? "postwares" : "middlewares"
            return errors(
                """
                version: 1
                listeners: { web: { bind: "127.0.0.1:8080" } }
                services: { api: { baseUrl: "http://127.0.0.1:3000" } }
                chains: { a: { \(list): [{ \(option.replacing("P", with: path)) }] } }
                routes: [{ service: api, chain: a }]
                """
            ).map { $0.replacing(path, with: "P") }
        }
        let here = told("/etc/passwd")
        for other in ["/etc/shadow", "/etc", "/no/such/file", "/dev/zero", "/root"] {
            #expect(told(other) == here, "\(option) tells \(other) from another")
        }
        #expect(!here.contains { $0.contains("root:") || $0.contains("No such") })
    }

    @Test func `no folder of an authority and no variable is looked at`() {
        func told(_ folder: String) -> [String] {
            errors(
                """
                version: 1
                listeners:
                  f:
                    bind: "127.0.0.1:8080"
                    mode: forward
                    intercept: { hosts: "*", ca: \(folder) }
                    chain: a
                chains: { a: { middlewares: [{ awsSigV4: { from: environment, region: eu-west-1, service: s3 } }] } }
                routes: [{ service: passthrough }]
                """
            ).map { $0.replacing(folder, with: "P") }
        }
        #expect(told("/etc") == told("/no/such/folder"))
        #expect(told("/etc").filter { $0.contains("only the text itself is read here") }.count == 2)
    }
}
