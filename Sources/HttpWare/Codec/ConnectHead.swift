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

    /// Whether the head is complete: it ends with an empty line.
    var isWhole: Bool { bytes.suffix(4).elementsEqual([0x0d, 0x0a, 0x0d, 0x0a]) }
}
