@testable import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct ExchangeLineTests {
    private func line(width: Int?, hasColours: Bool = false, _ change: (inout ExchangeReport) -> Void = { _ in })
        -> String
    {
        var report = ExchangeReport.full()
        change(&report)
        return ExchangeLine(style: TerminalStyle(hasColours: hasColours, width: width)).text(report)
    }

    @Test func `without a terminal a line has everything, apart by two spaces`() {
        let parts = line(width: nil).components(apartBy: "  ").dropFirst()
        #expect(
            Array(parts) == [
                "GET", "/users/7?token=…", "200", "250 ms", "1.5 KiB",
                "wares 200 ms, connect 10.0 ms, send 0.02 ms, wait 30.0 ms, content 10.0 ms",
            ])
    }

    @Test func `the time of every attempt and the pause between them is told, and none of it is the wares'`() {
        let text = line(width: nil) { $0 = .ofTwoAttempts() }
        #expect(text.hasSuffix("connect 5.00 ms, wait 95.0 ms, backoff 50.0 ms, wait 60.0 ms, content 40.0 ms"))
    }

    @Test(arguments: [80, 99, 100, 140])
    func `the legend of the bar fits the terminal`(width: Int) throws {
        let style = TerminalStyle(hasColours: false, width: width)
        #expect(try #require(ExchangeLine(style: style).heading).count <= width)
    }

    @Test(arguments: [20, 40, 60, 65, 80, 100, 121, 122, 200])
    func `a line never is longer than the terminal is wide, except in the narrowest`(width: Int) {
        let long = line(width: width) {
            $0.target = "/" + String(repeating: "long/", count: 100)
            $0.method = "VERSION-CONTROL"
            $0.fault = "responseContentTooLarge"
        }
        #expect(long.count <= max(width, 48))
    }

    @Test func `the bar shows each part as long as it was`() {
        // 200 of 250 ms in wares, then connect 10, send next to nothing, wait 30, content 10; a cell is 10.4 ms.
        #expect(line(width: 140).hasSuffix("  " + String(repeating: ".", count: 19) + "cwwwr wares 200 ms"))
    }

    @Test func `slow and failed exchanges say so, where there is room`() {
        #expect(line(width: 140).hasSuffix("wares 200 ms"))
        #expect(line(width: 140) { $0.fault = "connectionRefused" }.hasSuffix("connectionRefused"))
        #expect(line(width: 140) { $0.end = "clientLeft" }.hasSuffix("client left"))
        #expect(line(width: nil) { $0.fault = "dnsError" }.contains("  dnsError  "))
    }

    @Test func `colours are there where they are wanted, and end in the line`() {
        let coloured = line(width: 100, hasColours: true)
        #expect(coloured.contains("\u{1b}[32m200\u{1b}[0m"))
        #expect(!line(width: 100).contains("\u{1b}"))
        #expect(
            coloured.components(apartBy: "\u{1b}[0m").count - 1 == coloured.components(apartBy: "\u{1b}[").count / 2)
    }

    @Test func `a target cannot bring colours or lines of its own`() {
        let strange = line(width: nil) { $0.target = "/\u{1b}[2J\n\u{9b}" }
        #expect(strange.contains("/?[2J??"))
    }

    @Test(arguments: ["", "yesterday", "2026-11-21", "2026-11-21T05:20:11", "99999999999-1-1T1:1:1Z"])
    func `an invalid time stays as it is`(time: String) {
        #expect(ExchangeLine.clock(time) == time)
    }

    @Test func `an exchange of no time at all has a line`() {
        let empty = line(width: 100) {
            $0.duration = 0
            $0.phases = []
            $0.wares = []
            $0.target = ""
            $0.status = 0
        }
        #expect(empty.contains(" example.com "))
        #expect(empty.contains(" --- "))
    }
}

extension String {
    /// The parts between a separator.
    func components(apartBy separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
