// One file: the table below, the state and the ends of an exchange are read together.

// The life of an exchange. The numbers are repeated in the code below and in its extensions.
//
//  1. A listener's loop accepted the connection; it stays on that loop.
//  2. The decoder read a head into `exchange.heldRequest`; hop-by-hop fields are removed.
//  3. The route is chosen, and with it the service and the joined chain.
//  4. Middlewares run in order: pass, abort with a response, or wait.
//  5. The upstream call: an endpoint, a pooled connection, the request; content streams with backpressure.
//  6. The response head arrives; response halves run in reverse; one may ask for a replay.
//  7. Postwares run in order, whatever made the response.
//  8. The response is sent; content streams through the filters that wares added.
//  9. The exchange ends exactly once: completed, cut off, or left by the client.
// 10. Its record goes to the observers.
//
// The effect of each event, by phase. An event that is not listed for a phase changes only the counts.
//
// | event             | phase                                                       | what happens                                |
// |-------------------|-------------------------------------------------------------|---------------------------------------------|
// | requestContent    | middlewares, connecting                                     | held; the client is paused at 64 KiB        |
// |                   | collectingRequest                                           | held, up to the limit of the ware           |
// |                   | awaitingContent                                             | held, up to 1 MiB; then the wares continue  |
// |                   | awaitingResponse, responseWares, collectingResponse,        | goes upstream, while the request is         |
// |                   | streaming                                                   | forwarded                                   |
// |                   | replaying                                                   | kept; over the limit, the replay is dropped |
// | requestEnded      | collectingRequest                                           | the ware runs                               |
// |                   | awaitingContent                                             | the wares continue, as after a pause        |
// |                   | countingRequest                                             | the answer of the ware is sent              |
// |                   | awaitingResponse … streaming                                | the end goes upstream                       |
// |                   | replaying                                                   | the replay starts, unless it waits          |
// | requestFailed     | awaitingRequest                                             | answered by the listener's postwares only   |
// |                   | all others but ended                                        | fail                                        |
// | clientLeft        | all but ended                                               | end, unless others need the response        |
// | connectionReady   | connecting                                                  | the request is sent; else the stream is     |
// |                   |                                                             | cancelled                                   |
// | connectionFailed  | connecting                                                  | another attempt, the next endpoint, or fail |
// | responseInterim   | awaitingResponse                                            | goes to the client                          |
// | responseStarted   | awaitingResponse                                            | response halves, then postwares             |
// | responseContent   | streaming                                                   | through the filters to the client           |
// |                   | collectingResponse                                          | collected, up to the limit of the ware      |
// | responseEnded     | streaming                                                   | end: completed                              |
// |                   | collectingResponse                                          | the ware runs                               |
// | upstreamFailed    | awaitingResponse                                            | another attempt, or again if that is safe   |
// |                   |                                                             | (`ResendRule`), or fail                     |
// |                   | responseWares, collectingResponse, streaming                | fail                                        |
// |                   | tunnel                                                      | end: completed                              |
// | downstreamDrained | streaming, tunnel                                           | the origin server may send more             |
// | upstreamDrained   | all while the request is not whole; tunnel                  | the client may send more                    |
// | hedge timer       | connecting, awaitingResponse                                | another endpoint is asked as well           |
// | total timeout     | middlewares … streaming                                     | fail: 408 if only the client is waited for, |
// |                   |                                                             | else 504                                    |
// | fail              | streaming, tunnel                                           | end: cut off                                |
// |                   | middlewares, collectingRequest, awaitingContent,            | an error response, from the ware before     |
// |                   | countingRequest                                             |                                             |
// |                   | replaying                                                   | the same, from the half before              |
// |                   | connecting, awaitingResponse, responseWares,                | the same, from the last ware that may still |
// |                   | collectingResponse                                          | run                                         |
//
// Reentrant calls. While the driver sends something, or pauses, reads or closes the other connection, it may find that a client or
// an origin server is gone. That event then arrives inside the call, and may end the exchange. So:
//
// - A step that is followed by others in the same function returns `Aftermath`, and the caller continues only after `.goesOn`. Such a
//   step runs a ware, checks a limit, sends a head or the request's content, asks for content, or gives a stream up. The last step of
//   an event ignores it: `_ =`.
// - A step that returns nothing and may end the exchange comes last, usually behind `return`: `end`, `fail`, `answerClient`,
//   `callUpstream`, `connect`, `deliver`, `startReplay`, `sendAgain`, and functions whose names begin with `run` or `start`.
// - After a call of the sink or the stream, only these two are used: both are `nil` once the exchange has ended.
// - `end` sets its phase before all such calls: a reentrant event then changes nothing.

