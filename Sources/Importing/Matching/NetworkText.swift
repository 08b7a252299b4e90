import HttpWare

/// Networks as the gateways of others write them.
enum NetworkText {
    /// The network as ours are written; `nil` if it is not one. Bits of an IPv4 address behind the prefix are dropped, as others do.
    static func network(_ text: String) -> String? {
        if let network = IPNetwork(text) { return network.description }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let length = UInt32(parts[1]), length <= 32 else { return nil }
        let bytes = parts[0].split(separator: ".", omittingEmptySubsequences: false).compactMap { UInt32($0) }
        guard bytes.count == 4, bytes.allSatisfy({ $0 < 256 }) else { return nil }
        let address = bytes.reduce(0) { $0 << 8 | $1 }
        let cut = length == 0 ? 0 : address & (UInt32.max << (32 - length))
        return "\(cut >> 24).\(cut >> 16 & 255).\(cut >> 8 & 255).\(cut & 255)/\(length)"
    }
}
