/// Splits a Caddyfile into words, by the rules of Caddy's own lexer: quotes, backticks, heredocs, comments, and lines that
/// continue after a backslash.
///
/// `{$NAME:default}` becomes its default. Without a default it stays in the words as written, because an import knows no environment.
struct CaddyfileLexer {
    /// The maximum number of words in one file.
    static let mostWords = 200_000

    private let bytes: [UInt8]
    private let file: String
    private var position = 0
    private var line = 1
    private var tokens: [CaddyfileToken] = []
    /// The variables of the environment.
    private(set) var variables: [Variable] = []

    /// A variable of the environment, with its line.
    struct Variable: Sendable {
        var name: String
        var line: Int
        /// Whether its default was taken.
        var hasDefault: Bool
    }

    /// The words of the file, and its variables.
    static func read(
        _ bytes: [UInt8], file: String
    ) throws(CaddyfileFault) -> (tokens: [CaddyfileToken], variables: [Variable]) {
        var lexer = CaddyfileLexer(bytes, file: file)
        while let token = try lexer.next() {
            guard lexer.tokens.count < mostWords else { throw lexer.fault("more than \(mostWords) words") }
            lexer.tokens.append(token)
        }
        return (lexer.tokens, lexer.variables)
    }

    private init(_ bytes: [UInt8], file: String) {
        self.file = file
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var found: [Variable] = []
        self.bytes = Self.withDefaults(bytes.starts(with: mark) ? Array(bytes.dropFirst(3)) : bytes, &found)
        variables = found
    }

    /// Puts the default in place of each `{$NAME:default}`.
    private static func withDefaults(_ bytes: [UInt8], _ found: inout [Variable]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var position = 0
        var line = 1
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\n") { line += 1 }
            if byte == UInt8(ascii: "{"), position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "$"),
                let end = bytes[position...].prefix(1024).firstIndex(of: UInt8(ascii: "}"))
            {
                let name = bytes[(position + 2)..<end].prefix { $0 != UInt8(ascii: ":") }
                guard name.endIndex < end else {
                    found.append(Variable(name: String(decoding: name, as: UTF8.self), line: line, hasDefault: false))
                    result.append(byte)
                    position += 1
                    continue
                }
                let colon = name.endIndex
                found.append(Variable(name: String(decoding: name, as: UTF8.self), line: line, hasDefault: true))
                result += bytes[(colon + 1)..<end]
                line += bytes[position..<end].count { $0 == UInt8(ascii: "\n") }
                position = end + 1
                continue
            }
            result.append(byte)
            position += 1
        }
        return result
    }

    private func fault(_ reason: String) -> CaddyfileFault { CaddyfileFault(file: file, line: line, reason: reason) }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private mutating func next() throws(CaddyfileFault) -> CaddyfileToken? {
        var isFirst = tokens.isEmpty
        // Spaces, line ends, escaped line ends, comments.
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\\"), let end = lineEnd(after: position + 1) {
                position = end
                line += 1
            } else if byte == UInt8(ascii: "\n") {
                line += 1
                position += 1
                isFirst = true
            } else if isSpace(byte) {
                position += 1
            } else if byte == UInt8(ascii: "#") {
                position = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            } else {
                break
            }
        }
        guard position < bytes.count else { return nil }
        var token = CaddyfileToken(text: "", file: file, line: line, isFirst: isFirst)
        switch bytes[position] {
        case UInt8(ascii: "\""): token.text = try quoted()
        case UInt8(ascii: "`"): token.text = try literal()
        default:
            let start = position
            let word = plain()
            if bytes[start] == UInt8(ascii: "<"), let text = try heredoc(word) {
                token.text = text
            } else {
                token.text = word
                return token
            }
        }
        token.isQuoted = true
        return token
    }

    /// The place after the line end that stands here, if one does.
    private func lineEnd(after place: Int) -> Int? {
        guard place < bytes.count else { return nil }
        if bytes[place] == UInt8(ascii: "\n") { return place + 1 }
        guard bytes[place] == UInt8(ascii: "\r"), place + 1 < bytes.count, bytes[place + 1] == UInt8(ascii: "\n")
        else { return nil }
        return place + 2
    }

    /// A text in quotes, in which a backslash escapes a quote and nothing else.
    private mutating func quoted() throws(CaddyfileFault) -> String {
        let start = line
        position += 1
        var text: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
            if byte == UInt8(ascii: "\\"), position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
                text.append(bytes[position])
                position += 1
                continue
            }
            if byte == UInt8(ascii: "\\"), position < bytes.count, bytes[position] == UInt8(ascii: "\\") {
                // The second one is not an escape: `"a\\"` ends here.
                text += [byte, byte]
                position += 1
                continue
            }
            if byte == UInt8(ascii: "\n") { line += 1 }
            text.append(byte)
        }
        throw CaddyfileFault(file: file, line: start, reason: "a quote is not closed")
    }

    private mutating func literal() throws(CaddyfileFault) -> String {
        let start = position + 1
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "`")) else {
            throw fault("a backtick is not closed")
        }
        line += bytes[start..<end].count { $0 == UInt8(ascii: "\n") }
        position = end + 1
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func plain() -> String {
        let start = position
        while position < bytes.count, !isSpace(bytes[position]) {
            if bytes[position] == UInt8(ascii: "\\"), lineEnd(after: position + 1) != nil { break }
            position += 1
        }
        var word = bytes[start..<position]
        if word.starts(with: Array("\\<<".utf8)) { word = word.dropFirst() }
        return String(decoding: word, as: UTF8.self)
    }

    /// The text of a heredoc, if `word` begins one; its lines lose what stands before the closing marker.
    private mutating func heredoc(_ word: String) throws(CaddyfileFault) -> String? {
        let marker = Array(word.utf8.dropFirst(2))
        guard word.hasPrefix("<<"), !marker.isEmpty, let start = lineEnd(after: position) else { return nil }
        let isMarker = { (byte: UInt8) in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
        guard marker.allSatisfy(isMarker) else { throw fault("the marker of a heredoc is invalid: \(word)") }
        var lines: [[UInt8]] = []
        var from = start
        let first = line
        line += 1
        while from <= bytes.count {
            let end = bytes[from...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            var text = Array(bytes[from..<end])
            if text.last == UInt8(ascii: "\r") { text.removeLast() }
            let padding = text.prefix { $0 == 0x20 || $0 == 0x09 }
            if text.dropFirst(padding.count).starts(with: marker) {
                position = from + padding.count + marker.count
                let joined = lines.map { line in line.starts(with: padding) ? line.dropFirst(padding.count) : line[...]
                }
                .joined(separator: [UInt8(ascii: "\n")])
                return String(decoding: Array(joined), as: UTF8.self)
            }
            lines.append(text)
            if end == bytes.count { break }
            from = end + 1
            line += 1
        }
        throw CaddyfileFault(file: file, line: first, reason: "a heredoc is not closed: \(word)")
    }
}