/// Drives one exchange after another: from a request's head to the end of its response. Used on its loop's thread only.
///
/// `ExchangeDriver+Request` handles the request, `+Placeholders` the guard, `+Upstream` its way to the origin server, `+Attempts` and
/// `+Owning` endpoints and connections, `+Response` and `+Collecting` the response, `+Content` content on its way, `+Background` exchanges
/// without a client, and `+Record` the record.
final class ExchangeDriver: LoopTimerHandler {
    enum Phase {
        /// 2. The head is being read.
        case awaitingRequest
        /// 4. A ware handles the request, or waits.
        case middlewares
        /// 4. The ware at `inward.index` needs all of the content first.
        case collectingRequest
        /// 4. The start of the content is needed first: all of it, or the part before the client pauses.
        case awaitingContent
        /// 4. A ware has answered. The rest of the content is read, because a ware limits it.
        case countingRequest
        /// 5. A connection is being made.
        case connecting
        /// 5. The request is being sent; no final response yet.
        case awaitingResponse
        /// 6. Before the request is sent inward again, its rest is read, or a pause passes.
        case replaying
        /// 6–7. A ware handles the response, or waits.
        case responseWares
        /// 6–7. The current ware needs all of the response's content first.
        case collectingResponse
        /// 8. The head was sent.
        case streaming
        case tunnel
        /// 9. The exchange has ended.
        case ended
    }

    let server: LoopListener
    /// The listener's generation when the driver was made.
    let generation: Int
    /// The listener's router when the driver was made: a request whose head had begun by then uses these routes.
    let router: any ExchangeRouter
    let transport: LoopTransport
    let loop: EventLoop
    /// Constant, so that steps use it without counting a reference. If the exchange is retained elsewhere, its driver is not reused.
    let exchange: Exchange
    var sink: (any ResponseSink)?
    var plan: ExchangePlan
    var phase = Phase.awaitingRequest

    // The request.

    /// The request while middlewares have it; in `exchange.heldRequest` otherwise.
    var request: HttpRequest {
        @inline(__always) _read { yield exchange.lentRequest }
        @inline(__always) _modify { yield &exchange.lentRequest }
    }
    // The response.

    /// The current response. It is stored in the exchange, so that code which sends it needs no copy.
    var response: HttpResponse {
        @inline(__always) _read { yield exchange.response }
        @inline(__always) _modify { yield &exchange.response }
    }

    // The progress of the exchange: these values are created afresh for every exchange.

    var inward = RequestProgress()
    var call = UpstreamCall()
    var outward = ResponseProgress()
    var waiting = WaitState()

    // Values that stay from one exchange to the next.

    /// The request as it left each ware that may replay, in memory that is reused.
    var snapshots = RequestSnapshots()
    /// Runs while filters of the response hold content back, a small response is collected, or a hold has the request; made on first
    /// use. These never happen at the same time.
    var pauseTimer: LoopTimer?
    /// Runs while the start of the request's content is awaited, or filters hold some of it back; made on first use.
    var requestPauseTimer: LoopTimer?

    /// Runs while another endpoint may be asked for the response; made on first use.
    var hedgeTimer: LoopTimer?

    /// The tunnel that the exchange opens, if the gateway intercepts it or might have done so.
    var interception: Interception?

    /// Counts exchanges, so that a timer of an earlier exchange is recognised.
    var serial = 0
    /// Counts waits, so that the answer of an abandoned wait is ignored.
    var waitNumber = 0
    let totalTimer: LoopTimer

