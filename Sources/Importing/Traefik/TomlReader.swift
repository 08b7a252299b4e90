// One file: the grammar of TOML has many small forms, and each is read by a few lines.
import HttpWare

/// Reads TOML 1.0 into the tree that YAML files become, each value with its place.
///
/// All scalars are texts. Numbers, booleans and dates are texts without quotes, as written.
struct TomlReader {
    /// The limits of one file, so that no file can exhaust memory or stack.
    enum Limit {
        static let bytes = 4 << 20
        static let depth = 64
        static let values = 100_000
    }

    /// Why a text is not TOML, and where.
    struct Fault: Error, Equatable {
        /// The line, from 1.
        var line: Int
        /// What is wrong, in lower case.
        var reason: String
    }

    /// A table while it is read.
    private final class Table {
        var entries: [(key: String, location: SourceLocation, value: Value)] = []
        var indices: [String: Int] = [:]
        let location: SourceLocation
        /// Whether a header or an inline table defined it, so that nothing may define it again.
        var isDefined = false
        /// Whether dotted keys made it, so that no header may name it.
        var isDotted = false
        var isInline = false

        init(at location: SourceLocation) { self.location = location }

        subscript(key: String) -> Value? { indices[key].map { entries[$0].value } }

        func add(_ key: String, _ location: SourceLocation, _ value: Value) {
            indices[key] = entries.count
            entries.append((key, location, value))
        }
    }

    private final class Tables {
        var members: [Table] = []
    }

    private enum Value {
        case node(ConfigNode)
        case table(Table)
        case tables(Tables)
    }

    private let bytes: [UInt8]
    private let file: String
    private var position = 0
    private var line = 1
    private var lineStart = 0
    private var values = 0

    /// Reads the text. Throws if it is not TOML or exceeds a limit.
    static func read(_ bytes: [UInt8], file: String) throws(Fault) -> ConfigNode {
        guard bytes.count <= Limit.bytes else { throw Fault(line: 1, reason: "more than \(Limit.bytes >> 20) MiB") }
        var reader = TomlReader(bytes, file: file)
        return try reader.readAll()
    }

    private init(_ bytes: [UInt8], file: String) {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        self.bytes = bytes.starts(with: mark) ? Array(bytes.dropFirst(3)) : bytes
        self.file = file
    }

    private var here: SourceLocation { SourceLocation(file: file, line: line, column: position - lineStart + 1) }
    private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func fault(_ reason: String) -> Fault { Fault(line: line, reason: reason) }

    private func at(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    }

    // MARK: Lines

    private mutating func readAll() throws(Fault) -> ConfigNode {
        let root = Table(at: here)
        var table = root
        while true {
            try skipBlank(withLines: true)
            guard let byte else { break }
            if byte == UInt8(ascii: "[") {
                table = try readHeader(root)
            } else {
                try readEntry(into: table, 0)
            }
            try skipBlank(withLines: false)
            guard self.byte == nil || isLineEnd else { throw fault("a line has more than one value") }
        }
        return try node(of: root, 0)
    }

    private var isLineEnd: Bool { byte == UInt8(ascii: "\n") || at("\r\n") }

    /// Skips spaces, comments and, if asked, line ends.
    private mutating func skipBlank(withLines: Bool) throws(Fault) {
        while let byte {
            switch byte {
            case 0x20, 0x09: position += 1
            case UInt8(ascii: "#"):
                while let byte = self.byte, byte != UInt8(ascii: "\n") {
                    guard byte >= 0x20 || byte == 0x09 || byte == 0x0D else {
                        throw fault("a comment holds a control character")
                    }
                    position += 1
                }
            case UInt8(ascii: "\n") where withLines, 0x0D where withLines && isLineEnd:
                position += byte == 0x0D ? 2 : 1
                newLine()
            default: return
            }
        }
    }

    private mutating func newLine() {
        line += 1
        lineStart = position
    }

