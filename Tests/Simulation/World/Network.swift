// One file: both ends of a connection, its two directions and its faults are one state.

import Glibc
import HttpWare

/// The side of a connection that the simulation plays: a client, an origin server, a token server, a Redis server.
protocol Peer: AnyObject {
    func received(_ bytes: [UInt8])
    /// The gateway will send no more.
    func receivedEnd()
    /// The connection broke.
    func wasReset()
}

/// A place at which the simulation accepts the gateway's connections.
protocol Place: AnyObject {
    /// The fate of a new connection.
    var welcome: Network.Welcome { get }
    func accept(_ wire: Wire) -> any Peer
}

/// One connection in memory. Bytes keep their order within a direction and take time; directions and connections are independent.
final class Wire {
    let number: Int
    let descriptor: Int32
    /// The loop at whose end the gateway is.
    let replica: Int
    let address: SocketAddress
    fileprivate unowned let network: Network
    fileprivate(set) var peer: (any Peer)?
    private var draw: Draw
    /// Microseconds that a piece takes.
    var latency: Int

    // The gateway's end.
    fileprivate unowned(unsafe) var events: SocketEvents?
    fileprivate var isConnected: Bool
    fileprivate var unread: [UInt8] = []
    fileprivate var unreadStart = 0
    fileprivate var hasEnd = false
    fileprivate var error: Int32 = 0
    fileprivate var isClosedHere = false
    fileprivate var isShutHere = false
    /// Bytes that the gateway wrote and the peer has not received.
    fileprivate var onTheirWay = 0
    private var outgoing: [UInt8] = []
    private var isDelivering = false

    // The peer's end.
    private(set) var isClosedThere = false
    private var isShutThere = false
    /// Whether the peer reads; while it does not, the gateway's bytes wait.
    private(set) var isReading = true
    /// The time at which the last piece towards the gateway arrives.
    private var arrival: Int64 = 0

    /// The gateway may write this many bytes before the peer has received them.
    private let window: Int

    fileprivate init(_ network: Network, _ number: Int, replica: Int, to address: SocketAddress, isConnected: Bool) {
        self.network = network
        self.number = number
        self.replica = replica
        self.address = address
        self.isConnected = isConnected
        descriptor = Socket.firstStandIn + Int32(number)
        draw = Draw(network.seed, "wire", number)
        latency = network.calm ? 100 : draw.one(of: [0, 50, 200, 1_000, 5_000])
        window = network.calm ? 1 << 20 : draw.one(of: [200, 4_096, 65_536, 1 << 20])
    }

    fileprivate var unreadCount: Int { unread.count - unreadStart }
    fileprivate var isReadable: Bool { isConnected && (unreadCount > 0 || hasEnd || error != 0) }
    fileprivate var isWritable: Bool { error != 0 || isConnected && onTheirWay < window }
    /// Whether the gateway has closed its end.
    var isGone: Bool { isClosedHere }

    // MARK: The peer's calls

    /// Sends bytes to the gateway, in pieces that arrive one after another.
    func send(_ bytes: [UInt8]) {
        guard !isClosedThere, !isShutThere, !bytes.isEmpty else { return }
        var start = 0
        while start < bytes.count {
            let most = network.calm || draw.once(in: 3) ? bytes.count : draw.one(of: [1, 7, 100, 1_400, 20_000])
            let piece = Array(bytes[start..<min(bytes.count, start + most)])
            start += piece.count
            // Not all of a long content a byte at a time: that shows nothing more, and takes long.
            if most < 100, start > 200 {
                let rest = Array(bytes[start...])
                arrive(piece)
                arrive(rest)
                return
            }
            arrive(piece)
        }
    }

    private func arrive(_ piece: [UInt8]) {
        travel { wire in
            if wire.isClosedHere { return wire.refuse() }
            wire.unread += piece
        }
    }

    /// Ends the peer's sending side.
    func shut() {
        guard !isClosedThere, !isShutThere else { return }
        isShutThere = true
        travel { $0.hasEnd = true }
    }

    /// Closes the peer's end: what it sent arrives; what it has not received is answered with a reset.
    func close() {
        guard !isClosedThere else { return }
        shut()
        isClosedThere = true
        if onTheirWay > 0 { travel { $0.breakHere(ECONNRESET) } }
        network.timeline.after(latency + 1) { [weak self] in self?.forgetIfDone() }
        peer = nil
    }

    /// Breaks the connection: bytes on their way may be lost.
    func reset() {
        guard !isClosedThere else { return }
        isClosedThere = true
        travel { $0.breakHere(ECONNRESET) }
        peer = nil
    }

