import Credentials
import HttpWare
import Synchronization

/// Requests of all loops that wait for a gate to open, in the order of coming. Guarded by a mutex.
///
/// Where they go at a rate, each gets its turn under the mutex when the gate opens, so that no loop is ahead of another.
final class HoldQueue: Sendable {
    /// A request's place.
    final class Place: Sendable {
        fileprivate let number: Int
        let bytes: Int
        /// When it has waited as long as it may, for its turn too.
        let due: LoopInstant
        fileprivate let clock: any LoopClock
        /// When it may go; `nil` where that is too late.
        fileprivate let turn = LoopWait<LoopInstant?>()

        fileprivate init(number: Int, bytes: Int, due: LoopInstant) {
            self.number = number
            self.bytes = bytes
            self.due = due
            clock = EventLoop.current?.clock ?? SystemLoopClock()
        }
    }

    private struct State {
        var isClosed = false
        /// Those that the gate keeps.
        var waiting: [Int: Place] = [:]
        /// Those that another gate keeps. They have no place here so far.
        var elsewhere: Set<Int> = []
        /// All that have a place: those that the gate keeps, and those that were let go and wait for their turn.
        var inside: Set<Int> = []
        var bytes = 0
        var taken = 0
        /// When the next one may go, where they go at a rate.
        var nextRelease = LoopInstant(nanoseconds: .min)
    }

    private let state = Mutex(State())
    private let limits: HoldLimits
    private let interval: Duration

    init(_ limits: HoldLimits, releaseRate: Rate?) {
        self.limits = limits
        interval = releaseRate.map { .seconds($0.period.seconds) / max(1, $0.count) } ?? .zero
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var count: Int { state.withLock { $0.inside.count } }

    /// Closes the gate, or opens it and lets all go. Answers whether that changed anything.
    @discardableResult
    func setClosed(_ isClosed: Bool) -> Bool {
        let (released, hasChanged) = state.withLock { state -> ([(place: Place, turn: LoopInstant?)], Bool) in
            let hasChanged = state.isClosed != isClosed
            state.isClosed = isClosed
            guard !isClosed, let clock = state.waiting.first?.value.clock else { return ([], hasChanged) }
            let now = clock.now()
            let places = state.waiting.values.sorted { $0.number < $1.number }
            state.waiting = [:]
            return (places.map { ($0, turn(of: $0, &state, now)) }, hasChanged)
        }
        for (place, turn) in released { place.turn.resume(returning: turn) }
        return hasChanged
    }

    /// What a request finds at the gate.
    enum Entry {
        case open
        case held(Place)
        case overflow
    }

    /// A request comes, and waits until `due` at the longest. To be called on its loop.
    func takePlace(bytes: Int, due: LoopInstant) -> Entry {
        state.withLock { state in
            guard state.isClosed else { return .open }
            guard hasRoom(state, bytes) else { return .overflow }
            let place = makePlace(&state, bytes, due)
            state.inside.insert(place.number)
            state.bytes += bytes
            state.waiting[place.number] = place
            return .held(place)
        }
    }

    /// A request that another gate keeps, and that waits until `due` at the longest. To be called on its loop.
    func expect(bytes: Int, due: LoopInstant) -> Place {
        state.withLock { state in
            let place = makePlace(&state, bytes, due)
            state.elsewhere.insert(place.number)
            return place
        }
    }

    /// The other gate lets the request go: it takes a place, if there is room, and its turn, behind those that came here before.
    func letGo(_ place: Place) {
        let turn = state.withLock { state -> LoopInstant? in
            guard state.elsewhere.remove(place.number) != nil else { return nil }
            let now = place.clock.now()
            guard interval > .zero else { return now }
            guard hasRoom(state, place.bytes) else { return nil }
            state.inside.insert(place.number)
            state.bytes += place.bytes
            return self.turn(of: place, &state, now)
        }
        place.turn.resume(returning: turn)
    }

    private func makePlace(_ state: inout State, _ bytes: Int, _ due: LoopInstant) -> Place {
        state.taken += 1
        return Place(number: state.taken, bytes: bytes, due: due)
    }

    private func hasRoom(_ state: borrowing State, _ bytes: Int) -> Bool {
        state.inside.count < limits.max && state.bytes + bytes <= limits.maxBytes.bytes
    }

    /// When the request that goes next may go; `nil` where that is later than it waits, and it takes no turn then.
    private func turn(of place: Place, _ state: inout State, _ now: LoopInstant) -> LoopInstant? {
        guard interval > .zero else { return now }
        let turn = max(state.nextRelease, now)
        guard turn <= place.due else { return nil }
        state.nextRelease = turn + interval
        return turn
    }

    /// Waits until the gate opens, and then for its turn; whether that was in time. Throws `CancellationError` when the client left. The
    /// place is free afterwards.
    func wait(_ place: Place, in exchange: Exchange) async throws -> Bool {
        defer { leave(place) }
        guard let turn = try await place.turn.value(within: place.due - exchange.now, else: nil) else { return false }
        let left = turn - exchange.now
        if left > .zero { try await exchange.sleep(for: left) }
        return true
    }

    /// Gives the place up, if it is not free.
    func leave(_ place: Place) {
        state.withLock { state in
            state.waiting[place.number] = nil
            state.elsewhere.remove(place.number)
            if state.inside.remove(place.number) != nil { state.bytes -= place.bytes }
        }
    }
}
