import Synchronization
import Testing

@testable import HttpWare

@Suite struct UpstreamAttemptsTests {
    /// An event of the attempt at that place: 0 for the leading one, then the others, the oldest first.
    private enum Event: Hashable, CustomStringConvertible {
        case ready(Int), refuse(Int, mayRetry: Bool), fail(Int), refuseUnseen(Int), requireHttp1(Int)
        case answer(Int), answerTrouble(Int)
        /// The time for a further attempt has come.
        case timer
        /// The exchange ends.
        case end

        var description: String {
            switch self {
            case .ready(let place): "ready \(place)"
            case .refuse(let place, let mayRetry): mayRetry ? "refuse \(place)" : "refuse \(place) for good"
            case .fail(let place): "fail \(place)"
            case .refuseUnseen(let place): "refuse \(place) unseen"
            case .requireHttp1(let place): "require HTTP/1.1 of \(place)"
            case .answer(let place): "answer \(place)"
            case .answerTrouble(let place): "answer \(place) by trouble"
            case .timer: "timer"
            case .end: "end"
            }
        }
    }

    private final class Keeper: HedgeKeeper {
        let told = Mutex<[HedgeOutcome]>([])

        func mayHedge(_ exchange: Exchange) -> Bool { true }
        func hedgeEnded(_ outcome: HedgeOutcome) { told.withLock { $0.append(outcome) } }
        var outcomes: [HedgeOutcome] { told.withLock { $0 } }
    }

    private final class Stream: ReceivingStream {
        let isReused = false
        let isBlocked = false
        /// How often it ended: by a fault, or by the driver.
        var ends = 0
        var isDiscarded = false

        func send(
            requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
            responseTimeout: Int64, idleTimeout: Int64
        ) {}
        func cancel() { ends += 1 }
        func discard() {
            ends += 1
            isDiscarded = true
        }
    }

    private final class Waiter: ConnectionWaiter {
        func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {}
        func connectionFailed(_ error: GatewayError) {}
    }

    /// The circumstances of an exchange.
    struct Setting {
        var endpoints: Int
        var furthers = 0
        var isIdempotent = true
        var hasFallback = false
    }

    /// One exchange, with all that a driver makes of the decisions.
    private final class Trial {
        let setting: Setting
        let members: [EndpointMember]
        let keeper = Keeper()
        var attempts = UpstreamAttempts()
        var steps = AttemptSteps()
        var now: Int64 = 0
        /// The numbers of the attempts that run, the leading one first.
        var running: [Int] = []
        var ended: [Int] = []
        var streams: [Int: Stream] = [:]
        var tickets: [Int: ConnectionTicket] = [:]
        var destinations: [Int: EndpointMember] = [:]
        /// How often the steps of each attempt were recorded.
        var recorded: [Int: Int] = [:]
        var furthers = 0
        var responses = 0
        var descents = 0
        var sends: [Int: Int] = [:]
        var isOver = false
        var faults: [String] = []

        init(_ setting: Setting) {
            self.setting = setting
            members = (0..<max(1, setting.endpoints)).map {
                EndpointMember(Endpoint(host: "192.0.2.\($0 + 1)", port: 80), place: $0)
            }
            start()
        }

        // MARK: As the driver does it

        private func start() {
            if members.contains(where: { $0.load > 0 }) { faults.append("counts an attempt that has ended") }
            let isTried = { (member: EndpointMember) in self.attempts.tried.contains { $0 === member } }
            let member = members.first { !isTried($0) } ?? members[0]
            if steps.haveBegun { keep(ended.last ?? 0) }
            steps = AttemptSteps()
            attempts.started(at: member.endpoint, setting.endpoints == 0 ? nil : member, now, &steps)
            running.insert(attempts.leading.number, at: 0)
            wait(attempts.leading.number, member)
        }

