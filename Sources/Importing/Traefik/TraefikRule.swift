import HttpWare

/// Reads the rule of a router of Traefik, in the grammar of version 2 and of version 3.
///
/// A matcher that is not known, and arguments that have no counterpart, become `RequestTest.unknown`, so that nothing is guessed.
struct TraefikRule {
    /// The bounds of one rule.
    enum Limit {
        static let bytes = 64 << 10
        static let depth = 32
    }

    /// The grammar of matchers.
    enum Syntax: Equatable, Sendable { case v2, v3 }

    private enum Token: Equatable {
        case open, close, comma, and, or, not
        case name(String)
        case text(String)
    }

    private struct Fault: Error {}

    private var tokens: [Token] = []
    private var cursor = 0
    private let syntax: Syntax
    private let rule: String

    /// The condition of a rule; an `unknown` with the whole rule if it cannot be read.
    static func read(_ rule: String, syntax: Syntax = .v3) -> RequestTest {
        guard rule.utf8.count <= Limit.bytes, let tokens = tokens(of: rule) else { return .unknown(rule) }
        var reader = TraefikRule(tokens: tokens, syntax: syntax, rule: rule)
        guard let test = try? reader.alternatives(0), reader.cursor == tokens.count else { return .unknown(rule) }
        return test.simplified()
    }

    private init(tokens: [Token], syntax: Syntax, rule: String) {
        self.tokens = tokens
        self.syntax = syntax
        self.rule = rule
    }

    // MARK: Words

