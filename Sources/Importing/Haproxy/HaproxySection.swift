import HttpWare

/// A line of a file of HAProxy.
struct HaproxyLine: Sendable {
    /// The words, without quotes and escapes.
    var words: [String]
    /// The place of the first word.
    var place: SourceLocation
    /// The line as it is shown in notes.
    var shown: String

    /// The keyword.
    var name: String { words.first ?? "" }

    /// The words after the keyword.
    var arguments: ArraySlice<String> { words.dropFirst() }

    /// Whether the first words are these.
    func begins(with words: [String]) -> Bool { self.words.starts(with: words) }
}

/// A section of a file of HAProxy with its lines.
struct HaproxySection: Sendable {
    /// The kind, such as `frontend`.
    var kind: String
    /// The name; empty without one.
    var name: String
    /// The line that begins the section.
    var place: SourceLocation
    /// The lines; those of `defaults` come first.
    var lines: [HaproxyLine]

    /// The bounds of one import.
    private enum Limit {
        static let sections = 10_000
        static let lines = 200_000
        static let words = 2000
    }

    /// The kinds of sections.
    private static let kinds: Set = [
        "global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "resolvers", "mailers", "cache",
        "program",
        "http-errors", "ring", "log-forward", "fcgi-app", "crt-store", "traces", "log-profile",
    ]

    /// The lines whose first words are these.
    func all(_ words: String...) -> [HaproxyLine] { lines.filter { $0.begins(with: words) } }

    /// The last such line, which is in force.
    func last(_ words: String...) -> HaproxyLine? { lines.last { $0.begins(with: words) } }

    /// The sections of files; lines before the first one are a section without a kind.
    static func read(_ sources: [ImportSource]) -> (sections: [HaproxySection], fault: (SourceLocation, String)?) {
        var sections: [HaproxySection] = []
        var count = 0
        for source in sources {
            var number = 0
            for line in source.bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
                number += 1
                let place = SourceLocation(file: source.name, line: number, column: 1)
                guard let words = words(Array(line)) else { return (sections, (place, "a quoted text has no end")) }
                guard let first = words.first else { continue }
                count += 1
                guard count <= Limit.lines, words.count <= Limit.words else {
                    return (sections, (place, "more than \(Limit.lines) lines or \(Limit.words) words"))
                }
                if kinds.contains(first), first != "cache" || words.count == 2 {
                    guard sections.count < Limit.sections else {
                        return (sections, (place, "more than \(Limit.sections) sections"))
                    }
                    sections.append(
                        HaproxySection(kind: first, name: words.count > 1 ? words[1] : "", place: place, lines: []))
                    if words.count > 2 {
                        // `listen name address:port` of old, and `from defaults`.
                        let rest = Array(words.dropFirst(2))
                        sections[sections.count - 1].lines.append(
                            HaproxyLine(
                                words: rest.first == "from" ? rest : ["bind"] + rest, place: place,
                                shown: words.joined(separator: " ")))
                    }
                    continue
                }
                if sections.isEmpty { sections.append(HaproxySection(kind: "", name: "", place: place, lines: [])) }
                sections[sections.count - 1].lines.append(
                    HaproxyLine(words: words, place: place, shown: words.joined(separator: " ")))
            }
        }
        return (sections, nil)
    }

    /// The words of a line: separated by blanks, with quotes and backslashes, up to `#`. `nil` if a quote has no end.
    static func words(_ line: [UInt8]) -> [String]? {
        var words: [String] = []
        var word: [UInt8] = []
        var isWord = false
        var quote: UInt8 = 0
        var index = 0
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == UInt8(ascii: "\r") }
        while index < line.count {
            let byte = line[index]
            index += 1
            if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'"), index < line.count {
                let next = line[index]
                isWord = true
                let escapes: [UInt8: UInt8] = [
                    UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): UInt8(ascii: "\r"), UInt8(ascii: "t"): 0x09,
                ]
                if let control = escapes[next], quote == 0 {
                    word.append(control)
                } else if isBlank(next) || "\\\"'#$".utf8.contains(next) {
                    word.append(next)
                } else {
                    word += [byte, next]
                }
                index += 1
            } else if quote != 0 {
                if byte == quote { quote = 0 } else { word.append(byte) }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
                isWord = true
            } else if byte == UInt8(ascii: "#") {
                break
            } else if isBlank(byte) {
                if isWord { words.append(String(decoding: word, as: UTF8.self)) }
                word = []
                isWord = false
            } else {
                word.append(byte)
                isWord = true
            }
        }
        guard quote == 0 else { return nil }
        if isWord { words.append(String(decoding: word, as: UTF8.self)) }
        return words
    }
}
