// One file: reading requests and sending responses share one socket, one timer and one rule for what ends the connection.

import Glibc

/// The decoder of a request's chunked content.
private final class ChunkedContent {
    var decoder: ChunkedDecoder

    init(_ decoder: ChunkedDecoder) { self.decoder = decoder }
}

/// A client's connection: requests one after another, their responses in order. RFC 9112.
final class Http1DownstreamConnection: SocketConnection, DownstreamConnection, ResponseSink {
    private enum Phase {
        case awaitingHead
        case length(Int)
        case chunked
        /// The request is complete; its response is not.
        case complete
        case tunnel
        /// The response was sent; further bytes from the client are discarded until it stops.
        case lingering(left: Int)
    }

    private enum ResponsePhase { case none, started, ended }

    private let source: any ExchangeSource
    let facts: ConnectionFacts
    private var receiver: (any RequestReceiver)?
    private var phase = Phase.awaitingHead
    private var responsePhase = ResponsePhase.none
    private var decoder = RequestHeadDecoder()
    /// A separate object, because an idle connection has none.
    private var chunks: ChunkedContent?
    /// Part of a head, the next request, or bytes that arrived while reading was paused.
    private var carry: [UInt8] = []
    private var isProcessing = false
    private var isPaused = false
    private var closesAfter = false
    private var isChunkedResponse = false
    private var headDeadline: Int64 = 0
    private var contentRate = MinimumRate()
    /// The amount of discarded content.
    private var discarded = 0
    /// Whether too much output is pending to start the next request.
    private var isHeldBack = false
    /// Set when the listener drains: the time that the connection may wait for a request.
    private var drainNanoseconds: Int64?
    private var idleNanoseconds: Int64
    /// Whether there was a request: the client then stays with HTTP/1.1.
    private var hasServed = false
    /// Whether a CONNECT was refused: the following bytes were meant for the tunnel.
    private var hasRefusedTunnel = false
    /// Whether the client speaks SOCKS: it gets a SOCKS reply instead of a head, and no content.
    private var isSocks = false
    /// When the content of the last request with content ended, in nanoseconds of the loop's clock.
    private var contentEnded: Int64 = 0
    /// Set when the client ended its side after a complete request.
    private var endedClient: EndedClient?

    /// The maximum of buffered bytes of a pipelined request; more stays in the kernel.
    private static let mostCarried = 64 * 1024
    /// The maximum of pending response bytes for a client that does not read; beyond it, its next request waits.
    private static let mostPending = 256 * 1024
    private static let lingerNanoseconds: Int64 = 2_000_000_000
    private static let lingerBytes = 1 << 20
    private static let mostDiscarded = 64 * 1024

