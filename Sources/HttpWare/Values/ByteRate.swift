/// A number of bytes per second, written as a byte count with `/s`: `200KiB/s`.
public struct ByteRate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The bytes per second.
    public var bytes: ByteCount

    /// Makes a rate from the bytes per second.
    public init(_ bytes: ByteCount) { self.bytes = bytes }

    public static func < (left: ByteRate, right: ByteRate) -> Bool { left.bytes < right.bytes }

    public var description: String { "\(bytes)/s" }
}

extension ByteRate: OptionValue {
    public static let optionType = "byte rate"
    public static var optionForm: OptionForm { .pattern("(0|[1-9][0-9]*)(B|kB|KiB|MB|MiB|GB|GiB)(/s)?") }
    public var optionText: String { description }

    public init(optionText: String) throws(OptionMistake) {
        let text = optionText.hasSuffix("/s") ? String(optionText.dropLast(2)) : optionText
        guard let bytes = try? ByteCount(optionText: text) else {
            throw OptionMistake("write a number of bytes in a second, such as 200KiB/s")
        }
        self.bytes = bytes
    }
}
