import Testing

@testable import HttpWareCommand

@Suite struct WithCommandTests {
    @Test func `the proxy is named in every spelling, and nothing else is touched`() {
        let environment = WithCommand.environment(
            ["PATH": "/bin", "http_proxy": "http://old:1", "ALL_PROXY": "socks5://old:2"],
            proxy: "http://127.0.0.1:1234")
        #expect(
            environment == [
                "PATH": "/bin", "ALL_PROXY": "socks5://old:2", "NO_PROXY": "", "no_proxy": "",
                "HTTP_PROXY": "http://127.0.0.1:1234", "http_proxy": "http://127.0.0.1:1234",
                "HTTPS_PROXY": "http://127.0.0.1:1234", "https_proxy": "http://127.0.0.1:1234",
            ])
    }

    @Test(arguments: [["NO_PROXY": "intern.example"], ["no_proxy": "intern.example"]])
    func `hosts that were left out stay so, in both spellings`(environment: [String: String]) {
        let changed = WithCommand.environment(environment, proxy: "http://127.0.0.1:1")
        #expect(changed["NO_PROXY"] == "intern.example")
        #expect(changed["no_proxy"] == "intern.example")
    }
}
