import HttpWare

/// The slots of a Redis cluster: each key belongs to one of 16,384.
enum RedisSlot {
    static let count = 16_384

    /// The slot of a key: that of the part between the first `{` and the next `}` if it is not empty, else that of the whole key.
    static func of(_ key: [UInt8]) -> UInt16 {
        var part = key[...]
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let rest = key[(open + 1)...]
            if let close = rest.firstIndex(of: UInt8(ascii: "}")), close > rest.startIndex { part = rest[..<close] }
        }
        return checksum(part) % UInt16(count)
    }

    /// The CRC-16 of XMODEM: polynomial 0x1021, not reflected, starting at 0.
    static func checksum(_ bytes: some Sequence<UInt8>) -> UInt16 {
        var sum: UInt16 = 0
        for byte in bytes { sum = (sum << 8) ^ table[Int(UInt8(sum >> 8) ^ byte)] }
        return sum
    }

    private static let table: [UInt16] = (0..<256).map { byte in
        var sum = UInt16(byte) << 8
        for _ in 0..<8 { sum = sum & 0x8000 != 0 ? (sum << 1) ^ 0x1021 : sum << 1 }
        return sum
    }
}

extension [RedisArgument] {
    /// The key that decides which server of a cluster gets the command: the first one. `nil` for a command without keys, which
    /// any server can execute.
    var routingKey: [UInt8]? {
        guard let name = first?.bytes, count > 1 else { return nil }
        switch String(decoding: name.prefix(16), as: UTF8.self) {
        case "EVAL", "EVALSHA": return count > 3 && self[2].bytes != [UInt8(ascii: "0")] ? self[3].bytes : nil
        case "PUBLISH", "SCAN", "PING", "SCRIPT": return nil
        default: return self[1].bytes
        }
    }
}