    /// Stops and continues the peer's reading.
    func pause() { isReading = false }
    func resume() {
        guard !isReading else { return }
        isReading = true
        deliver()
    }

    /// Calls the body when what was sent so far has arrived, and latency has passed.
    private func travel(_ body: @escaping (Wire) -> Void) {
        let gap = network.calm || !draw.once(in: 4) ? 0 : draw.from(1...3_000)
        arrival = max(network.timeline.now + Int64(latency) * 1000, arrival) + Int64(gap) * 1000
        let wait = Int((arrival - network.timeline.now) / 1000)
        network.timeline.after(wait) { [weak self] in
            guard let self else { return }
            body(self)
        }
    }

    private func breakHere(_ code: Int32) {
        guard !isClosedHere else { return network.forget(self) }
        error = code
        outgoing = []
        // A reset may overtake bytes that were not read yet.
        if !network.calm, draw.once(in: 2) {
            unread = []
            unreadStart = 0
        }
    }

    /// The gateway has closed its end: bytes that arrive are answered with a reset.
    private func refuse() {
        guard !isClosedThere else { return network.forget(self) }
        network.timeline.after(latency) { [weak self] in self?.tellReset() }
    }

    fileprivate func tellReset() {
        guard !isClosedThere else { return }
        isClosedThere = true
        let peer = peer
        self.peer = nil
        peer?.wasReset()
        network.forget(self)
    }

    private func forgetIfDone() { if isClosedHere { network.forget(self) } }

    // MARK: The gateway's calls

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        if error != 0 { return takeError(else: EPIPE) }
        if isShutHere { return .failed(EPIPE) }
        guard isConnected else { return .wouldBlock }
        let room = window - onTheirWay
        guard room > 0 else { return .wouldBlock }
        let count = min(room, bytes.count)
        onTheirWay += count
        if isClosedThere {
            // The peer's system answers with a reset.
            travel { $0.breakHere(EPIPE) }
        } else {
            outgoing += bytes[..<count]
            deliver()
        }
        return .bytes(count)
    }

    private func takeError(else code: Int32) -> Socket.Transfer {
        defer { error = EPIPE }
        return .failed(error == 0 ? code : error)
    }

    /// Passes what the gateway wrote to the peer, in pieces.
    private func deliver() {
        guard isReading, !isDelivering, !outgoing.isEmpty else { return }
        isDelivering = true
        network.timeline.after(latency + (network.calm || !draw.once(in: 4) ? 0 : draw.from(1...2_000))) {
            [weak self] in
            guard let self else { return }
            isDelivering = false
            guard isReading, !isClosedThere, !outgoing.isEmpty else { return }
            let most = network.calm || !draw.once(in: 4) ? outgoing.count : draw.from(1...outgoing.count)
            let piece = Array(outgoing[..<most])
            outgoing.removeFirst(most)
            onTheirWay -= most
            peer?.received(piece)
            if outgoing.isEmpty { endIfShut() } else { deliver() }
        }
    }

    private func endIfShut() {
        guard isShutHere || isClosedHere, !isClosedThere else { return }
        peer?.receivedEnd()
    }

    fileprivate func shutHere() {
        guard !isShutHere, !isClosedHere else { return }
        isShutHere = true
        tellEnd()
    }

    private func tellEnd() {
        guard outgoing.isEmpty else { return }
        network.timeline.after(latency) { [weak self] in
            guard let self, outgoing.isEmpty else { return }
            endIfShut()
        }
    }

    fileprivate func closeHere(isReset: Bool) {
        guard !isClosedHere else { return }
        let wasShut = isShutHere
        isClosedHere = true
        events = nil
        network.closed(self)
        if isClosedThere || !isConnected { return network.forget(self) }
        if isReset || unreadCount > 0 || error != 0 {
            outgoing = []
            network.timeline.after(latency) { [weak self] in self?.tellReset() }
        } else if !wasShut {
            tellEnd()
        }
    }
}

/// Connections between the gateway's loops and the peers of a simulated world, in place of sockets.
final class Network {
    /// The fate of a new connection.
    enum Welcome {
        case accepted, refused
        /// No answer, until the connector gives up.
        case silence
    }

    let timeline: Timeline
    let seed: UInt64
    /// Whether all pieces arrive whole and at once.
    var calm = false
    private var places: [SocketAddress: any Place] = [:]
    private var wires: [Int32: Wire] = [:]
    private var count = 0
    /// The replica whose loop is being turned.
    var replica = 0
    /// The gateway's open connections, by address and replica; what `Judge` compares with the pool's limit.
    private(set) var open: [SocketAddress: [Int: Int]] = [:]
    var whenConnected: ((Wire) -> Void)?

