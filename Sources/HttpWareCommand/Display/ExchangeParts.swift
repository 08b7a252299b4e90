import HttpWare

/// The parts of an exchange's time, in the order in which a bar shows them.
enum ExchangePart: String, CaseIterable {
    /// Wares, including the waits in them, and everything else.
    case wares, queue, dns, connect, send, wait, content, backoff

    var look: TerminalStyle.Look {
        switch self {
        case .wares: .dim
        case .queue: .red
        case .dns: .magenta
        case .connect: .yellow
        case .send: .cyan
        case .wait: .blue
        case .content: .green
        case .backoff: .red
        }
    }

    /// The character for the part in a bar without colours.
    var letter: Character {
        switch self {
        case .wares: "."
        case .queue: "q"
        case .dns: "d"
        case .connect: "c"
        case .send: "s"
        case .wait: "w"
        case .content: "r"
        case .backoff: "b"
        }
    }

    /// The part to which a phase of a report belongs.
    init?(phase: String) {
        switch phase {
        case "firstByte": self = .wait
        case "tls": self = .connect
        default: self.init(rawValue: phase)
        }
    }
}

extension ExchangeReport {
    /// The duration of each part, in order. Parts that took no time are missing.
    var parts: [(part: ExchangePart, start: Double, duration: Double)] {
        var parts: [(part: ExchangePart, start: Double, duration: Double)] = []
        var reached = 0.0
        func fill(to next: Double) {
            if next - reached >= 0.001 { parts.append((.wares, reached, next - reached)) }
        }
        for phase in phases {
            guard let part = ExchangePart(phase: phase.phase), phase.duration >= 0.001 else { continue }
            fill(to: phase.start)
            if let last = parts.last, last.part == part, phase.start - reached < 0.001 {
                // The handshake is a part of the connection.
                parts[parts.count - 1].duration = phase.start + phase.duration - last.start
            } else {
                parts.append((part, phase.start, phase.duration))
            }
            reached = max(reached, phase.start + phase.duration)
        }
        fill(to: duration)
        return parts
    }

    /// The fault, in a few words.
    var trouble: String? {
        switch end {
        case "clientLeft": "client left"
        case "cutOff": fault.map { "cut off: \($0)" } ?? "cut off"
        default: fault
        }
    }
}

/// A bar of an exchange's parts, as wide as `columns`.
struct ExchangeBar {
    let style: TerminalStyle
    let columns: Int

    /// A bar of the whole duration, in which each part has its place and length.
    func whole(_ report: ExchangeReport) -> String {
        var cells = [ExchangePart?](repeating: nil, count: columns)
        let parts = report.parts
        guard report.duration > 0, columns > 0, !parts.isEmpty else { return String(repeating: " ", count: columns) }
        // A cell shows the part at its centre.
        for cell in 0..<columns {
            let moment = (Double(cell) + 0.5) / Double(columns) * report.duration
            cells[cell] = parts.last { $0.start <= moment }?.part
        }
        var bar = ""
        var index = 0
        while index < columns {
            let part = cells[index]
            let end = cells[index...].firstIndex { $0 != part } ?? columns
            bar += run(part, end - index)
            index = end
        }
        return bar
    }

    /// A bar with one part from its start to its end; at least one cell.
    func step(from start: Double, for length: Double, of whole: Double, _ part: ExchangePart) -> String {
        guard columns > 0 else { return "" }
        let first = place(start, in: whole)
        let last = max(first, place(max(start, start + length - whole / Double(columns) / 2), in: whole))
        return String(repeating: " ", count: first) + run(part, last - first + 1)
            + String(repeating: " ", count: columns - last - 1)
    }

    private func place(_ moment: Double, in whole: Double) -> Int {
        guard whole > 0 else { return 0 }
        return min(max(Int(moment / whole * Double(columns)), 0), columns - 1)
    }

    private func run(_ part: ExchangePart?, _ count: Int) -> String {
        guard let part else { return String(repeating: " ", count: count) }
        guard style.hasColours else { return String(repeating: part.letter, count: count) }
        return style.paint(String(repeating: style.isUnicode ? "━" : "=", count: count), part.look)
    }
}
