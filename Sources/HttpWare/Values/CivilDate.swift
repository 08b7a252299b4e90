/// A day of the Gregorian calendar.
public struct CivilDate: Sendable, Equatable {
    public let year: Int
    /// From 1 to 12.
    public let month: Int
    /// From 1 to 31.
    public let day: Int

    /// The date of a number of days since 1970-01-01.
    public init(days: Int64) {
        // Counted in eras of 400 years from 0000-03-01, so that the leap day ends a year.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * ofYear + 2) / 153
        day = Int(ofYear - (153 * shiftedMonth + 2) / 5) + 1
        month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
    }

    /// The day of a number of seconds since 1970, and the second within the day.
    public static func split(_ seconds: Int64) -> (days: Int64, second: Int) {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        return (days, Int(seconds - days * 86_400))
    }

    /// The number of days from 1970-01-01 to a date. A day that its month does not have is counted on from the month's first.
    public static func days(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let ofEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + ofYear
        return Int64(era * 146_097 + ofEra - 719_468)
    }
}

extension WallTime {
    /// The time in UTC with this number of decimals: `2026-11-21T02:38:25.123Z`. RFC 3339.
    package func rfc3339(decimals: Int) -> String {
        let (days, second) = CivilDate.split(seconds)
        let date = CivilDate(days: days)
        var text: [UInt8] = []
        func add(_ number: Int, _ digits: Int, then end: UInt8) {
            let number = String(number).utf8
            text += [UInt8](repeating: 0x30, count: max(0, digits - number.count))
            text += number
            text.append(end)
        }
        add(date.year, 4, then: 0x2d)
        add(date.month, 2, then: 0x2d)
        add(date.day, 2, then: 0x54)
        add(second / 3600, 2, then: 0x3a)
        add(second / 60 % 60, 2, then: 0x3a)
        add(second % 60, 2, then: 0x2e)
        var unit = 1_000_000_000
        for _ in 0..<decimals { unit /= 10 }
        add(Int(nanoseconds) / unit, decimals, then: 0x5a)
        return String(decoding: text, as: UTF8.self)
    }
}
