extension HttpDate {
    /// Reads a time: an IMF-fixdate, or one of the two obsolete forms, in GMT. `nil` for anything else.
    ///
    /// Names are compared case-insensitively, as RFC 9111 §4.2 requires of caches. A two-digit year that appears to be
    /// more than 50 years after `now` is the most recent past year with these digits. RFC 9110 §5.6.7.
    public static func time(_ text: String, now: WallTime) -> WallTime? {
        var text = text
        return text.withUTF8 { usual(UnsafeRawBufferPointer($0)) } ?? time(anyForm: text, now: now)
    }

    /// Reads `Sun, 06 Nov 1994 08:49:37 GMT` as almost all servers write it, in place; `nil` for anything else.
    static func usual(_ text: UnsafeRawBufferPointer) -> WallTime? {
        guard text.count == 29 else { return nil }
        func word(_ start: Int) -> UInt32 { text.loadUnaligned(fromByteOffset: start, as: UInt32.self) }
        func number(_ start: Int) -> Int? {
            let (high, low) = (text[start] &- 0x30, text[start + 1] &- 0x30)
            return high < 10 && low < 10 ? Int(high) * 10 + Int(low) : nil
        }
        guard dayWords.contains(word(0)), text[4] == 0x20, text[7] == 0x20, text[16] == 0x20, text[19] == 0x3a,
            text[22] == 0x3a, word(25) == zoneWord, let month = monthWords.firstIndex(of: word(8)),
            let day = number(5), let century = number(12), let year = number(14), let hour = number(17), hour < 24,
            let minute = number(20), minute < 60, let second = number(23), second <= 60
        else { return nil }
        return time(century * 100 + year, month + 1, day, hour * 3600 + minute * 60 + second)
    }

    /// Four letters as a number in memory order.
    private static func word(_ letters: StaticString) -> UInt32 {
        UnsafeRawPointer(letters.utf8Start).loadUnaligned(as: UInt32.self)
    }

    private static let dayWords = [
        word("Mon,"), word("Tue,"), word("Wed,"), word("Thu,"), word("Fri,"), word("Sat,"), word("Sun,"),
    ]
    private static let monthWords = [
        word("Jan "), word("Feb "), word("Mar "), word("Apr "), word("May "), word("Jun "), word("Jul "), word("Aug "),
        word("Sep "), word("Oct "), word("Nov "), word("Dec "),
    ]
    private static let zoneWord = word(" GMT")

    static func time(anyForm text: String, now: WallTime) -> WallTime? {
        var text = Array(text.utf8)[...]
        guard let comma = text.firstIndex(where: { $0 == 0x2c || $0 == 0x20 }) else { return nil }
        let day = text[..<comma]
        text = text[comma...]
        if text.first == 0x20 {
            guard isName(day, among: shortDays), take(" ", &text) else { return nil }
            return asctime(&text)
        }
        guard take(", ", &text) else { return nil }
        if isName(day, among: shortDays) { return fixdate(&text) }
        if isName(day, among: longDays) { return rfc850(&text, now: now) }
        return nil
    }

    private static let shortDays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    private static let longDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    private static let shortMonths = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// Reads `06 Nov 1994 08:49:37 GMT`.
    private static func fixdate(_ text: inout ArraySlice<UInt8>) -> WallTime? {
        guard let day = number(2, &text), take(" ", &text), let month = month(&text), take(" ", &text),
            let year = number(4, &text), take(" ", &text), let second = timeOfDay(&text), takeZone(&text)
        else { return nil }
        return time(year, month, day, second)
    }

    /// Reads `06-Nov-94 08:49:37 GMT`.
    private static func rfc850(_ text: inout ArraySlice<UInt8>, now: WallTime) -> WallTime? {
        guard let day = number(2, &text), take("-", &text), let month = month(&text), take("-", &text),
            let short = number(2, &text), take(" ", &text), let second = timeOfDay(&text), takeZone(&text)
        else { return nil }
        let thisYear = CivilDate(days: CivilDate.split(now.seconds).days).year
        var year = thisYear / 100 * 100 + short
        if year > thisYear + 50 { year -= 100 }
        return time(year, month, day, second)
    }

    /// Reads `Nov  6 08:49:37 1994`.
    private static func asctime(_ text: inout ArraySlice<UInt8>) -> WallTime? {
        guard let month = month(&text), take(" ", &text) else { return nil }
        let day = take(" ", &text) ? number(1, &text) : number(2, &text)
        guard let day, take(" ", &text), let second = timeOfDay(&text), take(" ", &text), let year = number(4, &text),
            text.isEmpty
        else { return nil }
        return time(year, month, day, second)
    }

    /// Reads `08:49:37` as seconds of the day; 60 is a leap second.
    private static func timeOfDay(_ text: inout ArraySlice<UInt8>) -> Int? {
        guard let hour = number(2, &text), hour < 24, take(":", &text), let minute = number(2, &text), minute < 60,
            take(":", &text), let second = number(2, &text), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func takeZone(_ text: inout ArraySlice<UInt8>) -> Bool {
        take(" ", &text) && isName(text, among: ["gmt"])
    }

    private static func month(_ text: inout ArraySlice<UInt8>) -> Int? {
        let name = text.prefix(3)
        guard let month = shortMonths.firstIndex(where: { isName(name, among: [$0]) }) else { return nil }
        text = text.dropFirst(3)
        return month + 1
    }

    private static func number(_ digits: Int, _ text: inout ArraySlice<UInt8>) -> Int? {
        let part = text.prefix(digits)
        guard part.count == digits, part.allSatisfy(ByteClass.isDigit) else { return nil }
        text = text.dropFirst(digits)
        return part.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func take(_ expected: String, _ text: inout ArraySlice<UInt8>) -> Bool {
        guard text.starts(with: expected.utf8) else { return false }
        text = text.dropFirst(expected.utf8.count)
        return true
    }

    private static func isName(_ text: ArraySlice<UInt8>, among names: [String]) -> Bool {
        names.contains { name in
            text.count == name.utf8.count && zip(text, name.utf8).allSatisfy { ByteClass.lower($0) == $1 }
        }
    }

    private static func time(_ year: Int, _ month: Int, _ day: Int, _ second: Int) -> WallTime? {
        let days = CivilDate.days(year, month, day)
        // A day that the month does not have would become another date.
        let back = CivilDate(days: days)
        guard back.year == year, back.month == month, back.day == day else { return nil }
        return WallTime(seconds: days * 86400 + Int64(second))
    }

    /// The start of the day, in seconds since 1970; `nil` for a day that its month does not have.
    package static func seconds(year: Int, month: Int, day: Int) -> Int64? {
        (1...12).contains(month) ? time(year, month, day, 0)?.seconds : nil
    }
}
