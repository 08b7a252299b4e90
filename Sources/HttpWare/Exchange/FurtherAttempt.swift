/// Takes the events of a further attempt to its driver. Used on its loop's thread only.
///
/// While the attempt runs beside the leading one, it does not reach the client. Once it leads, the driver gets all of its events.
final class FurtherAttempt {
    private let driver: ExchangeDriver
    let number: Int

    init(_ driver: ExchangeDriver, _ number: Int) {
        self.driver = driver
        self.number = number
    }

    private var leads: Bool { driver.call.attempts.leads(number) }
}

extension FurtherAttempt: ConnectionWaiter {
    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        driver.ready(number, stream, times, beside: self)
    }

    func connectionFailed(_ error: GatewayError) { driver.refused(number, error) }
}

extension FurtherAttempt: ResponseReceiver {
    func responseInterim(_ response: inout HttpResponse) { if leads { driver.responseInterim(&response) } }

    func responseStarted(_ response: inout HttpResponse) {
        if leads || driver.answered(number, response.status) == .goesOn { driver.responseStarted(&response) }
    }

    var responseRelay: SocketConnection? { leads ? driver.responseRelay : nil }
    func responseEnding() { if leads { driver.responseEnding() } }
    func responseRelayed(_ count: Int) { if leads { driver.responseRelayed(count) } }
    func responseContent(_ bytes: UnsafeRawBufferPointer) { if leads { driver.responseContent(bytes) } }
    func responseEnded(_ trailers: HttpFields?) { if leads { driver.responseEnded(trailers) } }
    func upstreamFailed(_ error: GatewayError) {
        if leads { driver.upstreamFailed(error) } else { driver.failed(number, error) }
    }
    func upstreamDrained() { if leads { driver.upstreamDrained() } }
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) {}
    func tunnelReceivedEnd() {}
}
