// One file: the table below, the state and the ends of an exchange are read together.

// The life of an exchange. The numbers come again in the code below and in its extensions.
//
//  1. A listener's loop accepted the connection; it stays on that loop.
//  2. The decoder read a head into `exchange.heldRequest`; fields for one hop are off.
//  3. The route is chosen, and with it the service and the joined chain.
//  4. Middlewares run in order: pass, abort with a response, or wait.
//  5. The upstream call: an endpoint, a pooled connection, the request; content streams with backpressure.
//  6. The response head arrives; response halves run in reverse; one may ask for a replay.
//  7. Postwares run in order, whoever made the response.
//  8. The response is sent; content streams through filters where a ware asked for them.
//  9. The exchange ends exactly once: completed, cut off, or left by the client.
// 10. Its record goes to those who observe.
//
// What happens at each event, by phase. An event that a phase does not name changes nothing but the counts.
//
// | event             | phase                                                       | what happens                                |
// |-------------------|-------------------------------------------------------------|---------------------------------------------|
// | requestContent    | middlewares, connecting                                     | held; the client is paused at 64 KiB        |
// |                   | collectingRequest                                           | held, up to the limit of the ware           |
// |                   | awaitingContent                                             | held, up to 1 MiB; then the wares go on     |
// |                   | awaitingResponse, responseWares, collectingResponse,        | goes upstream, as long as the request is    |
// |                   | streaming                                                   | forwarded                                   |
// |                   | replaying                                                   | kept; too much of it ends the replay        |
// | requestEnded      | collectingRequest                                           | the ware is asked                           |
// |                   | awaitingContent                                             | the wares go on; so do they after a pause   |
// |                   | countingRequest                                             | the answer of the ware goes out             |
// |                   | awaitingResponse … streaming                                | the end goes upstream                       |
// |                   | replaying                                                   | the replay starts, unless it waits          |
// | requestFailed     | awaitingRequest                                             | answered by the listener's postwares only   |
// |                   | all others but ended                                        | fail                                        |
// | clientLeft        | all but ended                                               | end, unless others want the response        |
// | connectionReady   | connecting                                                  | the request is sent; else the stream is     |
// |                   |                                                             | cancelled                                   |
// | connectionFailed  | connecting                                                  | another attempt, the next endpoint, or fail |
// | responseInterim   | awaitingResponse                                            | goes to the client                          |
// | responseStarted   | awaitingResponse                                            | response halves, then postwares             |
// | responseContent   | streaming                                                   | through the filters to the client           |
// |                   | collectingResponse                                          | collected, up to the limit of the ware      |
// | responseEnded     | streaming                                                   | end: completed                              |
// |                   | collectingResponse                                          | the ware is asked                           |
// | upstreamFailed    | awaitingResponse                                            | another attempt, or once more if that is    |
// |                   |                                                             | safe, or fail                               |
// |                   | responseWares, collectingResponse, streaming                | fail                                        |
// |                   | tunnel                                                      | end: completed                              |
// | downstreamDrained | streaming, tunnel                                           | the origin server may send more             |
// | upstreamDrained   | all while the request is not whole; tunnel                  | the client may send more                    |
// | hedge timer       | connecting, awaitingResponse                                | another endpoint is asked as well           |
// | total timeout     | middlewares … streaming                                     | fail: 408 if only the client is waited for, |
// |                   |                                                             | else 504                                    |
// | fail              | streaming, tunnel                                           | end: cut off                                |
// |                   | middlewares, collectingRequest, awaitingContent,            | a response of ours, from the ware before    |
// |                   | countingRequest                                             |                                             |
// |                   | replaying                                                   | the same, from the half before              |
// |                   | connecting, awaitingResponse, responseWares,                | the same, from the last ware that may still |
// |                   | collectingResponse                                          | be asked                                    |
//
// Calls that may come back. A client or an origin server may be found gone while something is sent to it, or while the other
// one's connection is paused, read on or closed. Its event comes inside that call then, and may end the exchange. So:
//
// - A step that others follow in the same function returns `Aftermath`, and the caller goes on only after `.goesOn`. Such a step
//   asks a ware, checks a limit, sends a head or the request's content, asks for content, or gives a stream up. The last step of an
//   event drops it: `_ =`.
// - A step that returns nothing and may end the exchange stands last, most of them behind `return`: `end`, `fail`, `answerClient`,
//   `callUpstream`, `connect`, `deliver`, `startReplay`, `sendAgain` and those whose names begin with `run` or `start`.
// - Only the sink and the stream are used behind another call of one of them: both are `nil` once the exchange has ended.
// - `end` sets its phase before all such calls: an event that comes back then changes nothing.

