/// One word of a Caddyfile.
struct CaddyfileToken: Equatable, Sendable {
    /// The text without its quotes.
    var text: String
    /// The file as it was named.
    var file: String
    /// The line in which the word begins, from 1.
    var line: Int
    /// Whether the word stood in quotes, in backticks, or was a heredoc: then a brace in it is no block.
    var isQuoted = false
    /// Whether the word is the first of its line.
    var isFirst = false

    /// Whether it opens a block.
    var opens: Bool { text == "{" && !isQuoted }
    /// Whether it closes a block.
    var closes: Bool { text == "}" && !isQuoted }
}

/// A directive of a Caddyfile, with the block behind it.
struct CaddyfileSegment: Sendable {
    /// The words of the line, the directive's name first; never empty.
    var words: [CaddyfileToken]
    /// The directives in its braces; `nil` without braces.
    var block: [CaddyfileSegment]?

    /// The directive's name.
    var name: String { words.first?.text ?? "" }
    /// The words after the name.
    var arguments: [String] { words.dropFirst().map(\.text) }
    /// The file in which it stands.
    var file: String { words.first?.file ?? "" }
    /// The line in which it begins.
    var line: Int { words.first?.line ?? 0 }
    /// The words as they would be written, for notes: without the block.
    var shown: String { words.map(\.text).joined(separator: " ") }
}

/// A fault by which a file of another program cannot be read at all.
struct CaddyfileFault: Error, Equatable {
    /// The file as it was named.
    var file: String
    /// The line, from 1.
    var line: Int
    /// What is wrong, in lower case.
    var reason: String
}
