/// A network: the addresses that share a prefix.
public struct IPNetwork: Hashable, Sendable, CustomStringConvertible {
    /// The network's first address.
    public let address: IPAddress

    /// The number of leading bits that the members share: 0 … 32 for IPv4, 0 … 128 for IPv6.
    public let prefixLength: Int

    private let highMask: UInt64
    private let lowMask: UInt64

    /// Makes a network from an address and a prefix length; `nil` if the length is out of range or the address has bits beyond it.
    /// A network of IPv4-mapped addresses becomes one of IPv4 addresses.
    public init?(_ address: IPAddress, prefixLength: Int) {
        let isMapped = !address.isIPv4 && address.unmapped.isIPv4 && address.scope == 0 && prefixLength >= 96
        let prefixLength = isMapped ? prefixLength - 96 : prefixLength
        let address = isMapped ? address.unmapped : address
        guard prefixLength >= 0, prefixLength <= (address.isIPv4 ? 32 : 128), address.scope == 0 else { return nil }
        if address.isIPv4 {
            highMask = 0
            lowMask = UInt64(UInt32.max << (32 - UInt32(prefixLength)))
        } else {
            highMask = prefixLength >= 64 ? .max : .max << UInt64(64 - prefixLength)
            lowMask = prefixLength <= 64 ? 0 : .max << UInt64(128 - prefixLength)
        }
        guard address.high & ~highMask == 0, address.low & ~lowMask == 0 else { return nil }
        self.address = address
        self.prefixLength = prefixLength
    }

    /// Reads `10.0.0.0/8`, `fc00::/7`, or one address without a length; `nil` for anything else, also for bits beyond the prefix.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(parts[0]) else { return nil }
        guard parts.count == 2 else {
            self.init(address, prefixLength: address.isIPv4 ? 32 : 128)
            return
        }
        guard parts[1].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), parts[1].utf8.count <= 3,
            let length = Int(parts[1])
        else { return nil }
        self.init(address, prefixLength: length)
    }

    /// The network of an address that is written with a length, such as 10.0.0.0/8 for `10.0.0.1/8`; `nil` for anything else.
    init?(cutting text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let address = IPAddress(parts[0]),
            let zero = IPNetwork("\(address.isIPv4 ? "0.0.0.0" : "::")/\(parts[1])")
        else { return nil }
        let (high, low) = (address.high & zero.highMask, address.low & zero.lowMask)
        let cut = address.isIPv4 ? IPAddress(ipv4: UInt32(truncatingIfNeeded: low)) : IPAddress(ipv6: high, low)
        self.init(cut, prefixLength: zero.prefixLength)
    }

    /// Whether the network contains an address. An IPv4-mapped address counts as the IPv4 address.
    public func contains(_ other: IPAddress) -> Bool {
        let other = other.unmapped
        return other.isIPv4 == address.isIPv4 && other.high & highMask == address.high
            && other.low & lowMask == address.low
    }

    /// The network as written in configurations: `10.0.0.0/8`.
    public var description: String { "\(address)/\(prefixLength)" }
}
