import GatewayConfig
import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct LocalProxyTests {
    @Test func `the configuration without a file is valid, and metadata addresses are refused`() throws {
        var proxy = LocalProxy(command: "with")
        proxy.hosts = nil
        let configuration = try proxy.configuration()
        let listener = try #require(configuration.listeners.first)
        #expect(configuration.admin == nil && listener.intercept == nil)
        #expect(!listener.denyPrivate && listener.deniesMetadata && listener.connectPorts.contains(8443))
        #expect(proxy.text.contains("169.254.169.254") && proxy.text.contains("[fd00:ec2::254]"))
    }

    @Test func `only names the hosts that can be reached, and the proxy's own host stays among them`() {
        var proxy = LocalProxy(command: "with")
        proxy.only = LocalProxy.hosts(["a.test,b.test", "*.c.test"])
        #expect(proxy.text.contains(#"allow: ["a.test", "b.test", "*.c.test", "httpware.proxy"]"#))
        #expect(!LocalProxy(command: "with").text.contains("allow"))
        #expect(!LocalProxy(command: "with").text.contains("callout"))
    }

    @Test func `an addon is a ware of the chain, wherever the command runs`() throws {
        var proxy = LocalProxy(command: "with")
        proxy.addon = "/tmp/addon.py"
        #expect(proxy.text.contains(#", { callout: { mitmproxy: "/tmp/addon.py", timeout: 60s"#))
        proxy.addon = "addon.py"
        #expect(!proxy.text.contains(#"mitmproxy: "addon.py""#))
        proxy.addon = #filePath
        // Without an authority of this user.
        proxy.hosts = nil
        let middlewares = try #require(try proxy.configuration().listeners.first?.chain.entries.middlewares)
        #expect(middlewares.map(\.label) == ["hostRule", "callout"])
    }

    @Test func `hosts and exceptions are the listener's`() {
        let proxy = LocalProxy(command: "inspect", admin: "127.0.0.1:0", hosts: ["a.test"], except: ["b.test"])
        #expect(proxy.text.contains(#"intercept: { hosts: ["a.test"], except: ["b.test"] }"#))
        #expect(proxy.text.contains(#"admin: { bind: "127.0.0.1:0", capture: { memory: "64MiB" } }"#))
    }
}
