/// What happened to an exchange and when: one structure behind the log, the timings and every other view.
///
/// Times are nanoseconds of the loop's clock; 0 means that it did not come to that.
public struct ExchangeRecord: Sendable {
    /// The request's head was read whole.
    public internal(set) var started: Int64 = 0
    /// Wall-clock time of the start, in seconds and nanoseconds since 1970; taken where somebody observes the exchange.
    public internal(set) var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// The last attempt's steps. A connection that was there already has no first three.
    public internal(set) var resolveStarted: Int64 = 0
    public internal(set) var connectStarted: Int64 = 0
    public internal(set) var connected: Int64 = 0
    /// The TLS handshake was done.
    public internal(set) var secured: Int64 = 0
    public internal(set) var sendStarted: Int64 = 0
    public internal(set) var requestSent: Int64 = 0
    public internal(set) var firstByte: Int64 = 0
    public internal(set) var ended: Int64 = 0

    /// How often the request was sent inward again.
    public internal(set) var replays = 0
    /// The request's content grew over what is kept of it, so it could not be sent again.
    public internal(set) var outgrewKept = false
    /// How many connections were tried.
    public internal(set) var attempts = 0
    /// The connection upstream had served another request before.
    public internal(set) var isReused = false
    /// Bytes of content that came from the client, and that were sent to it.
    public internal(set) var requestBytes = 0
    public internal(set) var responseBytes = 0
    /// Bytes of the response's content before filters, such as compression, changed it.
    public internal(set) var unfilteredBytes = 0
    /// What each ware did, where somebody observes the exchange.
    var trail = WareTrail()

    mutating func reset() {
        started = 0
        startedAt = WallTime(seconds: 0)
        forgetAttempt()
        ended = 0
        replays = 0
        outgrewKept = false
        attempts = 0
        requestBytes = 0
        responseBytes = 0
        unfilteredBytes = 0
        if trail.labels != nil { trail.reset() }
    }

    /// Forgets the steps of an attempt that another one follows.
    mutating func forgetAttempt() {
        resolveStarted = 0
        connectStarted = 0
        connected = 0
        secured = 0
        sendStarted = 0
        requestSent = 0
        firstByte = 0
        isReused = false
    }

    /// No connection was made; which step it came to is known by the fault.
    mutating func connectFailed(_ fault: GatewayError.Fault, asked: Int64, failed: Int64) {
        forgetAttempt()
        if fault == .dnsError || fault == .dnsTimeout {
            resolveStarted = asked
            connectStarted = failed
        } else {
            connectStarted = asked
            connected = failed
        }
    }

    /// The whole exchange, so far if it has not ended.
    public func duration(until now: LoopInstant) -> Duration {
        .nanoseconds((ended == 0 ? now.nanoseconds : ended) - started)
    }

    /// What each ware did, in the order that they answered; empty unless somebody observes the exchange.
    public var wares: [WareStep] { trail.steps.map { WareStep($0, of: trail) } }

    // MARK: Phases

    /// A part of the last attempt, in nanoseconds.
    public struct Phase: Sendable, Equatable {
        /// `dns`, `connect`, `tls`, `send`, `firstByte` or `content`.
        public let name: String
        /// When it began, as the record's times are.
        public let started: Int64
        public let duration: Int64
    }

    /// The phases that took place, in order; the content is among them once it has ended.
    public var phases: [Phase] {
        var phases: [Phase] = []
        func add(_ name: String, _ from: Int64, _ to: Int64) {
            if from > 0, to >= from { phases.append(Phase(name: name, started: from, duration: to - from)) }
        }
        add("dns", resolveStarted, connectStarted)
        add("connect", connectStarted, connected)
        if secured > 0 { add("tls", connected, secured) }
        add("send", sendStarted, requestSent)
        add("firstByte", requestSent, firstByte)
        add("content", firstByte, ended)
        return phases
    }
}
