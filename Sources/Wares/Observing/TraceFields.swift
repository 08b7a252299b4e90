/// Checks the other fields of a trace, which are passed on unchanged if they are valid.
enum TraceFields {
    /// The maximum number of members of `tracestate`; more make it invalid (W3C Trace Context §3.3.1.1).
    private static let mostStates = 32
    /// W3C Baggage §3.3.2: the limits that every platform must support.
    private static let mostBaggage = 64
    private static let mostBaggageBytes = 8192

    /// Whether the values of the `tracestate` lines, in order, form a valid list of keys with values. Level 2, §3.3.1.
    static func isValidState(_ lines: [String]) -> Bool {
        var count = 0
        for line in lines {
            for member in line.utf8.split(separator: 0x2c, omittingEmptySubsequences: true) {
                let member = trimmed(member)
                if member.isEmpty { continue }
                count += 1
                guard count <= mostStates, let equals = member.firstIndex(of: 0x3d), isKey(member[..<equals]),
                    isValue(member[member.index(after: equals)...])
                else { return false }
            }
        }
        return count > 0
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var text = text
        while let first = text.first, first == 0x20 || first == 0x09 { text.removeFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        return text
    }

    /// Whether the text is a valid key: `key = ( lcalpha / DIGIT ) 0*255 ( keychar )`, §3.3.1.3.1.
    private static func isKey(_ key: Substring.UTF8View) -> Bool {
        guard (1...256).contains(key.count), let first = key.first, isLetterOrDigit(first) else { return false }
        return key.allSatisfy { isLetterOrDigit($0) || [0x5f, 0x2d, 0x2a, 0x2f, 0x40].contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte)
    }

    /// Whether the text is a valid value: `value = 0*255(chr) nblk-chr`, §3.3.1.3.2, which is visible and has no comma
    /// or equals sign.
    private static func isValue(_ value: Substring.UTF8View) -> Bool {
        (1...256).contains(value.count) && value.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x3d }
    }

    /// Whether the values of the `baggage` lines are within the limits.
    static func isBaggage(_ lines: [String]) -> Bool {
        let bytes = lines.reduce(0) { $0 + $1.utf8.count + 1 }
        let members = lines.reduce(0) { $0 + $1.utf8.split(separator: 0x2c).count }
        return bytes <= mostBaggageBytes + 1 && (1...mostBaggage).contains(members)
    }
}
