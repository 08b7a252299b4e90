/// Times and sizes of nginx, turned into ours.
enum NginxUnits {
    /// A time such as `30`, `1h30m`, `500ms` or `2d` in milliseconds; `nil` if it is not one.
    static func milliseconds(_ text: String) -> Int? {
        let factors = [
            "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "M": 2_592_000_000,
            "y": 31_536_000_000, "": 1000,
        ]
        var total = 0
        var rest = text[...]
        guard !rest.isEmpty, rest.utf8.count <= 40 else { return nil }
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest.dropFirst(digits.count)
            let unit = rest.prefix { $0.isASCII && $0.isLetter }
            rest = rest.dropFirst(unit.count)
            guard digits.utf8.count <= 9, let number = Int(digits), let factor = factors[String(unit)] else {
                return nil
            }
            let (part, isTooLarge) = number.multipliedReportingOverflow(by: factor)
            let (sum, isLarger) = total.addingReportingOverflow(part)
            guard !isTooLarge, !isLarger else { return nil }
            total = sum
        }
        return total
    }

    /// A time as a duration of ours, within bounds in milliseconds.
    static func duration(_ text: String, in bounds: ClosedRange<Int> = 1...86_400_000) -> String? {
        milliseconds(text).map { duration(milliseconds: min(max($0, bounds.lowerBound), bounds.upperBound)) }
    }

    /// The duration in its largest unit that is exact.
    static func duration(milliseconds: Int) -> String {
        for (unit, factor) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)]
        where milliseconds >= factor && milliseconds % factor == 0 {
            return "\(milliseconds / factor)\(unit)"
        }
        return "\(milliseconds)ms"
    }

    /// A size such as `10m`, `8k` or `1g` in bytes; `nil` if it is not one.
    static func bytes(_ text: String) -> Int? {
        let lower = text.lowercased()
        let digits = lower.prefix { $0.isASCII && $0.isNumber }
        let factors = ["": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30]
        guard digits.utf8.count <= 12, let number = Int(digits),
            let factor = factors[String(lower.dropFirst(digits.count))]
        else { return nil }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: factor)
        return isTooLarge ? nil : bytes
    }
}
