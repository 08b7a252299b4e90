import Glibc
import HttpWare

/// One line for an exchange: time, method, target, status, duration, size, and a bar of the phases.
struct ExchangeLine {
    let style: TerminalStyle
    /// Whether the line begins with the number of the exchange, which `trace` accepts.
    var showsId = false
    /// Whether the host comes before a target that is only a path. Used for proxies, whose requests go to many hosts.
    var showsHost = false

    private static let slow = 1000.0

    /// The line, without its end.
    func text(_ report: ExchangeReport) -> String {
        let time = ExchangeLine.clock(report.time)
        let id = showsId ? padded(style.shown(report.id), 6) + "  " : ""
        let duration = TerminalStyle.time(report.duration)
        let size = TerminalStyle.size(report.responseBytes)
        let status = report.status == 0 ? "---" : String(report.status)
        let target = style.shown(target(of: report))
        guard let width = style.width else {
            // Not a terminal: all columns uncut, two spaces between them.
            let parts = report.parts.map { "\($0.part.rawValue) \(TerminalStyle.time($0.duration))" }
            return
                ([
                    id + time, style.shown(report.method), target, status, duration, size,
                ]
                + [report.trouble.map(style.shown), parts.isEmpty ? nil : parts.joined(separator: ", ")].compactMap(
                    \.self))
                .joined(separator: "  ")
        }
        // Time 8, method 7, status 3, duration 8, size 8, and the spaces between.
        let left = width - id.count - 8 - 2 - 7 - 1 - 1 - 3 - 1 - 8 - 1 - 8
        let (bar, remark) = left >= 74 ? (24, 20) : left >= 40 ? (16, 0) : left >= 26 ? (10, 0) : (0, 0)
        let targetColumns = max(8, left - (bar > 0 ? bar + 2 : 0) - (remark > 0 ? remark + 1 : 0))
        var line = style.paint(id + time, .dim) + "  " + style.paint(style.fitted(style.shown(report.method), 7), .bold)
        line += " " + style.fitted(target, targetColumns)
        line += " " + style.paint(padded(status, 3), ExchangeLine.look(of: report.status))
        line += " " + style.paint(padded(duration, 8), report.duration >= ExchangeLine.slow ? .red : nil)
        line += " " + padded(size, 8)
        if bar > 0 { line += "  " + ExchangeBar(style: style, columns: bar).whole(report) }
        if remark > 0, let (text, look) = self.remark(report) {
            line += " " + style.paint(String(style.shown(text).prefix(remark)), look)
        }
        return line
    }

    /// The target with its host; of a request whose target could not be read, the host of its tunnel.
    private func target(of report: ExchangeReport) -> String {
        guard report.target.isEmpty || report.target == "-" else { return host(of: report) + report.target }
        return report.host ?? "-"
    }

    /// The host of a proxy's request whose target is only a path, with its port unless that is the scheme's default.
    private func host(of report: ExchangeReport) -> String {
        guard showsHost, report.target.hasPrefix("/"), let host = report.host else { return "" }
        guard let endpoint = report.endpoint, endpoint.hasPrefix(host + ":") else { return host }
        return [":443", ":80"].contains(endpoint.dropFirst(host.count)) ? host : endpoint
    }

    /// The names of the columns, and a legend for the bar.
    var heading: String? {
        guard let width = style.width, width >= 80 else { return nil }
        let legend = ExchangePart.allCases.map { part in
            style.hasColours
                ? style.paint(style.isUnicode ? "━━" : "==", part.look) + " " + part.rawValue
                : "\(part.letter) \(part.rawValue)"
        }
        let intro = width >= 100 ? "how the time was spent: " : "time: "
        return style.paint(intro, .dim) + legend.joined(separator: width >= 100 ? "  " : " ")
    }

    /// The fault, or else the longest part if it took at least 100 ms.
    private func remark(_ report: ExchangeReport) -> (String, TerminalStyle.Look)? {
        if let trouble = report.trouble { return (trouble, .red) }
        guard let longest = report.parts.max(by: { $0.duration < $1.duration }), longest.duration >= 100 else {
            return nil
        }
        return ("\(longest.part.rawValue) \(TerminalStyle.time(longest.duration))", .yellow)
    }

    static func look(of status: Int) -> TerminalStyle.Look {
        switch status {
        case 100..<300: .green
        case 300..<400: .cyan
        case 400..<500: .yellow
        default: .red
        }
    }

    private func padded(_ text: String, _ columns: Int) -> String {
        String(repeating: " ", count: max(0, columns - text.count)) + text
    }

    /// The local time of day for a time in UTC (RFC 3339). An invalid time is returned unchanged.
    static func clock(_ time: String) -> String {
        guard time.hasSuffix("Z"), let moment = WallTime(iso8601: time) else { return time }
        var seconds = time_t(moment.seconds)
        var local = tm()
        guard localtime_r(&seconds, &local) != nil else { return time }
        return [local.tm_hour, local.tm_min, local.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
