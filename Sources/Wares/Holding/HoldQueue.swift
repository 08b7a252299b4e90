import Credentials
import HttpWare
import Synchronization

/// Requests of all loops that wait for a gate to open, in the order of arrival. Guarded by a mutex.
///
/// If they are released at a rate, each gets its turn under the mutex when the gate opens, so that no loop is favoured.
final class HoldQueue: Sendable {
    /// A request's place.
    final class Place: Sendable {
        fileprivate let number: Int
        let bytes: Int
        /// The deadline of the request, which includes the wait for its turn.
        let due: LoopInstant
        fileprivate let clock: any LoopClock
        /// When the request may go; `nil` if that would be too late.
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
        /// The places of requests that this gate holds.
        var waiting: [Int: Place] = [:]
        /// The numbers of requests that another gate holds. They take no room here yet.
        var elsewhere: Set<Int> = []
        /// The numbers of all requests that take room: held by this gate, or released and waiting for their turn.
        var inside: Set<Int> = []
        var bytes = 0
        var taken = 0
        /// When the next request may go, if requests are released at a rate.
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

    /// Closes the gate, or opens it and releases all requests. Returns whether that changed anything.
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

    /// How the gate receives a request.
    enum Entry {
        case open
        case held(Place)
        case overflow
    }

    /// Enters a request, which waits until `due` at most. Must be called on its loop.
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

    /// Enters a request that another gate holds, and that waits until `due` at most. Must be called on its loop.
    func expect(bytes: Int, due: LoopInstant) -> Place {
        state.withLock { state in
            let place = makePlace(&state, bytes, due)
            state.elsewhere.insert(place.number)
            return place
        }
    }

    /// Called when the other gate releases the request. It takes room here, if there is any, and its turn after the requests that
    /// came before it.
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

    /// When the next request may go. Returns `nil` if that is after the request's deadline; it then takes no turn.
    private func turn(of place: Place, _ state: inout State, _ now: LoopInstant) -> LoopInstant? {
        guard interval > .zero else { return now }
        let turn = max(state.nextRelease, now)
        guard turn <= place.due else { return nil }
        state.nextRelease = turn + interval
        return turn
    }

    /// Waits for the gate to open, and then for the turn. Returns whether both came in time. Throws `CancellationError` if the
    /// client left. The place is free afterwards.
    func wait(_ place: Place, in exchange: Exchange) async throws -> Bool {
        defer { leave(place) }
        guard let turn = try await place.turn.value(within: place.due - exchange.now, else: nil) else { return false }
        let left = turn - exchange.now
        if left > .zero { try await exchange.sleep(for: left) }
        return true
    }

    /// Frees the place, if it is not free yet.
    func leave(_ place: Place) {
        state.withLock { state in
            state.waiting[place.number] = nil
            state.elsewhere.remove(place.number)
            if state.inside.remove(place.number) != nil { state.bytes -= place.bytes }
        }
    }
}