    init(
        transport: LoopTransport, socket: SocketEvents, tls: TlsSession?, peer: SocketAddress?,
        source: any ExchangeSource
    ) {
        self.source = source
        facts = source.facts(socket, tls, peer: peer)
        idleNanoseconds = source.settings.idleTimeout.nanoseconds
        super.init(transport: transport, socket: socket, tls: tls)
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ idleNanoseconds)
        if !socket.enableReading() { loop.later { self.close() } }
        // Bytes that arrived together with the handshake.
        if let tls, tls.hasPending { readOn() }
    }

    /// A connection whose tunnel is already open.
    convenience init(
        transport: LoopTransport, tunnel socket: SocketEvents, peer: SocketAddress?, source: any ExchangeSource,
        receiver: any RequestReceiver
    ) {
        self.init(transport: transport, socket: socket, tls: nil, peer: peer, source: source)
        self.receiver = receiver
        hasServed = true
        responsePhase = .started
        startTunnel()
    }

    /// A connection whose client asked for a tunnel by SOCKS. It may have sent more since.
    convenience init(
        transport: LoopTransport, socks socket: SocketEvents, tls: TlsSession?, peer: SocketAddress?,
        source: any ExchangeSource
    ) {
        self.init(transport: transport, socket: socket, tls: tls, peer: peer, source: source)
        hasServed = true
        isSocks = true
    }

    /// Begins the exchange of a CONNECT that came by SOCKS.
    func start(_ request: HttpRequest, received: ArraySlice<UInt8>) {
        let receiver = source.makeReceiver(for: self, of: self)
        self.receiver = receiver
        receiver.exchange.heldRequest = request
        carry = Array(received)
        closesAfter = true
        phase = .complete
        timer.clear()
        receiver.requestStarted()
        if self.receiver === receiver, !isClosed { receiver.requestEnded(nil) }
    }

    /// Whether no request is running.
    var isIdle: Bool {
        if case .awaitingHead = phase { carry.isEmpty && receiver == nil } else { false }
    }

    /// Makes the next response the last. A connection without a request closes after this time.
    func drain(idleFor nanoseconds: Int64) {
        drainNanoseconds = nanoseconds
        if isIdle { awaitRequest() }
    }

    /// Starts the timer for the next request.
    private func awaitRequest() {
        timer.set(
            dueNanoseconds: loop.now.nanoseconds &+ (isBlocked ? idleNanoseconds : drainNanoseconds ?? idleNanoseconds))
    }

    // MARK: Reading

    override func relay() -> Relay? {
        guard carry.isEmpty, !isPaused else { return nil }
        return switch phase {
        case .length(let left) where left >= Relay.least: receiver?.requestRelay.map { Relay(target: $0, most: left) }
        case .tunnel where isBulk: receiver?.requestRelay.map { Relay(target: $0, most: .max) }
        default: nil
        }
    }

    override func relayed(_ count: Int) {
        if case .length(let left) = phase {
            phase = .length(left - count)
            countContent(count)
        } else {
            noteTunnelPiece(count)
            progressed()
        }
        receiver?.requestRelayed(count)
        if case .length(0) = phase { requestComplete(nil) }
    }

    var relayTarget: SocketConnection? { isChunkedResponse ? nil : self }

    override func received(_ bytes: UnsafeRawBufferPointer) {
        if carry.isEmpty {
            let used = process(bytes)
            if used < bytes.count, !isClosed { carry.append(contentsOf: bytes[used...]) }
            stopReadingIfFull()
        } else {
            carry.append(contentsOf: bytes)
            processCarry()
            // The head came in several pieces and is still incomplete: such clients get a lower priority.
            if case .awaitingHead = phase, !carry.isEmpty, !isClosed { socket.setLowPriority(true) }
        }
    }

    private func processCarry() {
        var held = carry
        carry = []
        let used = held.withUnsafeBytes { process($0) }
        guard used < held.count, !isClosed else { return }
        held.removeFirst(used)
        carry = held
        stopReadingIfFull()
    }

    /// Stops reading when the buffer is full: level-triggered events would fire again and again for unread bytes.
    private func stopReadingIfFull() {
        if case .complete = phase, carry.count >= Http1DownstreamConnection.mostCarried { socket.disableReading() }
    }

    /// Returns the number of bytes used: the caller keeps the rest.
    private func process(_ input: UnsafeRawBufferPointer) -> Int {
        isProcessing = true
        defer { isProcessing = false }
        var position = 0
        while position < input.count, !isClosed, !isPaused {
            switch phase {
            case .awaitingHead:
                if pendingCount > Http1DownstreamConnection.mostPending {
                    isHeldBack = true
                    socket.disableReading()
                    return position
                }
                if !hasServed, input[position] == SocksDecoder.version, mayBeSocks {
                    speakSocks(UnsafeRawBufferPointer(rebasing: input[position...]))
                    return input.count
                }
                guard let length = decodeHead(UnsafeRawBufferPointer(rebasing: input[position...])) else {
                    if case .awaitingHead = phase { return position }
                    return input.count
                }
                position += length
                socket.setLowPriority(false)
                started()
            case .length(let left):
                let count = min(left, input.count - position)
                phase = .length(left - count)
                countContent(count)
                receiver?.requestContent(UnsafeRawBufferPointer(rebasing: input[position..<(position + count)]))
                position += count
                if left == count { requestComplete(nil) }
            case .chunked:
                decodeChunk(input, &position)
            case .complete: return position
            case .tunnel:
                noteTunnelPiece(input.count - position)
                progressed()
                receiver?.tunnelReceivedFromClient(UnsafeRawBufferPointer(rebasing: input[position...]))
                position = input.count
            case .lingering(let left):
                position = input.count
                phase = .lingering(left: left - input.count)
                if left < input.count { close() }
            }
        }
        return position
    }

    /// Returns the length of the head; `nil` if it is incomplete or was refused.
    private func decodeHead(_ input: UnsafeRawBufferPointer) -> Int? {
        let receiver: any RequestReceiver
        if let current = self.receiver {
            receiver = current
        } else {
            receiver = source.makeReceiver(for: self, of: self)
            self.receiver = receiver
            decoder = RequestHeadDecoder()
            responsePhase = .none
            headDeadline = 0
        }
        do throws(GatewayError) {
            let length = try decoder.decode(
                input.bytes, into: &receiver.exchange.heldRequest, limits: source.limits, isReverse: source.ownsPaths)
            // Only the scheme of an absolute URI has been read so far.
            if length != nil, receiver.exchange.heldRequest.target.isSecure { try checkScheme(receiver.exchange) }
            if length == nil, headDeadline == 0 {
                headDeadline = loop.now.nanoseconds &+ source.headNanoseconds
                timer.set(dueNanoseconds: headDeadline)
            }
            return length
        } catch {
            if mayBeHttp2, Http2Preface.begins(input) { speakHttp2(input) } else { refuse(error) }
            return nil
        }
    }

    /// Refuses an https URI that came to a gateway without TLS: its response would be stored for requests over TLS. RFC 9110 §7.4.
    private func checkScheme(_ exchange: Exchange) throws(GatewayError) {
        guard source.ownsPaths, !exchange.isSecure, !exchange.isPeerTrusted else { return }
        throw GatewayError(
            .downstream, .misdirected,
            "an https URI came over a connection without TLS, and not from one of the listener's trustedProxies")
    }

    private var mayBeSocks: Bool {
        if case .refused = source.settings.socks { return false }
        return receiver == nil
    }

    /// The client speaks SOCKS5 before HTTP: another connection takes over.
    private func speakSocks(_ input: UnsafeRawBufferPointer) {
        let connection = SocksConnection(
            transport: transport, socket: handOver(), tls: tls, peer: facts.peer, source: source)
        source.replaced(self, by: connection)
        connection.received(input)
    }

    /// RFC 9113 §3.3: "HTTP/2 connections over TLS MUST use protocol negotiation in TLS".
    private var mayBeHttp2: Bool { !hasServed && tls == nil && source.settings.speaksHttp2 }

    /// The client knows that we speak HTTP/2: another connection takes over. RFC 9113 §3.3.
    private func speakHttp2(_ input: UnsafeRawBufferPointer) {
        let receiver = self.receiver
        self.receiver = nil
        receiver?.clientLeft()
        socket.setLowPriority(false)
        let connection = Http2DownstreamConnection(
            transport: transport, socket: handOver(), tls: tls, peer: facts.peer, source: source)
        source.replaced(self, by: connection)
        connection.start(input)
    }

    private func started() {
        guard let receiver else { return }
        hasServed = true
        let framing = decoder.framing
        closesAfter = !receiver.exchange.heldRequest.isPersistent
        switch framing {
        case .length(let length): phase = .length(length)
        case .chunked, .untilClose:
            phase = .chunked
            let fields = receiver.exchange.heldRequest.fields
            chunks = ChunkedContent(ChunkedDecoder(limits: source.limits, nominated: fields.nominated))
        case .none, .announced, .asGiven:
            phase = .complete
            timer.clear()
        }
        if framing.hasContent {
            contentRate.start(at: loop.now)
            progressed()
        }
        receiver.requestStarted()
        if !framing.hasContent, self.receiver === receiver, !isClosed { receiver.requestEnded(nil) }
    }

    private func requestComplete(_ trailers: HttpFields?) {
        guard !isClosed else { return }
        phase = .complete
        contentEnded = loop.now.nanoseconds
        // The response had already ended; the rest of the request was discarded.
        guard let receiver else { return exchangeEnded() }
        timer.clear()
        receiver.requestEnded(trailers)
    }

    private func decodeChunk(_ input: UnsafeRawBufferPointer, _ position: inout Int) {
        guard let chunks else { return }
        do throws(ChunkedFault) {
            switch try chunks.decoder.next(input.bytes, from: &position) {
            case .content(let range):
                countContent(range.count)
                receiver?.requestContent(UnsafeRawBufferPointer(rebasing: input[range]))
            case .needsMore: break
            case .end(let end):
                position = end
                self.chunks = nil
                let trailers = chunks.decoder.trailers
                requestComplete(trailers.isEmpty ? nil : trailers)
            }
        } catch {
            position = input.count
            refuse(error.inRequest(source.limits))
        }
    }

    private func countContent(_ count: Int) {
        if receiver == nil {
            discarded += count
            if discarded > Http1DownstreamConnection.mostDiscarded { linger() }
            return
        }
        progressed()
        guard let rate = source.settings.bodyMinRate else { return }
        if contentRate.isTooSlow(count, rate: rate, now: loop.now, resumed: loop.resumed) { refuse(MinimumRate.fault) }
    }

    /// The request is invalid or came too slowly: the client gets an error, and the connection ends.
    private func refuse(_ error: GatewayError) {
        guard let receiver else { return close() }
        closesAfter = true
        carry = []
        phase = .lingering(left: Http1DownstreamConnection.lingerBytes)
        receiver.requestFailed(error)
    }

    // MARK: Pausing

    func pauseRequest() {
        guard !isPaused else { return }
        isPaused = true
        socket.disableReading()
    }

    func resumeRequest() {
        guard isPaused, !isClosed else { return }
        isPaused = false
        progressed()
        startReading()
        if !carry.isEmpty, !isProcessing { transport.inEvent { processCarry() } }
    }

    // MARK: Responding

    func sendInterim(_ response: HttpResponse) {
        guard let version = receiver?.exchange.heldRequest.version, version >= .http11, responsePhase == .none,
            !isSocks
        else { return }
        var response = response
        sendHead(response.encodedBound) { $0.write(&response, HeadEncoder.ResponseOptions()) }
    }

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        guard receiver != nil, responsePhase == .none else { return }
        responsePhase = .started
        if isSocks { return sendReply(of: exchange) }
        var options = HeadEncoder.ResponseOptions()
        let status = exchange.response.status
        options.framing = .ofResponse(
            sending: extent, status: status, to: exchange.heldRequest.method, version: exchange.heldRequest.version)
        isChunkedResponse = false
        switch options.framing {
        case .chunked: isChunkedResponse = true
        case .untilClose: closesAfter = true
        default: break
        }
        // RFC 9110 §15.5.22: a 426 tells the client which protocols it may use.
        if status == .switchingProtocols || status == .upgradeRequired { options.upgrade = exchange.response.upgrade }
        if !isRequestComplete, exchange.responder != .upstream || status.code >= 400 {
            closesAfter = true
        }
        // RFC 9110 §9.3.6: bytes after CONNECT are meant for the tunnel, and cannot be told apart from a request.
        if exchange.heldRequest.method == .connect, status.code >= 300 {
            hasRefusedTunnel = true
            closesAfter = true
        }
        if source.isDraining { closesAfter = true }
        options.closes = closesAfter
        options.keepsAlive10 = !closesAfter && exchange.heldRequest.version == .http10
        if via { options.via = exchange.response.version }
        options.date = transport.date
        sendHead(exchange.response.encodedBound) { $0.write(&exchange.response, options) }
    }

    /// Sends the reply to a SOCKS client. RFC 1928 §6.
    private func sendReply(of exchange: Exchange) {
        let reply = SocksDecoder.Reply(exchange.response.status, exchange.failure?.fault)
        hasRefusedTunnel = reply != .succeeded
        reply.bytes.withUnsafeBytes { send($0) }
        transport.output.flush()
    }

    private var isRequestComplete: Bool {
        switch phase {
        case .complete, .tunnel: true
        default: false
        }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) { sendContent(bytes.count) { send(bytes) } }

    func sendContent(_ bytes: [UInt8]) { sendContent(bytes.count) { send(bytes) } }

    /// Frames the bytes that `body` sends.
    @inline(__always)
    private func sendContent(_ count: Int, _ body: () -> Void) {
        guard count > 0, !isSocks else { return }
        if isChunkedResponse { sendChunk(count, body) } else { body() }
        if isBlocked { progressed() }
    }

    func sendEnd(_ trailers: HttpFields?) {
        guard responsePhase == .started else { return }
        if isChunkedResponse { sendLastChunk(trailers) }
        responsePhase = .ended
        receiver = nil
        // The next step depends on whether the client takes the output.
        transport.output.flushKept()
        if !isClosed { exchangeEnded() }
    }

    func cutOff() {
        receiver = nil
        // A reset if the length was not announced, or nothing was sent: a plain close could look like the end.
        if responsePhase == .ended { close() } else { reset() }
    }

    /// The exchange has ended: continues with the next request, or ends the connection.
    private func exchangeEnded() {
        receiver = nil
        endedClient = nil
        if isBlocked { timer.set(dueNanoseconds: loop.now.nanoseconds &+ idleNanoseconds) }
        if case .lingering = phase { return linger() }
        guard isRequestComplete else {
            if closesAfter || !mayDiscardRequest { return linger() }
            discarded = 0
            isPaused = false
            timer.set(dueNanoseconds: loop.now.nanoseconds &+ Http1DownstreamConnection.lingerNanoseconds)
            startReading()
            if !carry.isEmpty, !isProcessing { processCarry() }
            return
        }
        if closesAfter {
            if carry.isEmpty, !hasRefusedTunnel { return closeWhenSent() }
            return linger()
        }
        phase = .awaitingHead
        awaitRequest()
        isPaused = false
        startReading()
        if !carry.isEmpty, !isProcessing { processCarry() }
    }

    /// Whether the rest of the request is small enough to read and discard it.
    private var mayDiscardRequest: Bool {
        switch phase {
        case .length(let left): left <= Http1DownstreamConnection.mostDiscarded
        case .chunked: true
        default: false
        }
    }

    /// Ends the sending side, and reads what the client still sends, so that no reset destroys the response.
    /// RFC 9112 §9.6.
    private func linger() {
        carry = []
        receiver = nil
        phase = .lingering(left: Http1DownstreamConnection.lingerBytes)
        isPaused = false
        endSending()
        guard !isClosed else { return }
        waitForEnd()
        startReading()
    }

    /// Limits the time for the client to take the rest of the response and to close.
    private func waitForEnd() {
        let wait = isBlocked ? idleNanoseconds : Http1DownstreamConnection.lingerNanoseconds
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ wait)
    }

    // MARK: Tunnel

    func startTunnel() {
        phase = .tunnel
        // Bytes after the end of a tunnel are not a request.
        closesAfter = true
        progressed()
        if !carry.isEmpty, !isProcessing { processCarry() }
        // The end of the client's side is forwarded into the tunnel.
        if endedClient != nil {
            endedClient = nil
            startReading()
        }
    }

    func setTunnelIdle(_ nanoseconds: Int64) {
        idleNanoseconds = nanoseconds
        keepAlive()
        if case .tunnel = phase { progressed() }
    }

    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {
        send(bytes)
        progressed()
    }

    func endTunnel() { endSending() }

    func passTunnel(to taker: any TunnelTaker) {
        receiver = nil
        endedClient = nil
        facts.endBelongings()
        transport.output.flush()
        // Deferred, because the rest of the current input belongs to the tunnel.
        loop.later { [self] in
            guard !isClosed else { return }
            transport.inEvent {
                if tls == nil, !isBlocked {
                    let received = carry
                    carry = []
                    return taker.takeTunnel(handOver(), received: received, of: self)
                }
                receiver = taker.joinTunnel(self)
                startTunnel()
            }
        }
    }

    // MARK: Endings

    override func receivedEnd() {
        switch phase {
        case .tunnel:
            socket.disableReading()
            isPaused = true
            receiver?.tunnelEndedByClient()
        case .complete where receiver != nil: clientEnded()
        default:
            // The client sends nothing more, but may still be waiting for the response.
            guard receiver == nil, isBlocked else { return leave() }
            socket.disableReading()
            closeWhenSent()
        }
    }

    /// The client ended its side after a complete request. A FIN does not show whether it still reads. RFC 9112 §9.6.
    private func clientEnded() {
        socket.disableReading()
        if carry.isEmpty { closesAfter = true }
        guard endedClient == nil else { return }
        let requestEnded = max(contentEnded, receiver?.exchange.record.started ?? 0)
        endedClient = EndedClient(
            self, loop: loop, hasResponse: responsePhase != .none,
            after: .nanoseconds(loop.now.nanoseconds - requestEnded))
    }

    /// The state of a client that ended its side; `nil` if no response is pending.
    var endedClientFacts: EndedClient.Facts? {
        guard !isClosed, let receiver else { return nil }
        return EndedClient.Facts(
            hasBroken: Socket.pendingError(socket.descriptor) != 0, hasResponse: responsePhase != .none,
            isBlocked: isBlocked, sent: receiver.exchange.record.responseBytes)
    }

    /// Sends an interim response that a client may ignore: if the client is gone, its system answers with a reset. RFC 9110 §15.2.1.
    func probeEndedClient() { sendInterim(HttpResponse(.continue)) }

    /// The client no longer reads.
    func endedClientLeft() { leave() }

    override func failed(_ error: Int32) { leave() }

    private func leave() {
        let receiver = self.receiver
        self.receiver = nil
        close()
        receiver?.clientLeft()
    }

    override func timedOut() {
        switch phase {
        case .awaitingHead where receiver != nil:
            refuse(GatewayError(.downstream, .requestTimeout, "the request's head did not come in time"))
        case .awaitingHead: close()
        case .length, .chunked:
            if receiver == nil { return close() }
            // While the gateway has paused reading, silence is expected; but a client that does not read either is gone.
            if isPaused, !isBlocked { return progressed() }
            if isBlocked { return leave() }
            if responsePhase == .none {
                refuse(GatewayError(.downstream, .requestTimeout, "the request's content made no progress"))
            } else {
                leave()
            }
        case .complete:
            // Here only pending output has a deadline.
            if isBlocked { leave() }
        case .tunnel: if isBlocked || !isPaused { leave() } else { progressed() }
        case .lingering: close()
        }
    }

    override func progressed() {
        switch phase {
        case .awaitingHead: if receiver == nil { awaitRequest() }
        case .lingering: waitForEnd()
        default: timer.set(dueNanoseconds: loop.now.nanoseconds &+ idleNanoseconds)
        }
    }

    override func outputDrained() {
        switch phase {
        case .complete: timer.clear()
        default: break
        }
        if isHeldBack {
            isHeldBack = false
            startReading()
            if !carry.isEmpty, !isProcessing { processCarry() }
        }
        receiver?.downstreamDrained()
    }

    override func closed() {
        endedClient = nil
        carry = []
        let receiver = self.receiver
        self.receiver = nil
        receiver?.clientLeft()
        facts.endBelongings()
        source.closed(self)
    }
}
