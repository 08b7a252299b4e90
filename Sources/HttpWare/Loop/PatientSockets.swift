import CLibevent
import CSystemShims
import Glibc

/// Sockets that are told of behind others: those whose clients send what belongs together in many pieces.
///
/// Each such piece costs as much as a request and brings nothing about. They are in a set of their own, which is one event among the
/// loop's: a turn takes a few of them, and then looks at all others again. On the loop's thread only.
final class PatientSockets {
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// Those that are told of in this turn, `nil` where one was taken away since.
    private var ready: [UnsafeMutableRawPointer?] = Array(repeating: nil, count: PatientSockets.aTurn)
    private var count: Int32 = 0
    private var next = 0

    /// How many are told of in a turn: a third of a millisecond.
    private static let aTurn = 32

    /// `nil` where the system gives no descriptor.
    init?(_ loop: EventLoop) {
        descriptor = csystem_epoll()
        guard descriptor >= 0 else { return nil }
        event = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST), patientSocketsReady,
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
        count = csystem_epoll_take(descriptor, &ready, Int32(PatientSockets.aTurn))
        next = 0
        while next < Int(count) {
            let socket = ready[next]
            next += 1
            socketReadable(-1, 0, socket)
        }
        count = 0
    }
}

private func patientSocketsReady(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    Unmanaged<PatientSockets>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.tellReady() }
}
