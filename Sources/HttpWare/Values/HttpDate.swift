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
        let (days, inDay) = CivilDate.split(seconds)
        let date = CivilDate(days: days)
        var text: [UInt8] = []
        text.reserveCapacity(count)
        text += Array(["Thu, ", "Fri, ", "Sat, ", "Sun, ", "Mon, ", "Tue, ", "Wed, "][Int((days % 7 + 7) % 7)].utf8)
        add(date.day, 2, &text)
        text += Array(months[date.month - 1].utf8)
        add(date.year, 4, &text)
        text.append(0x20)
        add(inDay / 3600, 2, &text)
        text.append(0x3a)
        add(inDay / 60 % 60, 2, &text)
        text.append(0x3a)
        add(inDay % 60, 2, &text)
        text += Array(" GMT".utf8)
        return text
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
    public var rfc3339: String { rfc3339(decimals: 6) }
}
