import Testing

@testable import HttpWare

@Suite struct ConnectionPoolStateTests {
    private enum Event: String, CaseIterable {
        case want, wantNew, wantHttp1, madeSingle, madeShared, fail, giveUp, discard, giveBack, close, closeIdle
        case endStream, settle, closeShared, surplusDue, retire
    }

    private final class Ticket: PoolTicket {
        let number: Int
        let isForHttp1: Bool
        var isWanted = true

        init(_ number: Int, isForHttp1: Bool) {
            self.number = number
            self.isForHttp1 = isForHttp1
        }
    }

    private final class Single {}
    private final class Shared {}

    private typealias State = ConnectionPoolState<Single, Shared, Ticket>

    /// How many streams a shared connection takes.
    private static let streams = 2

    /// A state with all that a pool would have made of its decisions.
    private struct Trial {
        let most: Int?
        let mostIdle: Int
        let maySpeakHttp2: Bool
        /// A request whose connection fails asks again at once, inside the answer.
        let asksAgain: Bool
        var state: State
        var events: [Event] = []
        var tickets: [Ticket] = []
        /// By the ticket's number.
        var answers: [Int] = []
        var making: [(ticket: Ticket, isShared: Bool)] = []
        /// In the order in which they began to wait.
        var queue: [Ticket] = []
        var busy: [Single] = []
        var discarding: [Single] = []
        var idle: [Single] = [] { didSet { fewestIdle = min(fewestIdle, idle.count) } }
        /// The fewest idle connections since the window began.
        var fewestIdle = 0
        /// Each with the number of its requests, and whether it is known how many it takes.
        var shared: [(connection: Shared, used: Int, isSettled: Bool)] = []
        var isSurplusDue = false
        var isRetired = false
        var isSettling = false
        var isForgotten = false
        /// Steps that the rules do not allow.
        var faults: [String] = []

        init(most: Int?, mostIdle: Int, maySpeakHttp2: Bool, asksAgain: Bool) {
            self.most = most
            self.mostIdle = mostIdle
            self.maySpeakHttp2 = maySpeakHttp2
            self.asksAgain = asksAgain
            state = State(mostConnections: most, mostIdle: mostIdle)
        }

        /// Whether the event can happen now.
        func allows(_ event: Event) -> Bool {
            switch event {
            case .want: true
            case .wantNew: !idle.isEmpty
            case .wantHttp1, .madeShared: maySpeakHttp2 && (event == .wantHttp1 || making.first?.isShared == true)
            case .madeSingle, .fail: !making.isEmpty
            case .giveUp: tickets.contains(where: \.isWanted)
            case .discard, .giveBack: !busy.isEmpty || event == .giveBack && !discarding.isEmpty
            case .close: !busy.isEmpty || !discarding.isEmpty
            case .closeIdle: !idle.isEmpty
            case .endStream: shared.contains { $0.used > 0 }
            case .settle: shared.contains { !$0.isSettled }
            case .closeShared: !shared.isEmpty
            case .surplusDue: isSurplusDue
            case .retire: !isRetired
            }
        }

        mutating func take(_ event: Event) {
            events.append(event)
            switch event {
            case .want: want()
            case .wantNew: want(isNew: true)
            case .wantHttp1: want(isForHttp1: true)
            case .madeSingle: madeSingle()
            case .madeShared: madeShared()
            case .fail: fail()
            case .giveUp: tickets.first(where: \.isWanted)?.isWanted = false
            case .discard:
                discarding.append(busy.removeFirst())
                state.held(discarding[discarding.count - 1])
            case .giveBack: giveBack(discarding.isEmpty ? busy.removeFirst() : discarding.removeFirst())
            case .close:
                let connection = discarding.isEmpty ? busy.removeFirst() : discarding.removeFirst()
                settling { $0.state.closed(connection, wasIdle: false) }
            case .closeIdle:
                let connection = idle.removeFirst()
                settling { $0.state.closed(connection, wasIdle: true) }
            case .endStream:
                let index = shared.firstIndex { $0.used > 0 } ?? 0
                shared[index].used -= 1
                serveStreams(index)
            case .settle: settle()
            case .closeShared: closeShared()
            case .surplusDue: surplusDue()
            case .retire: retire()
            }
            check()
        }

        // MARK: As the pool does it

