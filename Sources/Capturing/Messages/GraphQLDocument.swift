/// Reads the names of the operations in a GraphQL document, without parsing their selections. GraphQL §2.3.
enum GraphQLDocument {
    /// The names, in order; `nil` if the text does not begin like a document.
    static func names(_ text: String) -> [String]? {
        var names: [String] = []
        var isFirst = true
        var depth = 0
        var awaitsName = false
        var lexer = Lexer(text)
        while let token = lexer.next() {
            switch token {
            case .name(let word):
                if awaitsName {
                    names.append(word)
                    awaitsName = false
                } else if depth == 0, ["query", "mutation", "subscription"].contains(word) {
                    awaitsName = true
                } else if isFirst, word != "fragment" {
                    return nil
                }
            case .mark(let mark):
                if isFirst, mark != 0x7b { return nil }
                awaitsName = false
                if mark == 0x7b || mark == 0x28 || mark == 0x5b { depth += 1 }
                if mark == 0x7d || mark == 0x29 || mark == 0x5d { depth = max(0, depth - 1) }
            }
            isFirst = false
        }
        // A single word may be anything.
        return isFirst || awaitsName ? nil : names
    }

    private enum Token {
        case name(String)
        case mark(UInt8)
    }

    private struct Lexer {
        private let bytes: [UInt8]
        private var at = 0

        init(_ text: String) { bytes = Array(text.utf8) }

        /// The next name or mark; skips space, comments, strings and numbers.
        mutating func next() -> Token? {
            while at < bytes.count {
                let byte = bytes[at]
                if byte == 0x23 {
                    while at < bytes.count, bytes[at] != 0x0a { at += 1 }
                } else if byte == 0x22 {
                    skipString()
                } else if Lexer.isOfName(byte), !(0x30...0x39).contains(byte) {
                    let start = at
                    while at < bytes.count, Lexer.isOfName(bytes[at]) { at += 1 }
                    return .name(String(decoding: bytes[start..<at], as: UTF8.self))
                } else if byte <= 0x20 || byte == 0x2c || (0x30...0x39).contains(byte) || byte >= 0x80 {
                    at += 1
                } else {
                    at += 1
                    return .mark(byte)
                }
            }
            return nil
        }

        private mutating func skipString() {
            let isBlock = bytes[at...].starts(with: [0x22, 0x22, 0x22])
            at += isBlock ? 3 : 1
            while at < bytes.count {
                if bytes[at] == 0x5c {
                    at = min(at + 2, bytes.count)
                } else if isBlock ? bytes[at...].starts(with: [0x22, 0x22, 0x22]) : bytes[at] == 0x22 {
                    at += isBlock ? 3 : 1
                    return
                } else {
                    at += 1
                }
            }
        }

        private static func isOfName(_ byte: UInt8) -> Bool {
            (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x5f
        }
    }
}
