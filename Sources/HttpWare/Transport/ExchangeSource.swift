/// Makes the exchanges of a listener's connections.
protocol ExchangeSource: AnyObject {
    /// Makes a receiver whose exchange is ready for decoding, and answers to the sink.
    func makeReceiver(for sink: any ResponseSink, of connection: any DownstreamConnection) -> any RequestReceiver
    /// The connection is closed.
    func closed(_ connection: any DownstreamConnection)
    /// The client speaks another protocol: another connection has taken over the socket.
    func replaced(_ connection: any DownstreamConnection, by other: any DownstreamConnection)
    /// The settings of the listener's connections. The values that each request needs follow, to avoid copying all settings.
    var settings: ServerSettings { get }
    var limits: HeadLimits { get }
    var headNanoseconds: Int64 { get }
    var idleNanoseconds: Int64 { get }
    var bodyMinRate: Int? { get }
    /// Whether targets have the form of requests to a proxy.
    var isForward: Bool { get }
    /// Whether the gateway stands for the origin server and owns the paths of requests; otherwise they go upstream as received.
    var ownsPaths: Bool { get }
    /// The listener's address; `nil` if it is a wildcard address.
    var bindAddress: SocketAddress? { get }
    /// Whether no requests are accepted after the current ones.
    var isDraining: Bool { get }
    /// Makes the facts of a new connection.
    func facts(_ socket: SocketEvents, _ tls: TlsSession?, peer: SocketAddress?) -> ConnectionFacts
}

extension ExchangeSource {
    func facts(_ socket: SocketEvents, _ tls: TlsSession?, peer: SocketAddress?) -> ConnectionFacts {
        ConnectionFacts(socket, tls, peer: peer, of: self)
    }
}

extension ConnectionFacts {
    /// The facts of an accepted connection.
    convenience init(_ socket: SocketEvents, _ tls: TlsSession?, peer: SocketAddress?, of source: any ExchangeSource) {
        self.init(
            peer: peer, local: source.bindAddress ?? Socket.localAddress(socket.descriptor), isSecure: tls != nil,
            keyExchange: tls?.keyExchange, clientIdentity: tls?.clientIdentity, mayHaveBelongings: true)
    }
}
