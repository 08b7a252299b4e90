import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct TunnelBridgeTests {
    private let hand: HandTurnedLoop
    private let client = ScriptedClient()

    init() throws {
        hand = try HandTurnedLoop()
        client.startTunnel()
    }

    private func bridge() throws -> (TunnelBridge, FarEnd) {
        let (near, far) = try hand.pair()
        return (TunnelBridge(hand.transport, client, socket: near), far)
    }

    private func send(_ text: String, to bridge: TunnelBridge) {
        Array(text.utf8).withUnsafeBytes { bridge.tunnelReceivedFromClient($0) }
        hand.turn()
    }

    @Test func `bytes go both ways, and both ends end the tunnel`() throws {
        let (bridge, far) = try bridge()
        send("to the host", to: bridge)
        #expect(far.readTexts() == ["to the host"])
        far.send("to the client")
        hand.turn()
        #expect(client.tunnel == Array("to the client".utf8))
        far.endSending()
        hand.turn()
        #expect(client.ends == 0, "the client may still send")
        send("more", to: bridge)
        #expect(far.readTexts() == ["more"])
        bridge.tunnelEndedByClient()
        hand.turn()
        #expect(client.ends == 1 && client.cuts == 0)
    }

    @Test func `a client that is blocked is not read for, until it has drained`() throws {
        let (bridge, far) = try bridge()
        client.isBlocked = true
        far.send("one")
        hand.turn()
        far.send("two")
        hand.turn()
        #expect(client.tunnel == Array("one".utf8))
        client.isBlocked = false
        bridge.downstreamDrained()
        hand.turn()
        #expect(client.tunnel == Array("onetwo".utf8))
    }

    @Test func `a client that leaves closes the other end`() throws {
        let (bridge, far) = try bridge()
        bridge.clientLeft()
        hand.turn()
        _ = far.read()
        #expect(far.isEnded && client.ends == 0 && client.cuts == 0)
    }

    @Test func `without a socket the tunnel is cut off at once`() {
        let bridge = TunnelBridge(hand.transport, client, socket: nil)
        hand.turn()
        #expect(client.cuts == 1 && bridge.isClosed)
    }
}
