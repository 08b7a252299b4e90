import CLibevent
import CSystemShims
import Glibc

/// Sockets with low priority: those of clients that send a head in many pieces.
///
/// Each such piece costs as much as a request but completes nothing. These sockets have their own epoll instance, which is one event
/// for the loop: a turn handles a few of them, then checks all other sockets again. (With libevent's priorities, the loop would query
/// all waiting sockets at each check, because it is level-triggered.) On the loop's thread only.
final class LowPrioritySockets {
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// The sockets to notify in this turn, as `SocketEvents`; `nil` for a socket that was removed since.
    private var ready: [UnsafeMutableRawPointer?] = Array(repeating: nil, count: LowPrioritySockets.mostPerTurn)
    private var count: Int32 = 0
    private var next = 0

    /// The maximum number of notified sockets per turn of the loop: about 0.3 ms at 10 µs each.
    private static let mostPerTurn = 32

    /// `nil` if the system has no descriptor left.
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

    /// Adds a socket. Returns whether it will be notified here.
    func add(_ socket: SocketEvents) -> Bool {
        csystem_epoll_add(descriptor, socket.descriptor, Unmanaged.passUnretained(socket).toOpaque()) == 0
    }

    /// Removes a socket; it is not notified any more, even in this turn.
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
