/// A host and a port, as in a `Host` field or a request target. RFC 9110 §4.2, RFC 3986 §3.2.
public struct Authority: Hashable, Sendable {
    /// The host: a name in lower case without its trailing dot, an IPv4 address, or an IPv6 address in brackets. An IPv6 address
    /// has the form of RFC 5952; an IPv4-mapped address becomes the IPv4 address.
    public let host: String
    /// The port, if it was given.
    public let port: UInt16?

    /// Uses parts that were already checked: in a message they must not end a line.
    init(host: String, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// Reads `host[:port]`; `nil` if it is invalid. User information is refused (RFC 9110 §4.2.4).
    public init?(_ text: String) {
        var copy = text
        let parsed = copy.withUTF8 { bytes in
            Authority.parse(bytes).map { (Authority.lowercased(bytes[$0.host]), $0.port) }
        }
        guard let parsed else { return nil }
        self.init(host: Authority.oneForm(parsed.0), port: parsed.1)
    }

    /// The canonical form of a host. An IPv6 address in brackets gets the form of RFC 5952, or becomes an IPv4 address if it maps one. Any
    /// other host is unchanged. So a rule for an address applies to all its spellings.
    static func oneForm(_ host: String) -> String {
        guard host.utf8.first == 0x5b, let address = IPAddress(host.dropFirst().dropLast()) else { return host }
        let unmapped = address.unmapped
        return unmapped.isIPv4 ? "\(unmapped)" : "[\(unmapped)]"
    }

    /// A host without the brackets of an IPv6 address.
    static func bare(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// Whether a host names this machine, or may be an address in a form that only other programs accept, such as `127.1` or
    /// `0x7f000001`. RFC 6761 §6.3.
    static func isLocal(_ host: String) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        guard let last = host.split(separator: ".").last, !host.hasPrefix("["), IPAddress(host) == nil else {
            return false
        }
        return last.utf8.allSatisfy(ByteClass.isDigit)
            || last.hasPrefix("0x") && last.utf8.dropFirst(2).allSatisfy { Hex.value($0) != nil }
    }

    /// Whether a host in lower case is a DNS name for which a server can have a certificate: letters, digits, hyphens and underscores.
    /// Wildcards, labels that begin with a hyphen, and names that a client could take for an address, are not. RFC 1123 §2.1, RFC 5890
    /// §2.3.1.
    static func isServerName(_ host: String) -> Bool {
        guard host.utf8.count <= 253, IPAddress(host) == nil else { return false }
        let labels = host.utf8.split(separator: 0x2e, omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.count), label.first != 0x2d,
                label.allSatisfy({ ByteClass.isUnreserved($0) && $0 != 0x7e })
            else { return false }
        }
        guard let last = labels.last else { return false }
        if last.allSatisfy(ByteClass.isDigit) { return false }
        return !(last.starts(with: "0x".utf8) && last.dropFirst(2).allSatisfy { Hex.value($0) != nil })
    }

    /// Whether a server at this host can have a certificate: the host is an address, in brackets if it has colons, or a name as in
    /// `isServerName`.
    static func isCertifiable(_ host: String) -> Bool { IPAddress(bare(host)) != nil || isServerName(host) }

    /// The parts of `host[:port]`: the host's range without a trailing dot. An empty port counts as missing.
    @inline(__always)
    static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> (host: Range<Int>, port: UInt16?)? {
        guard bytes.count > 0 else { return nil }
        var end = 0
        if bytes[0] == 0x5b {
            guard let close = bytes.firstIndex(of: 0x5d), isIPv6(bytes[1..<close]) else { return nil }
            end = close &+ 1
        } else {
            // An empty label is invalid: rules for the name would not match it, but a resolver might accept it.
            var previous: UInt8 = 0x2e
            while end < bytes.count {
                let byte = bytes[end]
                if byte == 0x3a { break }
                guard ByteClass.isHost(byte), byte != 0x2e || previous != 0x2e else { return nil }
                previous = byte
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

    /// Whether the bytes are an IPv6 address. RFC 3986 §3.2.2: eight groups, with `::` once for zero groups, and optionally an IPv4
    /// address instead of the last two.
    private static func isIPv6(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var groups = 0
        var hasGap = false
        var index = bytes.startIndex
        let end = bytes.endIndex
        if index &+ 1 < end, bytes[index] == 0x3a {
            guard bytes[index &+ 1] == 0x3a else { return false }
            hasGap = true
            index &+= 2
        }
        while index < end {
            let start = index
            while index < end, Hex.value(bytes[index]) != nil { index &+= 1 }
            if index < end, bytes[index] == 0x2e {
                guard isIPv4(bytes[start..<end]) else { return false }
                groups &+= 2
                break
            }
            guard index > start, index &- start <= 4 else { return false }
            groups &+= 1
            guard index < end else { break }
            guard bytes[index] == 0x3a, index &+ 1 < end else { return false }
            index &+= 1
            if bytes[index] == 0x3a {
                guard !hasGap else { return false }
                hasGap = true
                index &+= 1
            }
        }
        return hasGap ? groups < 8 : groups == 8
    }

    /// Whether the bytes are four numbers from 0 to 255, without leading zeros.
    private static func isIPv4(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var numbers = 0
        for part in bytes.split(separator: 0x2e, maxSplits: 4, omittingEmptySubsequences: false) {
            guard (1...3).contains(part.count), part.allSatisfy({ ByteClass.isDigit($0) }),
                part.count == 1 || part.first != 0x30, part.reduce(0, { $0 * 10 + Int($1 & 0x0f) }) <= 255
            else { return false }
            numbers &+= 1
        }
        return numbers == 4
    }

    private static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(decoding: bytes.map { ByteClass.lower($0) }, as: UTF8.self)
    }
}

extension Authority: CustomStringConvertible {
    public var description: String { port.map { "\(host):\($0)" } ?? host }
}
