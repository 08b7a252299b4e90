import CLibevent
import Glibc

/// What a socket tells. Both are called on the loop's thread; the handler is kept alive while a call lasts.
public protocol SocketEventHandler: AnyObject {
    /// There is something to read: bytes, the end, an error, or a connection to accept.
    func socketReadable()

    /// There is room to write, a connect has ended, or an error waits.
    func socketWritable()
}

/// A descriptor and its place in a loop: one persistent read event, made once, and a write event only while it is wanted.
///
/// It owns the descriptor: `close()`, or the last reference going, removes the events and then closes it. Level-triggered.
/// Used on the loop's thread only. The handler owns it and may close and release it within a call.
public final class SocketEvents {
    /// The loop that watches the descriptor.
    public let loop: EventLoop

    /// Who is told. Set by the owner before it enables anything; the owner outlives this object or closes it.
    public unowned var handler: (any SocketEventHandler)?

    /// The descriptor; -1 once it is closed or detached.
    public private(set) var descriptor: Int32

    /// Whether `socketReadable` is called.
    public private(set) var isReading = false

    /// Whether `socketWritable` is called.
    public var isWriting: Bool { writeEvent != nil }

    /// Whether `socketReadable` is called behind that of others.
    public private(set) var isLowPriority = false

    private var readEvent: OpaquePointer?
    private var writeEvent: OpaquePointer?

    /// Takes over a non-blocking descriptor. Nothing is watched yet.
    public init(loop: EventLoop, descriptor: Int32, handler: (any SocketEventHandler)? = nil) {
        self.loop = loop
        self.descriptor = descriptor
        self.handler = handler
    }

    deinit { close() }

    /// Begins to tell when the descriptor is readable. Does nothing if it does already.
    ///
    /// Answers whether that worked; it fails only without memory or for a descriptor that cannot be polled, a file.
    @discardableResult
    public func enableReading() -> Bool {
        if isReading { return true }
        guard descriptor >= 0 else { return false }
        if isLowPriority {
            isReading = loop.lowPrioritySockets?.add(self) ?? false
            if isReading { return true }
            // The system has no room for it there.
            isLowPriority = false
        }
        if readEvent == nil {
            readEvent = event_new(
                loop.base, descriptor, Int16(EV_READ | EV_PERSIST), socketReadable,
                Unmanaged.passUnretained(self).toOpaque())
        }
        guard let readEvent, event_add(readEvent, nil) == 0 else { return false }
        isReading = true
        return true
    }

    /// Stops telling when the descriptor is readable: backpressure. The event stays made.
    public func disableReading() {
        guard isReading else { return }
        if isLowPriority { loop.lowPrioritySockets?.remove(self) } else if let readEvent { event_del(readEvent) }
        isReading = false
    }

    /// Lets others be told first of what there is to read, or ends that. For what comes in many small pieces; it changes nothing where
    /// the system has no room for it.
    public func setLowPriority(_ isLowPriority: Bool) {
        guard isLowPriority != self.isLowPriority, descriptor >= 0, !isLowPriority || loop.lowPrioritySockets != nil
        else { return }
        let wasReading = isReading
        disableReading()
        self.isLowPriority = isLowPriority
        if wasReading { enableReading() }
    }

    /// Begins to tell, again and again, when the descriptor is writable. Answers whether that worked.
    @discardableResult
    public func enableWriting() -> Bool {
        if writeEvent != nil { return true }
        guard descriptor >= 0,
            let event = event_new(
                loop.base, descriptor, Int16(EV_WRITE | EV_PERSIST), socketWritable,
                Unmanaged.passUnretained(self).toOpaque())
        else { return false }
        guard event_add(event, nil) == 0 else {
            event_free(event)
            return false
        }
        writeEvent = event
        return true
    }

    /// Stops telling when the descriptor is writable, and gives the event back.
    public func disableWriting() {
        guard let writeEvent else { return }
        event_free(writeEvent)
        self.writeEvent = nil
    }

    /// Removes the events, then closes the descriptor. More than once does no harm.
    public func close() {
        let descriptor = detach()
        if descriptor >= 0 { Socket.close(descriptor) }
    }

    /// Removes the events and gives the descriptor up to the caller; -1 if it is closed.
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
        self.descriptor = -1
        return descriptor
    }
}

// The events are freed before their SocketEvents goes, also those that wait for their turn, so the argument is alive on entry.
// During the call it may go; what is used after the call is only the handler's strong reference and the loop, which runs.

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
