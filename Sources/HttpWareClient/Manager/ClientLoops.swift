import Dispatch
import HttpWare

/// The threads of a client's exchanges. They start with the first request, and all managers of the process share them
/// and their connections. Nothing has to be started or ended; `shutdown()` is for programs that want to end cleanly.
public final class ClientLoops: Sendable {
    /// The loops of the process: one thread, which is enough for tens of thousands of requests a second.
    public static let shared = ClientLoops()

    private struct State {
        var loops: [ClientLoop] = []
        var next = 0
        var isShutDown = false
    }

    private let state = ThreadLock(State())
    private let count: Int
    private let clock: any LoopClock
    private let name: String
    private let names: Resolver.Options

    /// At least one separate thread, up to `count`. Threads start when they are needed. `names` says how names are looked up, such as how
    /// long an answer is used.
    public init(
        count: Int = 1, name: String = "httpware.client", clock: any LoopClock = SystemLoopClock(),
        names: Resolver.Options = Resolver.Options()
    ) {
        self.names = names
        self.count = max(1, count)
        self.clock = clock
        self.name = name
    }

    deinit {
        for loop in state.withLock({ $0.loops }) { loop.stop() }
    }

    /// The current instant of the loops' clock.
    var now: LoopInstant { clock.now() }

    /// Passes work to a loop: to the current loop if it is one of these, or else to each loop in turn. The work is always
    /// run. Throws after a shutdown.
    func run(_ work: (ClientLoop) -> @Sendable () -> Void) throws(HttpError) -> ClientLoop {
        try state.withLock { state throws(HttpError) in
            guard !state.isShutDown else {
                throw HttpError(.client, .shutDown, .making, "the client was shut down")
            }
            let loop = try choose(&state)
            // Under the lock, so that no work comes after the end of a shutdown.
            loop.loop.execute(work(loop))
            return loop
        }
    }

    private func choose(_ state: inout State) throws(HttpError) -> ClientLoop {
        if let own = state.loops.first(where: { $0.loop.isCurrent }) { return own }
        if state.loops.count < count {
            do {
                let loop = try ClientLoop(
                    EventLoop.start(name: "\(name).\(state.loops.count)", clock: clock), names: names)
                state.loops.append(loop)
                return loop
            } catch {
                guard !state.loops.isEmpty else {
                    throw HttpError(.client, .exchange(.internalError), .making, "\(error)", underlying: error)
                }
            }
        }
        state.next = (state.next + 1) % state.loops.count
        return state.loops[state.next]
    }

    /// Ends the exchanges of the manager on all loops: it is shut down, or they are cancelled.
    func end(callsOf manager: ManagerSeats, isShutdown: Bool) {
        for loop in state.withLock({ $0.loops }) {
            loop.loop.execute { loop.endCalls(of: manager, isShutdown: isShutdown) }
        }
    }

    /// Ends all exchanges with an error, closes the connections, and waits until the threads have ended. Later requests are
    /// refused. Must not be called on a loop.
    public func shutdown() async {
        let loops = state.withLock { state in
            state.isShutDown = true
            defer { state.loops = [] }
            return state.loops
        }
        for loop in loops { loop.stop() }
        await withCheckedContinuation { ended in
            // Tasks share a few threads, and none of these should block.
            DispatchQueue.global().async {
                for loop in loops { loop.loop.join() }
                ended.resume()
            }
        }
    }
}

/// One loop, and the objects that its exchanges share.
///
/// Unchecked: everything except `loop` is used on the loop's thread only.
final class ClientLoop: @unchecked Sendable {
    let loop: EventLoop
    private let names: Resolver.Options
    private var made: LoopTransport?
    private var calls: [ObjectIdentifier: ClientCall] = [:]
    /// The managers' seats that have a server on this loop.
    private var seats: [ObjectIdentifier: ManagerSeat] = [:]

    init(_ loop: EventLoop, names: Resolver.Options) {
        self.loop = loop
        self.names = names
    }

    /// The loop's connections, created when they are first needed.
    func transport() throws -> LoopTransport {
        if let made { return made }
        let transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop, options: names))
        made = transport
        return transport
    }

    func begun(_ call: ClientCall) { calls[ObjectIdentifier(call)] = call }
    func ended(_ call: ClientCall) { calls[ObjectIdentifier(call)] = nil }

    func opened(_ seat: ManagerSeat) { seats[ObjectIdentifier(seat)] = seat }
    func closed(_ seat: ManagerSeat) { seats[ObjectIdentifier(seat)] = nil }

    /// Ends the exchanges of one manager, or of all.
    func endCalls(of manager: ManagerSeats? = nil, isShutdown: Bool = true) {
        for call in calls.values where manager == nil || call.owner === manager { call.end(isShutdown: isShutdown) }
    }

    /// Ends the exchanges, the servers and the thread.
    func stop() {
        loop.execute {
            self.endCalls()
            for seat in self.seats.values { seat.close() }
            self.made?.closeIdle()
            self.made = nil
        }
        loop.stop()
    }
}
