/// The steps of one attempt to get a response from upstream, with their times.
///
/// Times are nanoseconds of the loop's clock; 0 means that the step did not happen. With a reused connection, those of its making are 0.
struct AttemptSteps: Sendable {
    /// A connection was requested and is awaited; 0 as soon as it exists.
    var connectAsked: Int64 = 0
    /// The request began to wait for a connection: the endpoint's maximum was in use, or one was being made for several requests.
    var queueStarted: Int64 = 0
    var queueEnded: Int64 = 0
    var resolveStarted: Int64 = 0
    var connectStarted: Int64 = 0
    var connected: Int64 = 0
    /// The TLS handshake finished.
    var secured: Int64 = 0
    var sendStarted: Int64 = 0
    var requestSent: Int64 = 0
    var firstByte: Int64 = 0
    /// The content continued after response wares had waited.
    var contentStarted: Int64 = 0
    /// The attempt failed, its response was discarded, or its response was complete before the exchange ended; 0 while it runs.
    var ended: Int64 = 0
    /// Why the attempt failed.
    var fault: GatewayError.Fault?
    /// The connection had served another request before.
    var isReused = false

    /// Whether the attempt has begun.
    @inline(__always)
    var haveBegun: Bool { connectAsked | queueStarted | resolveStarted | connectStarted | sendStarted != 0 }

    /// A connection is available, or its making began, at this time: the time since the request for it was a wait in the queue.
    mutating func endQueue(at time: Int64) {
        if time > connectAsked {
            queueStarted = connectAsked
            queueEnded = time
        }
        connectAsked = 0
    }

    /// Ends the attempt and its open phase at this time, by a fault if there is one. Does nothing if it has ended. `isSending` says that
    /// part of the request was still unsent.
    mutating func end(at now: Int64, _ fault: GatewayError.Fault?, isSending: Bool = false) {
        guard ended == 0, haveBegun else { return }
        ended = now
        self.fault = fault
        if isSending, firstByte == 0 { requestSent = 0 }
    }

    /// The connection failed; the fault shows at which step.
    mutating func connectFailed(_ fault: GatewayError.Fault, at now: Int64) {
        let asked = connectAsked
        self = AttemptSteps()
        ended = now
        self.fault = fault
        if fault == .dnsError || fault == .dnsTimeout {
            resolveStarted = asked
            connectStarted = now
        } else if fault == .connectionLimitReached {
            queueStarted = asked
            queueEnded = now
        } else {
            connectStarted = asked
            connected = now
        }
    }

    /// The phases, until `now` if the attempt has not ended. A phase that was interrupted carries the fault that ended it. `replays` is
    /// the number of replays before the attempt.
    func phases(until now: Int64, replays: Int) -> [WareTrail.Phase] {
        let end = ended > 0 ? ended : now
        var phases: [WareTrail.Phase] = []
        func add(_ name: WareTrail.Phase.Name, _ from: Int64, _ to: Int64, isOpen: Bool = false) {
            if from > 0, to >= from {
                phases.append(WareTrail.Phase(name, from, to, replays: replays, isOpen ? fault : nil))
            }
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
        if ended == 0 || fault != nil || end > content { add(.content, content, end, isOpen: true) }
        return phases
    }
}
