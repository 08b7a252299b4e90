/// The attempts to get a response for one exchange: the first one, retries after failures, and further ones beside them. Events go in and
/// decisions come out; it starts no timer, and uses no stream, so every order of events is a test without a thread. The driver of the
/// exchange performs the decisions.
///
/// 1. One attempt leads: its stream serves the exchange. Others run beside it, and each can take the lead.
/// 2. A response takes the lead for its attempt, unless its status is that of a gateway in trouble and another attempt runs.
/// 3. If the leading attempt fails, the oldest of the others takes the lead.
/// 4. Only if no other attempt runs, the request goes out again, goes to the next endpoint or down to the next service, or fails.
/// 5. Each attempt leaves the count of its endpoint once, and its place in the queue for a connection.
/// 6. The ware that permitted a further attempt is told its outcome, once.
///
/// The steps of the leading attempt are in the record of the exchange, where wares read them: events get them as `inout`.
struct UpstreamAttempts {
    /// The decision after an event.
    enum Action {
        /// Nothing: the event is of an attempt that has ended.
        case ignore
        /// The response goes to the client. The other attempts end now, and then the leading one `wins`.
        case respond
        /// This further attempt has ended, after these steps.
        case drop(UpstreamAttempt, AttemptSteps)
        /// Another attempt has taken the lead, after these steps; the former one has ended.
        case adopt(insteadOf: UpstreamAttempt, AttemptSteps)
        /// The request goes to the next endpoint.
        case connect
        /// The request goes out again.
        case again
        /// The request goes down to the next service.
        case goDown
        case fail
    }

    /// The other destinations for a request whose connection was not made.
    struct Others {
        /// The number of endpoints of the service that can be chosen; 0 without balancing.
        var endpoints = 0
        /// Whether an endpoint was not tried: a name may have got new addresses meanwhile.
        var hasUntried = false
        /// Whether another service replaces one that cannot be reached.
        var hasService = false
    }

    /// The attempt whose stream serves the exchange.
    var leading = UpstreamAttempt()
    /// The rule for what goes out again after a failed attempt.
    var resends = ResendRule()
    /// How many connections failed since the request last went upstream.
    private(set) var unreached = 0
    /// The number of the last attempt.
    private(set) var made: Int

    /// Most exchanges have none of these: a new exchange clears one reference for all of them.
    private final class Rare {
        var others: [(attempt: UpstreamAttempt, steps: AttemptSteps)] = []
        var tried: [EndpointMember] = []
        var keeper: (any HedgeKeeper)?
    }
    private var rare: Rare?

    /// No attempt yet. The numbers continue behind that one, so that a late event of a former exchange is recognised.
    init(behind made: Int = 0) { self.made = made }

    private mutating func hold() -> Rare {
        if let rare { return rare }
        let made = Rare()
        rare = made
        return made
    }

    /// Whether other attempts run beside the leading one.
    var hasOthers: Bool { rare?.others.isEmpty == false }

    /// The endpoints that the request was already sent to, or that failed to connect.
    var tried: [EndpointMember] { rare?.tried ?? [] }

    /// The same, and the endpoints that are being asked.
    var asked: [EndpointMember] {
        var asked = tried
        if let member = leading.member { asked.append(member) }
        for other in rare?.others ?? [] { if let member = other.attempt.member { asked.append(member) } }
        return asked
    }

    /// Whether the attempt leads.
    @inline(__always)
    func leads(_ number: Int) -> Bool { leading.number == number }

    /// The attempt with that number; `nil` if it has ended.
    subscript(number: Int) -> UpstreamAttempt? {
        if leads(number) { return leading }
        return place(of: number).flatMap { rare?.others[$0].attempt }
    }

    /// The steps of a further attempt; `nil` if it has ended or leads.
    func steps(of number: Int) -> AttemptSteps? { place(of: number).flatMap { rare?.others[$0].steps } }

    private func place(of number: Int) -> Int? { rare?.others.firstIndex { $0.attempt.number == number } }

