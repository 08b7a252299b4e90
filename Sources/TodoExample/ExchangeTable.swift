import HttpWareClient

/// A table of an exchange: what each ware did, and how long the parts of the upstream call took, one on each line.
struct ExchangeTable {
    let report: ExchangeReport

    var text: String {
        var lines = [
            "  \(report.method) \(report.target) → \(report.status) by \(report.responder), \(report.duration) ms"
        ]
        for ware in report.wares {
            let way = ware.side == "request" ? "→" : "←"
            lines.append(line("\(way) \(ware.ware)", ware.text, ware.start, ware.duration))
        }
        for phase in report.phases {
            lines.append(line("· \(phase.phase)", phase.fault ?? "", phase.start, phase.duration))
        }
        return lines.joined(separator: "\n")
    }

    private func line(_ name: String, _ text: String, _ start: Double, _ duration: Double) -> String {
        let scale = 30 / max(report.duration, 0.001)
        let before = min(29, Int(start * scale))
        let length = max(1, min(30 - before, Int(duration * scale)))
        let bar = String(repeating: " ", count: before) + String(repeating: "━", count: length)
        return "    " + padded(name, 18) + padded(text, 34) + padded(bar, 31) + "\(duration) ms"
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}
