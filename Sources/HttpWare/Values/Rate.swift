/// A number per period: `100/s`, `600/m`, `10/h`.
public struct Rate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The period of the count.
    public enum Period: String, Sendable {
        case second = "s"
        case minute = "m"
        case hour = "h"

        /// The length of the period.
        public var seconds: Int {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            }
        }
    }

    /// The number.
    public var count: Int
    /// The period.
    public var period: Period

    /// Makes a rate from its parts.
    public init(_ count: Int, per period: Period) {
        self.count = count
        self.period = period
    }

    /// The rate as a number per second.
    public var perSecond: Double { Double(count) / Double(period.seconds) }

    public var description: String { "\(count)/\(period.rawValue)" }

    public static func < (left: Rate, right: Rate) -> Bool { left.perSecond < right.perSecond }
}

extension Rate: OptionValue {
    public static let optionType = "rate"
    public static var optionForm: OptionForm { .pattern("(0|[1-9][0-9]*)/[smh]") }
    public var optionText: String { description }
    /// Reads a rate.
    public init(optionText: String) throws(OptionMistake) {
        let parts = optionText.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let count = UnitText.number(parts[0].utf8),
            let period = Period(rawValue: String(parts[1]))
        else { throw OptionMistake("write a number and a period, such as 100/s, 600/m or 10/h") }
        self.init(count, per: period)
    }
}