    // MARK: Begun

    /// The request goes upstream, for the first time or from a ware that sends it again.
    mutating func goUpstream() {
        resends = ResendRule()
        unreached = 0
    }

    /// The request goes to another service.
    mutating func goDown() {
        leading.forgetMember()
        forgetTried()
        unreached = 0
    }

    /// The leading attempt begins.
    mutating func started(at endpoint: Endpoint, _ member: EndpointMember?, _ now: Int64, _ steps: inout AttemptSteps) {
        made += 1
        leading.begin(made, at: endpoint, member, now)
        steps.connectAsked = now
    }

    /// A further attempt begins, which the keeper has permitted. Returns its number.
    mutating func startedBeside(
        at endpoint: Endpoint, _ member: EndpointMember, _ now: Int64, by keeper: any HedgeKeeper
    ) -> Int {
        made += 1
        var attempt = UpstreamAttempt()
        attempt.begin(made, at: endpoint, member, now)
        attempt.isFurther = true
        var steps = AttemptSteps()
        steps.connectAsked = now
        let rare = hold()
        rare.others.append((attempt, steps))
        rare.keeper = keeper
        return made
    }

    /// The attempt waits for a connection. If it has ended meanwhile, the place in the queue is given back.
    mutating func queued(_ number: Int, _ ticket: ConnectionTicket) {
        if leads(number), leading.standing == .connecting {
            leading.ticket = ticket
        } else if let place = place(of: number), rare?.others[place].attempt.standing == .connecting {
            rare?.others[place].attempt.ticket = ticket
        } else {
            ticket.giveUp()
        }
    }

    /// The connection for the attempt was made. Returns whether the request is sent on it; otherwise the stream is not needed.
    @inline(__always)
    mutating func ready(
        _ number: Int, _ stream: any UpstreamStream, _ times: Connector.Times?, _ now: Int64,
        _ steps: inout AttemptSteps
    ) -> Bool {
        guard leads(number) else { return readyBeside(number, stream, times, now) }
        guard leading.standing == .connecting else { return false }
        leading.ready(on: stream)
        steps.connectionReady(times, isReused: stream.isReused, at: now)
        return true
    }

    private mutating func readyBeside(
        _ number: Int, _ stream: any UpstreamStream, _ times: Connector.Times?, _ now: Int64
    ) -> Bool {
        guard let place = place(of: number), rare?.others[place].attempt.standing == .connecting else { return false }
        rare?.others[place].attempt.ready(on: stream)
        rare?.others[place].steps.connectionReady(times, isReused: stream.isReused, at: now)
        rare?.others[place].steps.sendStarted = now
        return true
    }

    /// The further attempt has sent all of the request.
    mutating func sent(_ number: Int, _ now: Int64) {
        if let place = place(of: number) { rare?.others[place].steps.requestSent = now }
    }

    // MARK: Failed

    /// The connection for the attempt was not made. Nothing was sent, so any request may go to another endpoint.
    mutating func refused(
        _ number: Int, _ error: GatewayError, _ others: Others, _ now: Int64, _ steps: inout AttemptSteps
    ) -> Action {
        guard leads(number) else {
            guard let place = place(of: number) else { return .ignore }
            rare?.others[place].steps.connectFailed(error.fault, at: now)
            return drop(place, .failed)
        }
        guard leading.standing == .connecting else { return .ignore }
        unreached += 1
        steps.connectFailed(error.fault, at: now)
        leading.giveUp()
        avoidLeading()
        tell(.failed)
        if hasOthers { return adopt(0) }
        guard error.mayRetry else { return .fail }
        // Each endpoint is tried once, and one that was not tried a second time at most.
        if unreached < others.endpoints || others.hasUntried && unreached < 2 * others.endpoints { return .connect }
        return others.hasService ? .goDown : .fail
    }

