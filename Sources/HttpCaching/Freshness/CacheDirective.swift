/// One member of `Cache-Control`: `name`, `name=token` or `name="quoted string"`. RFC 9111 §5.2.
struct CacheDirective: Equatable {
    /// The name in lower case.
    let name: String
    /// The argument without quotes and escapes; `nil` if there is no argument.
    let argument: String?
    /// Whether the member follows the grammar. A malformed restriction still applies, but a malformed permission grants
    /// nothing.
    let isWellFormed: Bool

    /// The directives of all lines, in order. Commas in quoted strings are not separators, and single quotes do not
    /// quote.
    static func list(_ lines: [String]) -> [CacheDirective] {
        lines.flatMap { line in members(Array(line.utf8)).compactMap(CacheDirective.init) }
    }

    init(name: String, argument: String?, isWellFormed: Bool) {
        self.name = name
        self.argument = argument
        self.isWellFormed = isWellFormed
    }

    /// Parses a member; `nil` if it has no name.
    private init?(_ member: ArraySlice<UInt8>) {
        let text = CacheDirective.trim(member)
        let nameEnd = text.firstIndex { !CacheDirective.isToken($0) } ?? text.endIndex
        guard nameEnd > text.startIndex else { return nil }
        name = String(decoding: text[..<nameEnd], as: UTF8.self).lowercased()
        let rest = text[nameEnd...]
        if rest.isEmpty {
            (argument, isWellFormed) = (nil, true)
        } else if rest.first == 0x3d {
            (argument, isWellFormed) = CacheDirective.argument(rest.dropFirst())
        } else {
            (argument, isWellFormed) = (nil, false)
        }
    }

    private static func argument(_ text: ArraySlice<UInt8>) -> (String?, Bool) {
        guard text.first == 0x22 else {
            let isToken = !text.isEmpty && text.allSatisfy(isToken)
            return (isToken ? String(decoding: text, as: UTF8.self) : nil, isToken)
        }
        var value: [UInt8] = []
        var isEscaped = false
        var index = text.startIndex + 1
        while index < text.endIndex {
            let byte = text[index]
            index += 1
            if isEscaped {
                value.append(byte)
                isEscaped = false
            } else if byte == 0x5c {
                isEscaped = true
            } else if byte == 0x22 {
                return (String(decoding: value, as: UTF8.self), index == text.endIndex)
            } else {
                value.append(byte)
            }
        }
        return (nil, false)  // the quoted string does not end
    }

    /// The parts between commas outside quoted strings.
    private static func members(_ line: [UInt8]) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var isQuoted = false
        var isEscaped = false
        for (index, byte) in line.enumerated() {
            if isEscaped {
                isEscaped = false
            } else if isQuoted && byte == 0x5c {
                isEscaped = true
            } else if byte == 0x22 {
                isQuoted.toggle()
            } else if byte == 0x2c, !isQuoted {
                members.append(line[start..<index])
                start = index + 1
            }
        }
        members.append(line[start...])
        return members
    }

    private static func trim(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text
        while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
        return text
    }

    /// Whether the byte is a `tchar`, RFC 9110 §5.6.2.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e...0x60, 0x7c, 0x7e: true
        default: false
        }
    }
}
