/// Detects whether a client that ended its side of the connection still waits for its response. RFC 9112 §9.6.
///
/// A client that half-closed (`printf … | nc`) and a client that is gone send the same FIN. So the exchange continues. If the
/// client's system answers sent bytes with a reset, the client counts as gone. Before the response begins, 100 (Continue) is sent
/// after a second, and again every ten seconds: clients discard it if they did not ask for it. A FIN that comes later than its
/// request is rarely a half-close, so the first 100 then follows at once. A client that ends its side during the response also
/// counts as gone if none of the response can be sent for a second.
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
        /// When the client's end is first looked at.
        let first: Duration
        /// The number of looks since the last probe; `nil` before the first.
        private var looks: Int?
        private var sent = -1

        /// The client ended its side this long after the end of its request.
        init(hadResponse: Bool, after time: Duration) {
            self.hadResponse = hadResponse
            first = time > State.together && !hadResponse ? .zero : State.pause
        }

        /// A client that half-closes sends its FIN together with the end of its request.
        static let together = Duration.milliseconds(100)
        static let pause = Duration.seconds(1)
        /// A reset arrives within a round trip: soon, from a near client, or a little later.
        static let roundTrips = [Duration.milliseconds(25), .milliseconds(225)]
        static let between = Duration.seconds(10)

        mutating func next(_ facts: Facts) -> Step {
            if facts.hasBroken { return .leave }
            guard facts.hasResponse else {
                let look = looks.map { $0 + 1 } ?? 0
                looks = look < State.roundTrips.count ? look : nil
                guard look < State.roundTrips.count else { return .wait(State.between) }
                return look == 0 ? .probe(State.roundTrips[0]) : .wait(State.roundTrips[look])
            }
            defer { sent = facts.sent }
            if hadResponse, !facts.isBlocked, facts.sent == sent { return .leave }
            return .wait(State.pause)
        }
    }

    /// Owns this object.
    private unowned let connection: Http1DownstreamConnection
    private let timer: LoopTimer
    private var state: State

    /// The client of the connection ended its side, this long after the end of its request.
    init(_ connection: Http1DownstreamConnection, loop: EventLoop, hasResponse: Bool, after time: Duration) {
        self.connection = connection
        timer = LoopTimer(loop: loop)
        state = State(hadResponse: hasResponse, after: time)
        timer.handler = self
        if hasResponse, let facts = connection.endedClientFacts { _ = state.next(facts) }
        timer.set(after: state.first)
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
