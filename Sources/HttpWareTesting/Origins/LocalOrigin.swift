import Glibc
public import HttpWare
import Synchronization

/// An origin server in the same process, on a port of 127.0.0.1 that the system chooses, with answers in code.
///
/// ```swift
/// let origin = try LocalOrigin { request in HttpResponse(.ok, content: .text("you asked for \(request.path)")) }
/// ```
///
/// Its requests have their complete content, up to 64 MiB. It has its own loop, which ends with it. Usable from any
/// thread: its state is guarded by a mutex.
public final class LocalOrigin: Sendable {
    /// The function that answers a request; it may wait.
    public typealias Answer = @Sendable (HttpRequest) async throws -> HttpResponse

    /// The port that it listens on, at 127.0.0.1; 0 if it uses a Unix socket.
    public var port: UInt16 { reserved?.number ?? 0 }
    private let reserved: ReservedPort?
    /// The path of its Unix socket; `nil` if it uses a port.
    private let path: String?
    private let seen = Mutex<[HttpRequest]>([])
    private let stage: Stage

    /// Starts to listen. Throws if there is no socket or no thread. Without `keepsRequests`, `requests` stays empty,
    /// for large numbers of requests.
    public convenience init(keepsRequests: Bool = true, _ answer: @escaping Answer) throws {
        let reserved = try ReservedPort()
        try self.init(reserved.listener, reserved, nil, keepsRequests, answer)
    }

    /// Listens on a Unix socket, whose file is removed with it.
    public convenience init(unixSocket path: String, keepsRequests: Bool = true, _ answer: @escaping Answer) throws {
        try self.init(try Socket.listen(on: .unix(path: path)), nil, path, keepsRequests, answer)
    }

    private init(
        _ listener: Int32, _ reserved: ReservedPort?, _ path: String?, _ keepsRequests: Bool, _ answer: @escaping Answer
    ) throws {
        self.reserved = reserved
        self.path = path
        stage = try Stage(listener)
        stage.serve { [weak self] request in
            if keepsRequests { self?.seen.withLock { $0.append(request) } }
            return try await answer(request)
        }
    }

    deinit {
        stage.stop()
        if let path { unlink(path) }
    }

    /// `http://127.0.0.1:port`.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// The received requests, in order.
    public var requests: [HttpRequest] { seen.withLock { $0 } }

    /// The number of connections.
    public func connectionCount() async -> Int {
        await stage.loop.submit { [stage] in stage.server?.connectionCount ?? 0 }
    }

    /// Closes its socket and all its connections now; further ones are refused.
    public func close() async {
        reserved?.refuse()
        await stage.loop.submit { [stage] in stage.close() }
    }

    /// The loop with the server.
    ///
    /// Unchecked: everything but `loop` is used on the loop only.
    private final class Stage: @unchecked Sendable {
        let loop: EventLoop
        private(set) var server: LoopListener?
        private var acceptor: LoopAcceptor?
        private let listener: Int32

        init(_ listener: Int32) throws {
            self.listener = listener
            loop = try EventLoop.start(name: "origin")
        }

        func serve(_ answer: @escaping Answer) {
            loop.execute { self.open(answer) }
        }

        private func open(_ answer: @escaping Answer) {
            guard
                let chain = try? WareChain(middlewares: [ChainEntry(AnsweringWare(answer: answer))], postwares: [])
            else { return }
            // Long limits, because a test may wait for its turn longer than a client may usually be idle.
            var settings = ServerSettings()
            settings.headTimeout = .seconds(3600)
            settings.idleTimeout = .seconds(3600)
            let server = LoopListener(
                name: "origin", transport: LoopTransport(loop: loop, resolver: nil), settings: settings,
                router: OnePlan(ExchangePlan(chain: chain, service: nil, route: nil)))
            self.server = server
            acceptor = LoopAcceptor(loop: loop, descriptor: listener, server: server)
        }

        func close() {
            acceptor?.close()
            acceptor = nil
            server?.closeAll()
            server = nil
        }

        func stop() {
            loop.execute { self.close() }
            loop.stop()
        }
    }
}

/// Answers every request by calling the closure; an error that it throws becomes a 500.
private struct AnsweringWare: Middleware {
    let answer: LocalOrigin.Answer

    var contentNeed: ContentNeed { .whole(upTo: 64 << 20) }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        .wait { request, _ in .abort(with: try await answer(request)) }
    }
}
