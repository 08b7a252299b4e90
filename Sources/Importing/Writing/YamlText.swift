package import HttpWare

/// Values as YAML (1.2) that the reader of configurations reads as exactly these values, whatever they contain.
enum YamlText {
    /// The maximum length of a value on one line, in bytes; a longer list or map takes a line for each member.
    private static let longestFlow = 100

    /// A text that is never structure and never interpolated: `$` before `$` and `{` is doubled.
    static func text(_ text: String) -> String { self.text(text, .literal) }

    /// The meaning of `$` in a text.
    enum Dollars {
        /// Itself: it is doubled where a variable could begin.
        case literal
        /// Already what the file shall have, variables and doubled ones.
        case written
    }

    private static func text(_ text: String, _ dollars: Dollars) -> String {
        isPlain(text) ? text : quoted(dollars == .literal ? interpolated(text) : text)
    }

    /// A key of a map. Keys are not interpolated.
    static func key(_ text: String) -> String {
        isPlain(text) ? text : quoted(text)
    }

    /// A comment on one line, without its mark: control characters and everything that YAML reads as the end of a line are replaced.
    static func comment(_ text: String, longest: Int = 200) -> String {
        var result = ""
        var count = 0
        for scalar in text.unicodeScalars {
            if count == longest { return result + "…" }
            count += 1
            result.unicodeScalars.append(isPrintable(scalar) ? scalar : scalar == "\t" ? " " : "?")
        }
        return result
    }

    /// The value on one line.
    static func flow(_ node: ConfigNode, _ dollars: Dollars = .literal) -> String {
        switch node.content {
        case .scalar(let text, let isQuoted): return isQuoted ? self.text(text, dollars) : word(text, dollars)
        case .list(let members): return "[" + members.map { flow($0, dollars) }.joined(separator: ", ") + "]"
        case .map(let entries):
            if entries.isEmpty { return "{}" }
            return "{ " + entries.map { "\(key($0.key)): \(flow($0.value, dollars))" }.joined(separator: ", ") + " }"
        }
    }

    /// The lines of `key: value`, the first one with the comment; without indentation.
    static func lines(
        _ key: String, _ node: ConfigNode, comment: String? = nil, _ dollars: Dollars = .literal
    ) -> [String] {
        let mark = comment.map { " # " + self.comment($0) } ?? ""
        let flow = flow(node, dollars)
        if flow.utf8.count <= longestFlow { return ["\(self.key(key)): \(flow)\(mark)"] }
        switch node.content {
        case .scalar: return ["\(self.key(key)): \(flow)\(mark)"]
        case .list(let members) where members.isEmpty: return ["\(self.key(key)): []\(mark)"]
        case .list(let members):
            return ["\(self.key(key)):\(mark)"] + members.flatMap { item($0, dollars).map { "  " + $0 } }
        case .map(let entries):
            return ["\(self.key(key)):\(mark)"]
                + entries.flatMap { lines($0.key, $0.value, dollars).map { "  " + $0 } }
        }
    }

    /// The lines of a member of a list: `- value`.
    static func item(_ node: ConfigNode, _ dollars: Dollars = .literal) -> [String] {
        let flow = flow(node, dollars)
        guard flow.utf8.count > longestFlow, let entries = node.entries, !entries.isEmpty else { return ["- \(flow)"] }
        return indented(entries.flatMap { lines($0.key, $0.value, dollars) })
    }

    /// The lines as one member of a list.
    static func indented(_ lines: [String]) -> [String] {
        lines.enumerated().map { ($0.offset == 0 ? "- " : "  ") + $0.element }
    }

    /// A number, a boolean, a duration or a similar word; anything else is quoted.
    private static func word(_ text: String, _ dollars: Dollars) -> String {
        let isSafe =
            !text.isEmpty
            && text.utf8.allSatisfy { byte in
                isAlphanumeric(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".")
                    || byte == UInt8(ascii: "%")
            } && text.utf8.first != UInt8(ascii: "%")
        return isSafe ? text : quoted(dollars == .literal ? interpolated(text) : text)
    }

    /// Whether the text needs no quotes at any place, and is a text to every reader of YAML.
    private static func isPlain(_ text: String) -> Bool {
        guard let first = text.utf8.first, text.utf8.count <= 200 else { return false }
        let isStart = first == UInt8(ascii: "/") || isAlphanumeric(first) && !(0x30...0x39).contains(first)
        let words: Set = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
        return isStart && !words.contains(text.lowercased())
            && text.utf8.allSatisfy { isAlphanumeric($0) || "/._-".utf8.contains($0) }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// The text with `$` doubled where the interpolation would see more in it.
    private static func interpolated(_ text: String) -> String {
        let dollar = UInt8(ascii: "$")
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            result.append(byte)
            guard byte == dollar, index + 1 < bytes.count else { continue }
            if bytes[index + 1] == dollar || bytes[index + 1] == UInt8(ascii: "{") { result.append(dollar) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The text in double quotes. YAML 1.2 §5.7.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where isPrintable(scalar): result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return result + "\""
    }

    /// Whether YAML allows the character as it is, and no reader takes it for the end of a line. YAML 1.2 §5.1.
    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20...0x7E, 0xA0...0x2027, 0x202F...0x205F, 0x2070...0xD7FF, 0xE000...0xFEFE, 0xFF00...0xFFFD: true
        default: false
        }
    }
}

/// A whole file in YAML.
package enum YamlDocument {
    /// The file with the entries of a map, whose texts are as a file has them, variables included. Parts are apart by an empty line.
    package static func text(_ node: ConfigNode) -> String {
        guard let entries = node.entries else { return YamlText.flow(node, .written) + "\n" }
        var text = ""
        for entry in entries {
            let lines = YamlText.lines(entry.key, entry.value, .written)
            if !text.isEmpty, lines.count > 1 { text += "\n" }
            text += lines.joined(separator: "\n") + "\n"
        }
        return text
    }
}
