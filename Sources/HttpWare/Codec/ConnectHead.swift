/// The CONNECT that asks an upstream proxy for a tunnel, and the head of its response. No byte after that head may be read,
/// because those belong to the tunnel. RFC 9110 §9.3.6.
struct ConnectHead {
    /// The bytes of the response head read so far.
    private(set) var bytes: [UInt8] = []

    /// The maximum number of bytes of a head.
    static let most = 16 * 1024

    /// The request for an authority, with the value of `Proxy-Authorization` if there are credentials.
    static func request(_ authority: String, authorization: String?) -> [UInt8] {
        let credentials = authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        return Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(credentials)\r\n".utf8)
    }

    /// The number of available bytes that certainly belong to the head.
    func count(of next: UnsafeRawBufferPointer) -> Int {
        if let last = bytes.last, last == 0x0d || last == 0x0a { return min(1, next.count) }
        return next.firstIndex { $0 == 0x0d || $0 == 0x0a }.map { $0 + 1 } ?? next.count
    }

    /// Appends these bytes.
    mutating func append(_ next: UnsafeRawBufferPointer) { bytes.append(contentsOf: next) }

    /// Whether the head is complete: it ends with an empty line. A line may end with LF alone. RFC 9112 §2.2.
    var isWhole: Bool {
        bytes.suffix(3).elementsEqual([0x0a, 0x0d, 0x0a]) || bytes.suffix(2).elementsEqual([0x0a, 0x0a])
    }

    /// Whether the bytes read so far cannot begin a head of HTTP/1.
    var isOther: Bool {
        zip(bytes, "HTTP/1.".utf8).contains { $0 != $1 }
    }

    /// The status of a complete head; `nil` if its first line is not a status line.
    ///
    /// Only the status matters: "A client MUST ignore any Content-Length or Transfer-Encoding header fields received in a successful
    /// response to CONNECT" (RFC 9110 §9.3.6), and a refusal's content is not read.
    var status: Int? {
        let line = bytes.prefix { $0 != 0x0d && $0 != 0x0a }
        guard line.count >= 12, !isOther, ByteClass.isDigit(line[7]), line[8] == 0x20,
            line[9..<12].allSatisfy({ ByteClass.isDigit($0) }), line.count == 12 || line[12] == 0x20, line[9] != 0x30
        else { return nil }
        return line[9..<12].reduce(0) { $0 * 10 + Int($1 & 0x0f) }
    }
}
