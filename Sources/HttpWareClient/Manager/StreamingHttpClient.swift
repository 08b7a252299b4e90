public import HttpWare

/// Another transport, written as one `async` function, whose content streams in both directions.
///
/// ```swift
/// struct Echo: StreamingHttpClient {
///     func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer {
///         StreamedAnswer(HttpResponse(.ok), content: content)
///     }
/// }
/// let manager = HttpManager(service: api, client: .streaming(Echo()))
/// ```
///
/// The request has an absolute URL. The answer may be returned before the request's content was read. Throw a `GatewayError` to
/// state the fault; any other error counts as a broken connection, and is the `underlying` error of the `HttpError`. The task is cancelled when the caller has gone or a time limit
/// has passed. For short messages, `AsyncHttpClient` is simpler.
public protocol StreamingHttpClient: Sendable {
    /// The response to a request whose content arrives in pieces.
    func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer
}

/// The content of a request, in pieces as they arrive, for one reader. A slow reader slows the program down.
public struct RequestPieces: AsyncSequence, Sendable {
    public typealias Element = [UInt8]

    let pipe: ContentPipe

    public func makeAsyncIterator() -> Iterator { Iterator(pipe: pipe) }

    public struct Iterator: AsyncIteratorProtocol {
        let pipe: ContentPipe

        /// The next piece; `nil` at the end. Throws if the request was cut off.
        public func next() async throws -> [UInt8]? { try await pipe.next() }
    }
}

/// The answer of a `StreamingHttpClient`: the head of a response, and its content.
public struct StreamedAnswer: Sendable {
    let head: HttpResponse
    let bring: @Sendable (@Sendable ([UInt8]) async throws -> Void) async throws -> Void

    /// A response whose content arrives in pieces. If the length is known, set it in the content of `head`: `.streamed(length:)`.
    public init<Pieces: AsyncSequence & Sendable>(_ head: HttpResponse, content: Pieces)
    where Pieces.Element == [UInt8] {
        var head = head
        if head.content.isEmpty { head.content = .streamed() }
        self.head = head
        bring = { take in
            for try await piece in content { try await take(piece) }
        }
    }

    /// A response that is available as a whole.
    public init(_ response: HttpResponse) {
        var head = response
        let bytes = response.content.bytes
        head.content = bytes.map { .streamed(length: $0.count) } ?? .none
        self.head = head
        bring = { take in
            if let bytes { try await take(bytes) }
        }
    }
}

extension HttpClient where Self == StreamingTransport {
    /// A client whose content streams.
    public static func streaming(_ client: any StreamingHttpClient) -> StreamingTransport {
        StreamingTransport(client: client)
    }
}

/// Connects a manager to a `StreamingHttpClient`.
public struct StreamingTransport: HttpClient, PiecewiseClient {
    let client: any StreamingHttpClient

    package func open(_ request: HttpRequest, receiver: any PiecewiseReceiver) -> any PiecewiseCall {
        StreamingCall(client, request, receiver)
    }

    /// Sends a whole message.
    public func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        WholeCall(client: client).start(request, limits: limits, completion: completion)
    }

    private struct WholeCall: AsyncHttpClient {
        let client: any StreamingHttpClient

        func respond(to request: HttpRequest) async throws -> HttpResponse {
            let pipe = ContentPipe(limit: .max) {}
            if let bytes = request.content.bytes { _ = bytes.withUnsafeBytes { pipe.push($0) } }
            pipe.end(.success(()))
            let answer = try await client.respond(to: request, content: RequestPieces(pipe: pipe))
            let all = ThreadLock<[UInt8]>([])
            try await answer.bring { piece in
                let count = all.withLock { bytes in
                    bytes += piece
                    return bytes.count
                }
                guard count <= 64 << 20 else {
                    throw GatewayError(.upstream, .responseContentTooLarge, "the response is larger than 64 MiB")
                }
            }
            var response = answer.head
            response.content = .bytes(all.withLock { $0 })
            return response
        }
    }
}

/// A request in progress at a `StreamingHttpClient`.
///
/// Unchecked: everything except the pipe is used on its loop only. The task keeps it only to pass it back to that loop.
private final class StreamingCall: PiecewiseCall, @unchecked Sendable {
    private let pipe: ContentPipe
    private var task: Task<Void, Never>?
    private var receiver: (any PiecewiseReceiver)?
    private var isPaused = false
    /// A piece that arrived while the response was paused; the task waits until it is taken.
    private var held: (piece: [UInt8], taken: LoopWait<Void>)?

    /// On the loop's thread.
    init(_ client: any StreamingHttpClient, _ request: HttpRequest, _ receiver: any PiecewiseReceiver) {
        self.receiver = receiver
        let wanted = OneWay()
        pipe = ContentPipe { wanted.call() }
        guard let loop = EventLoop.current else { return }
        wanted.set { [weak self] in
            guard let self else { return }
            loop.execute { self.receiver?.contentWanted() }
        }
        task = Task.detached { [self, pipe] in
            do {
                let answer = try await client.respond(to: request, content: RequestPieces(pipe: pipe))
                loop.execute { self.receiver?.started(answer.head) }
                let give = { @Sendable (piece: [UInt8]) async throws in
                    let taken = LoopWait<Void>()
                    loop.execute { self.take(piece, taken) }
                    try await taken.value()
                }
                try await answer.bring(give)
                // Like a piece, the end waits while the response is paused.
                try await give([])
                loop.execute { self.end { $0.ended() } }
            } catch {
                let failure = GatewayError(ofTransport: error)
                loop.execute { self.end { $0.failed(failure) } }
            }
        }
    }

    private func take(_ piece: [UInt8], _ taken: LoopWait<Void>) {
        guard !isPaused else {
            held = (piece, taken)
            return
        }
        receiver?.received(piece)
        taken.resume(returning: ())
    }

    private func end(_ tell: (any PiecewiseReceiver) -> Void) {
        let receiver = self.receiver.take()
        task = nil
        if let receiver { tell(receiver) }
    }

    func supply(_ bytes: UnsafeRawBufferPointer) -> Bool { !pipe.push(bytes) }

    func finish() { pipe.end(.success(())) }

    func pause() { isPaused = true }

    func resume() {
        isPaused = false
        if let (piece, taken) = held.take() { take(piece, taken) }
    }

    func cancel() {
        receiver = nil
        pipe.end(.failure(GatewayError(.downstream, .clientLeft, "no reader waits for the response any more")))
        task?.cancel()
        task = nil
        held = nil
    }
}
