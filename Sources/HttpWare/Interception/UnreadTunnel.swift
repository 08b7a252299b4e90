/// The exchange of a tunnel that passes unread, though it might have been intercepted. The client already has its response to the
/// CONNECT, so the response of this exchange is not sent.
final class UnreadTunnel: ResponseSink {
    /// The client's side until the tunnel passes.
    private weak var opening: TunnelOpening?
    private let tunnel: InterceptedTunnel
    private var driver: ExchangeDriver?
    /// The client's side, once the tunnel passes.
    private var connection: Http1DownstreamConnection?

    init(_ opening: TunnelOpening, _ tunnel: InterceptedTunnel) {
        self.opening = opening
        self.tunnel = tunnel
    }

    /// The receiver of the client's bytes.
    var receiver: (any RequestReceiver)? { driver }

    private func makeDriver() -> ExchangeDriver {
        let driver = tunnel.listener.makeDriver(for: self, tunnel.outer)
        self.driver = driver
        driver.exchange.heldRequest = tunnel.request
        return driver
    }

    /// Connects to the host. Observers do not see the exchange until the tunnel certainly passes unread.
    func connect(host: String?, _ reason: UnreadReason, isSure: Bool) {
        makeDriver().startUnread(tunnel.rules.opaqueRouter, host: host, reason, isSure: isSure)
    }

    /// The tunnel certainly passes unread.
    func isSure() { driver?.isSure() }

    /// Ends the tunnel for this reason.
    func refuse(_ reason: String) { makeDriver().requestFailed(GatewayError(.gateway, .requestDenied, reason)) }

    /// The tunnel passes: this connection has the client's side.
    func passes(to connection: Http1DownstreamConnection) {
        opening = nil
        self.connection = connection
    }

    /// The client speaks a protocol that is intercepted, or has left: drops the connection to the host.
    func giveUp() {
        opening = nil
        let driver = self.driver
        self.driver = nil
        if connection == nil { driver?.dropUnread() }
    }

    // MARK: The sink

    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {}

    func sendContent(_ bytes: UnsafeRawBufferPointer) {}

    func startTunnel() { opening?.heard(.hostConnected, from: self) }

    func setTunnelIdle(_ nanoseconds: Int64) {}

    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {
        if connection == nil { opening?.heard(.hostSpoke, from: self) }
        connection?.sendTunnel(bytes)
    }

    func endTunnel() { connection == nil ? end() : connection?.endTunnel() }

    func sendEnd(_ trailers: HttpFields?) {
        driver = nil
        connection == nil ? end() : connection?.sendEnd(nil)
    }

    func cutOff() {
        driver = nil
        connection == nil ? end() : connection?.cutOff()
    }

    /// The connection to the host failed or has ended.
    private func end() { opening?.heard(.hostFailed, from: self) }

    func pauseRequest() { connection?.pauseRequest() }
    func resumeRequest() { connection?.resumeRequest() }
    var isBlocked: Bool { connection?.isBlocked ?? false }
    var relayTarget: SocketConnection? { connection?.relayTarget }
}
