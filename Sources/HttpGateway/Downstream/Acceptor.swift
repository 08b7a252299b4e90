import HttpWare

/// One loop's socket of a listener: accepts connections and hands them to the loop's server. Used on its loop's thread.
final class Acceptor: SocketEventHandler, LoopTimerHandler {
    private let loop: EventLoop
    private let socket: SocketEvents
    private let retry: LoopTimer
    /// The server that takes the connections.
    var server: LoopListener
    /// More connections than these wait.
    var mostConnections: Int
    private let reports: (String) -> Void
    private var isShort = false
    /// Connections are accepted while a descriptor below this number is free.
    private let descriptorEnd: Int32
    /// The number that the last accepted connection got: the system gives the lowest that is free.
    private var lastDescriptor: Int32 = 0

    /// How many connections one event accepts, where so many other events wait behind it.
    ///
    /// One, for each that is accepted brings two or three events to the loop's turns, and those who are there wait for all
    /// of them; what is left in the queue is told again, which costs no more than to find the queue empty. More where much else
    /// is ready anyway, or a busy loop would hardly accept. An eighth is less than the accepted bring themselves, so that a
    /// storm does not feed on itself.
    static func share(beside ready: Int) -> Int { min(max(ready / 8, leastAccepts), mostAccepts) }

    private static let leastAccepts = 1
    private static let mostAccepts = 64
    /// How many of a process's descriptors may be in use when a connection is accepted: three quarters. The rest is for the connections
    /// to origin servers that the accepted ones will need.
    static func descriptorShare(of most: Int?) -> Int32 { most.map { Int32(clamping: $0 - $0 / 4) } ?? .max }

    /// How long accepting rests when descriptors or places are used up.
    private static let rest = Duration.milliseconds(50)

    /// Takes over a listening descriptor; `reports` is told when accepting has to rest.
    init(
        descriptor: Int32, loop: EventLoop, server: LoopListener, mostConnections: Int, descriptorEnd: Int32 = .max,
        reports: @escaping (String) -> Void
    ) {
        self.loop = loop
        self.server = server
        self.mostConnections = mostConnections
        self.descriptorEnd = descriptorEnd
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
                server.accept(descriptor, from: peer)
            case .wouldBlock: return
            case .outOfDescriptors:
                return pause(
                    "\(server.name): no file descriptors are left; raise the limit (ulimit -n); new connections wait")
            case .failed(let code):
                return pause("\(server.name): accept failed (errno \(code))")
            }
        }
    }

    /// Whether a descriptor below the end is free again. Two system calls: asked only after one beyond it was given out.
    private func hasDescriptors() -> Bool {
        guard let lowest = Socket.lowestFreeDescriptor else { return false }
        lastDescriptor = lowest
        return lowest < descriptorEnd
    }

    /// Rests, so that a listener that stays readable does not spin; says so once a shortage.
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

    /// Accepts what waits already, whatever the limit, then closes the socket: closing resets what is left in its queue.
    func close() {
        guard socket.descriptor >= 0 else { return }
        accept(atMost: 65536, isLast: true)
        retry.cancel()
        socket.close()
    }
}
