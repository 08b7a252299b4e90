import Glibc

// Bytes under TLS. Once OpenSSL has read bytes, the socket no longer reports them. So everything is read at once, and a
// pending rest is recorded in `hasUnread`.

extension SocketConnection {
    /// Reads all available bytes, up to the size of the loop's buffer.
    func readSecurely(_ tls: TlsSession) {
        hasUnread = false
        var count = 0
        var outcome = TlsSession.Outcome.wantsRead
        repeat {
            outcome = tls.read(into: UnsafeMutableRawBufferPointer(rebasing: loop.readBuffer[count...]))
            guard case .bytes(let more) = outcome else { break }
            count += more
        } while count < loop.readBuffer.count && tls.hasPending
        if count > 0 { received(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count])) }
        guard !isClosed else { return }
        switch outcome {
        case .wantsRead: return
        case .wantsWrite:
            readWaitsForWriting = true
            socket.enableWriting()
            return
        case .bytes: if !tls.hasPending { return }
        case .end, .failed: break
        }
        // The rest, or the end, comes later: not while reading is paused, nor in one event with this many bytes.
        if count > 0 || !socket.isReading { return readOn() }
        if case .bytes = outcome { return }
        socketEnded(tls)
    }

    /// Continues reading when the loop is free, unless reading is paused.
    func readOn() {
        hasUnread = true
        loop.later { [self] in
            if hasUnread, !isClosed, socket.isReading { socketReadable() }
        }
    }

    private func socketEnded(_ tls: TlsSession) {
        guard let fault = tls.fault, fault.kind != .truncated else { return receivedEnd() }
        if case .broken(let code) = fault.kind { failed(code) } else { failed(EPROTO) }
    }

    /// Whether the peer closed without a close_notify alert: the last bytes may be incomplete. RFC 8446 §6.1.
    var isTruncated: Bool { tls?.fault?.kind == .truncated }

    /// Writes pieces as records, combining small ones. Unsent bytes must be written again in the same order, because a
    /// started record cannot change.
    func writeSecurely(_ tls: TlsSession, _ pieces: UnsafeMutableBufferPointer<iovec>) -> Socket.Transfer {
        var total = 0
        var index = 0
        var offset = 0
        while index < pieces.count {
            let left = pieces[index].iov_len - offset
            let record =
                left >= TlsSession.recordSize || index == pieces.count - 1
                ? UnsafeRawBufferPointer(start: pieces[index].iov_base + offset, count: left)
                : transport.gather(pieces, from: index, offset)
            switch tls.write(record) {
            case .bytes(let count):
                total += count
                offset += count
                while index < pieces.count, offset >= pieces[index].iov_len {
                    offset -= pieces[index].iov_len
                    index += 1
                }
            // Writing never waits for reading: there is no renegotiation.
            case .wantsRead, .wantsWrite: return total > 0 ? .bytes(total) : .wouldBlock
            case .end, .failed:
                if case .broken(let code) = tls.writeFault?.kind { return .failed(code) }
                return .failed(EPROTO)
            }
        }
        return .bytes(total)
    }

    /// Whether nothing was received and the connection is open; messages of TLS itself do not count.
    var isQuiet: Bool {
        guard let tls else { return Socket.isQuiet(socket.descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { tls.read(into: $0) == .wantsRead }
    }
}
