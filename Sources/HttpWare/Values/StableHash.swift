/// FNV-1a over 64 bits, with its bits mixed: the same in every process, unlike `Hasher`. Not for tables that a peer could
/// fill with collisions.
struct StableHash {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }

    mutating func add(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { add(byte) } }

    mutating func add(_ text: String) { for byte in text.utf8 { add(byte) } }

    var value: UInt64 { SplitMix64.spread(state) }
}
