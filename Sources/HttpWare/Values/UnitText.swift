/// The common part of the unit parsers: strict decimal digits, and a number followed by a unit.
enum UnitText {
    /// Reads digits without sign, leading zero and overflow; `nil` for anything else.
    static func number(_ text: some Collection<UInt8>) -> Int? {
        guard let first = text.first, first != UInt8(ascii: "0") || text.count == 1 else { return nil }
        var value = 0
        for byte in text {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (tenfold, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = tenfold.addingReportingOverflow(Int(byte - 0x30))
            if isTooLarge || overflows { return nil }
            value = sum
        }
        return value
    }

    /// Reads `10MiB` as a number of the smallest unit; `nil` if the unit is unknown or the product too large.
    static func product(_ text: String, units: [(name: String, factor: Int)]) -> Int? {
        let digits = text.utf8.prefix { (0x30...0x39).contains($0) }
        let name = String(text[digits.endIndex...])
        guard let count = number(digits), let unit = units.first(where: { $0.name == name }) else { return nil }
        let (value, overflows) = count.multipliedReportingOverflow(by: unit.factor)
        return overflows ? nil : value
    }

    /// The shortest exact notation: the largest unit that divides the value.
    static func spelling(_ value: Int, units: [(name: String, factor: Int)]) -> String {
        for unit in units where unit.factor > 1 && value != 0 && value % unit.factor == 0 {
            return "\(value / unit.factor)\(unit.name)"
        }
        return "\(value)\(units.last?.name ?? "")"
    }
}
