import Testing

@testable import HttpCaching

@Suite struct ChecksumTests {
    /// From the specification of XXH64 with seed 0.
    @Test(
        arguments: [
            ("", 0xef46_db37_51d8_e999), ("a", 0xd24e_c4f1_a98c_6e5b), ("abc", 0x44bc_2cf5_ad77_0999),
        ] as [(String, UInt64)])
    func `known sums`(text: String, sum: UInt64) {
        #expect(Checksum.of(Array(text.utf8)) == sum)
    }

    @Test func `every bit counts, at every length`() {
        for count in [1, 3, 4, 7, 8, 12, 31, 32, 33, 63, 64, 100] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            var sums: Set<UInt64> = [Checksum.of(bytes)]
            for bit in 0..<(count * 8) {
                var other = bytes
                other[bit / 8] ^= 1 << UInt8(bit % 8)
                sums.insert(Checksum.of(other))
            }
            #expect(sums.count == count * 8 + 1)
        }
    }
}