    // Observing.

    /// Sees the messages as they pass; `nil` without an observer of them.
    var tap: (any ExchangeTap)?
    /// Whether the actions of wares are recorded.
    var isObserved = false
    var wareStarted: Int64 = 0
    var watch = ChangeWatch()

    init(server: LoopListener) {
        self.server = server
        generation = server.generation
        router = server.router
        transport = server.transport
        loop = server.transport.loop
        exchange = ExchangeDriver.makeExchange(of: server)
        plan = router.listenerPlan
        totalTimer = LoopTimer(loop: server.transport.loop)
        totalTimer.handler = self
        exchange.starter = self
    }

    deinit { exchange.starter = nil }

    /// Makes an exchange with the values common to this listener. A driver serves one configuration only.
    private static func makeExchange(of server: LoopListener) -> Exchange {
        let exchange = Exchange(loop: server.transport.loop)
        exchange.listener = server.name
        exchange.isForward = server.settings.isForward
        exchange.trustedProxies = server.trustedProxies
        exchange.isBoundToLoopback = server.isBoundToLoopback
        exchange.goesByTarget = server.connector is ClientConnector
        return exchange
    }

    var chain: WareChain { plan.chain }

    /// Whether other code retains the exchange: a ware, an observer, a task. Its contents must then stay unchanged.
    var isExchangeHeld: Bool {
        // The constant cannot be passed `inout`, so an uncounted copy of the reference is inspected.
        var reference = Unmanaged.passUnretained(exchange)
        return withUnsafeMutablePointer(to: &reference) {
            $0.withMemoryRebound(to: Exchange.self, capacity: 1) { !isKnownUniquelyReferenced(&$0.pointee) }
        }
    }

    /// Whether the exchange ended inside the previous call.
    @inline(__always)
    var aftermath: Aftermath { phase == .ended ? .over : .goesOn }

    /// Prepares the driver for the next exchange, on a connection of its listener.
    func prepare(sink: any ResponseSink, connection: consuming ConnectionFacts) {
        serial &+= 1
        exchange.reset(for: connection)
        exchange.heldRequest.reset()
        self.sink = sink
        phase = .awaitingRequest
        inward = RequestProgress()
        call = UpstreamCall(behind: call.attempts.made)
        outward = ResponseProgress()
        if interception != nil { interception = nil }
        if tap != nil { tap = nil }
    }

    // MARK: 9. Endings

    /// Ends the exchange, once; it must not be used afterwards.
    func end(_ way: ExchangeEnd) {
        guard phase != .ended else { return }
        release()
        var end = way
        if outward.hasClientLeft {
            end = .clientLeft
            exchange.failure = exchange.failure ?? GatewayError(.downstream, .clientLeft, "the client left")
        }
        let hasBegun = phase != .awaitingRequest
        if isObserved { noteGivenUp() }
        takeRequestBack()
        phase = .ended
        exchange.record.ended = loop.now.nanoseconds
        if end != .completed { endAttempt(exchange.failure?.fault) }
        exchange.end = end
        if end == .clientLeft { exchange.finalStatus = nil }
        giveUpWaiting()
        exchange.tokenSwaps?.endTunnel()
        if exchange.hedging != nil { dropOthers() }
        call.attempts.giveUp()
        call.stream?.cancel()
        call.stream = nil
        if let own = call.connections {
            call.connections = nil
            own.close()
        }
        if call.attempts.leading.member != nil { call.attempts.leading.forgetMember() }
        totalTimer.clear()
        pauseTimer?.clear()
        requestPauseTimer?.clear()
        let sink = self.sink.take()
        if hasBegun { tellObservers() }
        switch way {
        // Almost no response has trailers: without any, nothing is copied.
        case .completed where outward.trailers == nil: sink?.sendEnd(nil)
        case .completed: sink?.sendEnd(outward.trailers)
        case .cutOff: sink?.cutOff()
        case .clientLeft: break
        }
        letGo()
        if outward.isBackground, !outward.isBeside { server.backgroundCount -= 1 }
        server.recycle(self)
    }

