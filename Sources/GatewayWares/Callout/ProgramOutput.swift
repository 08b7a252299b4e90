import HttpWare

/// Splits the output of a program into lines for the log: of bounded length, and of a bounded number in each second.
struct ProgramOutput {
    private var line: [UInt8] = []
    private var isCut = false
    private var second = Int64.min
    private var count = 0
    private var left = 0

    /// The maximum length of a line. The rest of a longer one is left out.
    static let longest = 2000
    /// The maximum number of lines in a second.
    static let most = 200

    /// Takes output, and returns the lines that are complete. `now` is the loop's time.
    mutating func take(_ bytes: some Sequence<UInt8>, now: LoopInstant) -> [String] {
        var lines: [String] = []
        for byte in bytes {
            if byte == 0x0a {
                end(&lines, now)
            } else if line.count < ProgramOutput.longest {
                line.append(byte)
            } else {
                isCut = true
            }
        }
        return lines
    }

    /// Takes the end of the output, and returns the last lines.
    mutating func finish(now: LoopInstant) -> [String] {
        var lines: [String] = []
        if !line.isEmpty { end(&lines, now) }
        if left > 0 { lines.append(noteLeft()) }
        return lines
    }

    private mutating func end(_ lines: inout [String], _ now: LoopInstant) {
        defer {
            line.removeAll(keepingCapacity: true)
            isCut = false
        }
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            second = current
            count = 0
            if left > 0 { lines.append(noteLeft()) }
        }
        guard line.contains(where: { $0 > 0x20 }) else { return }
        guard count < ProgramOutput.most else { return left += 1 }
        count += 1
        // A terminal must not interpret what a program writes.
        let shown = line.map { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f ? 0x20 : $0 }
        lines.append(String(decoding: shown, as: UTF8.self) + (isCut ? " …" : ""))
    }

    private mutating func noteLeft() -> String {
        defer { left = 0 }
        return "\(left) more lines in one second are left out"
    }
}