    /// The attempt got no response, and this is the decision of `resends`; for a further attempt it is always `fail`.
    mutating func failed(_ number: Int, _ decision: ResendRule.Decision) -> Action {
        guard leads(number) else {
            guard let place = place(of: number) else { return .ignore }
            rare?.others[place].attempt.stream = nil
            return drop(place, .failed)
        }
        guard leading.standing == .sent else { return .ignore }
        leading.standing = .over
        leading.stream = nil
        switch decision {
        case .again:
            // The endpoint takes requests, on another connection. After more than two refusals, others are asked.
            if resends.refusals > 2, let member = leading.member { avoid(member) }
        case .byHttp1: _ = leading.endpoint?.requireHttp1()
        case .onNewConnection, .fail: avoidLeading()
        }
        leading.leave()
        tell(.failed)
        if hasOthers { return adopt(0) }
        return decision == .fail ? .fail : .again
    }

    /// The request is not sent to the endpoint of the leading attempt again, while others are left.
    mutating func avoidLeading() {
        if leading.isCounted, let member = leading.member { avoid(member) }
        leading.leave()
    }

    /// The response is discarded, because the request goes to another endpoint.
    mutating func replayed() {
        if let member = leading.member, !tried.contains(where: { $0 === member }) { avoid(member) }
        leading.leave()
    }

    /// Any endpoint may be chosen again.
    mutating func forgetTried() { rare?.tried.removeAll(keepingCapacity: true) }

    private mutating func avoid(_ member: EndpointMember) { hold().tried.append(member) }

    // MARK: Answered

    /// The response of the attempt begins. After `adopt`, a further attempt that leads is asked about its response again.
    mutating func answered(_ number: Int, _ status: HttpStatus) -> Action {
        guard leads(number) else {
            guard let place = place(of: number), rare?.others[place].attempt.standing == .sent else { return .ignore }
            guard status.isOfGatewayInTrouble else {
                tell(.lost)
                return adopt(place)
            }
            rare?.others[place].attempt.standing = .answered
            return drop(place, .failed)
        }
        guard leading.standing == .sent else { return .ignore }
        leading.standing = .answered
        guard hasOthers, status.isOfGatewayInTrouble else { return .respond }
        if let member = leading.member { avoid(member) }
        tell(.failed)
        return adopt(0)
    }

    /// The response of the leading attempt goes to the client. Returns whether it was a further attempt.
    mutating func wins() -> Bool {
        defer { tell(.won) }
        return leading.isFurther
    }

    // MARK: Ended

    /// Ends the newest of the further attempts, because it is not needed; `nil` if only the leading attempt runs.
    mutating func dropOther() -> Action? {
        guard let rare, !rare.others.isEmpty else { return nil }
        return drop(rare.others.count - 1, .lost)
    }

    /// The leading attempt is not needed. Its stream, if there is one, is the driver's.
    mutating func giveUp() {
        tell(.lost)
        leading.giveUp()
    }

    private mutating func drop(_ place: Int, _ outcome: HedgeOutcome) -> Action {
        let rare = hold()
        var (attempt, steps) = rare.others.remove(at: place)
        if let member = attempt.member { avoid(member) }
        attempt.leave()
        attempt.giveUp()
        rare.keeper?.hedgeEnded(outcome)
        return .drop(attempt, steps)
    }

    /// The attempt at that place takes the lead.
    private mutating func adopt(_ place: Int) -> Action {
        let next = hold().others.remove(at: place)
        leading.leave()
        leading.giveUp()
        let former = leading
        leading = next.attempt
        return .adopt(insteadOf: former, next.steps)
    }

    /// The outcome of the leading attempt, if a ware waits for it.
    private mutating func tell(_ outcome: HedgeOutcome) {
        guard leading.isFurther else { return }
        leading.isFurther = false
        rare?.keeper?.hedgeEnded(outcome)
    }
}

extension HttpStatus {
    /// The status of a gateway, or of a server that cannot work now: another endpoint may answer better. RFC 9110 §15.6.3 to §15.6.5.
    var isOfGatewayInTrouble: Bool { self == .badGateway || self == .serviceUnavailable || self == .gatewayTimeout }
}