    /// Releases what the exchange holds, because the end of its response is about to leave. The client's next request may need it, and
    /// may arrive on another loop before this one continues.
    @inline(__always)
    func release() { if !exchange.releases.isEmpty { releaseAll() } }

    private func releaseAll() {
        let releases = exchange.releases
        exchange.releases.removeAll(keepingCapacity: true)
        for release in releases { release.body() }
    }

    /// Frees large memory now, not with the next exchange.
    private func letGo() {
        if response.content.bytes != nil { response.content = .none }
        if exchange.heldRequest.content.bytes != nil { exchange.heldRequest.content = .none }
        if request.content.bytes != nil { request.content = .none }
        if !outward.collected.isEmpty { outward.collected = [] }
        if !outward.early.isEmpty { outward.early = [] }
        if outward.path != nil { outward.path = nil }
        if outward.filtered != nil { outward.filtered = nil }
        if call.path != nil { call.path = nil }
        if inward.filtered != nil { inward.filtered = nil }
        if !inward.held.isEmpty { inward.held = [] }
        inward.kept = nil
        if inward.given != nil { inward.given = nil }
        if call.sent.isKept { call.sent.forget() }
        if !snapshots.isEmpty { snapshots.clear() }
    }

    /// 10. Notifies the observers.
    private func tellObservers() {
        // Observers do not count exchanges that never had a client.
        let hadClient = !outward.isBackground || outward.hasClientLeft
        if hadClient {
            if exchange.failure != nil { server.onFailure?(exchange) }
            for observer in chain.observers where isConcerned(observer) { observer.ware.ended(exchange) }
            server.counters?.ended(exchange, plan)
        }
        if let sharer = exchange.sharer.take() { sharer.exchangeEnded() }
        // The closures are released, because they may retain the exchange that owns them.
        var next = 0
        while next < exchange.endClosures.count {
            exchange.endClosures[next].body(exchange)
            next += 1
        }
        if next > 0 { exchange.endClosures.removeAll(keepingCapacity: true) }
        var recorded: RecordedExchange?
        if isObserved, let records = server.records {
            recorded = records.add(
                exchange, isHeld: isExchangeHeld, endpoint: call.endpoint, wantsCopy: tap != nil)
        }
        if let tap {
            self.tap = nil
            tap.ended(exchange, record: recorded)
        }
    }

    /// Whether the entry's condition holds, or cannot be decided. If the client left, there is no response to judge.
    private func isConcerned(_ observer: WareChain.Observer) -> Bool {
        guard let condition = observer.condition else { return true }
        do {
            return observer.isPostware && exchange.end != .clientLeft
                ? try condition.matches(response, in: exchange)
                : try condition.matches(exchange.heldRequest, in: exchange)
        } catch {
            return true
        }
    }

    func giveUpWaiting() {
        waitNumber &+= 1
        waiting.task?.cancel()
        waiting.task = nil
        if waiting.hold != nil { takeHold()?.givenUp() }
    }

    // MARK: Deadlines

    /// Sets the deadline of the whole exchange, if it has one. It counts from the start of the exchange; a ware's limit overrides the
    /// service's.
    func setDeadline() {
        guard let total = exchange.timeouts.total ?? plan.service?.timeouts.total, !inward.isRefused else { return }
        let due = exchange.record.started.addingReportingOverflow(total.nanoseconds)
        let deadline = LoopInstant(nanoseconds: due.overflow ? .max : due.partialValue)
        exchange.deadline = deadline
        totalTimer.set(dueNanoseconds: deadline.nanoseconds)
    }

    func timerFired(_ timer: LoopTimer) {
        transport.inEvent {
            if timer === hedgeTimer { return hedge() }
            if timer === requestPauseTimer { return phase == .awaitingContent ? contentAwaited() : contentPaused(.up) }
            if timer !== pauseTimer { return totalTimeout() }
            if let hold = waiting.hold {
                hold.timedOut()
                ended(hold)
            } else if outward.wantedIfWhole != nil, !outward.isWantedByEditor {
                smallResponseEnded()
            } else {
                contentPaused(.down)
            }
        }
    }