        private mutating func want(isNew: Bool = false, isForHttp1: Bool = false) {
            isForgotten = false
            let ticket = Ticket(tickets.count, isForHttp1: isForHttp1)
            tickets.append(ticket)
            answers.append(0)
            if !isNew, let connection = state.takeIdle() {
                if connection !== idle.last { faults.append("takes another connection than the one used last") }
                idle.removeAll { $0 === connection }
                busy.append(connection)
                return answer(ticket)
            }
            if !isForHttp1, let index = shared.firstIndex(where: { $0.used < Trial.room(of: $0.isSettled) }) {
                shared[index].used += 1
                return answer(ticket)
            }
            make(ticket)
        }

        private mutating func make(_ ticket: Ticket) {
            let isQueueEmpty = !queue.contains(where: \.isWanted)
            switch state.wanted(ticket, maySpeakHttp2: maySpeakHttp2) {
            case .make(let isShared):
                if !isQueueEmpty { faults.append("lets a request overtake the queue") }
                making.append((ticket, isShared))
            case .replace(let unwanted, let isShared):
                if unwanted !== idle.first { faults.append("closes another connection than the one idle longest") }
                idle.removeAll { $0 === unwanted }
                settling { $0.state.closed(unwanted, wasIdle: false) }
                making.append((ticket, isShared))
            case .join: break
            case .queue: queue.append(ticket)
            }
        }

        private mutating func madeSingle() {
            let (ticket, isShared) = making.removeFirst()
            let connection = Single()
            settling { trial in
                if let ticket = trial.state.madeSingle(for: ticket, isShared: isShared) {
                    trial.busy.append(connection)
                    trial.answer(ticket)
                } else {
                    if trial.state.joining.contains(where: \.isWanted) {
                        trial.faults.append("serves no request that joined")
                    }
                    trial.giveBack(connection)
                }
                for ticket in trial.state.takeJoining() where ticket.isWanted { trial.make(ticket) }
            }
        }

        private mutating func madeShared() {
            let (ticket, isShared) = making.removeFirst()
            settling { trial in
                let connection = Shared()
                trial.state.madeShared(connection, isShared: isShared)
                trial.shared.append((connection, 0, false))
                let index = trial.shared.count - 1
                if ticket.isWanted {
                    trial.shared[index].used += 1
                    trial.answer(ticket)
                }
                trial.serveStreams(index)
            }
        }

        /// How many requests a connection takes, before and after that is known.
        private static func room(of isSettled: Bool) -> Int { isSettled ? ConnectionPoolStateTests.streams : 1 }

        private mutating func settle() {
            guard let index = shared.firstIndex(where: { !$0.isSettled }) else { return }
            shared[index].isSettled = true
            let hasJoiners = state.settled(shared[index].connection)
            serveStreams(index)
            if hasJoiners, state.needsAnother {
                for ticket in state.takeJoining() where ticket.isWanted { make(ticket) }
            }
        }

        private mutating func closeShared() {
            let connection = shared.removeFirst().connection
            var left: [Ticket] = []
            if state.settled(connection), state.needsAnother { left = state.takeJoining() }
            for ticket in left where ticket.isWanted { answer(ticket) }
            settling { $0.state.closed(connection) }
        }

        private mutating func serveStreams(_ index: Int) {
            while shared[index].used < Trial.room(of: shared[index].isSettled), let ticket = state.takeForStream() {
                if ticket.isForHttp1 { faults.append("gives HTTP/2 to a request that needs HTTP/1.1") }
                shared[index].used += 1
                leaveQueue(ticket, toStream: true)
                answer(ticket)
            }
        }

        private mutating func fail() {
            let (ticket, isShared) = making.removeFirst()
            settling { trial in
                for failed in trial.state.failed(ticket, isShared: isShared) where failed.isWanted {
                    trial.answer(failed)
                    if trial.asksAgain, trial.tickets.count < 12 { trial.want() }
                }
            }
        }

        private mutating func giveBack(_ connection: Single) {
            switch state.returned(connection) {
            case .hand(let ticket):
                busy.append(connection)
                leaveQueue(ticket)
                answer(ticket)
            case .keep(let beginsWindow):
                idle.append(connection)
                if beginsWindow {
                    if isSurplusDue { faults.append("begins a second window") }
                    isSurplusDue = true
                    fewestIdle = idle.count
                }
            case .close: settling { $0.state.closed(connection, wasIdle: false) }
            }
        }

        private mutating func surplusDue() {
            guard let (unneeded, _) = state.surplusDue() else {
                isSurplusDue = false
                return
            }
            if unneeded.count > fewestIdle { faults.append("closes idle connections that were needed lately") }
            if idle.count - unneeded.count < mostIdle { faults.append("closes more idle connections than the surplus") }
            for connection in unneeded {
                if connection !== idle.first { faults.append("closes another connection than the one idle longest") }
                idle.removeAll { $0 === connection }
                settling { $0.state.closed(connection, wasIdle: false) }
            }
            fewestIdle = idle.count
        }

