/// One attempt to get a response from an endpoint: the first one of an exchange, a further one beside it, or one after a failure.
struct UpstreamAttempt {
    enum Standing {
        /// It has not begun, or has ended: no event is awaited.
        case over
        /// A connection is awaited.
        case connecting
        /// The request is sent, and a response awaited.
        case sent
        /// Its response began.
        case answered
    }

    /// Distinguishes the attempts of a driver; 0 before the first one.
    private(set) var number = 0
    var standing = Standing.over
    /// Whether it was asked beside another attempt, and the ware that permitted it does not know the outcome.
    var isFurther = false
    /// Whether the request counts among the endpoint's current requests.
    private(set) var isCounted = false
    /// The destination; `nil` before the first attempt.
    var endpoint: Endpoint?
    /// The endpoint as a member of its service's balancing; `nil` without balancing.
    private(set) var member: EndpointMember?
    /// When a connection was requested, in nanoseconds of the loop's clock.
    private(set) var asked: Int64 = 0
    /// The place in the queue for a connection.
    var ticket: ConnectionTicket?
    /// The source of the response; `nil` before there is a connection, and when the response is complete or was discarded.
    var stream: (any UpstreamStream)?

    /// Begins with a request for a connection, in place of an attempt that has ended.
    mutating func begin(_ number: Int, at endpoint: Endpoint, _ member: EndpointMember?, _ now: Int64) {
        leave()
        self.number = number
        standing = .connecting
        self.endpoint = endpoint
        self.member = member
        asked = now
        guard let member else { return }
        member.beginRequest()
        isCounted = true
    }

    /// The connection was made.
    mutating func ready(on stream: any UpstreamStream) {
        standing = .sent
        ticket = nil
        self.stream = stream
    }

    /// Ends the request's count at the endpoint.
    mutating func leave() {
        guard isCounted else { return }
        isCounted = false
        member?.endRequest()
    }

    /// Forgets the endpoint as a member: the next one may be of another service.
    mutating func forgetMember() {
        leave()
        member = nil
    }

    /// Gives up the wait for a connection. The stream, if there is one, is the caller's.
    mutating func giveUp() {
        if standing != .answered { standing = .over }
        ticket?.giveUp()
        ticket = nil
    }

    /// Ends the stream of an attempt that is not needed. The connection of one that was answered may be reused.
    func endStream() { if standing == .answered { stream?.discard() } else { stream?.cancel() } }
}

extension AttemptSteps {
    /// There is a connection: a new one, made at these times, or a reused one.
    mutating func connectionReady(_ times: Connector.Times?, isReused: Bool, at now: Int64) {
        self.isReused = isReused
        guard let times else { return endQueue(at: now) }
        endQueue(at: times.resolveStarted > 0 ? times.resolveStarted : times.connectStarted)
        resolveStarted = times.resolveStarted
        connectStarted = times.connectStarted
        connected = times.connected
        secured = times.secured
    }
}
