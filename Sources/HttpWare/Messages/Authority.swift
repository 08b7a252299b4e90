/// A host and a port, as in a `Host` field or a request target. RFC 9110 §4.2, RFC 3986 §3.2.
public struct Authority: Hashable, Sendable {
    /// The host: a name in lower case without its trailing dot, an IPv4 address, or an IPv6 address in brackets.
    public let host: String
    /// The port, when one was given.
    public let port: UInt16?

    public init(host: String, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// Reads `host[:port]`; `nil` when it is not one. User information is refused (RFC 9110 §4.2.4).
    public init?(_ text: String) {
        var copy = text
        let parsed = copy.withUTF8 { bytes in
            Authority.parse(bytes).map { (Authority.lowercased(bytes[$0.host]), $0.port) }
        }
        guard let parsed else { return nil }
        self.init(host: parsed.0, port: parsed.1)
    }

    /// The parts of `host[:port]`: the host's range without a trailing dot. An empty port counts as none.
    @inline(__always)
    static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> (host: Range<Int>, port: UInt16?)? {
        guard bytes.count > 0 else { return nil }
        var end = 0
        if bytes[0] == 0x5b {
            guard let close = bytes.firstIndex(of: 0x5d), isIPv6(bytes[1..<close]) else { return nil }
            end = close + 1
        } else {
            while end < bytes.count, bytes[end] != 0x3a {
                guard ByteClass.isHost(bytes[end]) else { return nil }
                end &+= 1
            }
            guard end > 0 else { return nil }
        }
        var port: UInt16?
        if end < bytes.count {
            guard bytes[end] == 0x3a, bytes.count - end <= 6 else { return nil }
            var number = 0
            for index in (end + 1)..<bytes.count {
                guard ByteClass.isDigit(bytes[index]) else { return nil }
                number = number * 10 + Int(bytes[index] & 0x0f)
            }
            guard number <= 65535 else { return nil }
            if bytes.count > end + 1 { port = UInt16(number) }
        }
        if bytes[end - 1] == 0x2e { end -= 1 }
        return end > 0 ? (0..<end, port) : nil
    }

    /// Whether the bytes are made of what an IPv6 address is made of; the resolver judges the rest.
    private static func isIPv6(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        bytes.count >= 2 && bytes.count <= 45
            && bytes.allSatisfy { ByteClass.hexValue($0) != nil || $0 == 0x3a || $0 == 0x2e }
            && bytes.contains(0x3a)
    }

    private static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(decoding: bytes.map { ByteClass.lower($0) }, as: UTF8.self)
    }
}

extension Authority: CustomStringConvertible {
    public var description: String { port.map { "\(host):\($0)" } ?? host }
}
