/// Detects whether a client that ended its side of the connection still waits for its response. RFC 9112 §9.6.
///
/// A client that half-closed (`printf … | nc`) and a client that is gone send the same FIN. So the exchange continues. If the
/// client's system answers sent bytes with a reset, the client counts as gone. Before the response begins, 100 (Continue) is sent
/// after a second, and again every ten seconds: clients discard it if they did not ask for it. A client that ends its side during
/// the response also counts as gone if none of the response can be sent for a second.
final class EndedClient: LoopTimerHandler {
    /// The state of the client's connection.
    struct Facts {
        /// Whether the socket has an error.
        var hasBroken: Bool
        /// Whether the head of the response was sent.
        var hasResponse: Bool
        /// Whether output waits for the socket.
        var isBlocked: Bool
        /// The number of content bytes sent.
        var sent: Int
    }

    /// Decides, each time the timer fires.
    struct State {
        enum Step: Equatable { case wait(Duration), probe(Duration), leave }

        /// Whether the response had begun when the client ended its side.
        let hadResponse: Bool
        private var hasProbed = false
        private var sent = -1

        init(hadResponse: Bool) { self.hadResponse = hadResponse }

        static let first = Duration.seconds(1)
        /// A reset arrives within a round trip.
        static let roundTrip = Duration.milliseconds(250)
        static let between = Duration.seconds(10)

        mutating func next(_ facts: Facts) -> Step {
            if facts.hasBroken { return .leave }
            guard facts.hasResponse else {
                hasProbed.toggle()
                return hasProbed ? .probe(State.roundTrip) : .wait(State.between)
            }
            defer { sent = facts.sent }
            if hadResponse, !facts.isBlocked, facts.sent == sent { return .leave }
            return .wait(State.first)
        }
    }

    /// Owns this object.
    private unowned let connection: Http1DownstreamConnection
    private let timer: LoopTimer
    private var state: State

    init(_ connection: Http1DownstreamConnection, loop: EventLoop, hasResponse: Bool) {
        self.connection = connection
        timer = LoopTimer(loop: loop)
        state = State(hadResponse: hasResponse)
        timer.handler = self
        if hasResponse, let facts = connection.endedClientFacts { _ = state.next(facts) }
        timer.set(after: State.first)
    }

    func timerFired(_ timer: LoopTimer) {
        connection.transport.inEvent { look() }
    }

    private func look() {
        // The response has ended; the pending output is sent, and the connection closes by itself.
        guard let facts = connection.endedClientFacts else { return }
        switch state.next(facts) {
        case .leave: connection.endedClientLeft()
        case .probe(let next):
            connection.probeEndedClient()
            timer.set(after: next)
        case .wait(let next): timer.set(after: next)
        }
    }
}
