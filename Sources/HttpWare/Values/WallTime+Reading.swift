extension WallTime {
    /// Reads `2026-11-21T05:20:11.123+01:00`; the offset may lack its colon or be missing, which means UTC.
    public init?(iso8601 text: String) {
        var rest = Array(text.utf8)[...]
        func number(_ digits: Int) -> Int? {
            let part = rest.prefix(digits)
            guard part.count == digits, part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest = rest.dropFirst(digits)
            return part.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        func take(_ bytes: UInt8...) -> Bool {
            guard let first = rest.first, bytes.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }
        guard let year = number(4), take(0x2d), let month = number(2), take(0x2d), let day = number(2),
            take(0x54, 0x74, 0x20), let hour = number(2), take(0x3a), let minute = number(2)
        else { return nil }
        let second = take(0x3a) ? number(2) : 0
        guard let second, (1...12).contains(month), (1...31).contains(day), hour < 25, minute < 60, second < 61 else {
            return nil
        }
        var nanoseconds = 0
        if take(0x2e, 0x2c) {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            rest = rest.dropFirst(digits.count)
            var unit = 100_000_000
            for digit in digits.prefix(9) {
                nanoseconds += Int(digit - 0x30) * unit
                unit /= 10
            }
        }
        var offset = 0
        if let sign = rest.first, sign == 0x2b || sign == 0x2d {
            rest = rest.dropFirst()
            guard let hours = number(2) else { return nil }
            _ = take(0x3a)
            offset = (hours * 60 + (number(2) ?? 0)) * (sign == 0x2d ? -60 : 60)
        } else {
            _ = take(0x5a, 0x7a)
        }
        guard rest.isEmpty else { return nil }
        let seconds =
            Int(CivilDate.days(year, month, day)) * 86_400 + hour * 3600 + minute * 60 + second - offset
        self.init(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
    }
}
