public import HttpWare

/// How long a request waits until another endpoint is asked: a duration, or a percentile of the recent response times.
public enum HedgeDelay: Sendable, Equatable {
    /// A fixed duration.
    case fixed(Duration)
    /// The time within which this percentage of recent responses arrived, from 50 to 99.
    case percentile(Int)
}

extension HedgeDelay: OptionValue {
    public static let optionType = "duration or a percentile"
    public static var optionForm: OptionForm { .either([.pattern("p[5-9][0-9]"), Duration.optionForm]) }

    public var optionText: String {
        switch self {
        case .fixed(let duration): duration.optionText
        case .percentile(let percent): "p\(percent)"
        }
    }

    /// `p95`, or a duration from 1 ms to 1 minute.
    public init(optionText: String) throws(OptionMistake) {
        let digits = optionText.utf8.dropFirst()
        if optionText.utf8.first == UInt8(ascii: "p"), digits.count == 2, let percent = Int(optionText.dropFirst()),
            (50...99).contains(percent)
        {
            self = .percentile(percent)
            return
        }
        guard let duration = try? Duration(optionText: optionText),
            (.milliseconds(1) ... .seconds(60)).contains(duration)
        else { throw OptionMistake("write a percentile from p50 to p99, such as p95, or a duration from 1ms to 1m") }
        self = .fixed(duration)
    }
}