        private mutating func retire() {
            isRetired = true
            state.retired(true)
            for connection in state.idle {
                idle.removeAll { $0 === connection }
                settling { $0.state.closed(connection, wasIdle: true) }
            }
            for connection in state.discarding {
                discarding.removeAll { $0 === connection }
                settling { $0.state.closed(connection, wasIdle: false) }
            }
            for connection in state.shared
            where shared.contains(where: { $0.connection === connection && $0.used == 0 }) {
                shared.removeAll { $0.connection === connection }
                // We close it ourselves: the requests that joined it get another one.
                if state.settled(connection), state.needsAnother {
                    for ticket in state.takeJoining() where ticket.isWanted { make(ticket) }
                }
                settling { $0.state.closed(connection) }
            }
        }

        private mutating func settling(_ event: (inout Trial) -> Void) {
            guard !isSettling else { return event(&self) }
            isSettling = true
            event(&self)
            while let (ticket, start) = state.takeNext(maySpeakHttp2: maySpeakHttp2) {
                leaveQueue(ticket)
                if case .make(let isShared) = start { making.append((ticket, isShared)) }
            }
            isSettling = false
            if state.isEmpty { isForgotten = true }
        }

        // MARK: Rules

        private mutating func answer(_ ticket: Ticket) {
            if !ticket.isWanted { faults.append("answers a request that was given up or answered") }
            ticket.isWanted = false
            answers[ticket.number] += 1
        }

        private mutating func leaveQueue(_ ticket: Ticket, toStream: Bool = false) {
            guard queue.contains(where: { $0 === ticket }) else { return }
            let first = queue.first { $0.isWanted && !(toStream && $0.isForHttp1) }
            if first !== ticket { faults.append("serves a later request first") }
            queue.removeAll { $0 === ticket }
        }

        private mutating func check() {
            let open = busy.count + discarding.count + idle.count + shared.count + making.count
            if state.count != open { faults.append("counts \(state.count) of \(open) connections") }
            if let most, open > most { faults.append("has more connections than the limit") }
            if state.idle.map(ObjectIdentifier.init) != idle.map(ObjectIdentifier.init) {
                faults.append("keeps other idle connections than were returned")
            }
            if state.discarding.count != discarding.count || state.shared.count != shared.count {
                faults.append("keeps a connection that closed")
            }
            if mostIdle == 0, !idle.isEmpty { faults.append("keeps an idle connection although none is to be kept") }
            if isRetired, !idle.isEmpty { faults.append("keeps idle connections after it was retired") }
            if idle.count > mostIdle, !isSurplusDue { faults.append("never closes the surplus") }
            let waiting = queue.filter(\.isWanted)
            if !waiting.isEmpty {
                if most.map({ open < $0 }) ?? true { faults.append("lets a request wait while a place is free") }
                if !idle.isEmpty { faults.append("lets a request wait while a connection is idle") }
            }
            let hasRoom = shared.contains { $0.used < Trial.room(of: $0.isSettled) }
            let joined = state.joining.filter(\.isWanted)
            if hasRoom, waiting.contains(where: { !$0.isForHttp1 }) || !joined.isEmpty {
                faults.append("lets a request wait while a connection has room")
            }
            if !joined.isEmpty, !making.contains(where: \.isShared), state.unsettled.isEmpty {
                faults.append("joins no connection")
            }
            let known = Set(
                (state.waiting.filter(\.isWanted) + joined + making.map(\.ticket).filter(\.isWanted)).map(\.number))
            if Set(tickets.filter(\.isWanted).map(\.number)) != known { faults.append("loses a request") }
            if isForgotten != (open == 0 && known.isEmpty), !events.isEmpty, tickets.count > 0 {
                faults.append(isForgotten ? "is forgotten while in use" : "is not forgotten when empty")
            }
        }

        /// All connections that are being made fail, and all others close, until nothing is left.
        mutating func end() {
            var left = 200
            while left > 0, let event = [Event.fail, .closeIdle, .close, .closeShared].first(where: { allows($0) }) {
                take(event)
                left -= 1
            }
            if answers.contains(where: { $0 > 1 }) { faults.append("answers a request twice") }
            if tickets.contains(where: \.isWanted) { faults.append("leaves a request without an answer") }
            if !state.isEmpty { faults.append("keeps something at the end") }
        }
    }

