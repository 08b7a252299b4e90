import Glibc

// Bytes under TLS. What OpenSSL has read of a socket, the socket does not tell of again: so all of it is taken at once, and
// what cannot be taken now is remembered.

extension SocketConnection {
    /// Reads all that is there, of as many records as the loop's buffer holds.
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
        // The rest, or the end: not while reading is paused, nor in one event with so much before it.
        if count > 0 || !socket.isReading { return readOn() }
        if case .bytes = outcome { return }
        socketEnded(tls)
    }

    /// Reads on when the loop is free, and reading is not paused.
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

    /// The peer closed without saying so: what came last may not be all. RFC 8446 §6.1.
    var isTruncated: Bool { tls?.fault?.kind == .truncated }

    /// Writes pieces as records, small ones together. What is left over is written again, the same bytes first: a record that
    /// was begun has to go out as it is.
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
            // It never waits for reading: there is no renegotiation.
            case .wantsRead, .wantsWrite: return total > 0 ? .bytes(total) : .wouldBlock
            case .end, .failed:
                if case .broken(let code) = tls.writeFault?.kind { return .failed(code) }
                return .failed(EPROTO)
            }
        }
        return .bytes(total)
    }

    /// Nothing came, and the connection stands; messages of TLS itself do not count.
    var isQuiet: Bool {
        guard let tls else { return Socket.isQuiet(socket.descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { tls.read(into: $0) == .wantsRead }
    }
}
