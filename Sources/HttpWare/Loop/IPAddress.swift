import Glibc

/// An IPv4 or IPv6 address, the latter with its scope.
///
/// An IPv4 address and its IPv4-mapped IPv6 form are different values; `unmapped` makes them equal.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The upper 64 bits; 0 for IPv4.
    public let high: UInt64

    /// The lower 64 bits; for IPv4 the address is in the lower 32.
    public let low: UInt64

    /// The interface index of a link-local IPv6 address; 0 without one.
    public let scope: UInt32

    /// Whether this is an IPv4 address.
    public let isIPv4: Bool

    /// Makes an IPv4 address from its 32 bits, the first byte highest.
    public init(ipv4 bits: UInt32) {
        high = 0
        low = UInt64(bits)
        scope = 0
        isIPv4 = true
    }

    /// Makes an IPv6 address from its bits, the first byte highest.
    public init(ipv6 high: UInt64, _ low: UInt64, scope: UInt32 = 0) {
        self.high = high
        self.low = low
        self.scope = scope
        isIPv4 = false
    }

    /// Reads `192.0.2.1`, `2001:db8::1` or `fe80::1%eth0`; `nil` for anything else, also for brackets and other forms of IPv4.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        guard text.utf8.count <= 64, !text.utf8.contains(0) else { return nil }
        var ipv4 = in_addr()
        if inet_pton(AF_INET, text, &ipv4) == 1 {
            self.init(ipv4: UInt32(bigEndian: ipv4.s_addr))
            return
        }
        var scope: UInt32 = 0
        if let percent = text.utf8.firstIndex(of: UInt8(ascii: "%")) {
            let zone = String(text[text.index(after: percent)...])
            scope = UInt32(zone) ?? if_nametoindex(zone)
            guard scope != 0 else { return nil }
            text = String(text[..<percent])
        }
        var ipv6 = in6_addr()
        guard inet_pton(AF_INET6, text, &ipv6) == 1 else { return nil }
        self.init(ipv6, scope: scope)
    }

    /// The 4 or 16 bytes of the address, without its scope.
    var bytes: [UInt8] {
        var all: [UInt8] = []
        for word: UInt64 in [high, low] {
            for shift in stride(from: 56, through: 0, by: -8) { all.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return isIPv4 ? Array(all[12...]) : all
    }

    /// Makes an address from the system's structure.
    init(_ address: in6_addr, scope: UInt32) {
        let (high, low) = withUnsafeBytes(of: address) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(ipv6: UInt64(bigEndian: high), UInt64(bigEndian: low), scope: scope)
    }

    /// The address in the system's structure.
    var in6: in6_addr {
        var address = in6_addr()
        withUnsafeMutableBytes(of: &address) {
            $0.storeBytes(of: high.bigEndian, as: UInt64.self)
            $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return address
    }

    /// The address in the form of RFC 5952, without brackets, with `%` and the interface index if it has a scope.
    public var description: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            start.initialize(repeating: 0, count: buffer.count)
            if isIPv4 {
                var address = in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
                inet_ntop(AF_INET, &address, start, socklen_t(buffer.count))
            } else {
                var address = in6
                inet_ntop(AF_INET6, &address, start, socklen_t(buffer.count))
            }
            return scope == 0 ? String(cString: start) : "\(String(cString: start))%\(scope)"
        }
    }

    /// For an IPv4-mapped address (`::ffff:192.0.2.1`), as sockets for both families report it, the IPv4 address; otherwise unchanged.
    public var unmapped: IPAddress {
        !isIPv4 && high == 0 && low >> 32 == 0xffff ? IPAddress(ipv4: UInt32(truncatingIfNeeded: low)) : self
    }

    /// The bits of an IPv4 address, the first byte highest; `nil` for IPv6.
    public var ipv4Bits: UInt32? { isIPv4 ? UInt32(truncatingIfNeeded: low) : nil }

    /// The address without its scope, which is meaningful on this host only.
    public var withoutScope: IPAddress { isIPv4 || scope == 0 ? self : IPAddress(ipv6: high, low) }

    /// An IPv4 address unchanged; for an IPv6 address the upper 64 bits, the smallest range of one subscriber. RFC 6177 §2.
    public var subscriber: IPAddress {
        let address = unmapped
        return address.isIPv4 ? address : IPAddress(ipv6: address.high, 0)
    }

    /// Whether this is the host itself: 127.0.0.0/8, `::1`, or an IPv4-mapped loopback address.
    public var isLoopback: Bool {
        let address = unmapped
        return address.isIPv4 ? address.low >> 24 == 127 : address.high == 0 && address.low == 1
    }

    /// Whether this is `0.0.0.0`, `::`, or the mapped form of the former.
    public var isUnspecified: Bool {
        let address = unmapped
        return address.high == 0 && address.low == 0
    }

    /// Whether untrusted clients must not reach the address through a gateway: true for all but global unicast addresses.
    ///
    /// Loopback, private (RFC 1918), link-local with the metadata services of clouds (169.254.169.254), unique local
    /// (fc00::/7), shared (100.64.0.0/10), unspecified (0.0.0.0/8), multicast, broadcast and reserved addresses; and IPv6
    /// addresses that carry one of these: mapped, compatible, NAT64 (64:ff9b::/96), 6to4 (2002::/16), Teredo (2001::/32).
    /// The networks reserved for documentation count as global.
    public var isPrivate: Bool {
        if isIPv4 { return IPAddress.isPrivate(ipv4: UInt32(truncatingIfNeeded: low)) }
        if high == 0 {
            // ::/96 contains the unspecified address, the loopback and the obsolete compatible addresses; ::ffff:0:0/96 the mapped ones.
            let prefix = low >> 32
            if prefix == 0 && low <= 1 { return true }
            if prefix == 0 || prefix == 0xffff { return IPAddress.isPrivate(ipv4: UInt32(truncatingIfNeeded: low)) }
            return true
        }
        switch high >> 48 {
        case 0xfc00...0xfdff: return true  // unique local, RFC 4193
        case 0xfe80...0xfeff: return true  // link-local, and the obsolete site-local
        case 0xff00...0xffff: return true  // multicast
        case 0x2002: return IPAddress.isPrivate(ipv4: UInt32(truncatingIfNeeded: high >> 16))  // 6to4, RFC 3056
        case 0x2001 where high >> 32 == 0x2001_0000:
            // Teredo, RFC 4380: the server, and the client with its bits inverted.
            return IPAddress.isPrivate(ipv4: UInt32(truncatingIfNeeded: high))
                || IPAddress.isPrivate(ipv4: ~UInt32(truncatingIfNeeded: low))
        case 0x0064 where high == 0x0064_ff9b_0000_0000 && low >> 32 == 0:  // NAT64, RFC 6052
            return IPAddress.isPrivate(ipv4: UInt32(truncatingIfNeeded: low))
        case 0x0064 where high >> 16 == 0x0064_ff9b_0001: return true  // NAT64 of local use, RFC 8215
        case 0x0100 where high == 0x0100_0000_0000_0000: return true  // discard only, RFC 6666
        default: return false
        }
    }

    /// Whether a cloud's metadata service has this address. It gives a machine's credentials to every program on it.
    /// All these addresses are also private.
    public var isMetadata: Bool {
        let address = unmapped
        if address.isIPv4 { return IPAddress.isMetadata(ipv4: UInt32(truncatingIfNeeded: address.low)) }
        return switch (high, low) {
        case (0xfd00_0ec2_0000_0000, 0x254), (0xfd00_0ec2_0000_0000, 0x23): true  // Amazon
        case (0xfd20_00ce_0000_0000, 0x254): true  // Google
        case (0x0064_ff9b_0000_0000, 0...0xffff_ffff):  // NAT64, RFC 6052
            IPAddress.isMetadata(ipv4: UInt32(truncatingIfNeeded: low))
        default: false
        }
    }

    private static func isMetadata(ipv4 bits: UInt32) -> Bool {
        switch bits {
        case 0xa9fe_a9fe: true  // 169.254.169.254, nearly all clouds
        case 0xa9fe_aa02, 0xa9fe_aa17: true  // 169.254.170.2 and 169.254.170.23, containers of Amazon
        case 0x6464_64c8: true  // 100.100.100.200, Alibaba
        case 0xc000_00c0: true  // 192.0.0.192, Oracle
        default: false
        }
    }

    private static func isPrivate(ipv4 bits: UInt32) -> Bool {
        switch bits >> 24 {
        case 0, 10, 127: true
        case 100: bits >> 22 == 0x6440_0000 >> 22  // 100.64.0.0/10, RFC 6598
        case 169: bits >> 16 == 0xa9fe  // 169.254.0.0/16
        case 172: bits >> 20 == 0xac1  // 172.16.0.0/12
        case 192: bits >> 16 == 0xc0a8 || bits >> 8 == 0xc00000  // 192.168.0.0/16, and 192.0.0.0/24 of RFC 6890
        case 198: bits >> 17 == 0xc612_0000 >> 17  // 198.18.0.0/15, RFC 2544
        case 224...: true  // multicast, reserved and broadcast
        default: false
        }
    }
}
