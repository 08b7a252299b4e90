import HttpWare

/// A wall clock time as text, which is made again only when the second changes.
struct LogTime {
    private var second = Int64.min
    /// `2026-11-21T02:38:25`
    private var date: [UInt8] = []
    /// `21/Nov/2026:02:38:25 +0000`
    private var combined: [UInt8] = []

    /// Appends `2026-11-21T02:38:25.123Z`. RFC 3339.
    @inline(__always)
    mutating func write(_ time: WallTime, to line: inout LogLine) {
        if time.seconds != second { make(time.seconds) }
        line.raw(date)
        line.byte(0x2e)
        line.digits3(Int(time.nanoseconds) / 1_000_000)
        line.byte(0x5a)
    }

    /// Appends `21/Nov/2026:02:38:25 +0000`, for the combined format.
    mutating func writeCombined(_ time: WallTime, to line: inout LogLine) {
        if time.seconds != second { make(time.seconds) }
        line.raw(combined)
    }

    /// The time as text: `2026-11-21T02:38:25.123Z`.
    static func text(_ time: WallTime) -> String { time.rfc3339(decimals: 3) }

    private mutating func make(_ seconds: Int64) {
        second = seconds
        let (days, rest) = CivilDate.split(seconds)
        let day = CivilDate(days: days)
        let clock = [rest / 3600, rest / 60 % 60, rest % 60].map { LogTime.padded($0, 2) }.joined(separator: ":")
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let yearText = LogTime.padded(day.year, 4)
        date = Array("\(yearText)-\(LogTime.padded(day.month, 2))-\(LogTime.padded(day.day, 2))T\(clock)".utf8)
        combined = Array("\(LogTime.padded(day.day, 2))/\(months[day.month - 1])/\(yearText):\(clock) +0000".utf8)
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}
