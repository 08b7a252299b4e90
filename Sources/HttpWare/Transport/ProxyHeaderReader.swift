import Glibc

/// Reads the PROXY protocol header of a connection, which names the proxy's client, before any other byte. Used on its loop's
/// thread only; its owner keeps it alive.
final class ProxyHeaderReader: SocketEventHandler, LoopTimerHandler {
    enum Outcome {
        /// The rest of the connection belongs to this client. `nil` means that the connection's own address counts.
        case client(SocketAddress?)
        /// The connection is closed, for this reason; `nil` if it ended without a byte.
        case refused(String?)
    }

    let socket: SocketEvents
    /// The proxy's address.
    let peer: SocketAddress?
    private let timer: LoopTimer
    private var decoder = ProxyHeaderDecoder()
    private var hasBegun = false
    private var completion: ((ProxyHeaderReader, Outcome) -> Void)?

    /// Calls `completion` once, later, unless it is closed before.
    init(_ socket: SocketEvents, from peer: SocketAddress?, completion: @escaping (ProxyHeaderReader, Outcome) -> Void)
    {
        self.socket = socket
        self.peer = peer
        self.completion = completion
        timer = LoopTimer(loop: socket.loop)
        socket.handler = self
        timer.handler = self
    }

    func start(dueNanoseconds due: Int64) {
        timer.set(dueNanoseconds: due)
        if !socket.enableReading() { socket.loop.later { self.end(.refused("no memory for its socket")) } }
    }

    func socketReadable() {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            while completion != nil {
                let seen = recv(socket.descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK))
                guard seen > 0 else {
                    if seen < 0, errno == EAGAIN || errno == EINTR { return }
                    return end(.refused(hasBegun ? "half a header of the PROXY protocol" : nil))
                }
                hasBegun = true
                let count = decoder.count(of: UnsafeRawBufferPointer(rebasing: buffer[..<seen]))
                let taken = recv(socket.descriptor, buffer.baseAddress, count, 0)
                guard taken > 0 else { return }
                switch decoder.append(UnsafeRawBufferPointer(rebasing: buffer[..<taken])) {
                case .incomplete: continue
                case .whole(let proxied): return end(.client(proxied?.client))
                case .refused(let reason): return end(.refused(reason))
                }
            }
        }
    }

    func socketWritable() {}

    func timerFired(_ timer: LoopTimer) { end(.refused("no header of the PROXY protocol in time")) }

    private func end(_ outcome: Outcome) {
        guard let completion else { return }
        self.completion = nil
        timer.cancel()
        if case .refused = outcome { socket.close() }
        completion(self, outcome)
    }

    /// Closes without an answer.
    func close() {
        guard completion != nil else { return }
        completion = nil
        timer.cancel()
        socket.close()
    }
}
