import HttpWare

/// An error in a file of credentials, with its position.
public struct FileMistake: Error, Equatable, Sendable {
    /// The line, from 1.
    public let line: Int
    /// The column in bytes, from 1.
    public let column: Int
    /// The message starts in lower case, and contains no secrets.
    public let message: String
}

/// Lines of `name:value`, between empty lines and comments that begin with `#`. White space around a line is ignored.
struct NamedLines {
    struct Line {
        let number: Int
        let name: String
        let value: String
        /// The column of the value.
        let column: Int
    }

    /// The maximum length of a name, in bytes.
    static let longestName = 255

    private(set) var lines: [Line] = []
    private(set) var mistakes: [FileMistake] = []

    init(_ bytes: [UInt8], form: String) {
        for (index, raw) in bytes.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
            let start = raw.firstIndex { !TextBytes.isSpace($0) } ?? raw.endIndex
            let line = raw[start...].dropLast(raw[start...].reversed().prefix { $0 <= 0x20 }.count)
            guard let first = line.first, first != 0x23 else { continue }
            func mistake(_ message: String) {
                mistakes.append(FileMistake(line: index + 1, column: start - raw.startIndex + 1, message: message))
            }
            guard let text = String(validating: line, as: UTF8.self),
                !line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f })
            else {
                mistake("the line is not UTF-8 text without control characters")
                continue
            }
            guard let colon = text.utf8.firstIndex(of: 0x3a), colon != text.startIndex else {
                mistake("the line does not have the form \(form)")
                continue
            }
            let name = String(text[..<colon])
            guard !name.utf8.contains(0x09) else {
                mistake("the name contains a tab")
                continue
            }
            guard name.utf8.count <= Self.longestName else {
                mistake("the name is longer than \(Self.longestName) bytes")
                continue
            }
            let value = String(text[text.utf8.index(after: colon)...])
            lines.append(
                Line(
                    number: index + 1, name: name, value: value,
                    column: start - raw.startIndex + name.utf8.count + 2))
        }
    }
}