    init(_ timeline: Timeline, seed: UInt64) {
        self.timeline = timeline
        self.seed = seed
    }

    func listen(_ place: any Place, at address: SocketAddress) { places[address] = place }

    /// Connects a peer to a replica. The caller passes the descriptor to its listener.
    func connect(_ peer: any Peer, to replica: Int, from address: SocketAddress) -> Wire {
        let wire = makeWire(replica, address, isConnected: true)
        wire.peer = peer
        return wire
    }

    private func makeWire(_ replica: Int, _ address: SocketAddress, isConnected: Bool) -> Wire {
        count += 1
        let wire = Wire(self, count, replica: replica, to: address, isConnected: isConnected)
        wires[wire.descriptor] = wire
        return wire
    }

    fileprivate func forget(_ wire: Wire) { if wire.isClosedHere { wires[wire.descriptor] = nil } }

    fileprivate func closed(_ wire: Wire) {
        guard places[wire.address] != nil else { return }
        open[wire.address]?[wire.replica]? -= 1
    }

    /// Tells the gateway's sockets that have something to do, in an order of the seed; some of them only the next time. Returns whether one was told.
    func tell(_ replica: Int, turn: Int) -> Bool {
        var draw = Draw(seed, "turn", turn &* 2 &+ replica)
        var ready: [Wire] = []
        for wire in wires.values where wire.replica == replica && !wire.isClosedHere {
            guard let events = wire.events else { continue }
            if events.isReading && wire.isReadable || events.isWriting && wire.isWritable { ready.append(wire) }
        }
        guard !ready.isEmpty else { return false }
        ready.sort { $0.number < $1.number }
        if !calm {
            for index in ready.indices.dropLast() { ready.swapAt(index, draw.from(index...ready.count - 1)) }
        }
        var isTold = false
        for wire in ready {
            if isTold, !calm, draw.once(in: 4) { continue }
            if wire.events?.tell(readable: wire.isReadable, writable: wire.isWritable) == true { isTold = true }
        }
        return isTold
    }

    private func wire(_ descriptor: Int32) -> Wire? { wires[descriptor] }
}

extension Network: StandInSockets {
    func connect(to address: SocketAddress) -> Socket.Connection {
        guard let place = places[address] else { return .failed(ECONNREFUSED) }
        let wire = makeWire(replica, address, isConnected: false)
        open[address, default: [:]][replica, default: 0] += 1
        let welcome = place.welcome
        if case .silence = welcome { return .inProgress(wire.descriptor) }
        timeline.after(wire.latency) { [weak place] in
            guard !wire.isClosedHere else { return }
            guard let place, case .accepted = place.welcome else {
                wire.error = ECONNREFUSED
                return
            }
            wire.isConnected = true
            wire.peer = place.accept(wire)
        }
        return .inProgress(wire.descriptor)
    }

    func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Socket.Transfer {
        guard let wire = wire(descriptor) else { return .failed(EBADF) }
        if wire.unreadCount > 0 {
            let count = min(wire.unreadCount, buffer.count)
            wire.unread.withUnsafeBytes {
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[wire.unreadStart..<wire.unreadStart + count]))
            }
            wire.unreadStart += count
            if wire.unreadCount == 0 {
                wire.unread.removeAll(keepingCapacity: true)
                wire.unreadStart = 0
            }
            return .bytes(count)
        }
        if wire.error != 0 {
            let code = wire.error
            wire.error = EPIPE
            return code == EPIPE ? .end : .failed(code)
        }
        return wire.hasEnd ? .end : .wouldBlock
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        wire(descriptor)?.write(bytes) ?? .failed(EBADF)
    }

    func isQuiet(_ descriptor: Int32) -> Bool {
        guard let wire = wire(descriptor) else { return false }
        return wire.unreadCount == 0 && !wire.hasEnd && wire.error == 0
    }

    func pendingError(_ descriptor: Int32) -> Int32 {
        guard let wire = wire(descriptor) else { return EBADF }
        return wire.error
    }

    func shutdownWriting(_ descriptor: Int32) { wire(descriptor)?.shutHere() }
    func close(_ descriptor: Int32) { wire(descriptor)?.closeHere(isReset: false) }
    func reset(_ descriptor: Int32) { wire(descriptor)?.closeHere(isReset: true) }
    func localAddress(_ descriptor: Int32) -> SocketAddress? { nil }
    func peerAddress(_ descriptor: Int32) -> SocketAddress? { wire(descriptor)?.address }
    func watch(_ socket: SocketEvents) { wire(socket.descriptor)?.events = socket }
    func unwatch(_ descriptor: Int32) { wire(descriptor)?.events = nil }
}
