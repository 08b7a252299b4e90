import HttpWare

/// A word of a file of nginx: text whose escapes and quotes are resolved.
struct NginxWord: Hashable, Sendable {
    /// The text.
    var text: String
    /// Whether it was written in quotes.
    var isQuoted = false
}

/// A directive of a file of nginx, with its block if it has one.
struct NginxDirective: Sendable {
    /// The name, such as `proxy_pass`.
    var name: String
    /// The words after the name.
    var arguments: [NginxWord]
    /// The place of the name.
    var place: SourceLocation
    /// The number of the directive among all, in the order in which nginx reads them.
    var order = 0
    /// The directives of the block; `nil` if it ends with a semicolon. Blocks of Lua are empty.
    var block: [NginxDirective]?

    /// The texts of the arguments.
    var words: [String] { arguments.map(\.text) }

    /// The first argument, or an empty text.
    var first: String { arguments.first?.text ?? "" }

    /// The directive on one line, as it is shown in notes.
    var shown: String {
        let words = [name] + arguments.map { $0.isQuoted ? "\"\($0.text)\"" : $0.text }
        return words.joined(separator: " ") + (block == nil ? ";" : " {…}")
    }
}

/// Why a file of nginx cannot be read.
struct NginxFault: Error, Equatable {
    /// The place of the mistake.
    var place: SourceLocation
    /// The reason, in lower case.
    var reason: String
}
