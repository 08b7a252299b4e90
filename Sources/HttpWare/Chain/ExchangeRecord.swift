/// The events of an exchange and their times: one structure behind the log, the timings and every other view.
///
/// Times are nanoseconds of the loop's clock; 0 means that the event did not happen.
public struct ExchangeRecord: Sendable {
    /// The request's head was complete.
    public internal(set) var started: Int64 = 0
    /// Wall-clock time of the start, in seconds and nanoseconds since 1970; set only if the exchange is observed.
    public internal(set) var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// A connection was requested and is awaited; 0 as soon as it exists.
    var connectAsked: Int64 = 0
    /// The request began to wait for a connection: the endpoint's maximum was in use, or one was being made for several requests.
    var queueStarted: Int64 = 0
    var queueEnded: Int64 = 0
    /// The steps of the last attempt. With a reused connection the first three are 0.
    public internal(set) var resolveStarted: Int64 = 0
    public internal(set) var connectStarted: Int64 = 0
    public internal(set) var connected: Int64 = 0
    /// The TLS handshake finished.
    public internal(set) var secured: Int64 = 0
    public internal(set) var sendStarted: Int64 = 0
    public internal(set) var requestSent: Int64 = 0
    public internal(set) var firstByte: Int64 = 0
    /// The content continued after response wares had waited.
    var contentStarted: Int64 = 0
    /// The attempt failed, its response was discarded, or its response was complete before the exchange ended; 0 while it runs.
    var attemptEnded: Int64 = 0
    /// Why the attempt failed.
    var attemptFault: GatewayError.Fault?
    /// A pause began before the request is sent again.
    var pauseStarted: Int64 = 0
    public internal(set) var ended: Int64 = 0

    /// How many times the request was sent inward again.
    public internal(set) var replays = 0
    /// The request's content exceeded the limit for kept content, so it could not be sent again.
    public internal(set) var outgrewKept = false
    /// The number of connections tried.
    public internal(set) var attempts = 0
    /// How many of them the origin server refused unseen.
    public internal(set) var refusals = 0
    /// The connection upstream had served another request before.
    public internal(set) var isReused = false
    /// Bytes of content received from the client, and sent to it.
    public internal(set) var requestBytes = 0
    public internal(set) var responseBytes = 0
    /// Bytes of the response's content before filters, such as compression, changed it.
    public internal(set) var unfilteredBytes = 0
    /// The actions of each ware, if the exchange is observed.
    var trail = WareTrail()

    /// The record of an exchange that has not begun.
    public init() {}

    mutating func reset() {
        started = 0
        startedAt = WallTime(seconds: 0)
        forgetAttempt()
        ended = 0
        replays = 0
        outgrewKept = false
        attempts = 0
        refusals = 0
        requestBytes = 0
        responseBytes = 0
        unfilteredBytes = 0
        pauseStarted = 0
        if trail.labels != nil { trail.reset() }
    }

    /// Clears the steps of an attempt before another one follows.
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

    /// Whether an attempt has begun since the last one was cleared.
    @inline(__always)
    var hasAttempt: Bool { connectAsked | queueStarted | resolveStarted | connectStarted | sendStarted != 0 }

    /// A connection is available, or its making began, at this time: the time since the request for it was a wait in the queue.
    mutating func endQueue(at time: Int64) {
        if time > connectAsked {
            queueStarted = connectAsked
            queueEnded = time
        }
        connectAsked = 0
    }

    /// Ends the current attempt and its open phase at this time, by a fault if there is one. Does nothing if the attempt
    /// has ended. `isSending` says that part of the request was still unsent.
    mutating func endAttempt(at now: Int64, _ fault: GatewayError.Fault?, isSending: Bool) {
        guard attemptEnded == 0, hasAttempt else { return }
        attemptEnded = now
        attemptFault = fault
        if isSending, firstByte == 0 { requestSent = 0 }
    }

    /// A response that was about to be discarded continues after all.
    mutating func resumeAttempt(at now: Int64) {
        attemptEnded = 0
        contentStarted = now
    }

    /// Records the phases of an attempt that another may follow, if the exchange is observed, and clears it.
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

    /// Continues with the steps of another attempt, in place of the recorded or cleared one.
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

    /// Records the phases of a parallel attempt that ended by a fault or is no longer needed.
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

    /// The pause before the next attempt has ended, or a fault ended it.
    mutating func endPause(at now: Int64, _ fault: GatewayError.Fault? = nil) {
        guard pauseStarted != 0 else { return }
        if trail.labels != nil { trail.add(phase(.backoff, pauseStarted, now, fault)) }
        pauseStarted = 0
    }

    /// The connection failed; the fault shows at which step.
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

    /// The duration of the whole exchange; until `now` if it has not ended.
    public func duration(until now: LoopInstant) -> Duration {
        .nanoseconds((ended == 0 ? now.nanoseconds : ended) - started)
    }

    /// The steps of the wares, in the order of their answers; empty unless the exchange is observed.
    public var wares: [WareStep] { trail.steps.map { WareStep($0, of: trail) } }

    // MARK: Phases

    /// A part of an attempt to get a response from upstream, in nanoseconds.
    public struct Phase: Sendable, Equatable {
        /// `queue` for the wait for a connection, `dns`, `connect`, `tls`, `send`, `firstByte`, `content`, or `backoff` for the pause
        /// before the request is sent again.
        public let name: String
        /// The start, in the unit of the record's times.
        public let started: Int64
        public let duration: Int64
        /// The number of the try, from 1; for a pause, the try that follows it.
        public let attempt: Int
        /// The endpoint as `host:port`, if another attempt followed this one.
        public let endpoint: String?
        /// The fault that ended the phase before it was complete.
        public let fault: GatewayError.Fault?
    }

    /// The phases of all attempts, in order; the last content phase once it has ended. If the exchange is not observed, only
    /// the last attempt.
    public var phases: [Phase] {
        (trail.phases + lastPhases).map { phase in
            Phase(
                name: phase.name.rawValue, started: phase.started, duration: phase.duration,
                attempt: Int(phase.attempt), endpoint: phase.endpoint.count == 0 ? nil : trail.string(phase.endpoint),
                fault: phase.fault)
        }
    }

    /// The phases of the last attempt. A phase that was interrupted carries the fault that ended it.
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
        // A discarded response has no content phase unless time passed in it.
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
