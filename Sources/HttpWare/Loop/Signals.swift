import CLibevent
import Glibc

/// Receives signals of the process on a loop, instead of their default action.
///
/// One loop of a process at a time may receive signals (a limit of libevent). Used on that loop's thread only.
public final class Signals {
    private let loop: EventLoop
    private let received: (Int32) -> Void
    private var events: [OpaquePointer] = []

    /// Receives these signals, such as `SIGTERM`, until `close()` or the release of the last reference. The closure runs on the loop's
    /// thread.
    ///
    /// Throws if a signal cannot be caught.
    public init(_ signals: [Int32], on loop: EventLoop, received: @escaping (Int32) -> Void) throws(SystemError) {
        self.loop = loop
        self.received = received
        for signal in signals {
            guard
                let event = event_new(
                    loop.base, signal, Int16(EV_SIGNAL | EV_PERSIST), signalReceived,
                    Unmanaged.passUnretained(self).toOpaque())
            else { throw SystemError("event_new") }
            guard event_add(event, nil) == 0 else {
                let error = SystemError("sigaction")
                event_free(event)
                throw error
            }
            events.append(event)
        }
    }

    deinit { close() }

    /// Restores the former actions of the signals.
    public func close() {
        if events.isEmpty { return }
        loop.preconditionOwned()
        for event in events { event_free(event) }
        events = []
    }

    fileprivate func receive(_ signal: Int32) {
        loop.beginCallback()
        received(signal)
        loop.endCallback()
    }
}

private func signalReceived(_ signal: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    // The event is freed before the object, as in SocketEvents; the strong reference keeps the object alive while the closure runs.
    Unmanaged<Signals>.fromOpaque(argument).takeUnretainedValue().receive(signal)
}
