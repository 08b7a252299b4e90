import Foundation
import Testing

@testable import HttpWare

@Suite struct CivilDateTests {
    @Test func `days and dates are the same as the system's, over eight centuries`() {
        for days in stride(from: Int64(-150_000), through: 150_000, by: 61) {
            var seconds = time_t(days * 86_400)
            var parts = tm()
            gmtime_r(&seconds, &parts)
            let date = CivilDate(days: days)
            #expect(date.year == Int(parts.tm_year) + 1900 && date.month == Int(parts.tm_mon) + 1)
            #expect(date.day == Int(parts.tm_mday))
            #expect(CivilDate.days(date.year, date.month, date.day) == days)
        }
    }

    @Test(arguments: [
        (0, 0, 0), (86_399, 0, 86_399), (86_400, 1, 0), (-1, -1, 86_399), (-86_400, -1, 0),
        (-86_401, -2, 86_399),
    ])
    func `a time before 1970 belongs to the day that had begun`(
        seconds: Int64, days: Int64, second: Int
    ) {
        let split = CivilDate.split(seconds)
        #expect(split.days == days && split.second == second)
    }

    @Test func `a time is written with the decimals that are asked for`() {
        let time = WallTime(seconds: 951_827_696, nanoseconds: 7_123_456)
        #expect(time.rfc3339(decimals: 3) == "2000-02-29T12:34:56.007Z")
        #expect(time.rfc3339 == "2000-02-29T12:34:56.007123Z")
        #expect(WallTime(iso8601: time.rfc3339(decimals: 9)) == time)
    }
}
