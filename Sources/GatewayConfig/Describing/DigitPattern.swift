/// A regular expression for the whole numbers between two bounds, as decimal digits without a leading zero.
enum DigitPattern {
    /// The largest bound that is checked.
    private static let largest = 999_999_999_999_999

    /// The pattern for a range without negative bounds.
    static func pattern(_ range: ClosedRange<Int>) -> String {
        let lower = min(range.lowerBound, largest)
        if range.upperBound >= largest, lower == 0 { return "(0|[1-9][0-9]*)" }
        let upper = min(range.upperBound, largest)
        var alternatives: [String] = []
        var start = lower
        while start <= upper {
            // Continues to the last number with the same number of digits.
            let digits = String(start).utf8.count
            let end = min(upper, Int(String(repeating: "9", count: digits)) ?? upper)
            alternatives += sameLength(Array(String(start).utf8)[...], Array(String(end).utf8)[...])
            start = end + 1
        }
        return alternatives.count == 1 ? alternatives[0] : "(\(alternatives.joined(separator: "|")))"
    }

    /// The patterns for two bounds with the same number of digits, which may begin with zeros.
    private static func sameLength(_ lower: ArraySlice<UInt8>, _ upper: ArraySlice<UInt8>) -> [String] {
        guard var first = lower.first, var last = upper.first else { return [""] }
        let (low, high) = (lower.dropFirst(), upper.dropFirst())
        let zero = UInt8(ascii: "0")
        let nine = UInt8(ascii: "9")
        if first == last { return sameLength(low, high).map { text(first) + $0 } }
        var before: [String] = []
        var after: [String] = []
        if low.contains(where: { $0 != zero }) {
            before = sameLength(low, ArraySlice(repeating: nine, count: low.count)).map { text(first) + $0 }
            first += 1
        }
        if high.contains(where: { $0 != nine }) {
            after = sameLength(ArraySlice(repeating: zero, count: high.count), high).map { text(last) + $0 }
            last -= 1
        }
        guard first <= last else { return before + after }
        let any = low.isEmpty ? "" : low.count == 1 ? "[0-9]" : "[0-9]{\(low.count)}"
        let digit = first == last ? text(first) : "[\(text(first))-\(text(last))]"
        return before + [digit + any] + after
    }

    private static func text(_ digit: UInt8) -> String { String(UnicodeScalar(digit)) }
}
