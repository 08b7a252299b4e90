/// The order in which Caddy runs directives, whatever their order in the file.
struct CaddyOrder: Sendable {
    /// The directives, the first to run first.
    private(set) var names = [
        "tracing", "map", "vars", "fs", "root", "log_append", "skip_log", "log_skip", "log_name", "header",
        "copy_response_headers", "request_body", "timeouts", "redir", "method", "rewrite", "uri", "try_files",
        "basicauth", "basic_auth", "forward_auth", "request_header", "encode", "push", "intercept", "templates",
        "invoke",
        "handle", "handle_path", "route", "abort", "error", "copy_response", "respond", "metrics", "reverse_proxy",
        "php_fastcgi", "file_server", "acme_server",
    ]

    /// Obeys a global option `order NAME first|last|before|after [OTHER]`; `false` if it is none.
    mutating func apply(_ arguments: [String]) -> Bool {
        guard arguments.count >= 2 else { return false }
        let name = arguments[0]
        var rest = names.filter { $0 != name }
        switch arguments[1] {
        case "first": rest.insert(name, at: 0)
        case "last": rest.append(name)
        case "before", "after":
            guard arguments.count == 3, let index = rest.firstIndex(of: arguments[2]) else { return false }
            rest.insert(name, at: arguments[1] == "before" ? index : index + 1)
        default: return false
        }
        names = rest
        return true
    }

    /// The directives in the order in which they run: by the order of their names, then the longer path first, then those with
    /// a matcher first.
    func sorted(_ segments: [CaddyfileSegment], _ matchers: CaddyMatchers) -> [CaddyfileSegment] {
        struct Keyed {
            var segment: CaddyfileSegment
            var name: String
            var position: Int
            var path: String?
            var hasMatcher: Bool
            var index: Int
        }
        let keyed = segments.enumerated().map { index, segment in
            let name = segment.name == "handle_path" ? "handle" : segment.name
            let token = CaddyDirective(segment).matcher
            var path: String?
            if let token, token.hasPrefix("/") {
                path = token
            } else if let token, token.hasPrefix("@"), let named = matchers.named[String(token.dropFirst())] {
                path = Self.onlyPath(named)
            }
            return Keyed(
                segment: segment, name: name, position: names.firstIndex(of: name) ?? names.count, path: path,
                hasMatcher: token != nil && token != "*", index: index)
        }
        func precedes(_ left: Keyed, _ right: Keyed) -> Bool {
            if let first = left.path, let second = right.path {
                let trimmed = (
                    first.hasSuffix("*") ? first.dropLast() : first[...],
                    second.hasSuffix("*") ? second.dropLast() : second[...]
                )
                if trimmed.0 == trimmed.1 { return first.utf8.count < second.utf8.count }
                if trimmed.0.utf8.count == trimmed.1.utf8.count { return trimmed.0 < trimmed.1 }
                return trimmed.0.utf8.count > trimmed.1.utf8.count
            }
            return left.hasMatcher && !right.hasMatcher
        }
        // A stable sort: the relation is no strict order where some have paths and others have not.
        return keyed.sorted { left, right in
            if left.position != right.position { return left.position < right.position }
            if precedes(left, right) != precedes(right, left) { return precedes(left, right) != (left.name == "vars") }
            return left.index < right.index
        }.map(\.segment)
    }

    /// The path of a definition that has one path and nothing else.
    private static func onlyPath(_ segment: CaddyfileSegment) -> String? {
        if segment.words.count == 3, segment.words[1].text == "path" { return segment.words[2].text }
        guard segment.words.count == 1, let block = segment.block else { return nil }
        let paths = block.filter { $0.name == "path" }
        guard paths.count == 1, paths[0].arguments.count == 1 else { return nil }
        return paths[0].arguments[0]
    }
}

/// A directive with its matcher told from its arguments.
struct CaddyDirective {
    /// The directive as it stands in the file.
    let segment: CaddyfileSegment
    /// The matcher: `*`, `/path`, `@name`; `nil` if it has none.
    let matcher: String?
    /// The words after the matcher.
    let words: [CaddyfileToken]

    /// Directives that take no matcher.
    private static let withoutMatcher: Set<String> = [
        "try_files", "tls", "bind", "log", "handle_errors", "invoke", "map", "log_append",
    ]

    /// Tells the matcher of a directive.
    init(_ segment: CaddyfileSegment) {
        self.segment = segment
        let words = Array(segment.words.dropFirst())
        var isMatcher = false
        if let first = words.first, !Self.withoutMatcher.contains(segment.name) {
            isMatcher = first.text == "*" || first.text.hasPrefix("/") || (first.text.hasPrefix("@") && !first.isQuoted)
            // With one word, these directives have a value and no matcher.
            if words.count == 1, ["root", "rewrite", "redir"].contains(segment.name), first.text.hasPrefix("/") {
                isMatcher = false
            }
        }
        matcher = isMatcher ? words.first?.text : nil
        self.words = isMatcher ? Array(words.dropFirst()) : words
    }

    /// The texts of the words.
    var arguments: [String] { words.map(\.text) }
}
