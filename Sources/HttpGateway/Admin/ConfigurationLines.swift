import GatewayConfig
import HttpWare

/// Shows the lines of a configuration file to people, without secrets and user information.
struct ConfigurationLines {
    /// The first column of a secret, by line.
    private var secrets: [Int: Int] = [:]
    /// The values with user information, by line.
    private var anonymous: [Int: [WrittenValue]] = [:]
    private let texts: [String]
    private let isRead: Bool

    /// For a file of a configuration; `nil` if the configuration on disk has errors. Then the values are unknown, and only the names of
    /// members are shown. `texts` are masked everywhere.
    init(of file: String, in configuration: GatewayConfiguration?, secrets texts: [String]) {
        isRead = configuration != nil
        self.texts = texts.filter { !$0.isEmpty }
        for value in configuration?.values ?? [] where value.location.file == file {
            let place = value.location
            if value.text == nil {
                secrets[place.line] = min(place.column, secrets[place.line] ?? place.column)
            } else if value.hidesUserInformation {
                anonymous[place.line, default: []].append(value)
            }
        }
    }

    /// The lines of the file's text.
    func masked(_ text: String) -> [String] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var masked = isRead ? hide(lines) : lines.map(nameOnly)
        for secret in texts { masked = masked.map { $0.replacing(secret, with: "***") } }
        return text.hasSuffix("\n") ? masked.dropLast() : masked
    }

    /// Lines without their secrets, each of which begins at a column of a line, from 1. The text of a block continues in the
    /// lines that are indented more.
    private func hide(_ lines: [Substring]) -> [String] {
        var depth: Int?
        return lines.enumerated().map { number, line in
            let indent = line.prefix { $0 == " " }.count
            if let deep = depth {
                if indent > deep || line.allSatisfy({ $0 == " " || $0 == "\r" }) { return "…" }
                depth = nil
            }
            guard let column = column(ofLine: number + 1, line) else { return Redaction.text(String(line)) }
            // Columns count Unicode scalars.
            let value = line.unicodeScalars.dropFirst(column - 1)
            // A quoted text may continue, too.
            if value.first == "|" || value.first == ">" || (value.first == "\"" && !value.dropFirst().contains("\"")) {
                depth = indent
            }
            return Redaction.text(String(line.unicodeScalars.prefix(column - 1))) + "***"
        }
    }

    /// The column from which a line is hidden; `nil` if it may be shown.
    private func column(ofLine number: Int, _ line: Substring) -> Int? {
        let hidden = (anonymous[number] ?? []).filter { isWrittenOtherwise($0, in: line) }.map(\.location.column)
        return (hidden + [secrets[number]].compactMap(\.self)).min()
    }

    /// Whether a line has a value with escapes, or only its beginning, so that a mark cannot be put in the right place: `http://u:p\u0040h`.
    private func isWrittenOtherwise(_ value: WrittenValue, in line: Substring) -> Bool {
        let written = line.unicodeScalars.dropFirst(value.location.column - 1)
        if written.first == "|" || written.first == ">" { return false }
        let isOpen = written.first == "\"" && !written.dropFirst().contains("\"")
        return isOpen || written.contains("\\") && !Redaction.text(String(line)).contains(value.text ?? "")
    }

    /// The part of a line that cannot contain a secret.
    private func nameOnly(_ line: Substring) -> String {
        let indent = line.prefix { $0 == " " || $0 == "-" }
        let name = line[indent.endIndex...].prefix { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
        guard line[name.endIndex...].first == ":" else { return indent + (line.count > indent.count ? "…" : "") }
        let rest = line[name.endIndex...].dropFirst().drop { $0 == " " || $0 == "\r" }
        return indent + name + (rest.isEmpty ? ":" : ": …")
    }
}
