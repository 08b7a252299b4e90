import Testing

@testable import HttpWare

@Suite struct ConnectHeadTests {
    /// Feeds the bytes as a proxy's connection would, in pieces. Returns the head, and the number of bytes behind it.
    private func read(_ text: String, piece: Int) -> (head: ConnectHead, rest: Int) {
        var head = ConnectHead()
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty, !head.isWhole, !head.isOther {
            let taken = bytes.prefix(piece).withUnsafeBytes { available in
                let count = head.count(of: available)
                head.append(UnsafeRawBufferPointer(rebasing: available[..<count]))
                return count
            }
            bytes = bytes.dropFirst(taken)
        }
        return (head, bytes.count)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", 200), ("HTTP/1.0 200 Connection established\r\n\r\n", 200),
        ("HTTP/1.1 200\r\n\r\n", 200), ("HTTP/1.1 407 Auth\r\nProxy-Authenticate: NTLM\r\n\r\n", 407),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 200),
        ("HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", 200),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", 200),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200),
        ("HTTP/1.1 200 OK\n\n", 200), ("HTTP/1.1 403 No\nX: y\n\n", 403), ("HTTP/1.1 200 OK\r\nX: y\n\r\n", 200),
        ("HTTP/1.1 200 OK\n\r\n", 200), ("HTTP/1.1 100 Continue\r\n\r\n", 100),
    ])
    func `RFC 9110 §9.3.6, only the status of an answer to CONNECT counts, and no byte behind its head is read`(
        text: String, status: Int
    ) {
        for piece in [1, 2, 7, 4096] {
            let (head, rest) = read(text + "\u{16}\r\n\r\n", piece: piece)
            #expect(head.isWhole && head.status == status)
            #expect(rest == 5)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1200 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n", "HTTP/1.x 200 OK\r\n\r\n", "HTTP/1.\r\n\r\n",
    ])
    func `a head without a status line has no status`(text: String) {
        #expect(read(text, piece: 4096).head.status == nil)
    }

    @Test(arguments: ["SSH-2.0-x\r\n", "HTTP/2 200 OK\r\n\r\n", "<html>\n", "\u{16}\u{3}", "http/1.1 200 OK\r\n\r\n"])
    func `an answer that is not HTTP/1 is known by its first bytes`(text: String) {
        #expect(read(text, piece: 1).head.isOther)
        #expect(!read("HTTP/1.", piece: 1).head.isOther)
    }
}
