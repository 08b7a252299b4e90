/// The CONNECT that asks another proxy for a tunnel, and the head of its response, behind which not a byte may be read that is
/// the tunnel's. RFC 9110 §9.3.6.
struct ConnectHead {
    /// The bytes of the response head that were read so far.
    private(set) var bytes: [UInt8] = []

    /// The maximum number of bytes of a head.
    static let most = 16 * 1024

    /// The request for an authority, with the value of `Proxy-Authorization` if there are credentials.
    static func request(_ authority: String, authorization: String?) -> [UInt8] {
        let credentials = authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        return Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(credentials)\r\n".utf8)
    }

    /// How many of the bytes that can be read are the head's for sure.
    func count(of next: UnsafeRawBufferPointer) -> Int {
        if let last = bytes.last, last == 0x0d || last == 0x0a { return min(1, next.count) }
        return next.firstIndex { $0 == 0x0d || $0 == 0x0a }.map { $0 + 1 } ?? next.count
    }

    /// Takes those.
    mutating func append(_ next: UnsafeRawBufferPointer) { bytes.append(contentsOf: next) }

    /// The empty line is there.
    var isWhole: Bool { bytes.suffix(4).elementsEqual([0x0d, 0x0a, 0x0d, 0x0a]) }
}
