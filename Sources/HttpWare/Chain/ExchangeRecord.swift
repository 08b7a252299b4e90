/// What happened to an exchange and when: one structure behind the log, the timings and every other view.
///
/// Times are nanoseconds of the loop's clock; 0 means that it did not come to that.
public struct ExchangeRecord: Sendable {
    /// The request's head was read whole.
    public internal(set) var started: Int64 = 0
    /// Wall-clock time of the start, in seconds and nanoseconds since 1970; taken where somebody observes the exchange.
    public internal(set) var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// A connection was asked for and is awaited; 0 as soon as there is one.
    var connectAsked: Int64 = 0
    /// The request waited for a connection: all that the endpoint may have were in use, or one was being made for many.
    var queueStarted: Int64 = 0
    var queueEnded: Int64 = 0
    /// The last attempt's steps. A connection that was there already has no first three.
    public internal(set) var resolveStarted: Int64 = 0
    public internal(set) var connectStarted: Int64 = 0
    public internal(set) var connected: Int64 = 0
    /// The TLS handshake was done.
    public internal(set) var secured: Int64 = 0
    public internal(set) var sendStarted: Int64 = 0
    public internal(set) var requestSent: Int64 = 0
    public internal(set) var firstByte: Int64 = 0
    /// The response wares had waited for something, and the content went on.
    var contentStarted: Int64 = 0
    /// The attempt failed, or its response was discarded or was whole before the exchange ended; 0 while it goes on.
    var attemptEnded: Int64 = 0
    /// Why it failed.
    var attemptFault: GatewayError.Fault?
    /// A pause began, after which the request is sent again.
    var pauseStarted: Int64 = 0
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

