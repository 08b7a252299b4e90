import Foundation
import GatewayConfig
import HttpGateway
import HttpWare
import Testing
import Wares

@testable import HttpWareCommand

@Suite struct InitCommandTests {
    @Test(arguments: StartingFile.allCases)
    func `a configuration to begin with has neither errors nor warnings`(use: StartingFile) {
        let text = use.text(origin: "http://127.0.0.1:3000")
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "/httpware.yaml")
        #expect(result.errors.map(\.description).isEmpty)
        #expect(result.configuration != nil)
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