        private func wait(_ number: Int, _ member: EndpointMember) {
            destinations[number] = member
            let ticket = ConnectionTicket(Waiter())
            tickets[number] = ticket
            attempts.queued(number, ticket)
            if !ticket.isWanted { faults.append("gives the place of a new attempt back") }
        }

        /// Whether others than the endpoint of that attempt are chosen first.
        private func isAvoided(_ number: Int) -> Bool {
            setting.endpoints == 0
                || destinations[number].map { one in attempts.tried.contains { $0 === one } } ?? false
        }

        private func keep(_ number: Int) { recorded[number, default: 0] += 1 }

        private func end(_ number: Int) {
            running.removeAll { $0 == number }
            ended.append(number)
        }

        /// The number of the attempt at that place.
        private func number(_ place: Int) -> Int { running[place] }

        func allows(_ event: Event) -> Bool {
            guard !isOver else { return false }
            let standing = { (place: Int) -> UpstreamAttempt.Standing? in
                place < self.running.count ? self.attempts[self.running[place]]?.standing : nil
            }
            return switch event {
            case .ready(let place), .refuse(let place, _): standing(place) == .connecting
            case .fail(let place), .refuseUnseen(let place), .requireHttp1(let place), .answer(let place),
                .answerTrouble(let place):
                standing(place) == .sent
            case .timer: furthers < setting.furthers && !running.isEmpty && members.count > attempts.asked.count
            case .end: true
            }
        }

        func take(_ event: Event) {
            now += 1
            switch event {
            case .ready(let place): ready(number(place))
            case .refuse(let place, let mayRetry): refuse(number(place), mayRetry)
            case .fail(let place):
                fail(number(place), GatewayError(.upstream, .connectionTerminated, "", mayRetry: true))
            case .refuseUnseen(let place):
                fail(
                    number(place),
                    GatewayError(.upstream, .connectionTerminated, "", mayRetry: true, isUnprocessed: true))
            case .requireHttp1(let place):
                fail(
                    number(place),
                    GatewayError(
                        .upstream, .connectionTerminated, "", mayRetry: true, isUnprocessed: true, requiresHttp1: true))
            case .answer(let place): answer(number(place), .ok)
            case .answerTrouble(let place): answer(number(place), .serviceUnavailable)
            case .timer:
                guard let member = members.first(where: { one in !attempts.asked.contains { $0 === one } }) else {
                    break
                }
                furthers += 1
                let number = attempts.startedBeside(at: member.endpoint, member, now, by: keeper)
                running.append(number)
                wait(number, member)
            case .end: finish()
            }
            check()
        }

        private func ready(_ number: Int) {
            let stream = Stream()
            streams[number] = stream
            tickets[number]?.waiter = nil
            guard attempts.ready(number, stream, nil, now, &steps) else {
                return faults.append("does not send on a connection that is awaited")
            }
            sends[number, default: 0] += 1
        }

        private func refuse(_ number: Int, _ mayRetry: Bool) {
            tickets[number]?.waiter = nil
            let error = GatewayError(.upstream, .connectionRefused, "", mayRetry: mayRetry)
            let others = UpstreamAttempts.Others(
                endpoints: setting.endpoints,
                hasUntried: members.contains { one in !attempts.asked.contains { $0 === one } },
                hasService: setting.hasFallback && descents == 0)
            let unreached = attempts.unreached + 1
            end(number)
            switch attempts.refused(number, error, others, now, &steps) {
            case .connect:
                if !running.isEmpty { faults.append("connects although another attempt runs") }
                if unreached >= (others.hasUntried ? 2 : 1) * setting.endpoints {
                    faults.append("connects without end")
                }
                if !isAvoided(number) { faults.append("does not avoid an endpoint without connection") }
                start()
            case .goDown:
                if !running.isEmpty || unreached < setting.endpoints || !mayRetry { faults.append("goes down early") }
                descents += 1
                attempts.goDown()
                start()
            case .fail:
                if !running.isEmpty { faults.append("fails although another attempt runs") }
                if mayRetry, unreached < setting.endpoints { faults.append("fails although an endpoint is left") }
                if mayRetry, setting.hasFallback, descents == 0 { faults.append("fails before it goes down") }
                finish()
            case let action: perform(action, number)
            }
        }

