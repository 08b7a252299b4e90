import Glibc

/// Asks an upstream proxy for a tunnel, on an established connection: CONNECT, and its response. RFC 9110 §9.3.6. Used on its loop's
/// thread only. Its owner keeps it alive and has the deadline.
final class ProxyHandshake: SocketEventHandler {
    typealias Completion = (Result<SocketEvents, GatewayError>) -> Void

    private let socket: SocketEvents
    /// TLS with the proxy; `nil` without TLS.
    private let tls: TlsSession?
    private let hop: UpstreamProxy.Hop
    private let authority: String
    private var completion: Completion?
    private var output: ArraySlice<UInt8> = []
    private var head = ConnectHead()
    /// The total length of all heads, interim ones included: a proxy that sends them without end is refused.
    private var readCount = 0

    /// Starts; calls `completion` once, immediately or later.
    init(
        _ socket: SocketEvents, _ tls: TlsSession?, _ hop: UpstreamProxy.Hop, to authority: String,
        completion: @escaping Completion
    ) {
        self.socket = socket
        self.tls = tls
        self.hop = hop
        self.authority = authority
        self.completion = completion
        socket.handler = self
    }

    /// Sends the CONNECT.
    func start() {
        output = ConnectHead.request(authority, authorization: hop.authorization)[...]
        if !socket.enableReading() { return fail("the system has no memory for its socket") }
        socketWritable()
    }

    func socketWritable() {
        while !output.isEmpty {
            switch output.withUnsafeBytes(write) {
            case .bytes(let count): output = output.dropFirst(count)
            case .wouldBlock:
                if !socket.enableWriting() { fail("the system has no memory for its socket") }
                return
            case .end: return fail("closed the connection")
            case .failed(let code): return fail(SystemError.text(of: code).lowercased())
            }
        }
        socket.disableWriting()
        // Under TLS, reading may have had to wait for writing.
        if tls != nil { socketReadable() }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        guard let tls else { return Socket.write(socket.descriptor, bytes) }
        return transfer(tls.write(bytes), tls.writeFault)
    }

    /// Peeks at received bytes without consuming them.
    private func peek(_ buffer: UnsafeMutableRawBufferPointer) -> Socket.Transfer {
        if let tls { return transfer(tls.peek(into: buffer), tls.fault) }
        let count = recv(socket.descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK))
        if count > 0 { return .bytes(count) }
        return count == 0 ? .end : errno == EAGAIN ? .wouldBlock : .failed(errno)
    }

    /// Consumes bytes that were peeked at.
    private func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let tls else { return recv(socket.descriptor, buffer.baseAddress, buffer.count, 0) }
        guard case .bytes(let count) = tls.read(into: buffer) else { return 0 }
        return count
    }

    private func transfer(_ outcome: TlsSession.Outcome, _ fault: TlsFault?) -> Socket.Transfer {
        switch outcome {
        case .bytes(let count): return .bytes(count)
        case .wantsRead: return .wouldBlock
        case .wantsWrite:
            socket.enableWriting()
            return .wouldBlock
        case .end: return .end
        case .failed:
            if case .broken(let code)? = fault?.kind { return .failed(code) }
            return fault?.kind == .truncated ? .end : .failed(EPROTO)
        }
    }

    /// Consumes the head of the response, but no byte after it: those belong to the host.
    func socketReadable() {
        withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
            while completion != nil {
                let seen: Int
                switch peek(buffer) {
                case .bytes(let count): seen = count
                case .wouldBlock: return
                case .end: return fail("closed the connection")
                case .failed(let code): return fail(SystemError.text(of: code).lowercased())
                }
                let count = head.count(of: UnsafeRawBufferPointer(rebasing: buffer[..<seen]))
                let taken = take(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
                guard taken > 0 else { return }
                head.append(UnsafeRawBufferPointer(rebasing: buffer[..<taken]))
                readCount += taken
                guard readCount <= ConnectHead.most else { return fail("sends a head that is too large") }
                if head.isOther { return fail("answers CONNECT with something other than HTTP/1") }
                if head.isWhole { decide() }
            }
        }
    }

    private func decide() {
        guard let status = head.status else { return fail("answers CONNECT with no status") }
        if status / 100 == 1 {
            head = ConnectHead()
            return
        }
        guard status / 100 == 2 else {
            // Another try could only help if the proxy itself has trouble.
            return fail(
                GatewayError(
                    .upstream, .proxyRefused,
                    "the upstream proxy refused: \(status) (CONNECT \(authority) through \(hop.name))",
                    mayRetry: status / 100 == 5))
        }
        let completion = self.completion
        self.completion = nil
        socket.disableReading()
        completion?(.success(socket))
    }

    private func fail(_ what: String) {
        fail(GatewayError(.upstream, .destinationUnavailable, "the proxy \(hop.name) \(what)", mayRetry: true))
    }

    private func fail(_ error: GatewayError) {
        let completion = self.completion
        self.completion = nil
        socket.close()
        completion?(.failure(error))
    }

    /// Closes the socket, unless the handshake has ended.
    func close() {
        guard completion != nil else { return }
        completion = nil
        socket.close()
    }
}
