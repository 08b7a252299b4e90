@testable import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct WaterfallTests {
    private func lines(_ style: TerminalStyle, _ report: ExchangeReport = .full()) -> [String] {
        Waterfall(style: style).text(report).split(separator: "\n").map(String.init)
    }

    @Test func `each ware and each phase has a line, in the order of time`() {
        let names = lines(TerminalStyle(isUnicode: false)).dropFirst(5).filter { !$0.hasPrefix("    ") }
            .compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) }
        #expect(names == ["requestId", "tokenRefresh", "rewrite", "connect", "send", "wait", "content", "compress"])
    }

    @Test func `decisions, times and changes are told`() {
        let text = Waterfall(style: .plain).text(.full())
        #expect(text.contains("held 200ms behind refresh 7"))
        #expect(text.contains("200 ms"))
        #expect(text.contains("    +X-Request-Id\n"))
        #expect(text.contains("    target /7  -Cookie\n"))
        #expect(text.contains("2 connections, replayed once"))
        #expect(text.contains("web → route api → service users → 127.0.0.1:3000"))
    }

    @Test(arguments: [20, 40, 60, 80, 120, 300])
    func `step lines fit the terminal`(width: Int) {
        for line in lines(TerminalStyle(width: width)).dropFirst(5) where !line.hasPrefix("    ") {
            #expect(line.count <= max(width, 32), "\(line)")
        }
    }

    @Test func `a bar begins where its step began and is as long as it took`() throws {
        let rows = lines(TerminalStyle(width: 100, isUnicode: false))
        let wait = try #require(rows.first { $0.contains(" wait ") })
        let connect = try #require(rows.first { $0.contains(" connect ") })
        #expect(connect.count < wait.count)
        #expect(wait.hasSuffix("w"))
        let letters = wait.reversed().prefix { $0 == "w" }.count
        #expect((3...7).contains(letters), "\(wait)")  // 30 of 250 ms in a bar of about 40
    }

    @Test func `a fault is shown with its reason`() {
        var report = ExchangeReport.full()
        report.fault = "connectionRefused"
        report.reason = "no \u{1b}[31m way"
        #expect(Waterfall(style: .plain).text(report).contains("connectionRefused: no ?[31m way"))
        report.cut = true
        #expect(Waterfall(style: .plain).text(report).contains("more than the record keeps"))
    }

    @Test func `each attempt is told apart, with its endpoint, its fault and the pause before it`() {
        let rows = Waterfall(style: TerminalStyle(width: 160)).text(.ofTwoAttempts()).split(separator: "\n").dropFirst(
            5
        )
        .map { $0.split(separator: " ", omittingEmptySubsequences: true).map(String.init).joined(separator: " ") }
        for (row, words) in zip(
            rows,
            [
                "· connect attempt 1, 127.0.0.1:3001 ", "· tls attempt 1, 127.0.0.1:3001 ",
                "· wait attempt 1, 127.0.0.1:3001, responseTimeout ", "· backoff attempt 2 ",
                "· wait attempt 2, 127.0.0.1:3000 ", "· content attempt 2, 127.0.0.1:3000 ",
            ])
        {
            #expect(row.hasPrefix(words), "\(row)")
        }
    }

    @Test func `changes of the content by filters are shown`() {
        var report = ExchangeReport.full()
        #expect(!Waterfall(style: .plain).text(report).contains("before filters"))
        report.unfilteredBytes = 10_240
        #expect(Waterfall(style: .plain).text(report).contains("1.5 KiB down (10 KiB before filters)"))
    }

    @Test func `the tunnel that a request came in is told`() {
        var report = ExchangeReport.full()
        #expect(!Waterfall(style: .plain).text(report).contains("tunnel"))
        report.tunnel = ExchangeReport.Tunnel(host: "example.com", port: 443, address: nil, principal: nil)
        #expect(Waterfall(style: .plain).text(report).contains("  in a tunnel to example.com:443\n"))
        report.tunnel?.address = "192.0.2.1"
        report.tunnel?.principal = "anna"
        #expect(
            Waterfall(style: .plain).text(report).contains(
                "  in a tunnel to example.com:443 at 192.0.2.1, opened by anna\n"))
    }

    @Test func `an empty report is shown too`() {
        var report = ExchangeReport.full()
        report.wares = []
        report.phases = []
        report.duration = 0
        #expect(lines(TerminalStyle(width: 80), report).count == 5)
    }
}