    private mutating func readHeader(_ root: Table) throws(Fault) -> Table {
        let place = here
        let isArray = at("[[")
        position += isArray ? 2 : 1
        let keys = try readKeys()
        guard isArray ? at("]]") : byte == UInt8(ascii: "]") else { throw fault("a header is not closed") }
        position += isArray ? 2 : 1
        var table = root
        for key in keys.dropLast() { table = try step(into: key, of: table, place) }
        guard let last = keys.last else { throw fault("a header has no name") }
        if isArray {
            let member = Table(at: place)
            member.isDefined = true
            switch table[last] {
            case nil:
                let tables = Tables()
                tables.members = [member]
                table.add(last, place, .tables(tables))
            case .tables(let tables): tables.members.append(member)
            default: throw fault("\(last) is not an array of tables")
            }
            try count()
            return member
        }
        switch table[last] {
        case nil:
            let made = Table(at: place)
            made.isDefined = true
            table.add(last, place, .table(made))
            try count()
            return made
        case .table(let made) where !made.isDefined && !made.isDotted && !made.isInline:
            made.isDefined = true
            return made
        default: throw fault("\(last) is defined twice")
        }
    }

    /// The table below `key`, which a header may lead through; it is made if it does not exist.
    private mutating func step(into key: String, of table: Table, _ place: SourceLocation) throws(Fault) -> Table {
        switch table[key] {
        case nil:
            let made = Table(at: place)
            table.add(key, place, .table(made))
            try count()
            return made
        case .table(let inner) where !inner.isInline: return inner
        case .tables(let tables):
            guard let last = tables.members.last else { throw fault("\(key) is not a table") }
            return last
        default: throw fault("\(key) is not a table")
        }
    }

    private mutating func readEntry(into table: Table, _ depth: Int) throws(Fault) {
        let place = here
        let keys = try readKeys()
        try skipBlank(withLines: false)
        guard byte == UInt8(ascii: "=") else { throw fault("a key has no = after it") }
        position += 1
        try skipBlank(withLines: false)
        var table = table
        for key in keys.dropLast() {
            switch table[key] {
            case nil:
                let made = Table(at: place)
                made.isDotted = true
                table.add(key, place, .table(made))
                try count()
                table = made
            case .table(let inner) where inner.isDotted && !inner.isInline: table = inner
            default: throw fault("\(key) is defined elsewhere")
            }
        }
        guard let last = keys.last else { throw fault("a key is missing") }
        guard table[last] == nil else { throw fault("\(last) is defined twice") }
        table.add(last, place, try readValue(depth + keys.count))
    }

    private mutating func count() throws(Fault) {
        values += 1
        if values > Limit.values { throw fault("more than \(Limit.values) values") }
    }

    // MARK: Keys

    private mutating func readKeys() throws(Fault) -> [String] {
        var keys: [String] = []
        while true {
            try skipBlank(withLines: false)
            switch byte {
            case UInt8(ascii: "\""): keys.append(try basic())
            case UInt8(ascii: "'"): keys.append(try literal())
            default:
                let end = bytes[position...].firstIndex { !Self.isBare($0) } ?? bytes.count
                guard end > position else { throw fault("a key is missing") }
                keys.append(String(decoding: bytes[position..<end], as: UTF8.self))
                position = end
            }
            if keys.count > Limit.depth { throw fault("a key has more than \(Limit.depth) parts") }
            try skipBlank(withLines: false)
            guard byte == UInt8(ascii: ".") else { return keys }
            position += 1
        }
    }