    /// Tries every order of events behind a trial; answers how many it tried.
    private func tryAll(_ trial: Trial, left: Int, _ found: inout [String]) -> Int {
        if !trial.faults.isEmpty {
            found.append("\(trial.events.map(\.rawValue)): \(trial.faults)")
            return 1
        }
        // Tickets are shared by the trials: each finds them as it left them.
        let wanted = trial.tickets.map(\.isWanted)
        defer { for (ticket, isWanted) in zip(trial.tickets, wanted) { ticket.isWanted = isWanted } }
        guard left > 0 else {
            var last = trial
            last.end()
            if !last.faults.isEmpty { found.append("\(trial.events.map(\.rawValue)), then the end: \(last.faults)") }
            return 1
        }
        var count = 0
        for event in Event.allCases where trial.allows(event) {
            var next = trial
            next.take(event)
            count += tryAll(next, left: left - 1, &found)
            for (ticket, isWanted) in zip(trial.tickets, wanted) { ticket.isWanted = isWanted }
        }
        return count
    }

    @Test(
        arguments: [
            (most: 1, mostIdle: 1, maySpeakHttp2: false, asksAgain: true, length: 7),
            (most: 2, mostIdle: 1, maySpeakHttp2: false, asksAgain: false, length: 7),
            (most: nil, mostIdle: 0, maySpeakHttp2: false, asksAgain: true, length: 6),
            (most: 1, mostIdle: 1, maySpeakHttp2: true, asksAgain: false, length: 6),
            (most: 2, mostIdle: 1, maySpeakHttp2: true, asksAgain: true, length: 6),
            (most: nil, mostIdle: 1, maySpeakHttp2: true, asksAgain: false, length: 5),
        ] as [(most: Int?, mostIdle: Int, maySpeakHttp2: Bool, asksAgain: Bool, length: Int)])
    func `in every order of events, each request is answered once and the limits hold`(
        most: Int?, mostIdle: Int, maySpeakHttp2: Bool, asksAgain: Bool, length: Int
    ) async {
        var found: [String] = []
        var count = 0
        for first in Event.allCases {
            for second in Event.allCases {
                var trial = Trial(most: most, mostIdle: mostIdle, maySpeakHttp2: maySpeakHttp2, asksAgain: asksAgain)
                guard trial.allows(first) else { continue }
                trial.take(first)
                guard trial.allows(second) else { continue }
                trial.take(second)
                count += tryAll(trial, left: length - 2, &found)
                // Other tests have their turn.
                await Task.yield()
            }
        }
        #expect(found.isEmpty, "\(found.count) orders, such as \(found.prefix(3))")
        #expect(count > 1000 || !found.isEmpty)
    }

    @Test func `idle connections that requests took since the window began are not closed as surplus`() {
        var state = State(mostConnections: nil, mostIdle: 1)
        let all = (0..<4).map { _ in Single() }
        for connection in all {
            _ = state.wanted(Ticket(0, isForHttp1: false), maySpeakHttp2: false)
            _ = state.returned(connection)
        }
        let taken = (0..<3).compactMap { _ in state.takeIdle() }
        for connection in taken { _ = state.returned(connection) }
        #expect(state.surplusDue()?.unneeded.map(ObjectIdentifier.init) == [ObjectIdentifier(all[0])])
        #expect(state.surplusDue()?.unneeded.count == 2)
    }

    @Test func `tickets that were given up do not fill the queue`() {
        var state = State(mostConnections: 1, mostIdle: 1)
        _ = state.wanted(Ticket(0, isForHttp1: false), maySpeakHttp2: false)
        let first = Ticket(1, isForHttp1: false)
        _ = state.wanted(first, maySpeakHttp2: false)
        for number in 2..<1000 {
            let ticket = Ticket(number, isForHttp1: false)
            _ = state.wanted(ticket, maySpeakHttp2: false)
            ticket.isWanted = false
        }
        #expect(state.waiting.count <= 64 && state.waitingCount == 1)
        guard case .hand(let ticket) = state.returned(Single()) else {
            Issue.record("the request that waits gets nothing")
            return
        }
        #expect(ticket === first)
    }

    @Test func `at most a hundred requests join one connection that is being made`() {
        var state = State(mostConnections: nil, mostIdle: 1)
        var made = 0
        for number in 0..<250 {
            if case .make = state.wanted(Ticket(number, isForHttp1: false), maySpeakHttp2: true) { made += 1 }
        }
        #expect(made == 3)
    }
}