/// Drives one exchange after the other: from a request's head to the end of its response. Used on its loop's thread only.
///
/// What it does with the request is in `ExchangeDriver+Request`, with the origin server in `+Upstream`, with the response in
/// `+Response`.
final class ExchangeDriver: LoopTimerHandler {
    enum Phase {
        /// 2. The head is being read.
        case awaitingRequest
        /// 4. A ware is asked, or waits.
        case middlewares
        /// 4. The ware at `requestIndex` needs all of the content first.
        case collectingRequest
        /// 4. The beginning of the content is needed first: all of it, or what comes before the client pauses.
        case awaitingContent
        /// 4. A ware has answered. The rest of the content is read, because a ware limits it.
        case countingRequest
        /// 5. A connection is being made.
        case connecting
        /// 5. The request is on its way; no final response yet.
        case awaitingResponse
        /// 6. The rest of the request is read, or a pause is kept, before it is sent inward again.
        case replaying
        /// 6–7. A ware is asked about the response, or waits.
        case responseWares
        /// 6–7. The ware whose turn it is needs all of the response's content first.
        case collectingResponse
        /// 8. The head is out.
        case streaming
        case tunnel
        /// 9.
        case ended
    }

    let server: LoopListener
    /// The server's, when this was made.
    let generation: Int
    /// The server's, when this was made: a request whose head had begun by then goes by these routes.
    let router: any ExchangeRouter
    let transport: LoopTransport
    let loop: EventLoop
    /// Constant, so that steps use it without counting a reference. A driver whose exchange is held elsewhere is not used again.
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

    /// The response at hand. It is in the exchange, so that those who send it need no copy.
    var response: HttpResponse {
        @inline(__always) _read { yield exchange.response }
        @inline(__always) _modify { yield &exchange.response }
    }

    // How far the exchange is: each of these is made anew for every exchange.

    var inward = RequestProgress()
    var call = UpstreamCall()
    var outward = ResponseProgress()
    var waiting = WaitState()

    // What stays from one exchange to the next.

    /// The request as it was when it left each ware that may replay, in memory that is kept.
    var snapshots = RequestSnapshots()
    /// Set while filters hold content back, or a hold has the request; made when the first one does.
    var pauseTimer: LoopTimer?

    /// Set while another endpoint may be asked for the response; made when the first one is.
    var hedgeTimer: LoopTimer?

    /// The tunnel that the exchange opens, if the gateway reads it, or might have read it.
    var interception: Interception?

    /// Counts exchanges: a timer of a former one finds another.
    var serial = 0
    /// Counts waits: the answer of one that was given up is not taken.
    var waitNumber = 0
    let totalTimer: LoopTimer

    // Observing.

    /// Sees what passes; `nil` if nobody wants to.
    var tap: (any ExchangeTap)?
    /// What wares do is noted.
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

    /// An exchange that knows what all of this listener's have in common. A driver serves one configuration of it only.
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

    /// Whether others hold the exchange: a ware, an observer, a task. What they read must stay as it is.
    var isExchangeHeld: Bool {
        // A reference that is not counted stands in for the constant, which cannot be lent to be looked at.
        var reference = Unmanaged.passUnretained(exchange)
        return withUnsafeMutablePointer(to: &reference) {
            $0.withMemoryRebound(to: Exchange.self, capacity: 1) { !isKnownUniquelyReferenced(&$0.pointee) }
        }
    }

    /// Whether the exchange has ended inside the call before.
    @inline(__always)
    var aftermath: Aftermath { phase == .ended ? .over : .goesOn }

