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
}
