/// One stream of a session: its pending output, and the progress of its input. RFC 9113 §5.
///
/// Subclasses handle the input. Used on its loop's thread only; reused for another stream after it has closed.
class Http2Stream {
    let session: Http2Session
    /// The stream's number; 0 without a stream.
    final var id: Int32 = 0
    /// Its index in the session's list.
    final var place = -1

    // Output.

    /// Content that waits for the peer's windows, or for its turn.
    private var output: [UInt8] = []
    private var outputStart = 0
    /// Content of the current call that is sent without a copy, while `output` is empty.
    private var direct = UnsafeRawBufferPointer(start: nil, count: 0)
    private var trailers: HttpFields?
    /// Whether nothing more will be written.
    private(set) final var endsOutput = false
    /// Whether the session stopped asking for content, until it is told that there is more.
    private var isDeferred = false
    /// Whether a head that announces content was sent.
    private var hasContent = false

    // Input.

    /// The rest of the announced content; `nil` if its length is unknown.
    final var contentLeft: Int?
    /// Whether the peer has ended its side.
    final var hasEndedInput = false
    private var isPaused = false
    private var unconsumed: Int = 0
    /// Whether we ended the stream, without a fault of the peer.
    final var isGivenUp = false

    /// Whether our message ends before the peer's.
    enum EarlyEnd { case no, leaving, left }

    /// For a server: `leaving` until the end of the response was sent, then `left`. Set by `Http2EarlyEnds`.
    final var endsEarly = EarlyEnd.no
    /// For a server: whether a short rest of the request is received after an early end.
    final var takesRest = false

    init(session: Http2Session) { self.session = session }

    /// Whether neither side has closed it yet.
    final var isOpen: Bool { id != 0 }
    /// The amount of pending content.
    final var outputCount: Int { output.count &- outputStart &+ direct.count }

    // MARK: For subclasses

    /// For a server: the head of a request is complete.
    func requestReceived(_ request: inout HttpRequest, endsStream: Bool) {}
    /// For a server: the request cannot be carried out; only what was read of it is known. The client may get the error, unless its stream or
    /// its connection ends and it is not `isAnswered`.
    func requestRefused(_ error: GatewayError, _ request: inout HttpRequest, isAnswered: Bool) {}
    /// For a client: the method of the request until the final response has come; then `nil`.
    var awaitedMethod: HttpMethod? { nil }
    /// For a client: the head of an interim or the final response is complete.
    func responseReceived(_ response: inout HttpResponse, endsStream: Bool) {}
    /// Content was received; it is valid during the call.
    func contentReceived(_ bytes: UnsafeRawBufferPointer) {}
    /// The peer ended its message.
    func endReceived(_ trailers: HttpFields?) {}
    /// The peer's message is invalid; the stream is being reset. For a client, `error` is that of the response.
    func broke(_ error: GatewayError) {}
    /// Pending content was sent.
    func outputProgressed() {}
    /// The stream has ended, with an error code of RFC 9113 §7; this is the last call.
    func closed(_ code: UInt32) {}

    // MARK: Output

    /// Begins a stream with this number.
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

    /// The head was sent: content follows it, or it has ended our side of the stream.
    final func headWritten(hasContent: Bool) {
        self.hasContent = hasContent
        if !hasContent { outputEnded() }
    }

    /// Sends content after all other. The bytes are valid during the call.
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

    /// Less content than this is sent at the end of the turn, together with that of other streams.
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

    /// The amount of content for a frame of at most this length, and whether it is the last; `nil` if there is none yet.
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

    // MARK: Input

    /// Stops opening the peer's window; bytes already allowed still come, up to one window.
    final func pauseInput() { isPaused = true }

    /// Allows the peer to send again.
    final func resumeInput() {
        guard isPaused else { return }
        isPaused = false
        guard isOpen, unconsumed > 0 else { return }
        session.consume(self, unconsumed)
        unconsumed = 0
    }

    /// Whether input is paused.
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
