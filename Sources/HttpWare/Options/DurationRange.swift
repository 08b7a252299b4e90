/// A range of durations, both ends included: `100ms..2s`.
public struct DurationRange: Sendable, Hashable {
    /// The lower end; at most `upper`.
    public var lower: Duration
    /// The upper end; at least `lower`.
    public var upper: Duration

    /// Makes a range from both ends.
    public init(_ range: ClosedRange<Duration>) {
        lower = range.lowerBound
        upper = range.upperBound
    }
}

extension DurationRange: OptionValue {
    public static let optionType = "range of durations"
    public static var optionForm: OptionForm {
        .pattern("(0|[1-9][0-9]*)(h|m|s|ms)\\.\\.(0|[1-9][0-9]*)(h|m|s|ms)")
    }
    public var optionText: String { "\(lower.optionText)..\(upper.optionText)" }
    public init(optionText: String) throws(OptionMistake) {
        let hint = "write two durations, the shorter first, such as 100ms..2s"
        let ends = optionText.split(separator: "..", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2,
            let lower = try? Duration(optionText: String(ends[0])),
            let upper = try? Duration(optionText: String(ends[1])), lower <= upper
        else { throw OptionMistake(hint) }
        self.init(lower...upper)
    }
}
