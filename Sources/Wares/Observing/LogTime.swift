import HttpWare

/// A wall clock time as text, made anew only when the second changes.
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

    /// Appends `21/Nov/2026:02:38:25 +0000`, as the combined format has it.
    mutating func writeCombined(_ time: WallTime, to line: inout LogLine) {
        if time.seconds != second { make(time.seconds) }
        line.raw(combined)
    }

    private mutating func make(_ seconds: Int64) {
        second = seconds
        let (year, month, day) = LogTime.date(ofDay: LogTime.floorDivide(seconds, 86_400))
        let rest = seconds - LogTime.floorDivide(seconds, 86_400) * 86_400
        let clock = [rest / 3600, rest / 60 % 60, rest % 60].map { LogTime.padded($0, 2) }.joined(separator: ":")
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let yearText = LogTime.padded(year, 4)
        date = Array("\(yearText)-\(LogTime.padded(month, 2))-\(LogTime.padded(day, 2))T\(clock)".utf8)
        combined = Array("\(LogTime.padded(day, 2))/\(months[Int(month) - 1])/\(yearText):\(clock) +0000".utf8)
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    private static func floorDivide(_ number: Int64, _ by: Int64) -> Int64 {
        number / by - (number % by < 0 ? 1 : 0)
    }

    /// The civil date of a day counted from 1970-01-01, in the Gregorian calendar: eras of 400 years that begin in March.
    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}