    /// Makes the driver ready for the next exchange, of a connection of its listener.
    func prepare(sink: any ResponseSink, connection: consuming ConnectionFacts) {
        serial &+= 1
        exchange.reset(for: connection)
        exchange.heldRequest.reset()
        self.sink = sink
        phase = .awaitingRequest
        inward = RequestProgress()
        call = UpstreamCall()
        outward = ResponseProgress()
        if interception != nil { interception = nil }
        if tap != nil { tap = nil }
    }

    // MARK: 9. Endings

    /// Ends the exchange, once; nothing of it is touched afterwards.
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
        if exchange.hedging != nil {
            dropHedges()
            settleHedge(.lost)
        }
        call.ticket?.giveUp()
        call.ticket = nil
        call.stream?.cancel()
        call.stream = nil
        if call.member != nil {
            leaveEndpoint()
            call.member = nil
        }
        totalTimer.clear()
        pauseTimer?.clear()
        let sink = self.sink.take()
        if hasBegun { tellObservers() }
        switch way {
        // Nearly all have none: no copy of them is made.
        case .completed where outward.trailers == nil: sink?.sendEnd(nil)
        case .completed: sink?.sendEnd(outward.trailers)
        case .cutOff: sink?.cutOff()
        case .clientLeft: break
        }
        letGo()
        if outward.isBackground, !outward.isBeside { server.backgroundCount -= 1 }
        server.recycle(self)
    }

    /// The end of the response is about to leave: what the exchange held, the client's next request can have. That may come over
    /// another loop before this one has done anything else.
    @inline(__always)
    func release() { if !exchange.releases.isEmpty { releaseAll() } }

    private func releaseAll() {
        let releases = exchange.releases
        exchange.releases.removeAll(keepingCapacity: true)
        for release in releases { release.body() }
    }

    /// What is large does not wait for the next exchange.
    private func letGo() {
        if response.content.bytes != nil { response.content = .none }
        if exchange.heldRequest.content.bytes != nil { exchange.heldRequest.content = .none }
        if request.content.bytes != nil { request.content = .none }
        if !outward.collected.isEmpty { outward.collected = [] }
        if !outward.early.isEmpty { outward.early = [] }
        if outward.paced.isLeft { outward.paced = PacedContent() }
        if call.paced.isLeft { call.paced = PacedContent() }
        if !inward.held.isEmpty { inward.held = [] }
        inward.kept = nil
        if !snapshots.isEmpty { snapshots.clear() }
    }

    /// 10. Those who asked to know.
    private func tellObservers() {
        // What never had a client was no exchange of anybody's.
        let hadClient = !outward.isBackground || outward.hasClientLeft
        if hadClient {
            if exchange.failure != nil { server.onFailure?(exchange) }
            for observer in chain.observers where isConcerned(observer) { observer.ware.ended(exchange) }
            server.counters?.ended(exchange, plan)
        }
        if let sharer = exchange.sharer.take() { sharer.exchangeEnded() }
        // They are let go, for they may hold the exchange that holds them.
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

    /// Whether the entry's condition holds, or cannot be decided; a client that left has no response to judge.
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

    /// Sets the deadline of the whole exchange, if it has one: counted from its beginning, by the ware's word or the
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
            if timer !== pauseTimer { return totalTimeout() }
            if let hold = waiting.hold {
                hold.timedOut()
                ended(hold)
            } else if phase == .awaitingContent {
                contentAwaited()
            } else if outward.wantedIfWhole != nil, !outward.isWantedByEditor {
                smallResponseEnded()
            } else {
                requestPaused()
                contentPaused()
            }
        }
    }

    /// The exchange took longer than it may.
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
                endpointFailed(error)
                if exchange.steering != nil {
                    tellWatcher(.failed(error), at: call.endpoint, since: call.endpointAsked)
                }
            }
            fail(error)
        }
    }

    /// Whether nothing but the rest of the request is waited for. RFC 9110 §15.5.9.
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

    /// Lets a ware finish asynchronously; `resume` takes its answer, on the loop.
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

/// Carries what a waiting ware needs into its task.
///
/// Unchecked: it is made on the loop, and its task runs on the loop, which is its executor; no other thread sees it.
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