    private static func isBare(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    // MARK: Values

    private mutating func readValue(_ depth: Int) throws(Fault) -> Value {
        guard depth < Limit.depth else { throw fault("nested deeper than \(Limit.depth) levels") }
        try count()
        let place = here
        switch byte {
        case UInt8(ascii: "\""):
            let text = at("\"\"\"") ? try manyLines(UInt8(ascii: "\"")) : try basic()
            return .node(ConfigNode(.scalar(text, isQuoted: true), at: place))
        case UInt8(ascii: "'"):
            let text = at("'''") ? try manyLines(UInt8(ascii: "'")) : try literal()
            return .node(ConfigNode(.scalar(text, isQuoted: true), at: place))
        case UInt8(ascii: "["): return .node(try array(depth))
        case UInt8(ascii: "{"): return .table(try inlineTable(depth))
        default:
            var end = bytes[position...].firstIndex { !Self.isBare($0) && !"+.:".utf8.contains($0) } ?? bytes.count
            // A date may be separated from its time by a space.
            if end - position == 10, end + 2 < bytes.count, bytes[end] == 0x20, Self.isDate(bytes[position..<end]),
                (0x30...0x39).contains(bytes[end + 1])
            {
                end = bytes[(end + 1)...].firstIndex { !Self.isBare($0) && !"+.:".utf8.contains($0) } ?? bytes.count
            }
            let text = String(decoding: bytes[position..<end], as: UTF8.self)
            guard let value = Self.scalar(text) else { throw fault("a value is missing or has no known form") }
            position = end
            return .node(ConfigNode(.scalar(value, isQuoted: false), at: place))
        }
    }

    private static func isDate(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.count == 10
            && zip(bytes, "0000-00-00".utf8).allSatisfy { byte, form in
                form == UInt8(ascii: "-") ? byte == form : (0x30...0x39).contains(byte)
            }
    }

    /// The text of a number without underscores, a boolean, a date or a time; `nil` for another text.
    static func scalar(_ text: String) -> String? {
        if ["true", "false", "inf", "+inf", "-inf", "nan", "+nan", "-nan"].contains(text) { return text }
        let bytes = Array(text.utf8)
        let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
        if isDate(bytes.prefix(10)) || (bytes.count >= 8 && bytes[2] == UInt8(ascii: ":") && isDigit(bytes[0])) {
            let time = bytes.dropFirst(isDate(bytes.prefix(10)) ? 10 : 0)
            return time.allSatisfy { isDigit($0) || "Tt Zz:.+-".utf8.contains($0) } ? text : nil
        }
        var digits = bytes[...]
        if digits.first == UInt8(ascii: "+") || digits.first == UInt8(ascii: "-") { digits = digits.dropFirst() }
        guard let first = digits.first, let last = digits.last, isDigit(first), last != UInt8(ascii: "_"),
            !text.contains("__")
        else { return nil }
        let plain = text.replacingBytes("_", by: "")
        if digits.count > 2, first == UInt8(ascii: "0"), "xob".utf8.contains(digits[digits.startIndex + 1]) {
            let radix = [UInt8(ascii: "x"): 16, UInt8(ascii: "o"): 8][digits[digits.startIndex + 1]] ?? 2
            guard digits.count == bytes.count, let number = Int(plain.dropFirst(2), radix: radix) else { return nil }
            return String(number)
        }
        if first == UInt8(ascii: "0"), digits.count > 1, isDigit(digits[digits.startIndex + 1]) { return nil }
        guard digits.allSatisfy({ isDigit($0) || "_.eE+-".utf8.contains($0) }), Double(plain) != nil,
            last != UInt8(ascii: "."), !text.contains(".e"), !text.contains(".E"), !text.contains("._"),
            !text.contains("_.")
        else { return nil }
        return plain
    }

    private mutating func array(_ depth: Int) throws(Fault) -> ConfigNode {
        let place = here
        position += 1
        var members: [ConfigNode] = []
        while true {
            try skipBlank(withLines: true)
            if byte == UInt8(ascii: "]") { break }
            switch try readValue(depth + 1) {
            case .node(let node): members.append(node)
            case .table(let table): members.append(try node(of: table, depth + 1))
            case .tables: throw fault("an array is invalid")
            }
            try skipBlank(withLines: true)
            if byte == UInt8(ascii: "]") { break }
            guard byte == UInt8(ascii: ",") else { throw fault("an array is not closed") }
            position += 1
        }
        position += 1
        return ConfigNode(.list(members), at: place)
    }

    private mutating func inlineTable(_ depth: Int) throws(Fault) -> Table {
        let table = Table(at: here)
        position += 1
        try skipBlank(withLines: false)
        if byte != UInt8(ascii: "}") {
            while true {
                try readEntry(into: table, depth + 1)
                try skipBlank(withLines: false)
                if byte == UInt8(ascii: "}") { break }
                guard byte == UInt8(ascii: ",") else { throw fault("an inline table is not closed") }
                position += 1
            }
        }
        position += 1
        table.isInline = true
        return table
    }

    private func node(of table: Table, _ depth: Int) throws(Fault) -> ConfigNode {
        guard depth <= Limit.depth * 2 else { throw fault("nested deeper than \(Limit.depth) levels") }
        var entries: [ConfigNode.Entry] = []
        for entry in table.entries {
            let value: ConfigNode
            switch entry.value {
            case .node(let node): value = node
            case .table(let table): value = try node(of: table, depth + 1)
            case .tables(let tables):
                var members: [ConfigNode] = []
                for table in tables.members { members.append(try node(of: table, depth + 1)) }
                value = ConfigNode(.list(members), at: entry.location)
            }
            entries.append(ConfigNode.Entry(key: entry.key, location: entry.location, value: value))
        }
        return ConfigNode(.map(entries), at: table.location)
    }

    // MARK: Texts

    private mutating func basic() throws(Fault) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 || byte == 0x09 else { throw fault("a text is not closed in its line") }
            position += 1
            if byte == UInt8(ascii: "\\") { try escape(into: &text) } else { text.append(byte) }
        }
        guard byte != nil else { throw fault("a text is not closed") }
        position += 1
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func literal() throws(Fault) -> String {
        let start = position + 1
        guard let end = bytes[start...].firstIndex(where: { $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\n") }),
            bytes[end] == UInt8(ascii: "'")
        else { throw fault("a text is not closed in its line") }
        position = end + 1
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func manyLines(_ quote: UInt8) throws(Fault) -> String {
        position += 3
        var text: [UInt8] = []
        if at("\r\n") { position += 1 }
        if byte == UInt8(ascii: "\n") {
            position += 1
            newLine()
        }
        while let byte {
            if byte == quote {
                let run = bytes[position...].prefix(6).prefix { $0 == quote }.count
                guard run < 3 else {
                    // One or two quotes may stand directly before the closing three.
                    let inside = min(run - 3, 2)
                    text += [UInt8](repeating: quote, count: inside)
                    position += inside + 3
                    return String(decoding: text, as: UTF8.self)
                }
                text += [UInt8](repeating: quote, count: run)
                position += run
                continue
            }
            position += 1
            if byte == UInt8(ascii: "\n") { newLine() }
            if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
                try escape(into: &text, inManyLines: true)
            } else if byte != 0x0D || self.byte != UInt8(ascii: "\n") {
                text.append(byte)
            }
        }
        throw fault("a text is not closed")
    }

    /// Reads what follows a backslash.
    private mutating func escape(into text: inout [UInt8], inManyLines: Bool = false) throws(Fault) {
        guard let byte else { throw fault("a text is not closed") }
        let simple: [UInt8: UInt8] = [
            UInt8(ascii: "b"): 8, UInt8(ascii: "t"): 9, UInt8(ascii: "n"): 10, UInt8(ascii: "f"): 12,
            UInt8(ascii: "r"): 13, UInt8(ascii: "\""): UInt8(ascii: "\""), UInt8(ascii: "\\"): UInt8(ascii: "\\"),
        ]
        if let made = simple[byte] {
            position += 1
            text.append(made)
            return
        }
        if byte == UInt8(ascii: "u") || byte == UInt8(ascii: "U") {
            let count = byte == UInt8(ascii: "u") ? 4 : 8
            position += 1
            guard position + count <= bytes.count,
                let code = UInt32(String(decoding: bytes[position..<(position + count)], as: UTF8.self), radix: 16),
                let scalar = Unicode.Scalar(code)
            else { throw fault("an escape is invalid") }
            position += count
            text += Array(String(Character(scalar)).utf8)
            return
        }
        // A backslash at the end of a line removes the line end and the spaces after it.
        let rest = bytes[position...].prefix { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        guard inManyLines, rest.endIndex < bytes.count, bytes[rest.endIndex] == UInt8(ascii: "\n") else {
            throw fault("an escape is invalid")
        }
        while let byte = self.byte, byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == UInt8(ascii: "\n") {
            position += 1
            if byte == UInt8(ascii: "\n") { newLine() }
        }
    }
}
