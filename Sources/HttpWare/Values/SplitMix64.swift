/// The generator SplitMix64. The number at a place is the seed plus the place times `step`, spread. Not for secrets.
package enum SplitMix64 {
    /// The distance between two states: an odd number near 2⁶⁴ divided by the golden ratio.
    package static let step: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// Makes every bit depend on every other.
    package static func spread(_ number: UInt64) -> UInt64 {
        var number = number
        number = (number ^ number >> 30) &* 0xbf58_476d_1ce4_e5b9
        number = (number ^ number >> 27) &* 0x94d0_49bb_1331_11eb
        return number ^ number >> 31
    }
}
