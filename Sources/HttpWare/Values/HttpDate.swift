/// A point in time in the format of `Date` and similar fields. RFC 9110 §5.6.7.
public enum HttpDate {
    /// The time as IMF-fixdate, 29 bytes: `Sun, 06 Nov 1994 08:49:37 GMT`. Years are clamped to 0 … 9999.
    public static func text(_ time: WallTime) -> String { String(decoding: bytes(time), as: UTF8.self) }

    private static let months = [
        " Jan ", " Feb ", " Mar ", " Apr ", " May ", " Jun ", " Jul ", " Aug ", " Sep ", " Oct ", " Nov ", " Dec ",
    ]

    /// The length of the text in bytes.
    static let count = 29

    static func bytes(_ time: WallTime) -> [UInt8] {
        let seconds = min(max(time.seconds, -62_167_219_200), 253_402_300_799)
        let days = seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400
        let inDay = Int(seconds - days * 86400)
        let (year, month, day) = civil(days)
        var text: [UInt8] = []
        text.reserveCapacity(count)
        text += Array(["Thu, ", "Fri, ", "Sat, ", "Sun, ", "Mon, ", "Tue, ", "Wed, "][Int((days % 7 + 7) % 7)].utf8)
        add(day, 2, &text)
        text += Array(months[month - 1].utf8)
        add(year, 4, &text)
        text.append(0x20)
        add(inDay / 3600, 2, &text)
        text.append(0x3a)
        add(inDay / 60 % 60, 2, &text)
        text.append(0x3a)
        add(inDay % 60, 2, &text)
        text += Array(" GMT".utf8)
        return text
    }

    /// The date that many days after 1970-01-01, in the Gregorian calendar.
    public static func civil(_ days: Int64) -> (year: Int, month: Int, day: Int) {
        // Counted in eras of 400 years from 0000-03-01, so that the leap day ends a year.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * ofYear + 2) / 153
        let day = Int(ofYear - (153 * shiftedMonth + 2) / 5) + 1
        let month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        return (Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0), month, day)
    }

    private static func add(_ number: Int, _ digits: Int, _ text: inout [UInt8]) {
        var divisor = digits == 4 ? 1000 : 10
        while divisor > 0 {
            text.append(UInt8(0x30 + number / divisor % 10))
            divisor /= 10
        }
    }
}

extension WallTime {
    /// The time as `2026-11-21T05:20:11.123456Z`, in UTC. RFC 3339.
    public var rfc3339: String {
        func padded(_ number: Int, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let inDay = Int(seconds - days * 86_400)
        let (year, month, day) = HttpDate.civil(days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(inDay / 3600, 2)):"
            + "\(padded(inDay / 60 % 60, 2)):\(padded(inDay % 60, 2)).\(padded(Int(nanoseconds) / 1000, 6))Z"
    }
}
