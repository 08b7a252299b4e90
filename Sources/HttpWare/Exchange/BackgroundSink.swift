// The place of the client in an exchange that has none.

/// Replaces the client's connection. It keeps the driver alive until the exchange has ended.
final class BackgroundSink: ResponseSink {
    private var driver: ExchangeDriver?
    private var receiver: (any BackgroundReceiver)?

    init(_ driver: ExchangeDriver, _ receiver: (any BackgroundReceiver)?) {
        self.driver = driver
        self.receiver = receiver
    }

    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        var response = exchange.response
        response.content = HttpContent(extent: extent)
        receiver?.responseStarted(response, in: exchange)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        receiver?.responseContent(bytes)
        driver?.endIfUnwanted()
    }

    func sendEnd(_ trailers: HttpFields?) { end(isWhole: true) }
    func cutOff() { end(isWhole: false) }

    private func end(isWhole: Bool) {
        driver = nil
        let receiver = self.receiver
        self.receiver = nil
        receiver?.responseEnded(isWhole: isWhole)
    }

    func startTunnel() {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pauseRequest() {}
    func resumeRequest() {}
    var isBlocked: Bool { driver?.isAheadOfOthers == true }
}

/// A driver that waits for the other clients of its response.
///
/// Unchecked: other threads only pass it on; the driver is read on its loop.
struct WaitForOthers: @unchecked Sendable {
    weak var driver: ExchangeDriver?
    let serial: Int

    func end() {
        guard let driver, driver.serial == serial, driver.phase != .ended else { return }
        driver.transport.inEvent {
            driver.endIfUnwanted()
            guard driver.phase != .ended else { return }
            // The one that had caught up may have left meanwhile.
            if driver.isBlocked(.down) { driver.waitForOthersIfAhead() } else { driver.downstreamDrained() }
        }
    }
}
