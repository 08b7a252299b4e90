/// The events of an exchange and their times: one structure behind the log, the timings and every other view.
///
/// Times are nanoseconds of the loop's clock; 0 means that the event did not happen.
public struct ExchangeRecord: Sendable {
    /// The request's head was complete.
    public internal(set) var started: Int64 = 0
    /// Wall-clock time of the start, in seconds and nanoseconds since 1970; set only if the exchange is observed.
    public internal(set) var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// A pause began before the request is sent again.
    var pauseStarted: Int64 = 0
    public internal(set) var ended: Int64 = 0
    /// The steps of the last attempt.
    var steps = AttemptSteps()

    /// How many times the request was sent inward again.
    public internal(set) var replays = 0
    /// The request's content exceeded the limit for kept content, so it could not be sent again.
    public internal(set) var outgrewKept = false
    /// The number of connections tried.
    public internal(set) var attempts = 0
    /// How many of them the origin server refused unseen.
    public internal(set) var refusals = 0
    /// Bytes of content received from the client, and sent to it.
    public internal(set) var requestBytes = 0
    public internal(set) var responseBytes = 0
    /// Bytes of the response's content before filters, such as compression, changed it.
    public internal(set) var unfilteredBytes = 0
    /// The actions of each ware, if the exchange is observed.
    var trail = WareTrail()

    /// The record of an exchange that has not begun.
    public init() {}

    // The steps of the last attempt. With a reused connection the first three are 0.

    public var resolveStarted: Int64 { steps.resolveStarted }
    public var connectStarted: Int64 { steps.connectStarted }
    public var connected: Int64 { steps.connected }
    /// The TLS handshake finished.
    public var secured: Int64 { steps.secured }
    public var sendStarted: Int64 { steps.sendStarted }
    public var requestSent: Int64 { steps.requestSent }
    public var firstByte: Int64 { steps.firstByte }
    /// The connection upstream had served another request before.
    public var isReused: Bool { steps.isReused }

    mutating func reset() {
        started = 0
        startedAt = WallTime(seconds: 0)
        steps = AttemptSteps()
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

    /// A response that was about to be discarded continues after all.
    mutating func resumeAttempt(at now: Int64) {
        steps.ended = 0
        steps.contentStarted = now
    }

    /// Records the phases of an attempt that another may follow, if the exchange is observed, and clears it.
    mutating func keepAttempt(at now: Int64, endpoint: String?) {
        guard steps.haveBegun else { return }
        keep(steps, endedAt: now, nil, endpoint: endpoint)
        steps = AttemptSteps()
    }

    /// Records the phases of an attempt that has ended, by a fault or because it is not needed, if the exchange is observed.
    mutating func keep(
        _ steps: AttemptSteps, endedAt now: Int64, _ fault: GatewayError.Fault?, endpoint: String?
    ) {
        guard trail.labels != nil else { return }
        var steps = steps
        steps.end(at: now, fault)
        let address = endpoint.map { trail.add($0.utf8) } ?? WareTrail.Text()
        for var phase in steps.phases(until: now, replays: replays) {
            phase.endpoint = address
            trail.add(phase)
        }
    }

    /// The pause before the next attempt has ended, or a fault ended it.
    mutating func endPause(at now: Int64, _ fault: GatewayError.Fault? = nil) {
        guard pauseStarted != 0 else { return }
        if trail.labels != nil { trail.add(WareTrail.Phase(.backoff, pauseStarted, now, replays: replays, fault)) }
        pauseStarted = 0
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
        (trail.phases + steps.phases(until: ended, replays: replays)).map { phase in
            Phase(
                name: phase.name.rawValue, started: phase.started, duration: phase.duration,
                attempt: Int(phase.attempt), endpoint: phase.endpoint.count == 0 ? nil : trail.string(phase.endpoint),
                fault: phase.fault)
        }
    }
}
