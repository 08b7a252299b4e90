import CLibevent
import CSystemShims
import Glibc

/// Sockets that are told of behind others: those whose clients send a head in many pieces.
///
/// Each such piece costs as much as a request and brings nothing about. They are in an epoll instance of their own, which is one event
/// among the loop's: a turn takes a few of them, then looks at all others again. (Priorities of libevent would have the loop ask again at
/// each look for all that wait, for it watches by level.) On the loop's thread only.
final class LowPrioritySockets {
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// Those that are told of in this turn, by `SocketEvents`; `nil` where one was taken away since.
    private var ready: [UnsafeMutableRawPointer?] = Array(repeating: nil, count: LowPrioritySockets.mostPerTurn)
    private var count: Int32 = 0
    private var next = 0

    /// How many are told of in a turn of the loop: some 0.3 ms at 10 µs each.
    private static let mostPerTurn = 32

    /// `nil` where the system gives no descriptor.
    init?(_ loop: EventLoop) {
        descriptor = csystem_epoll()
        guard descriptor >= 0 else { return nil }
        event = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST), lowPrioritySocketsReady,
            Unmanaged.passUnretained(self).toOpaque())
        guard let event, event_add(event, nil) == 0 else { return nil }
    }

    deinit {
        if let event { event_free(event) }
        if descriptor >= 0 { close(descriptor) }
    }

    /// Answers whether it is told of from now on.
    func add(_ socket: SocketEvents) -> Bool {
        csystem_epoll_add(descriptor, socket.descriptor, Unmanaged.passUnretained(socket).toOpaque()) == 0
    }

    /// It is not told of any more, in this turn neither.
    func remove(_ socket: SocketEvents) {
        _ = csystem_epoll_remove(descriptor, socket.descriptor)
        let own = Unmanaged.passUnretained(socket).toOpaque()
        for index in next..<max(next, Int(count)) where ready[index] == own { ready[index] = nil }
    }

    fileprivate func tellReady() {
        count = csystem_epoll_take(descriptor, &ready, Int32(LowPrioritySockets.mostPerTurn))
        next = 0
        while next < Int(count) {
            let socket = ready[next]
            next += 1
            socketReadable(-1, 0, socket)
        }
        count = 0
    }
}

private func lowPrioritySocketsReady(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    Unmanaged<LowPrioritySockets>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.tellReady() }
}
