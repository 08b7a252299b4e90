import HttpWare

/// Reads the grammar of nginx: words, quotes, escapes, comments, blocks, and blocks of Lua, which are skipped.
///
/// It keeps its own stack, so that no nesting can exhaust the program's.
struct NginxParser {
    /// The bounds of one file.
    enum Limit {
        static let depth = 64
        static let directives = 100_000
        static let words = 2000
    }

    private enum Token {
        case word(NginxWord)
        case semicolon
        case open
        case close
        case end
    }

    private let file: String
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    /// The start of the line, for columns.
    private var lineStart = 0

    /// Reads a file.
    static func parse(_ bytes: [UInt8], file: String) throws(NginxFault) -> [NginxDirective] {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var parser = NginxParser(
            bytes: bytes.starts(with: mark) ? Array(bytes.dropFirst(mark.count)) : bytes, file: file)
        return try parser.parse()
    }

    private init(bytes: [UInt8], file: String) {
        self.bytes = bytes
        self.file = file
    }

    private var place: SourceLocation {
        SourceLocation(file: file, line: line, column: position - lineStart + 1)
    }

    private mutating func parse() throws(NginxFault) -> [NginxDirective] {
        // Each level has its directives and the one whose block it is.
        var levels: [[NginxDirective]] = [[]]
        var opened: [NginxDirective] = []
        var words: [NginxWord] = []
        var start = place
        var count = 0
        while true {
            skipBlank()
            let here = place
            let token = try next()
            switch token {
            case .word(let word):
                if words.isEmpty { start = here }
                words.append(word)
                guard words.count <= Limit.words else {
                    throw NginxFault(place: here, reason: "a directive has more than \(Limit.words) words")
                }
            case .semicolon, .open:
                guard let name = words.first?.text else {
                    throw NginxFault(place: here, reason: "a directive without a name")
                }
                count += 1
                guard count <= Limit.directives else {
                    throw NginxFault(place: here, reason: "more than \(Limit.directives) directives")
                }
                var directive = NginxDirective(name: name, arguments: Array(words.dropFirst()), place: start)
                words = []
                if case .open = token {
                    if name.hasSuffix("_by_lua_block") {
                        try skipLua(from: here)
                        directive.block = []
                        levels[levels.count - 1].append(directive)
                        continue
                    }
                    guard levels.count <= Limit.depth else {
                        throw NginxFault(place: here, reason: "blocks are nested deeper than \(Limit.depth) levels")
                    }
                    opened.append(directive)
                    levels.append([])
                } else {
                    levels[levels.count - 1].append(directive)
                }
            case .close:
                guard words.isEmpty else { throw NginxFault(place: here, reason: "a semicolon is missing before }") }
                guard var directive = opened.popLast(), let block = levels.popLast() else {
                    throw NginxFault(place: here, reason: "a } without {")
                }
                directive.block = block
                levels[levels.count - 1].append(directive)
            case .end:
                guard words.isEmpty else { throw NginxFault(place: start, reason: "the directive has no end") }
                if let last = opened.last { throw NginxFault(place: last.place, reason: "the block has no end") }
                return levels[0]
            }
        }
    }

    // MARK: Tokens

    private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func advance() {
        if byte == 0x0A {
            line += 1
            lineStart = position + 1
        }
        position += 1
    }

    private mutating func skipBlank() {
        while let byte {
            if byte == UInt8(ascii: "#") {
                while let byte = self.byte, byte != 0x0A { advance() }
            } else if Self.isBlank(byte) {
                advance()
            } else {
                return
            }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == UInt8(ascii: "\r")
    }

    private mutating func next() throws(NginxFault) -> Token {
        guard let first = byte else { return .end }
        switch first {
        case UInt8(ascii: ";"):
            advance()
            return .semicolon
        case UInt8(ascii: "{"):
            advance()
            return .open
        case UInt8(ascii: "}"):
            advance()
            return .close
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .word(try quoted(first))
        default: return .word(plain())
        }
    }

    private mutating func plain() -> NginxWord {
        var text: [UInt8] = []
        // `${name}` is part of a word.
        var followsDollar = false
        while let byte {
            if Self.isBlank(byte) || byte == UInt8(ascii: ";") || byte == UInt8(ascii: "{") && !followsDollar { break }
            if byte == UInt8(ascii: "\\") {
                text += escape()
                followsDollar = false
                continue
            }
            followsDollar = byte == UInt8(ascii: "$")
            text.append(byte)
            advance()
        }
        return NginxWord(text: String(decoding: text, as: UTF8.self))
    }

    private mutating func quoted(_ quote: UInt8) throws(NginxFault) -> NginxWord {
        let start = place
        var text: [UInt8] = []
        advance()
        while let byte {
            if byte == UInt8(ascii: "\\") {
                text += escape()
                continue
            }
            advance()
            if byte == quote {
                if let after = self.byte, !Self.isBlank(after), !";{)".utf8.contains(after) {
                    throw NginxFault(place: place, reason: "a space is missing after a quoted text")
                }
                return NginxWord(text: String(decoding: text, as: UTF8.self), isQuoted: true)
            }
            text.append(byte)
        }
        throw NginxFault(place: start, reason: "a quoted text has no end")
    }

    /// A backslash and the next byte: nginx resolves the escapes of quotes, of itself and of three control characters, and keeps
    /// all others.
    private mutating func escape() -> [UInt8] {
        advance()
        guard let next = byte else { return [UInt8(ascii: "\\")] }
        advance()
        switch next {
        case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"): return [next]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "r"): return [UInt8(ascii: "\r")]
        case UInt8(ascii: "n"): return [0x0A]
        default: return [UInt8(ascii: "\\"), next]
        }
    }

    // MARK: Lua

    /// Skips a block of Lua behind its `{`: braces in texts and comments of Lua do not count.
    private mutating func skipLua(from start: SourceLocation) throws(NginxFault) {
        var depth = 1
        while let byte {
            switch byte {
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"):
                depth -= 1
                if depth == 0 {
                    advance()
                    return
                }
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                skipLuaText(byte)
                continue
            case UInt8(ascii: "-") where position + 1 < bytes.count && bytes[position + 1] == byte:
                advance()
                advance()
                if let level = longBracket() {
                    skipLongBracket(level)
                } else {
                    while let byte = self.byte, byte != 0x0A { advance() }
                }
                continue
            case UInt8(ascii: "["):
                if let level = longBracket() {
                    skipLongBracket(level)
                    continue
                }
            default: break
            }
            advance()
        }
        throw NginxFault(place: start, reason: "a block of Lua has no end")
    }

    private mutating func skipLuaText(_ quote: UInt8) {
        advance()
        while let byte {
            advance()
            if byte == quote || byte == 0x0A { return }
            if byte == UInt8(ascii: "\\") { advance() }
        }
    }

    /// The number of `=` of `[==[` at this place; `nil` if there is no such bracket.
    private func longBracket() -> Int? {
        guard byte == UInt8(ascii: "[") else { return nil }
        var index = position + 1
        while index < bytes.count, bytes[index] == UInt8(ascii: "=") { index += 1 }
        return index < bytes.count && bytes[index] == UInt8(ascii: "[") ? index - position - 1 : nil
    }

    private mutating func skipLongBracket(_ level: Int) {
        let end = [UInt8(ascii: "]")] + [UInt8](repeating: UInt8(ascii: "="), count: level) + [UInt8(ascii: "]")]
        while position < bytes.count {
            if byte == UInt8(ascii: "]"), bytes[position...].starts(with: end) {
                for _ in end { advance() }
                return
            }
            advance()
        }
    }
}
