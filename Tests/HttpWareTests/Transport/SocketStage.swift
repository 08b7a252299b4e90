import Glibc

@testable import HttpWare
@testable import HttpWareTesting

/// A server on a loop of its own, between clients and an origin server that both speak raw bytes.
///
/// Unchecked: what is not a constant is touched on the loop only.
final class SocketStage: @unchecked Sendable {
    let loop: EventLoop
    let port: UInt16
    let server: LoopListener
    let clock: ManualClock?
    private let acceptor: LoopAcceptor

    /// The origin server is at `port` of 127.0.0.1; `stops` makes time stand still until the test moves it.
    init(
        _ chain: WareChain, port: UInt16 = 1, settings: ServerSettings = ServerSettings(),
        limits: Endpoint.PoolLimits = Endpoint.PoolLimits(), stops: Bool = false
    ) throws {
        clock = stops ? ManualClock() : nil
        loop = try clock.map { try EventLoop(name: "sockets", clock: $0) } ?? EventLoop(name: "sockets")
        let transport = LoopTransport(loop: loop, resolver: nil)
        let service = UpstreamService(
            name: "origin", endpoints: [Endpoint(host: "127.0.0.1", port: port, limits: limits)])
        server = LoopListener(
            name: "sockets", transport: transport, settings: settings,
            router: SinglePlan(listenerPlan: ExchangePlan(chain: chain, service: service, route: nil)))
        let listener = try Socket.listen(on: .loopback, sharesPort: false)
        self.port = Socket.localAddress(listener)?.port ?? 0
        acceptor = LoopAcceptor(loop: loop, descriptor: listener, server: server)
        let loop = self.loop
        DetachedThread.start { loop.run() }
    }

    deinit {
        let (acceptor, server) = (Handed(acceptor), Handed(server))
        loop.execute {
            acceptor.value.close()
            server.value.closeAll()
            server.value.transport.closeIdle()
        }
        loop.stop()
    }

    /// Does something on the loop.
    @discardableResult
    func step<Value: Sendable>(_ body: @escaping @Sendable (SocketStage) -> Value) async -> Value {
        await loop.submit { body(self) }
    }

    /// Sends a request without a connection downstream, after something else in the same turn of the loop; answers the
    /// status, 0 for none.
    func send(_ request: HttpRequest, after first: @escaping @Sendable (SocketStage) -> Void = { _ in }) async -> Int {
        await withCheckedContinuation { continuation in
            loop.execute {
                first(self)
                LocalCaller(self.server, peer: nil).send(request) { result in
                    continuation.resume(returning: (try? result.get())?.status.code ?? 0)
                }
            }
        }
    }

    func connect() throws -> RawClient { try RawClient(port: port) }

    /// Sends bytes on a connection of its own and reads until it is closed.
    func exchange(_ text: String) async throws -> String {
        let client = try connect()
        await client.send(text)
        return String(decoding: await client.readToEnd(), as: UTF8.self)
    }

    private struct Handed<Value>: @unchecked Sendable {
        // Unchecked: carried from the loop's owner to the loop.
        let value: Value
        init(_ value: Value) { self.value = value }
    }
}

/// A client's socket. Every wait ends after a minute at the latest.
final class RawClient: Sendable {
    let descriptor: Int32

    init(port: UInt16) throws {
        switch Socket.connect(to: .ip(IPAddress(ipv4: 0x7f00_0001), port: port)) {
        case .connected(let descriptor), .inProgress(let descriptor): self.descriptor = descriptor
        case .failed(let code): throw SystemError("connect", code: code)
        }
    }

    deinit { close(descriptor) }

    func send(_ text: String) async { _ = await send(Array(text.utf8), patience: 60_000) }

    /// How many bytes were taken before the other end stopped taking them for this number of milliseconds.
    func send(_ bytes: [UInt8], patience: Int) async -> Int {
        var sent = 0
        var isOver = false
        while sent < bytes.count, !isOver {
            isOver =
                await !wait(patience) {
                    switch bytes[sent...].withUnsafeBytes({ Socket.write(descriptor, $0) }) {
                    case .bytes(let count): sent += count
                    case .failed(let code) where code != ENOTCONN: isOver = true
                    default: return false
                    }
                    return true
                } || isOver
        }
        return sent
    }

    /// Reads that much, or less when the connection ends or nothing comes for this number of milliseconds.
    func read(atLeast wanted: Int, patience: Int = 60_000) async -> [UInt8] {
        var all: [UInt8] = []
        var isOver = false
        var buffer = [UInt8](repeating: 0, count: 65536)
        while all.count < wanted, !isOver {
            isOver =
                await !wait(patience) {
                    let room = min(65536, wanted - all.count)
                    let result = buffer.withUnsafeMutableBytes {
                        Socket.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<room]))
                    }
                    switch result {
                    case .bytes(let count): all += buffer[..<count]
                    case .end: isOver = true
                    case .failed(let code) where code != ENOTCONN: isOver = true
                    default: return false
                    }
                    return true
                } || isOver
        }
        return all
    }

    /// Reads up to and with the text.
    func read(until text: String) async -> String {
        var all = ""
        while !all.hasSuffix(text) {
            let next = await read(atLeast: 1)
            if next.isEmpty { break }
            all += String(decoding: next, as: UTF8.self)
        }
        return all
    }

    func readToEnd(patience: Int = 60_000) async -> [UInt8] { await read(atLeast: .max, patience: patience) }

    /// Whether the other end closes, or resets, before anything else comes.
    func isClosed(within milliseconds: Int) async -> Bool {
        var byte: UInt8 = 0
        var isClosed = false
        _ = await wait(milliseconds) {
            switch withUnsafeMutableBytes(of: &byte, { Socket.read(descriptor, into: $0) }) {
            case .end, .failed: isClosed = true
            case .bytes: break
            case .wouldBlock: return false
            }
            return true
        }
        return isClosed
    }

    func endSending() { Socket.shutdownWriting(descriptor) }

    /// Waits for something without holding up other tests; false if it does not come within this number of milliseconds.
    private func wait(_ milliseconds: Int, _ hasCome: () -> Bool) async -> Bool {
        (try? await eventually(within: .milliseconds(milliseconds), every: .milliseconds(2), hasCome)) != nil
    }
}
