/// A client's connection that begins with SOCKS5, until the client has named its destination. RFC 1928.
///
/// Then the socket becomes a connection whose request is a CONNECT, so that routes, wares and logs see an ordinary one.
final class SocksConnection: SocketConnection, DownstreamConnection {
    private let source: any ExchangeSource
    let facts: ConnectionFacts
    private var decoder: SocksDecoder
    private var bytes: [UInt8] = []

    /// The maximum length of a message; the longest is a password's, 513 bytes.
    private static let most = 1024
    private static let lingerNanoseconds: Int64 = 2_000_000_000
    private var isRefused = false

    init(
        transport: LoopTransport, socket: SocketEvents, tls: TlsSession?, peer: SocketAddress?,
        source: any ExchangeSource
    ) {
        self.source = source
        facts = source.facts(socket, tls, peer: peer)
        if case .withPassword = source.settings.socks {
            decoder = SocksDecoder(demandsPassword: true)
        } else {
            decoder = SocksDecoder(demandsPassword: false)
        }
        super.init(transport: transport, socket: socket, tls: tls)
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ source.headNanoseconds)
        if !socket.enableReading() { loop.later { self.close() } }
        if let tls, tls.hasPending { readOn() }
    }

    var isIdle: Bool { false }

    func drain(idleFor nanoseconds: Int64) { timer.set(dueNanoseconds: loop.now.nanoseconds &+ nanoseconds) }

    override func received(_ input: UnsafeRawBufferPointer) {
        guard !isRefused else { return }
        bytes.append(contentsOf: input)
        var position = 0
        while !isClosed, !isRefused {
            switch decoder.next(bytes, from: &position) {
            case .incomplete:
                bytes.removeFirst(position)
                if bytes.count > SocksConnection.most { close() }
                return
            case .reply(let reply): reply.withUnsafeBytes { send($0) }
            case .refused(let reply):
                reply.withUnsafeBytes { send($0) }
                return refuse()
            case .request(let authority): return connect(to: authority, bytes[position...])
            }
            transport.output.flush()
        }
    }

    /// The client has its refusal: the sending side ends, and the client gets time to read it.
    private func refuse() {
        isRefused = true
        bytes = []
        endSending()
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ SocksConnection.lingerNanoseconds)
    }

    private func connect(to authority: Authority, _ rest: ArraySlice<UInt8>) {
        // The request cannot be invalid: it is an authority with a port.
        guard var request = try? HttpRequest(.connect, authority.description), !isBlocked else { return close() }
        request.proxyAuthorization = decoder.proxyAuthorization
        let connection = Http1DownstreamConnection(
            transport: transport, socks: handOver(), tls: tls, peer: facts.peer, source: source)
        source.replaced(self, by: connection)
        connection.start(request, received: rest)
    }

    override func receivedEnd() { close() }

    override func failed(_ error: Int32) { close() }

    override func timedOut() { close() }

    override func closed() { source.closed(self) }
}