        private func fail(_ number: Int, _ error: GatewayError) {
            streams[number]?.ends += 1
            var decision = ResendRule.Decision.fail
            if attempts.leads(number) {
                decision = attempts.resends.decide(
                    after: error,
                    ResendRule.Facts(isIdempotent: setting.isIdempotent, hasContent: true, mayUseHttp1: true))
            }
            end(number)
            switch attempts.failed(number, decision) {
            case .again:
                if !running.isEmpty { faults.append("sends again although another attempt runs") }
                if decision == .fail { faults.append("sends again what must not be") }
                if decision == .onNewConnection, !isAvoided(number) {
                    faults.append("does not avoid a failed endpoint")
                }
                start()
            case .fail:
                if !running.isEmpty || decision != .fail { faults.append("fails early") }
                finish()
            case let action: perform(action, number)
            }
        }

        private func answer(_ number: Int, _ status: HttpStatus) {
            let isTrouble = status == .serviceUnavailable
            let isAlone = running.count == 1
            let wasLeading = attempts.leads(number)
            let action = attempts.answered(number, status)
            if case .respond = action {
                if isTrouble, !isAlone { faults.append("lets a gateway's trouble win") }
                responses += 1
                while let action = attempts.dropOther() { perform(action) }
                if attempts.wins() != (keeper.outcomes.last == .won) { faults.append("tells another winner") }
                if attempts.hasOthers || running != [number] { faults.append("lets others run beside a response") }
                return finish()
            }
            if isTrouble {
                end(number)
                perform(action, number)
                if streams[number]?.isDiscarded != true || !isAvoided(number) {
                    faults.append("does not give an answer up")
                }
                return
            }
            if wasLeading { faults.append("does not take the response of the leading attempt") }
            let former = running[0]
            end(former)
            running.removeAll { $0 == number }
            running.insert(number, at: 0)
            perform(action, former)
            answer(number, status)
        }

        /// Performs the end of the attempt with that number, or of any further one.
        private func perform(_ action: UpstreamAttempts.Action, _ number: Int? = nil) {
            switch action {
            case .drop(let attempt, let steps):
                if let number, attempt.number != number { faults.append("drops another attempt") }
                if number == nil { end(attempt.number) }
                if !belong(steps, to: attempt) { faults.append("drops the steps of another attempt") }
                keep(attempt.number)
                attempt.endStream()
            case .adopt(let former, let steps):
                if former.number != number { faults.append("adopts instead of another attempt") }
                if attempts.leading.number != running.first { faults.append("adopts another one than the oldest") }
                if !belong(steps, to: attempts.leading) { faults.append("adopts the steps of another attempt") }
                keep(former.number)
                self.steps = steps
                former.endStream()
            default: faults.append("decides \(action) although other attempts run")
            }
        }

        private func belong(_ steps: AttemptSteps, to attempt: UpstreamAttempt) -> Bool {
            max(steps.connectAsked, steps.queueStarted, steps.connectStarted) == attempt.asked
        }

        private func finish() {
            while let action = attempts.dropOther() { perform(action) }
            attempts.giveUp()
            let stream = attempts.leading.stream
            attempts.leading.stream = nil
            stream?.cancel()
            attempts.leading.leave()
            ended += running
            running = []
            isOver = true
        }

        // MARK: Rules