    /// The total timeout of the exchange has passed.
    private func totalTimeout() {
        switch phase {
        case .ended, .tunnel, .awaitingRequest: break
        case _ where isClientAwaited:
            inward.isRefused = true
            fail(GatewayError(.downstream, .requestTimeout, "the request's content did not come in time"))
        default:
            inward.isRefused = true
            let error = GatewayError(.upstream, .responseTimeout, "the exchange took longer than it may")
            if phase == .connecting || phase == .awaitingResponse {
                blame(call.attempts.leading, error)
                call.attempts.avoidLeading()
            }
            fail(error)
        }
    }

    /// Whether only the rest of the request is awaited. RFC 9110 §15.5.9.
    private var isClientAwaited: Bool {
        guard !inward.isWhole else { return false }
        switch phase {
        case .collectingRequest, .awaitingContent, .countingRequest: return true
        case .replaying: return !outward.isReplayTimed
        case .awaitingResponse:
            let isContinueAwaited =
                exchange.heldRequest.expectsContinue && !inward.hasSentContinue && !call.hasSentContent
            return call.isForwarding && call.stream?.isBlocked == false && !isContinueAwaited
        default: return false
        }
    }

    // MARK: Waiting

    /// Lets a ware finish asynchronously; `resume` receives its answer, on the loop.
    func wait<Message, Decision>(
        _ continuing: Continuing<Message, Decision>, _ message: Message,
        resume: @escaping (ExchangeDriver, Message, Result<Decision, any Error>) -> Void
    ) {
        waitNumber &+= 1
        setDeadline()
        let wait = PendingWait(
            driver: self, number: waitNumber, exchange: exchange, message: message, continuing: continuing,
            resume: resume)
        waiting.task = Task(executorPreference: loop) { await wait.run() }
    }
}

extension ExchangeDriver: HoldHolder {
    /// Lets a middleware wait without a task.
    func wait(for hold: ExchangeHold) {
        waitNumber &+= 1
        setDeadline()
        waiting.hold = hold
        hold.holder = self
        let timer = pauseTimer ?? LoopTimer(loop: loop, handler: self)
        pauseTimer = timer
        timer.set(after: hold.limit)
    }

    func ended(_ hold: ExchangeHold) {
        guard waiting.hold === hold, let then = hold.then else { return }
        takeHold()
        transport.inEvent { holdEnded(then) }
    }

    @discardableResult
    private func takeHold() -> ExchangeHold? {
        let hold = waiting.hold
        waiting.hold = nil
        hold?.holder = nil
        hold?.then = nil
        pauseTimer?.clear()
        return hold
    }
}

/// Carries the values of a waiting ware into its task.
///
/// Unchecked: it is made on the loop, and its task runs on the loop, which is its executor; no other thread uses it.
private final class PendingWait<Message, Decision>: @unchecked Sendable {
    private let driver: ExchangeDriver
    private let number: Int
    private let exchange: Exchange
    private var message: Message
    private let continuing: Continuing<Message, Decision>
    private let resume: (ExchangeDriver, Message, Result<Decision, any Error>) -> Void

    init(
        driver: ExchangeDriver, number: Int, exchange: Exchange, message: Message,
        continuing: Continuing<Message, Decision>,
        resume: @escaping (ExchangeDriver, Message, Result<Decision, any Error>) -> Void
    ) {
        self.driver = driver
        self.number = number
        self.exchange = exchange
        self.message = message
        self.continuing = continuing
        self.resume = resume
    }

    func run() async {
        var message = self.message
        let result: Result<Decision, any Error>
        do {
            result = .success(try await continuing.finish(&message, exchange))
        } catch {
            result = .failure(error)
        }
        guard driver.waitNumber == number, driver.phase != .ended else { return }
        driver.waiting.task = nil
        driver.transport.inEvent { resume(driver, message, result) }
    }
}
