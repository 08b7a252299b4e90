/// A further attempt of a request that has no response yet: another endpoint, with a connection of its own. Used on its loop's thread
/// only.
///
/// While the driver's own call is running, the attempt does not reach the client. It replaces that call if its response comes
/// first, or if the call fails. From then on it forwards everything to the driver.
final class HedgeAttempt {
    private enum Standing {
        /// Runs beside the driver's own call.
        case beside
        /// Has replaced that call.
        case adopted
        case over
    }

    private let driver: ExchangeDriver
    let member: EndpointMember
    let endpoint: Endpoint
    /// When the attempt began, in nanoseconds of the loop's clock.
    let asked: Int64
    /// The place in the queue for a connection.
    var ticket: ConnectionTicket?
    private(set) var stream: (any UpstreamStream)?
    /// The steps of this attempt.
    var steps = AttemptSteps()
    private var standing = Standing.beside

    init(_ driver: ExchangeDriver, _ member: EndpointMember, _ endpoint: Endpoint) {
        self.driver = driver
        self.member = member
        self.endpoint = endpoint
        asked = driver.loop.now.nanoseconds
        steps.connectAsked = asked
    }

    /// Whether the attempt waits for its connection.
    var isConnecting: Bool { standing == .beside && stream == nil }

    /// Whether the attempt was sent, and waits for its response beside the driver's own call.
    var isWaiting: Bool { standing == .beside && stream != nil }

    /// The driver has taken over the attempt's stream or ticket.
    func adopt() { standing = .adopted }

    /// Abandons the attempt.
    func giveUp() {
        standing = .over
        ticket?.giveUp()
        ticket = nil
        let stream = self.stream.take()
        stream?.cancel()
    }

    /// Discards the attempt's unneeded answer: the connection may be reused.
    private func discard() {
        standing = .over
        let stream = self.stream.take()
        stream?.discard()
    }
}

extension HedgeAttempt: ConnectionWaiter {
    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        switch standing {
        case .adopted: return driver.connectionReady(stream, times)
        case .over: return stream.cancel()
        case .beside: break
        }
        ticket = nil
        self.stream = stream
        steps.connectionReady(times, isReused: stream.isReused, at: driver.loop.now.nanoseconds)
        driver.transport.inEvent { driver.send(self, on: stream) }
    }

    func connectionFailed(_ error: GatewayError) {
        ticket = nil
        switch standing {
        case .adopted: driver.connectionFailed(error)
        case .over: break
        case .beside:
            standing = .over
            steps.connectFailed(error.fault, at: driver.loop.now.nanoseconds)
            driver.hedgeFailed(self, error, isItsFault: error.fault != .connectionLimitReached)
        }
    }
}

extension HedgeAttempt: ResponseReceiver {
    private var isAdopted: Bool { standing == .adopted }

    func responseInterim(_ response: inout HttpResponse) { if isAdopted { driver.responseInterim(&response) } }

    func responseStarted(_ response: inout HttpResponse) {
        switch standing {
        case .adopted: return driver.responseStarted(&response)
        case .over: return
        case .beside: break
        }
        if response.status.isOfGatewayInTrouble {
            discard()
            return driver.hedgeRefused(self, response.status)
        }
        guard driver.adopt(self) == .goesOn else { return }
        driver.responseStarted(&response)
    }

    var responseRelay: SocketConnection? { isAdopted ? driver.responseRelay : nil }
    func responseEnding() { if isAdopted { driver.responseEnding() } }
    func responseRelayed(_ count: Int) { if isAdopted { driver.responseRelayed(count) } }
    func responseContent(_ bytes: UnsafeRawBufferPointer) { if isAdopted { driver.responseContent(bytes) } }
    func responseEnded(_ trailers: HttpFields?) { if isAdopted { driver.responseEnded(trailers) } }

    func upstreamFailed(_ error: GatewayError) {
        switch standing {
        case .adopted: driver.upstreamFailed(error)
        case .over: break
        case .beside:
            standing = .over
            stream = nil
            driver.hedgeFailed(
                self, error, isItsFault: !(steps.isReused && error.fault == .connectionTerminated))
        }
    }

    func upstreamDrained() { if isAdopted { driver.upstreamDrained() } }
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) {}
    func tunnelReceivedEnd() {}
}
