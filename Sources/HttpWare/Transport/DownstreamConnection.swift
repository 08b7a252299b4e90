/// A client's connection of any HTTP version.
protocol DownstreamConnection: SocketConnection {
    /// The facts that its exchanges share.
    var facts: ConnectionFacts { get }
    /// Whether there is neither a request nor a part of a head.
    var isIdle: Bool { get }
    /// Makes the current requests the last ones. A connection without a request closes after this time.
    func drain(idleFor nanoseconds: Int64)
}
