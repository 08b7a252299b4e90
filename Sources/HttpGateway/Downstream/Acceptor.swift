import HttpWare

/// One loop's socket of a listener. It accepts connections and passes them to the loop's server. Used on its loop's thread.
final class Acceptor: SocketEventHandler, LoopTimerHandler {
    private let loop: EventLoop
    private let socket: SocketEvents
    private let retry: LoopTimer
    /// The server that gets the connections.
    var server: LoopListener
    /// The maximum number of connections; further ones wait.
    var mostConnections: Int
    /// Passes connections to the server; `nil` for `LoopListener.accept(_:from:)`.
    private let enter: ((LoopListener, Int32, SocketAddress) -> Void)?
    private let reports: (String) -> Void
    private var isShort = false
    /// The end of the range of usable descriptors: connections are accepted while one below it is free.
    private let descriptorEnd: Int32
    /// The number of the last accepted descriptor. The system always assigns the lowest free number.
    private var lastDescriptor: Int32 = 0

    /// The number of connections that one event accepts, if `ready` other events are waiting.
    ///
    /// Usually one, because each accepted connection brings two or three events to the loop's turns, and existing connections
    /// wait for all of them. Connections left in the queue cause another event, which costs no more than finding the queue empty.
    /// If many events are ready anyway, more are accepted, because a busy loop would otherwise hardly accept. An eighth is less
    /// than the accepted connections bring themselves, so that a storm does not amplify itself.
    static func share(beside ready: Int) -> Int { min(max(ready / 8, leastAccepts), mostAccepts) }

    private static let leastAccepts = 1
    private static let mostAccepts = 64
    /// The number of descriptors that may be in use when a connection is accepted: three quarters of the limit. The rest is for
    /// the connections to origin servers that the accepted connections will need.
    static func descriptorShare(of most: Int?) -> Int32 { most.map { Int32(clamping: $0 - $0 / 4) } ?? .max }

    /// How long accepting pauses when descriptors or places are used up.
    private static let rest = Duration.milliseconds(50)

    /// Takes over a listening descriptor. `reports` is called with the reason when accepting pauses.
    init(
        descriptor: Int32, loop: EventLoop, server: LoopListener, mostConnections: Int, descriptorEnd: Int32 = .max,
        enter: ((LoopListener, Int32, SocketAddress) -> Void)? = nil, reports: @escaping (String) -> Void
    ) {
        self.loop = loop
        self.server = server
        self.mostConnections = mostConnections
        self.descriptorEnd = descriptorEnd
        self.enter = enter
        self.reports = reports
        socket = SocketEvents(loop: loop, descriptor: descriptor)
        retry = LoopTimer(loop: loop)
        socket.handler = self
        retry.handler = self
        socket.enableReading()
    }

    func socketReadable() { accept(atMost: Acceptor.share(beside: loop.readyCount)) }

    func socketWritable() {}

    private func accept(atMost most: Int, isLast: Bool = false) {
        for _ in 0..<most {
            guard isLast || server.connectionCount < mostConnections else {
                return pause("\(server.name): \(mostConnections) connections are open on one loop; new ones wait")
            }
            guard isLast || lastDescriptor < descriptorEnd || hasDescriptors() else {
                return pause(
                    "\(server.name): \(descriptorEnd) file descriptors are in use, and the rest is reserved for origin servers; raise the limit (ulimit -n); new connections wait"
                )
            }
            switch Socket.accept(socket.descriptor) {
            case .accepted(let descriptor, let peer):
                isShort = false
                lastDescriptor = descriptor
                if let enter { enter(server, descriptor, peer) } else { server.accept(descriptor, from: peer) }
            case .wouldBlock: return
            case .outOfDescriptors:
                return pause(
                    "\(server.name): no file descriptors are left; raise the limit (ulimit -n); new connections wait")
            case .failed(let code):
                return pause("\(server.name): accept failed (errno \(code))")
            }
        }
    }

    /// Whether a descriptor below the end is free again. This takes two system calls, so it is checked only after one beyond the
    /// end was assigned.
    private func hasDescriptors() -> Bool {
        guard let lowest = Socket.lowestFreeDescriptor else { return false }
        lastDescriptor = lowest
        return lowest < descriptorEnd
    }

    /// Pauses accepting, so that a listener that stays readable does not spin. Reports the reason once for each shortage.
    private func pause(_ reason: String) {
        if !isShort { reports(reason) }
        isShort = true
        socket.disableReading()
        retry.set(after: Acceptor.rest)
    }

    func timerFired(_ timer: LoopTimer) {
        guard socket.descriptor >= 0 else { return }
        socket.enableReading()
        socketReadable()
    }

    /// Accepts all waiting connections, regardless of the limit, and closes the socket. Connections left in the queue would be
    /// reset.
    func close() {
        guard socket.descriptor >= 0 else { return }
        accept(atMost: 65536, isLast: true)
        retry.cancel()
        socket.close()
    }
}
