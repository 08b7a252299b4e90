/// Reads a PROXY protocol header, version 1 or 2, but no byte after it. `doc/proxy-protocol.txt` in HAProxy's sources, §2.
struct ProxyHeaderDecoder {
    /// The result after some bytes.
    enum Step: Equatable {
        /// More bytes are needed.
        case incomplete
        /// The header is complete. `nil` means that the connection's own addresses count.
        case whole(ProxiedClient?)
        /// The header is invalid or not allowed, for this reason.
        case refused(String)
    }

    private var bytes: [UInt8] = []

    /// The maximum length of a version 1 line, including its end. §2.1.
    static let longestLine = 107
    /// The maximum length of a version 2 header: the addresses, and skipped details.
    static let longest = 4096
    /// Signature, version and command, family, length. §2.2.
    private static let fixed = 16

    /// The number of available bytes that certainly belong to the header; 0 only without any bytes.
    func count(of next: UnsafeRawBufferPointer) -> Int {
        func byte(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : next[index - bytes.count] }
        let seen = bytes.count + next.count
        guard seen > 0 else { return 0 }
        if byte(0) != ProxyProtocol.signature[0] {
            return next.firstIndex(of: 0x0a).map { $0 + 1 } ?? next.count
        }
        var length = ProxyHeaderDecoder.fixed
        if seen >= length { length += Int(byte(14)) << 8 | Int(byte(15)) }
        return min(next.count, max(1, length - bytes.count))
    }

    /// Appends these bytes.
    mutating func append(_ next: UnsafeRawBufferPointer) -> Step {
        bytes.append(contentsOf: next)
        guard let first = bytes.first else { return .incomplete }
        return first == ProxyProtocol.signature[0] ? binary() : line()
    }

    // MARK: Version 1

    private func line() -> Step {
        guard zip(bytes, "PROXY ".utf8).allSatisfy(==) else { return .refused("no header of the PROXY protocol") }
        guard bytes.last == 0x0a else {
            return bytes.count < ProxyHeaderDecoder.longestLine
                ? .incomplete : .refused("a line of the PROXY protocol that is too long")
        }
        guard bytes.count <= ProxyHeaderDecoder.longestLine, bytes.suffix(2).first == 0x0d else {
            return .refused("a line of the PROXY protocol that does not end as it should")
        }
        let parts = bytes.dropLast(2).split(separator: 0x20, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        if parts.count >= 2, parts[1] == "UNKNOWN" { return .whole(nil) }
        guard parts.count == 6, parts[1] == "TCP4" || parts[1] == "TCP6",
            let client = ProxyHeaderDecoder.address(parts[2], port: parts[4], isIPv4: parts[1] == "TCP4"),
            let server = ProxyHeaderDecoder.address(parts[3], port: parts[5], isIPv4: parts[1] == "TCP4")
        else { return .refused("a line of the PROXY protocol that names no addresses") }
        return .whole(ProxiedClient(client, to: server))
    }

    private static func address(_ text: String, port: String, isIPv4: Bool) -> SocketAddress? {
        guard !text.utf8.contains(UInt8(ascii: "%")), let address = IPAddress(text), address.isIPv4 == isIPv4,
            port.utf8.allSatisfy(ByteClass.isDigit), port == "0" || port.first != "0", let number = UInt16(port)
        else { return nil }
        return .ip(address, port: number)
    }

    // MARK: Version 2

    private func binary() -> Step {
        guard zip(bytes, ProxyProtocol.signature).allSatisfy(==) else {
            return .refused("no header of the PROXY protocol")
        }
        guard bytes.count >= ProxyHeaderDecoder.fixed else { return .incomplete }
        guard bytes[12] >> 4 == 2 else { return .refused("an unknown version of the PROXY protocol") }
        let end = ProxyHeaderDecoder.fixed + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard end <= ProxyHeaderDecoder.longest else {
            return .refused("a header of the PROXY protocol that is too long")
        }
        guard bytes.count >= end else { return .incomplete }
        let isLocal: Bool
        switch bytes[12] & 0xf {
        case 0: isLocal = true
        case 1: isLocal = false
        default: return .refused("an unknown command of the PROXY protocol")
        }
        let rest: Int
        var proxied: ProxiedClient?
        switch bytes[13] {
        // A connection of the proxy itself may carry any addresses. §2.2.
        case _ where isLocal: return .whole(nil)
        case 0x00: return .whole(nil)
        case 0x11: (proxied, rest) = (addresses(4), 12)
        case 0x21: (proxied, rest) = (addresses(16), 36)
        case 0x31: rest = 216
        default: return .refused("a header of the PROXY protocol that is about no TCP connection")
        }
        guard end - ProxyHeaderDecoder.fixed >= rest else {
            return .refused("a header of the PROXY protocol that is too short for its addresses")
        }
        guard areDetailsValid(from: ProxyHeaderDecoder.fixed + rest) else {
            return .refused("a header of the PROXY protocol whose details are broken")
        }
        return .whole(proxied)
    }

    /// Two addresses of `size` bytes each, and their ports. §2.2.
    private func addresses(_ size: Int) -> ProxiedClient? {
        let block = bytes.dropFirst(ProxyHeaderDecoder.fixed)
        guard block.count >= 2 * size + 4 else { return nil }
        func number(_ start: Int, _ count: Int) -> UInt64 {
            block.dropFirst(start).prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        }
        func address(_ index: Int) -> SocketAddress {
            let start = index * size
            let address =
                size == 4
                ? IPAddress(ipv4: UInt32(truncatingIfNeeded: number(start, 4)))
                : IPAddress(ipv6: number(start, 8), number(start + 8, 8))
            return .ip(address, port: UInt16(truncatingIfNeeded: number(2 * size + 2 * index, 2)))
        }
        return ProxiedClient(address(0), to: address(1))
    }

    /// Whether every detail has a type, a length and a value up to the end, and a checksum is correct. A second checksum is refused,
    /// because each one reads all bytes. §2.2.3, §2.2.7.
    private func areDetailsValid(from start: Int) -> Bool {
        var place = start
        var hasChecksum = false
        while place < bytes.count {
            guard bytes.count - place >= 3 else { return false }
            let value = place + 3
            let next = value + (Int(bytes[place + 1]) << 8 | Int(bytes[place + 2]))
            guard next <= bytes.count else { return false }
            if bytes[place] == 0x03 {
                guard next - value == 4, !hasChecksum else { return false }
                hasChecksum = true
                var whole = bytes
                whole.replaceSubrange(value..<next, with: [0, 0, 0, 0])
                let stated = bytes[value..<next].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                guard ProxyHeaderDecoder.checksum(whole) == stated else { return false }
            }
            place = next
        }
        return true
    }

    /// The CRC-32C of the bytes. RFC 9260, appendix A.
    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82f6_3b78 : crc >> 1 }
        }
        return ~crc
    }
}
