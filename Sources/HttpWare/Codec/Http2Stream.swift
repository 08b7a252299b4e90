/// One stream of a session: what goes out on it, and how far what comes in has got. RFC 9113 §5.
///
/// Who inherits says what becomes of what comes. Used on its loop's thread only; used again for another stream when it is
/// closed.
class Http2Stream {
    let session: Http2Session
    /// The stream's number; 0 while there is none.
    final var id: Int32 = 0
    /// Its place in the session's list.
    final var place = -1

    // Out.

    /// Content that waits for the peer's windows, or for its turn.
    private var output: [UInt8] = []
    private var outputStart = 0
    /// Content of the present call that goes out without being kept, behind `output`, which is empty then.
    private var direct = UnsafeRawBufferPointer(start: nil, count: 0)
    private var trailers: HttpFields?
    /// Nothing more will be written.
    private(set) final var endsOutput = false
    /// The session asks no more for content until it is told that there is some.
    private var isDeferred = false
    /// A head that announces content is out.
    private var hasContent = false

    // In.

    /// What is left of the content that was announced.
    final var contentLeft: Int?
    /// The peer sends no more.
    final var hasEndedInput = false
    private var isPaused = false
    private var unconsumed: Int = 0
    /// We ended the stream, and not for what the peer did.
    final var isGivenUp = false

    /// Whether our message ends before the peer's.
    enum EarlyEnd { case no, leaving, left }

    /// A server's: `leaving` until the end of the response is out, then `left`. Kept by `Http2EarlyEnds`.
    final var endsEarly = EarlyEnd.no
    /// A server's: a short rest of the request is taken after an early end.
    final var takesRest = false

    init(session: Http2Session) { self.session = session }

    /// Whether the peer, or we, have not closed it yet.
    final var isOpen: Bool { id != 0 }
    /// How much content waits.
    final var outputCount: Int { output.count &- outputStart &+ direct.count }

    // MARK: For those who inherit

    /// A server's: the head of a request is whole.
    func requestReceived(_ request: inout HttpRequest, endsStream: Bool) {}
    /// A server's: there is no request that could be carried out; the client may be told.
    func requestRefused(_ error: GatewayError, _ request: inout HttpRequest) {}
    /// A client's: the method of the request, while a final response has not come.
    var awaitedMethod: HttpMethod? { nil }
    /// A client's: a head is whole, of an interim or the final response.
    func responseReceived(_ response: inout HttpResponse, endsStream: Bool) {}
    /// Content, valid during the call.
    func contentReceived(_ bytes: UnsafeRawBufferPointer) {}
    /// The peer ended its message.
    func endReceived(_ trailers: HttpFields?) {}
    /// What the peer sent cannot be understood; the stream is being reset.
    func broke(_ reason: String) {}
    /// Content that waited went out.
    func outputProgressed() {}
    /// The stream is over, with an error code of RFC 9113 §7; nothing of it is called afterwards.
    func closed(_ code: UInt32) {}

    // MARK: Out

    /// Begins a stream with that number.
    final func open(_ id: Int32) {
        self.id = id
        endsOutput = false
        isDeferred = false
        hasContent = false
        trailers = nil
        contentLeft = nil
        hasEndedInput = false
        isPaused = false
        unconsumed = 0
        isGivenUp = false
        endsEarly = .no
        takesRest = false
        if !output.isEmpty { output.removeAll(keepingCapacity: output.count <= 65536) }
        outputStart = 0
    }

    /// The head is out: content follows it, or the stream has ended with it.
    final func headWritten(hasContent: Bool) {
        self.hasContent = hasContent
        if !hasContent { outputEnded() }
    }

    /// Sends content behind all other. The bytes are valid during the call.
    final func write(_ bytes: UnsafeRawBufferPointer) {
        guard isOpen, hasContent, !endsOutput, bytes.count > 0 else { return }
        if bytes.count >= Http2Stream.leastDirect, outputCount == 0, session.maySend {
            direct = bytes
            wake()
            session.send()
            let left = direct
            direct = UnsafeRawBufferPointer(start: nil, count: 0)
            if left.count > 0, isOpen { keep(left) }
        } else {
            keep(bytes)
            wake()
        }
    }

    /// Less content than this waits for the end of the turn, and goes out with that of others.
    private static let leastDirect = 8 * 1024

    /// Ends the message.
    final func end(_ trailers: HttpFields?) {
        guard isOpen, hasContent, !endsOutput else { return }
        if let trailers, !trailers.isEmpty { self.trailers = trailers }
        outputEnded()
        wake()
    }

    private func outputEnded() {
        endsOutput = true
        if !hasEndedInput { session.endsEarly(self) }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        if outputStart > 65536 {
            output.removeFirst(outputStart)
            outputStart = 0
        }
        output.append(contentsOf: bytes)
    }

    private func wake() {
        if isDeferred {
            isDeferred = false
            session.resume(self)
        } else {
            session.touched()
        }
    }

    /// How much content there is for a frame of at most that length, and whether it is the last; `nil` if there is none yet.
    final func nextFrame(atMost length: Int) -> (count: Int, isLast: Bool, trailers: HttpFields?)? {
        let count = min(length, outputCount)
        if count == 0, !endsOutput {
            isDeferred = true
            return nil
        }
        let isLast = endsOutput && count == outputCount
        return (count, isLast, isLast ? trailers : nil)
    }

    /// Writes a frame of content.
    final func write(_ frameHead: UnsafePointer<UInt8>, _ count: Int, to handler: any Http2SessionHandler) {
        handler.write(UnsafeRawBufferPointer(start: frameHead, count: 9))
        if count > 0 {
            if outputStart < output.count {
                output.withUnsafeBytes {
                    handler.write(UnsafeRawBufferPointer(rebasing: $0[outputStart..<(outputStart + count)]))
                }
                outputStart += count
                if outputStart == output.count {
                    output.removeAll(keepingCapacity: output.count <= 65536)
                    outputStart = 0
                }
            } else {
                handler.write(UnsafeRawBufferPointer(rebasing: direct[..<count]))
                direct = UnsafeRawBufferPointer(rebasing: direct[count...])
            }
        }
        outputProgressed()
    }

    // MARK: In

    /// Tells the peer no more that it may send; what is on its way still comes, as much as a window.
    final func pauseInput() { isPaused = true }

    /// Lets the peer send again.
    final func resumeInput() {
        guard isPaused else { return }
        isPaused = false
        guard isOpen, unconsumed > 0 else { return }
        session.consume(self, unconsumed)
        unconsumed = 0
    }

    /// Whether input waits for us.
    final var isInputPaused: Bool { isPaused }

    final func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let left = contentLeft {
            guard bytes.count <= left else { return false }
            contentLeft = left - bytes.count
        }
        contentReceived(bytes)
        if isPaused { unconsumed += bytes.count } else if isOpen { session.consume(self, bytes.count) }
        return true
    }
}
