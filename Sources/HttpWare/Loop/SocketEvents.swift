import CLibevent
import Glibc

/// Receives a socket's events. Both methods are called on the loop's thread; the handler is retained during a call.
public protocol SocketEventHandler: AnyObject {
    /// The socket is readable: bytes, the end, an error, or a connection to accept.
    func socketReadable()

    /// The socket is writable: there is room, a connect has ended, or an error is pending.
    func socketWritable()
}

/// A descriptor and its events in a loop: one persistent read event, made once, and a write event only while it is needed.
///
/// It owns the descriptor: `close()`, or releasing the last reference, removes the events and then closes it. Level-triggered.
/// Used on the loop's thread only. The handler owns it and may close and release it within a call.
public final class SocketEvents {
    /// The loop that watches the descriptor.
    public let loop: EventLoop

    /// Receives the events. The owner sets it before enabling any event, and outlives this object or closes it.
    public unowned var handler: (any SocketEventHandler)?

    /// The descriptor; -1 after it was closed or detached.
    public private(set) var descriptor: Int32

    /// Whether `socketReadable` is enabled.
    public private(set) var isReading = false

    /// Whether `socketWritable` is enabled.
    public var isWriting: Bool { writeEvent != nil }

    /// Whether `socketReadable` is called after that of other sockets.
    public private(set) var isLowPriority = false

    private var readEvent: OpaquePointer?
    private var writeEvent: OpaquePointer?

    /// Takes over a non-blocking descriptor. No event is enabled yet.
    public init(loop: EventLoop, descriptor: Int32, handler: (any SocketEventHandler)? = nil) {
        self.loop = loop
        self.descriptor = descriptor
        self.handler = handler
        if Socket.isStandIn(descriptor) { loop.standInSockets?.watch(self) }
    }

    deinit { close() }

    /// The descriptor that the system watches; -1 for a connection in memory, whose events `tell` makes.
    private var watched: Int32 { Socket.isStandIn(descriptor) ? -1 : descriptor }

    /// Tells the handler of a connection in memory that it is readable or writable, if it asked for that. Returns whether it did.
    @discardableResult
    package func tell(readable: Bool, writable: Bool) -> Bool {
        var isTold = false
        if readable, isReading, let readEvent {
            event_active(readEvent, Int32(EV_READ), 1)
            isTold = true
        }
        if writable, let writeEvent {
            event_active(writeEvent, Int32(EV_WRITE), 1)
            isTold = true
        }
        return isTold
    }

    /// Enables `socketReadable`. Does nothing if it is already enabled.
    ///
    /// Returns whether that worked. It fails only if memory is exhausted, or for a descriptor that cannot be polled, such as a file.
    @discardableResult
    public func enableReading() -> Bool {
        if isReading { return true }
        guard descriptor >= 0 else { return false }
        if isLowPriority {
            isReading = loop.lowPrioritySockets?.add(self) ?? false
            if isReading { return true }
            // The system has no room for it among the low-priority sockets.
            isLowPriority = false
        }
        if readEvent == nil {
            readEvent = event_new(
                loop.base, watched, Int16(EV_READ | EV_PERSIST), socketReadable,
                Unmanaged.passUnretained(self).toOpaque())
        }
        guard let readEvent, event_add(readEvent, nil) == 0 else { return false }
        isReading = true
        return true
    }

    /// Disables `socketReadable`, for backpressure. The event itself is kept.
    public func disableReading() {
        guard isReading else { return }
        if isLowPriority { loop.lowPrioritySockets?.remove(self) } else if let readEvent { event_del(readEvent) }
        isReading = false
    }

    /// Gives the socket's input low priority, or ends that. For input in many small pieces; it has no effect if
    /// the system has no room for it.
    public func setLowPriority(_ isLowPriority: Bool) {
        guard isLowPriority != self.isLowPriority, watched >= 0, !isLowPriority || loop.lowPrioritySockets != nil
        else { return }
        let wasReading = isReading
        disableReading()
        self.isLowPriority = isLowPriority
        if wasReading { enableReading() }
    }

    /// Enables `socketWritable`, which is called repeatedly while the descriptor is writable. Returns whether that worked.
    @discardableResult
    public func enableWriting() -> Bool {
        if writeEvent != nil { return true }
        guard descriptor >= 0,
            let event = event_new(
                loop.base, watched, Int16(EV_WRITE | EV_PERSIST), socketWritable,
                Unmanaged.passUnretained(self).toOpaque())
        else { return false }
        guard event_add(event, nil) == 0 else {
            event_free(event)
            return false
        }
        writeEvent = event
        return true
    }

    /// Disables `socketWritable`, and frees the event.
    public func disableWriting() {
        guard let writeEvent else { return }
        event_free(writeEvent)
        self.writeEvent = nil
    }

    /// Removes the events, then closes the descriptor. Further calls do nothing.
    public func close() {
        let descriptor = detach()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    /// Removes the events and hands the descriptor over to the caller; -1 if it is closed.
    public func detach() -> Int32 {
        let descriptor = self.descriptor
        guard descriptor >= 0 else { return -1 }
        loop.preconditionOwned()
        disableWriting()
        if isLowPriority { disableReading() }
        isLowPriority = false
        if let readEvent { event_free(readEvent) }
        readEvent = nil
        isReading = false
        if Socket.isStandIn(descriptor) { loop.standInSockets?.unwatch(descriptor) }
        self.descriptor = -1
        return descriptor
    }
}

// The events are freed before their SocketEvents, including pending ones, so the argument is alive on entry.
// During the call it may be freed; after the call only the handler's strong reference and the running loop are used.

func socketReadable(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    tell(argument) { $0.socketReadable() }
}

private func socketWritable(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    tell(argument) { $0.socketWritable() }
}

@inline(__always)
private func tell(_ argument: UnsafeMutableRawPointer?, _ call: (any SocketEventHandler) -> Void) {
    guard let argument else { return }
    let (loop, handler) = Unmanaged<SocketEvents>.fromOpaque(argument)._withUnsafeGuaranteedRef {
        (Unmanaged.passUnretained($0.loop), $0.handler)
    }
    loop._withUnsafeGuaranteedRef { loop in
        loop.beginCallback()
        if let handler { withExtendedLifetime(handler) { call(handler) } }
        loop.endCallback()
    }
}