    /// That of an exchange that has not begun.
    public init() {}

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
        pauseStarted = 0
        if trail.labels != nil { trail.reset() }
    }

    /// Forgets the steps of an attempt that another one follows.
    mutating func forgetAttempt() {
        connectAsked = 0
        queueStarted = 0
        queueEnded = 0
        resolveStarted = 0
        connectStarted = 0
        connected = 0
        secured = 0
        sendStarted = 0
        requestSent = 0
        firstByte = 0
        contentStarted = 0
        attemptEnded = 0
        attemptFault = nil
        isReused = false
    }

    /// Whether a connection was asked for since the last attempt was forgotten.
    @inline(__always)
    var hasAttempt: Bool { connectAsked | queueStarted | resolveStarted | connectStarted | sendStarted != 0 }

    /// A connection is there, or its making began at this time: what passed since it was asked for was a wait for others.
    mutating func endQueue(at time: Int64) {
        if time > connectAsked {
            queueStarted = connectAsked
            queueEnded = time
        }
        connectAsked = 0
    }

    /// Ends the attempt under way, and the phase that is still open, at this time: by a fault if there is one. Does nothing if it
    /// ended before. `isSending` says that some of the request was still to be sent.
    mutating func endAttempt(at now: Int64, _ fault: GatewayError.Fault?, isSending: Bool) {
        guard attemptEnded == 0, hasAttempt else { return }
        attemptEnded = now
        attemptFault = fault
        if isSending, firstByte == 0 { requestSent = 0 }
    }

    /// The response that was to be discarded goes on after all.
    mutating func resumeAttempt(at now: Int64) {
        attemptEnded = 0
        contentStarted = now
    }

    /// Notes the phases of an attempt that another one may follow, where somebody observes, and forgets it.
    mutating func keepAttempt(at now: Int64, endpoint: String?) {
        guard hasAttempt else { return }
        endAttempt(at: now, nil, isSending: false)
        if trail.labels != nil {
            let address = endpoint.map { trail.add($0.utf8) } ?? WareTrail.Text()
            for var phase in lastPhases {
                phase.endpoint = address
                trail.add(phase)
            }
        }
        forgetAttempt()
    }

    /// The steps of another attempt, which goes on in place of the one that was kept or forgotten.
    mutating func goOn(with other: ExchangeRecord) {
        connectAsked = other.connectAsked
        queueStarted = other.queueStarted
        queueEnded = other.queueEnded
        resolveStarted = other.resolveStarted
        connectStarted = other.connectStarted
        connected = other.connected
        secured = other.secured
        sendStarted = other.sendStarted
        requestSent = other.requestSent
        isReused = other.isReused
    }

    /// Notes the phases of an attempt beside this one, which has ended by a fault, or is not wanted any more.
    mutating func note(
        _ other: ExchangeRecord, endedAt now: Int64, _ fault: GatewayError.Fault?, endpoint: String
    ) {
        guard trail.labels != nil else { return }
        var other = other
        other.replays = replays
        other.endAttempt(at: now, fault, isSending: false)
        let address = trail.add(endpoint.utf8)
        for var phase in other.lastPhases {
            phase.endpoint = address
            trail.add(phase)
        }
    }

    /// The pause before the next attempt is over, or was ended by a fault.
    mutating func endPause(at now: Int64, _ fault: GatewayError.Fault? = nil) {
        guard pauseStarted != 0 else { return }
        if trail.labels != nil { trail.add(phase(.backoff, pauseStarted, now, fault)) }
        pauseStarted = 0
    }

    /// No connection was made; which step it came to is known by the fault.
    mutating func connectFailed(_ fault: GatewayError.Fault, failed: Int64) {
        let asked = connectAsked
        forgetAttempt()
        attemptEnded = failed
        attemptFault = fault
        if fault == .dnsError || fault == .dnsTimeout {
            resolveStarted = asked
            connectStarted = failed
        } else if fault == .connectionLimitReached {
            queueStarted = asked
            queueEnded = failed
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

    /// A part of an attempt to get a response from upstream, in nanoseconds.
    public struct Phase: Sendable, Equatable {
        /// `queue` for the wait for a connection that others use, `dns`, `connect`, `tls`, `send`, `firstByte`, `content`, or `backoff` for the pause before the request is sent again.
        public let name: String
        /// When it began, as the record's times are.
        public let started: Int64
        public let duration: Int64
        /// Which time the request went inward, from 1; of a pause, the time that it comes before.
        public let attempt: Int
        /// Where an attempt went that another one followed, as `host:port`.
        public let endpoint: String?
        /// What ended it before it was complete.
        public let fault: GatewayError.Fault?
    }

    /// The phases of all attempts, in order, the content of the last one once it has ended; of the last attempt only where nobody
    /// observes the exchange.
    public var phases: [Phase] {
        (trail.phases + lastPhases).map { phase in
            Phase(
                name: phase.name.rawValue, started: phase.started, duration: phase.duration,
                attempt: Int(phase.attempt), endpoint: phase.endpoint.count == 0 ? nil : trail.string(phase.endpoint),
                fault: phase.fault)
        }
    }

    /// The phases of the last attempt. One that had not come to its end by itself has the fault that ended it.
    private var lastPhases: [WareTrail.Phase] {
        let end = attemptEnded > 0 ? attemptEnded : ended
        var phases: [WareTrail.Phase] = []
        func add(_ name: WareTrail.Phase.Name, _ from: Int64, _ to: Int64, isOpen: Bool = false) {
            if from > 0, to >= from { phases.append(phase(name, from, to, isOpen ? attemptFault : nil)) }
        }
        let hasConnection = connectStarted > 0 || sendStarted > 0
        add(.queue, queueStarted, queueEnded, isOpen: !hasConnection)
        add(.dns, resolveStarted, connectStarted, isOpen: connected == 0)
        add(.connect, connectStarted, connected, isOpen: secured == 0 && sendStarted == 0 && firstByte == 0)
        if secured > 0 { add(.tls, connected, secured) }
        add(.connect, connectAsked, end, isOpen: true)
        let isSent = requestSent > 0
        add(.send, sendStarted, isSent ? requestSent : end, isOpen: !isSent)
        add(.firstByte, requestSent, firstByte > 0 ? firstByte : end, isOpen: firstByte == 0)
        let content = firstByte > 0 ? max(firstByte, contentStarted) : 0
        // Nothing was waited for of a response that was discarded.
        if attemptEnded == 0 || attemptFault != nil || end > content { add(.content, content, end, isOpen: true) }
        return phases
    }

    private func phase(
        _ name: WareTrail.Phase.Name, _ from: Int64, _ to: Int64, _ fault: GatewayError.Fault?
    ) -> WareTrail.Phase {
        WareTrail.Phase(
            started: from, duration: to - from, name: name, attempt: UInt8(truncatingIfNeeded: replays + 1),
            fault: fault, endpoint: WareTrail.Text())
    }
}
