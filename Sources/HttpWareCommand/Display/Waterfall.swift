import HttpWare

/// An exchange step by step: each ware with its decision, time and changes, each phase of the call upstream, and a bar for each.
struct Waterfall {
    let style: TerminalStyle

    /// A line of the waterfall.
    private struct Row {
        let mark: String
        let name: String
        let text: String
        let start: Double
        let duration: Double
        let part: ExchangePart
        let look: TerminalStyle.Look?
        let details: [String]
        /// The order of rows that begin at the same moment: the request's wares, the phases, the response's wares.
        let rank: Int
    }

    /// All lines, each with its end.
    func text(_ report: ExchangeReport) -> String {
        let rows = self.rows(report)
        let width = style.width ?? 100
        let name = min(max(rows.map { $0.name.count }.max() ?? 0, 8), max(8, width / 4))
        let text = min(max(rows.map { $0.text.count }.max() ?? 0, 6), max(6, width / 3))
        // Two columns for the mark, nine for the time, and the spaces between.
        let columns = min(60, width - 2 - name - 1 - text - 1 - 9 - 2)
        let bar = columns >= 10 ? ExchangeBar(style: style, columns: columns) : nil
        var lines = heading(report)
        lines.append("")
        for row in rows {
            var line = style.paint(row.mark, .dim) + " " + style.fitted(row.name, name) + " "
            line += style.paint(style.fitted(row.text, text), row.look) + " "
            let time = row.part == .wares && row.text == "skipped" ? "" : TerminalStyle.time(row.duration)
            line += String(repeating: " ", count: max(0, 9 - time.count)) + time
            if let bar {
                line += "  " + bar.step(from: row.start, for: row.duration, of: report.duration, row.part)
            }
            lines.append(line)
            // A reason that was cut, such as why a response was not stored, follows in full.
            if row.text.count > text { lines.append("    " + style.paint(row.text, .dim)) }
            lines += row.details.map { "    " + style.paint($0, .dim) }
        }
        if report.cut { lines.append(style.paint("the wares did more than the record keeps", .yellow)) }
        return lines.map { $0.withoutTrailingSpaces + "\n" }.joined()
    }

    // MARK: Parts

    private func heading(_ report: ExchangeReport) -> [String] {
        let arrow = style.isUnicode ? "→" : "->"
        let status = report.status == 0 ? "no response" : String(report.status)
        var lines = [
            style.paint("\(style.shown(report.method)) \(style.shown(report.target))", .bold) + " \(arrow) "
                + style.paint(status, ExchangeLine.look(of: report.status)) + " in "
                + TerminalStyle.time(report.duration)
        ]
        var way = ["\(report.listener)"]
        way += [report.route.map { "route \($0)" }, report.service.map { "service \($0)" }].compactMap(\.self)
        if let endpoint = report.endpoint { way.append(endpoint + (report.reused ? " (reused)" : "")) }
        lines.append("  exchange \(report.id)\(report.exchange.map { " (\($0))" } ?? "") at \(report.time)")
        lines.append("  " + (report.client.map { "\($0) \(arrow) " } ?? "") + way.joined(separator: " \(arrow) "))
        if let host = report.host {
            let exchange = report.keyExchange.map { ", key exchange \($0)" } ?? ""
            lines.append("  host \(host), \(report.protocol)\(exchange)")
        }
        if let tunnel = report.tunnel {
            let address = tunnel.address.map { " at \($0)" } ?? ""
            let principal = tunnel.principal.map { ", opened by \($0)" } ?? ""
            lines.append("  in a tunnel to \(tunnel.host):\(tunnel.port)\(address)\(principal)")
        }
        if let unread = report.unread { lines.append("  passes unread: \(Self.unreadText(unread))") }
        var counts = "  \(TerminalStyle.size(report.requestBytes)) up, \(TerminalStyle.size(report.responseBytes)) down"
        if let bytes = report.unfilteredBytes { counts += " (\(TerminalStyle.size(bytes)) before filters)" }
        counts += ", answered by \(report.responder)"
        if let cache = report.cache { counts += ", cache \(cache)" }
        if report.attempts > 1 { counts += ", \(report.attempts) connections" }
        if report.replays > 0 { counts += ", replayed \(report.replays == 1 ? "once" : "\(report.replays) times")" }
        lines.append(counts)
        lines = [lines[0]] + lines.dropFirst().map { style.shown($0) }
        if let trouble = report.trouble {
            let reason = report.reason.map { ": \($0)" } ?? ""
            lines.append("  " + style.paint(style.shown(trouble + reason), .red))
        }
        return lines
    }

    /// A reason of `ExchangeReport.unread` in words.
    private static func unreadText(_ reason: String) -> String {
        switch reason {
        case "notListed": "intercept.hosts does not list the host"
        case "excepted": "intercept.except lists the host"
        case "pinned": "the client refused the certificate for the host"
        case "opaque": "the client speaks neither TLS nor HTTP"
        default: reason
        }
    }

    private func rows(_ report: ExchangeReport) -> [Row] {
        var rows = report.wares.map { ware in
            let isResponse = ware.side != "request"
            let mark = style.isUnicode ? (isResponse ? "←" : "→") : (isResponse ? "<" : ">")
            return Row(
                mark: mark, name: style.shown(ware.ware), text: style.shown(ware.text), start: ware.start,
                duration: ware.duration, part: .wares, look: look(ware), details: details(ware),
                rank: isResponse ? 2 : 0)
        }
        rows += report.phases.compactMap { phase in
            guard let part = ExchangePart(phase: phase.phase), part != .dns || phase.duration > 0 else { return nil }
            return Row(
                mark: style.isUnicode ? "·" : "*", name: phase.phase == "tls" ? "tls" : part.rawValue,
                text: style.shown(words(phase, of: report)), start: phase.start, duration: phase.duration, part: part,
                look: phase.fault == nil ? nil : .red, details: [], rank: 1)
        }
        return rows.enumerated().sorted {
            ($0.element.start, $0.element.rank, $0.offset) < ($1.element.start, $1.element.rank, $1.offset)
        }.map(\.element)
    }

    /// The phase's attempt and endpoint, if there were several of them, and the error that ended it.
    private func words(_ phase: ExchangeReport.Phase, of report: ExchangeReport) -> String {
        var parts: [String] = []
        if report.phases.contains(where: { $0.attempt != phase.attempt }) { parts.append("attempt \(phase.attempt)") }
        if Set(report.phases.compactMap(\.endpoint)).count > 1, let endpoint = phase.endpoint { parts.append(endpoint) }
        if let fault = phase.fault { parts.append(fault) }
        return parts.joined(separator: ", ")
    }

    private func look(_ ware: ExchangeReport.Ware) -> TerminalStyle.Look? {
        switch ware.decision {
        case "passed": nil
        case "skipped": .dim
        case "failed", "gaveUp": .red
        case "aborted", "replaced", "replayed", "held": .yellow
        default: .cyan
        }
    }

    private func details(_ ware: ExchangeReport.Ware) -> [String] {
        var parts: [String] = []
        if let method = ware.method { parts.append("method \(method)") }
        if let target = ware.target { parts.append("target \(target)") }
        if let status = ware.status { parts.append("status \(status)") }
        if ware.replacedFields == true { parts.append("all fields replaced") }
        parts += (ware.added ?? []).map { "+\($0)" }
        parts += (ware.removed ?? []).map { "-\($0)" }
        parts += (ware.rewritten ?? []).map { "~\($0)" }
        return parts.isEmpty ? [] : [style.shown(parts.joined(separator: "  "))]
    }
}

extension String {
    fileprivate var withoutTrailingSpaces: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
