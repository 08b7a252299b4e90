import HttpWare

/// Parses the dates of cookies, whose format varies between servers. RFC 6265bis §5.1.1.
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// Seconds since 1970; `nil` for an invalid date.
    static func read(_ text: String) -> Int64? {
        var clock: Int?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if clock == nil, let found = time(token) {
                clock = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = months.firstIndex(of: String(Substring(token.prefix(3))).lowercased()) {
                month = found + 1
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
            }
        }
        guard let clock, let day, let month, let year, (1...31).contains(day), year >= 1601 else { return nil }
        // A day that its month does not have is invalid.
        return HttpDate.seconds(year: year, month: month, day: day).map { $0 + Int64(clock) }
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2f, 0x3b...0x40, 0x5b...0x60, 0x7b...0x7e: true
        default: false
        }
    }

    /// The number at the beginning of a token. Any character except a digit may follow it.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let found = token.prefix { (0x30...0x39).contains($0) }
        guard digits.contains(found.count) else { return nil }
        return found.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// A time such as `8:49:37`, in seconds of the day.
    private static func time(_ token: Substring.UTF8View) -> Int? {
        let parts = token.split(separator: 0x3a, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count <= 2, parts[1].count <= 2,
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2), hour < 24, minute < 60, second < 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }
}