    private static func tokens(of rule: String) -> [Token]? {
        var tokens: [Token] = []
        let bytes = Array(rule.utf8)
        var position = 0
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","):
                tokens.append(byte == UInt8(ascii: "(") ? .open : byte == UInt8(ascii: ")") ? .close : .comma)
                position += 1
            case UInt8(ascii: "!"):
                tokens.append(.not)
                position += 1
            case UInt8(ascii: "&"), UInt8(ascii: "|"):
                guard position + 1 < bytes.count, bytes[position + 1] == byte else { return nil }
                tokens.append(byte == UInt8(ascii: "&") ? .and : .or)
                position += 2
            case UInt8(ascii: "`"):
                guard let end = bytes[(position + 1)...].firstIndex(of: byte) else { return nil }
                tokens.append(.text(String(decoding: bytes[(position + 1)..<end], as: UTF8.self)))
                position = end + 1
            case UInt8(ascii: "\""):
                var text: [UInt8] = []
                position += 1
                while position < bytes.count, bytes[position] != byte {
                    // The escapes of Go's texts that stand for themselves; another one is not guessed.
                    if bytes[position] == UInt8(ascii: "\\") {
                        position += 1
                        guard position < bytes.count, "\\\"".utf8.contains(bytes[position]) else { return nil }
                    }
                    text.append(bytes[position])
                    position += 1
                }
                guard position < bytes.count else { return nil }
                position += 1
                tokens.append(.text(String(decoding: text, as: UTF8.self)))
            default:
                let end = bytes[position...].firstIndex { !PercentText.isUnreserved($0) } ?? bytes.count
                guard end > position else { return nil }
                tokens.append(.name(String(decoding: bytes[position..<end], as: UTF8.self)))
                position = end
            }
        }
        return tokens
    }

    // MARK: Grammar

    private var token: Token? { cursor < tokens.count ? tokens[cursor] : nil }

    private mutating func take(_ wanted: Token) -> Bool {
        guard token == wanted else { return false }
        cursor += 1
        return true
    }

    private mutating func alternatives(_ depth: Int) throws(Fault) -> RequestTest {
        guard depth < Limit.depth else { throw Fault() }
        var members = [try conjunction(depth)]
        while take(.or) { members.append(try conjunction(depth)) }
        return members.count == 1 ? members[0] : .any(members)
    }

    private mutating func conjunction(_ depth: Int) throws(Fault) -> RequestTest {
        var members = [try single(depth)]
        while take(.and) { members.append(try single(depth)) }
        return members.count == 1 ? members[0] : .all(members)
    }

    private mutating func single(_ depth: Int) throws(Fault) -> RequestTest {
        var isNegated = false
        while take(.not) { isNegated.toggle() }
        let test: RequestTest
        if take(.open) {
            test = try alternatives(depth + 1)
            guard take(.close) else { throw Fault() }
        } else {
            guard case .name(let name)? = token else { throw Fault() }
            cursor += 1
            guard take(.open) else { throw Fault() }
            var arguments: [String] = []
            while case .text(let text)? = token {
                arguments.append(text)
                cursor += 1
                if !take(.comma) { break }
            }
            guard take(.close) else { throw Fault() }
            test = matcher(name, arguments)
        }
        return isNegated ? .not(test) : test
    }

    // MARK: Matchers

    private func matcher(_ name: String, _ arguments: [String]) -> RequestTest {
        let whole = RequestTest.unknown(
            "\(name)(" + arguments.map { "`\($0)`" }.joined(separator: ", ") + ")")
        guard let first = arguments.first else { return whole }
        // Version 3 takes one value; version 2 takes several, of which one must match.
        let isPair = ["header", "headers", "headerregexp", "headersregexp", "query", "queryregexp"].contains(
            name.lowercased())
        if syntax == .v3, arguments.count > (isPair ? 2 : 1) { return whole }
        func each(_ make: (String) -> RequestTest) -> RequestTest { .any(arguments.map(make)) }
        switch name.lowercased() {
        case "host", "hostheader": return each { host($0) ?? whole }
        case "hostregexp": return each { hostExpression($0) ?? whole }
        case "path": return each { path($0, isPrefix: false) ?? whole }
        case "pathprefix": return each { path($0, isPrefix: true) ?? whole }
        case "pathregexp": return each { .path(.expression($0), ignoresCase: false) }
        case "method": return each { .method($0.uppercased()) }
        case "clientip": return each { .client($0) }
        case "header" where arguments.count == 2, "headers" where arguments.count == 2:
            return .header(first, RequestTest.literal(arguments[1]))
        case "headerregexp" where arguments.count == 2, "headersregexp" where arguments.count == 2:
            return .header(first, "~" + arguments[1])
        case "query" where syntax == .v3:
            return .query(first, arguments.count == 2 ? RequestTest.literal(arguments[1]) : nil)
        case "queryregexp" where arguments.count == 2: return .query(first, "~" + arguments[1])
        case "query":
            // All pairs must match, unlike the values of other matchers.
            let pairs = arguments.map { pair -> RequestTest in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                return .query(parts[0], parts.count == 2 ? RequestTest.literal(parts[1]) : nil)
            }
            return .all(pairs)
        default: return whole
        }
    }

    private func host(_ text: String) -> RequestTest? {
        let name = text.hasSuffix(".") ? String(text.dropLast()) : text
        return HostText.isName(name) ? .host(name) : nil
    }

    private func hostExpression(_ text: String) -> RequestTest? {
        var expression = text
        if syntax == .v2, text.contains("{") {
            // {subdomain:[a-z]+}.example.com
            guard let segments = Self.segments(of: text, unnamed: "[^.]+", escaping: PathTest.escapedLiteral) else {
                return nil
            }
            expression = "^" + segments + "$"
        }
        return RequestTest.host(matching: expression)
    }

    /// The expression for a text with named segments: `{id}` is `unnamed`, and `{id:expression}` the expression.
    private static func segments(of text: String, unnamed: String, escaping: (String) -> String) -> String? {
        var expression = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            expression += escaping(String(rest[..<open]))
            // The expression may hold braces of its own.
            var depth = 0
            var close: String.Index?
            for index in rest[open...].indices {
                if rest[index] == "{" { depth += 1 }
                if rest[index] == "}" { depth -= 1 }
                if depth == 0 {
                    close = index
                    break
                }
            }
            guard let close else { return nil }
            let inner = rest[rest.index(after: open)..<close]
            if let colon = inner.firstIndex(of: ":") {
                expression += "(?:" + inner[inner.index(after: colon)...] + ")"
            } else {
                expression += unnamed
            }
            rest = rest[rest.index(after: close)...]
        }
        return expression + escaping(String(rest))
    }

    private func path(_ text: String, isPrefix: Bool) -> RequestTest? {
        guard text.hasPrefix("/") else { return nil }
        if syntax == .v2, text.contains("{") {
            // Named segments: {id} is one segment, {id:expression} the expression.
            guard let segments = Self.segments(of: text, unnamed: "[^/]+", escaping: PathTest.escaped) else {
                return nil
            }
            let expression = "^" + segments + (isPrefix ? "" : "$")
            return .path(.expression(expression), ignoresCase: false)
        }
        return .path(isPrefix ? .prefix(text) : .exact(text), ignoresCase: false)
    }
}
