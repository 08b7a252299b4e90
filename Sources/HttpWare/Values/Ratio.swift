/// A part of a whole, from 0 to 1: `0.2` or `20%`.
public struct Ratio: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByFloatLiteral {
    /// The ratio, from 0 to 1.
    public var value: Double

    /// Makes a ratio from a number between 0 and 1.
    public init(_ value: Double) { self.value = value }
    public init(floatLiteral value: Double) { self.value = value }

    public var description: String { "\(value)" }

    public static func < (left: Ratio, right: Ratio) -> Bool { left.value < right.value }
}

extension Ratio: OptionValue {
    public static let optionType = "ratio"
    public static var optionForm: OptionForm {
        .either([.share, .pattern("0*(100(\\.0+)?|[0-9]{1,2}(\\.[0-9]+)?)%")])
    }
    public var optionText: String { description }
    public init(optionText: String) throws(OptionMistake) {
        let isPercent = optionText.utf8.last == UInt8(ascii: "%")
        let digits = isPercent ? optionText.dropLast() : optionText[...]
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard parts.count <= 2, areDigits, let number = Double(digits), number <= (isPercent ? 100 : 1) else {
            throw OptionMistake("write a number from 0 to 1, such as 0.2, or a percentage, such as 20%")
        }
        value = isPercent ? number / 100 : number
    }
}
