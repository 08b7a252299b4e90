import HttpWare
import StoreRig
import Testing

@Suite struct HttpDateReadingTests {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt", "SUNDAY, 06-NOV-94 08:49:37 GMT",
    ])
    func `the three forms name one time, RFC 9110 §5.6.7`(text: String) {
        #expect(HttpDate.time(text, now: noon)?.seconds == 784_111_777)
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 AEST", "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 1995 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "1994-11-06T08:49:37Z",
        "\"Sun, 06 Nov 1994 08:49:37 GMT\"", "Sun, 06 Nov 1994 08:49:37 GMTx", "Sun, 06 Nov 19940 08:49:37 GMT",
    ])
    func `any other text is not a date, RFC 9111 §4.2 and §5.3`(text: String) {
        #expect(HttpDate.time(text, now: noon) == nil)
    }

    @Test(arguments: [("76", 2076), ("77", 1977), ("99", 1999), ("00", 2000), ("26", 2026)])
    func `two digits are never more than fifty years ahead, RFC 9110 §5.6.7`(digits: String, year: Int) {
        let short = HttpDate.time("Monday, 01-Jun-\(digits) 00:00:00 GMT", now: noon)
        #expect(short != nil && short == HttpDate.time("Mon, 01 Jun \(year) 00:00:00 GMT", now: noon))
    }

    @Test func `a date that is written is read back, through leap days and centuries`() {
        for day in stride(from: Int64(-719_000), through: 2_900_000, by: 379) {
            let time = WallTime(seconds: day * 86_400 + day & 0xffff)
            #expect(HttpDate.time(HttpDate.text(time), now: noon) == time)
            #expect(HttpDate.time(HttpDate.text(time).lowercased(), now: noon) == time)
        }
    }

    @Test func `a leap second is the second after it, RFC 9110 §5.6.7`() {
        #expect(
            HttpDate.time("Sat, 31 Dec 2016 23:59:60 GMT", now: noon)
                == HttpDate.time("Sun, 01 Jan 2017 00:00:00 GMT", now: noon))
    }
}
