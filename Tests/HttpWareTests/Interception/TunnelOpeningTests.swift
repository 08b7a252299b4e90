import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct TunnelOpeningTests {
    private let get = "GET / HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
    private let hello = "SSH-2.0-client\r\n"
    private let refused = GatewayError(.upstream, .connectionRefused, "refused")

    @Test func `HTTP in a tunnel is an exchange of its own`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        client.send(get)
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.request?.host == "a.test")
        stream.respond(text: "hi")
        stage.turn()
        #expect(client.readTexts().joined().hasSuffix("\r\n\r\nhi"))
    }

    @Test func `another protocol passes unread, with the bytes that came before the host was connected`() throws {
        let stage = try InterceptStage()
        stage.origin.isSlow = true
        let client = try stage.tunnel()
        client.send(hello)
        stage.turn()
        client.send("more")
        stage.turn()
        stage.advance(by: .seconds(5))
        stage.origin.admit()
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.text == hello + "more")
        stream.tunnel("SSH-2.0-host\r\n")
        stage.turn()
        #expect(client.readTexts() == ["SSH-2.0-host\r\n"])
    }

    @Test func `if the host of such a tunnel cannot be reached, the tunnel is closed`() throws {
        let stage = try InterceptStage()
        stage.origin.failures = Array(repeating: refused, count: 9)
        let client = try stage.tunnel()
        client.send(hello)
        stage.turn()
        _ = client.read()
        #expect(client.isEnded)
        #expect(stage.server.connectionCount == 0)
        #expect(stage.failures == ["refused"])
    }

    @Test(arguments: [0, 1])
    func `where other protocols are refused, the tunnel is closed at once and recorded once`(seconds: Int) throws {
        let stage = try InterceptStage(opaque: false)
        let client = try stage.tunnel()
        stage.advance(by: .seconds(seconds))
        client.send(hello)
        stage.turn()
        client.send("more")
        stage.turn()
        _ = client.read()
        #expect(client.isEnded)
        #expect(stage.failures.count == 1)
        #expect(stage.failures.first?.contains("neither TLS nor HTTP") == true)
        #expect(stage.origin.streams.isEmpty)
        #expect(stage.server.connectionCount == 0)
    }

    @Test func `when the client is silent, the host may speak first, and observers see the exchange only then`() throws
    {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        stage.advance(by: .milliseconds(200))
        #expect(stage.origin.streams.isEmpty)
        stage.advance(by: .milliseconds(200))
        let stream = try #require(stage.origin.streams.last)
        #expect(stage.server.backgroundCount == 1)
        stream.tunnel("220 mail\r\n")
        stage.turn()
        #expect(stage.server.backgroundCount == 0)
        #expect(client.readTexts() == ["220 mail\r\n"])
        client.send("EHLO x\r\n")
        stage.turn()
        #expect(stream.text == "EHLO x\r\n")
    }

    @Test func `a client that begins late is still intercepted, and the host's connection is dropped`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        stage.advance(by: .seconds(1))
        let listening = try #require(stage.origin.streams.last)
        client.send(get)
        stage.turn()
        #expect(listening.isCancelled)
        #expect(stage.server.backgroundCount == 0)
        #expect(stage.origin.streams.count == 2)
        #expect(stage.origin.streams.last?.request?.host == "a.test")
    }

    @Test(arguments: [true, false])
    func `a host that fails before the client begins does not end the tunnel`(atOnce: Bool) throws {
        let stage = try InterceptStage()
        if atOnce { stage.origin.failures = [refused] }
        let client = try stage.tunnel()
        stage.advance(by: .seconds(1))
        if !atOnce { stage.origin.streams.last?.fail() }
        stage.turn()
        #expect(stage.server.backgroundCount == 0)
        stage.origin.failures = []
        client.send(get)
        stage.turn()
        #expect(stage.origin.streams.last?.request?.host == "a.test")
    }

    @Test func `a silent client that sends no more still receives from the host`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        client.endSending()
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.ends == 1)
        stream.tunnel("news")
        stage.turn()
        #expect(client.readTexts() == ["news"])
    }

    @Test(arguments: [true, false])
    func `a client that never begins is closed after the idle timeout`(opaque: Bool) throws {
        let stage = try InterceptStage(opaque: opaque)
        let client = try stage.tunnel()
        stage.advance(by: .seconds(1))
        stage.advance(by: .seconds(58))
        _ = client.read()
        #expect(!client.isEnded)
        stage.advance(by: .seconds(3))
        _ = client.read()
        #expect(client.isEnded)
        #expect(stage.server.connectionCount == 0 && stage.server.backgroundCount == 0)
    }

    @Test func `the first bytes have the time limit of a head`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        client.send("GE")
        stage.turn()
        stage.advance(by: .seconds(9))
        client.send("T")
        stage.advance(by: .milliseconds(500))
        _ = client.read()
        #expect(!client.isEnded)
        stage.advance(by: .seconds(1))
        _ = client.read()
        #expect(client.isEnded)
    }

    @Test(arguments: [0, 1])
    func `a listener that drains closes a silent tunnel`(seconds: Int) throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        stage.advance(by: .seconds(seconds))
        stage.server.drain(idleFor: .milliseconds(500))
        stage.advance(by: .seconds(1))
        _ = client.read()
        #expect(client.isEnded)
        #expect(stage.server.connectionCount == 0 && stage.server.backgroundCount == 0)
    }

    @Test func `HTTP to an address passes unread if only names are listed`() throws {
        let stage = try InterceptStage(hosts: HostList([try HostPattern(optionText: "a.test")]))
        let client = try stage.tunnel(to: "192.0.2.1:443")
        client.send(get)
        stage.turn()
        #expect(stage.origin.streams.last?.text == get)
    }
}
