import HttpWare

/// The seats of one manager, by loop.
final class ManagerSeats: Sendable {
    private struct State {
        var seats: [(loop: ObjectIdentifier, seat: ManagerSeat)] = []
        var isRefused = false
    }

    private let state = ThreadLock(State())

    /// Starts a call on any loop. Throws if the client was shut down.
    func start(
        _ order: ClientCall.Order, _ core: ManagerCore, on loops: ClientLoops
    ) throws(HttpError) -> ClientCall {
        var made: ClientCall?
        _ = try loops.run { loop in
            let call = ClientCall(order, seat: seat(core, on: loop), owner: self)
            made = call
            return { call.begin() }
        }
        guard let made, !state.withLock({ $0.isRefused }) else {
            made?.abandon()
            throw HttpError(.client, .shutDown, .making, "the manager was shut down")
        }
        return made
    }

    private func seat(_ core: ManagerCore, on loop: ClientLoop) -> ManagerSeat {
        state.withLock { state in
            if let found = state.seats.first(where: { $0.loop == ObjectIdentifier(loop) }) { return found.seat }
            let seat = ManagerSeat(core, on: loop)
            state.seats.append((ObjectIdentifier(loop), seat))
            return seat
        }
    }

    func refuse() { state.withLock { $0.isRefused = true } }

    /// Closes the seats because the manager is gone.
    func close() {
        for (_, seat) in state.withLock({ $0.seats }) { seat.loop.loop.execute { seat.close() } }
    }
}