        private func check() {
            for (number, ticket) in tickets {
                let isWaiting = running.contains(number) && attempts[number]?.standing == .connecting
                if ticket.isWanted != isWaiting { faults.append("keeps or loses a place in the queue") }
            }
            for (number, stream) in streams where stream.ends != (running.contains(number) ? 0 : 1) {
                faults.append("ends a stream \(stream.ends) times")
            }
            if sends.values.contains(where: { $0 > 1 }) { faults.append("sends twice on one connection") }
            if responses > 1 { faults.append("responds twice") }
            let counted = setting.endpoints == 0 ? 0 : running.filter { attempts[$0]?.isCounted == true }.count
            if members.reduce(0, { $0 + $1.load }) != counted { faults.append("counts another load at the endpoints") }
            if members.contains(where: { $0.load < 0 }) { faults.append("leaves an endpoint twice") }
            if isOver, counted != 0 { faults.append("leaves the load at an endpoint") }
            let told = keeper.outcomes
            let awaited = running.count { attempts[$0]?.isFurther == true }
            if told.count + awaited != furthers { faults.append("tells \(told) of \(furthers) further attempts") }
            if told.count(where: { $0 == .won }) > responses { faults.append("tells a win without a response") }
            if recorded.values.contains(where: { $0 > 1 }) { faults.append("records an attempt twice") }
            if !isOver, running.isEmpty { faults.append("waits for nothing") }
            for number in ended { checkLate(number) }
        }

        /// A late event of an attempt that has ended changes nothing.
        private func checkLate(_ number: Int) {
            if attempts.ready(number, Stream(), nil, now, &steps) {
                faults.append("sends for an attempt that has ended")
            }
            let actions = [
                attempts.refused(number, GatewayError(.upstream, .dnsError, ""), .init(), now, &steps),
                attempts.failed(number, .fail), attempts.answered(number, .ok),
            ]
            for action in actions {
                if case .ignore = action { continue }
                faults.append("takes an event of an attempt that has ended")
            }
        }
    }

    private static let events: [Event] =
        (0..<3).flatMap { place in
            [
                .ready(place), .refuse(place, mayRetry: true), .fail(place), .refuseUnseen(place), .answer(place),
                .answerTrouble(place),
            ]
        } + [.refuse(0, mayRetry: false), .requireHttp1(0), .timer, .end]

    /// Tries every order of events behind these; answers how many it tried.
    private func tryAll(_ setting: Setting, _ events: [Event], left: Int, _ found: inout [String]) -> Int {
        let former = self.former(setting, events)
        guard former.faults.isEmpty else {
            found.append("\(events): \(former.faults)")
            return 1
        }
        guard !former.isOver, left > 0 else {
            if !former.isOver { former.take(.end) }
            if !former.faults.isEmpty { found.append("\(events), then the end: \(former.faults)") }
            return 1
        }
        return UpstreamAttemptsTests.events.filter(former.allows).reduce(0) {
            $0 + tryAll(setting, events + [$1], left: left - 1, &found)
        }
    }

    private func former(_ setting: Setting, _ events: [Event]) -> Trial {
        let trial = Trial(setting)
        for event in events { trial.take(event) }
        return trial
    }

    @Test(
        arguments: [
            (Setting(endpoints: 0), 8), (Setting(endpoints: 0, isIdempotent: false, hasFallback: true), 8),
            (Setting(endpoints: 2, hasFallback: true), 8), (Setting(endpoints: 2, furthers: 1), 6),
            (Setting(endpoints: 3, furthers: 2, isIdempotent: false, hasFallback: true), 6),
        ] as [(Setting, Int)])
    func `in every order of events, one response at most is chosen, and everything is given back once`(
        setting: Setting, length: Int
    ) async {
        var found: [String] = []
        var count = 0
        for first in UpstreamAttemptsTests.events where Trial(setting).allows(first) {
            count += tryAll(setting, [first], left: length - 1, &found)
            // Other tests have their turn.
            await Task.yield()
        }
        #expect(found.isEmpty, "\(found.count) orders, such as \(found.prefix(3))")
        #expect(count > 100 || !found.isEmpty)
    }
}
