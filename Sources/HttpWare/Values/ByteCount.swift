/// A number of bytes, written with its unit: `512B`, `64KiB`, `10MiB`, `1GiB`, or decimal `kB`, `MB`, `GB`.
public struct ByteCount: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number of bytes; never negative if it was read from a configuration.
    public var bytes: Int

    /// Makes a count from single bytes.
    public init(bytes: Int) { self.bytes = bytes }

    /// A count of single bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(bytes: count) }
    /// A count in units of 1,024 bytes; for literals, because an overflow traps.
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 10) }
    /// A count in units of 1,024 KiB; for literals, because an overflow traps.
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 20) }
    /// A count in units of 1,024 MiB; for literals, because an overflow traps.
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 30) }

    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// The count with the largest unit that is exact.
    public var description: String { UnitText.spelling(bytes, units: Self.units) }

    /// From the largest to the smallest, so that the first exact unit is used.
    private static let units = [
        ("GiB", 1 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000), ("KiB", 1 << 10), ("kB", 1000),
        ("B", 1),
    ]
}

extension ByteCount: OptionValue {
    public static let optionType = "byte count"
    public static var optionForm: OptionForm { .quantity(units, to: .max) }
    public var optionText: String { description }
    public init(optionText: String) throws(OptionMistake) {
        guard let count = UnitText.product(optionText, units: Self.units) else {
            throw OptionMistake("write a number and a unit, such as 10MiB or 10MB")
        }
        bytes = count
    }
}
