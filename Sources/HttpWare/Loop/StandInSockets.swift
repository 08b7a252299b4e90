/// Connections in memory, in place of the system's: for a loop that its owner turns by hand. Used on the loop's thread only.
///
/// Their descriptors begin at `Socket.firstStandIn`, where the system has none. The owner calls `SocketEvents.tell` when a connection is
/// readable or writable; as with the system's sockets, the event is told again while that lasts.
package protocol StandInSockets: AnyObject {
    func connect(to address: SocketAddress) -> Socket.Connection
    func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Socket.Transfer
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Socket.Transfer
    /// Whether the connection is open and has no unread bytes.
    func isQuiet(_ descriptor: Int32) -> Bool
    /// Takes the pending error; 0 without one.
    func pendingError(_ descriptor: Int32) -> Int32
    func shutdownWriting(_ descriptor: Int32)
    func close(_ descriptor: Int32)
    func reset(_ descriptor: Int32)
    func localAddress(_ descriptor: Int32) -> SocketAddress?
    func peerAddress(_ descriptor: Int32) -> SocketAddress?

    /// The socket has events from now on. It is not retained.
    func watch(_ socket: SocketEvents)
    /// The socket has gone.
    func unwatch(_ descriptor: Int32)
}

extension Socket {
    /// The first descriptor of a connection in memory: above all that a system gives (`fs.nr_open` is at most 2³⁰).
    package static var firstStandIn: Int32 { 1 << 30 }

    /// Whether the descriptor is that of a connection in memory.
    @inline(__always)
    static func isStandIn(_ descriptor: Int32) -> Bool { descriptor >= firstStandIn }

    /// The connections in memory of the current loop.
    static var standIn: (any StandInSockets)? { EventLoop.current?.standInSockets }
}
