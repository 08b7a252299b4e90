extension Duration: OptionValue {
    public static var optionType: String { "duration" }
    public static var optionForm: OptionForm { .quantity(units, to: longest) }
    public var optionText: String { UnitText.spelling(milliseconds, units: Self.units) }

    /// Reads `250ms`, `5s`, `2m`, `1h`: one number, one unit, at most 100 years.
    public init(optionText: String) throws(OptionMistake) {
        guard let count = UnitText.product(optionText, units: Self.units), count <= Self.longest else {
            throw OptionMistake("write a number and a unit, such as 250ms, 5s, 2m or 1h")
        }
        self = .milliseconds(count)
    }

    /// Whole milliseconds, rounded towards zero; clamped to the range of `Int`.
    public var milliseconds: Int {
        let (seconds, attoseconds) = components
        let (product, overflows) = Int(seconds).multipliedReportingOverflow(by: 1000)
        return overflows ? (seconds < 0 ? .min : .max) : product + Int(attoseconds / 1_000_000_000_000_000)
    }

    private static var longest: Int { 100 * 366 * 86_400_000 }
    private static var units: [(name: String, factor: Int)] {
        [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)]
    }
}
