import HttpWare

/// The condition of an `if` of nginx as a condition on requests.
struct NginxCondition {
    let variables: NginxVariables

    /// The condition; unknown where a variable or a test has no counterpart.
    func test(of directive: NginxDirective) -> RequestTest {
        var words = directive.words
        let shown = "if " + words.joined(separator: " ")
        guard var first = words.first, first.hasPrefix("("), let last = words.last, last.hasSuffix(")") else {
            return .unknown(shown)
        }
        first.removeFirst()
        words[0] = first
        words[words.count - 1] = String(words[words.count - 1].dropLast())
        words = words.enumerated().compactMap {
            $0.element.isEmpty && !isQuoted(directive, $0.offset) ? nil : $0.element
        }
        switch words.count {
        case 1: return truth(words[0]) ?? .unknown(shown)
        case 3: return comparison(words[0], words[1], words[2]) ?? .unknown(shown)
        case 2 where ["=", "!="].contains(words[1]): return comparison(words[0], words[1], "") ?? .unknown(shown)
        default: return .unknown(shown)
        }
    }

    private func isQuoted(_ directive: NginxDirective, _ index: Int) -> Bool {
        directive.arguments.indices.contains(index) && directive.arguments[index].isQuoted
    }

    /// Whether an expression is one that patterns accept.
    static func isValid(_ expression: String) -> Bool {
        (try? Pattern(expression)) != nil
    }

    // MARK: Kinds

    /// `if ($variable)`: neither empty nor 0.
    private func truth(_ word: String) -> RequestTest? {
        let pieces = variables.pieces(word)
        if let fixed = variables.fixed(word) { return fixed.isEmpty || fixed == "0" ? .never : .always }
        guard pieces.count == 1, case .variable(let name)? = pieces.first, !variables.known.keys.contains(name) else {
            return nil
        }
        let value = "~^(?!0$)."
        if name.hasPrefix("http_") { return .header(NginxVariables.fieldName(name.dropFirst(5)), value) }
        if name.hasPrefix("arg_") { return .query(String(name.dropFirst(4)), value) }
        if name.hasPrefix("cookie_") { return .cookie(String(name.dropFirst(7)), value) }
        if name == "https" { return variables.scheme.map { $0 == "https" ? .always : .never } ?? .scheme("https") }
        return nil
    }

    private func comparison(_ left: String, _ operation: String, _ right: String) -> RequestTest? {
        let isNegative = operation.hasPrefix("!")
        let kind = isNegative ? String(operation.dropFirst()) : operation
        guard ["=", "~", "~*"].contains(kind) else { return nil }
        let expected: String
        if kind == "=" {
            guard let fixed = variables.fixed(right) else { return nil }
            expected = fixed
        } else {
            guard Self.isValid(right) else { return nil }
            expected = right
        }
        if let fixed = variables.fixed(left) {
            let holds: Bool
            if kind == "=" {
                holds = fixed == expected
            } else {
                guard let pattern = try? Pattern((kind == "~*" ? "(?i)" : "") + expected),
                    let found = try? Array(fixed.utf8).withUnsafeBytes({ try pattern.matches($0) })
                else { return nil }
                holds = found
            }
            return holds != isNegative ? .always : .never
        }
        let pieces = variables.pieces(left)
        guard pieces.count == 1, case .variable(let name)? = pieces.first, !variables.known.keys.contains(name),
            let test = test(name, kind, expected)
        else { return nil }
        return isNegative ? .not(test) : test
    }

    /// `kind` is `=`, `~` or `~*`.
    private func test(_ name: String, _ kind: String, _ expected: String) -> RequestTest? {
        let ignoresCase = kind == "~*"
        let value = kind == "=" ? RequestTest.literal(expected) : "~" + (ignoresCase ? "(?i)" : "") + expected
        switch name {
        case "host":
            if kind == "=" { return HostText.isName(expected) ? .host(expected.lowercased()) : nil }
            return RequestTest.host(matching: expected)
        case "http_host": return expected.isEmpty ? nil : .header("Host", value)
        case "scheme":
            guard kind == "=", expected == "http" || expected == "https" else { return nil }
            return .scheme(expected)
        case "https": return kind == "=" && expected == "on" ? .scheme("https") : nil
        case "request_method":
            let methods = kind == "=" ? [expected] : Self.alternatives(expected)
            guard let methods, methods.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x41...0x5A).contains($0) } })
            else {
                return nil
            }
            return .any(methods.map { .method($0) })
        case "uri", "document_uri":
            return .path(kind == "=" ? .exact(expected) : .expression(expected), ignoresCase: ignoresCase)
        case "request_uri":
            // It has the query, too: an end, a `?` and a negated set would see it.
            guard kind != "=", !expected.hasSuffix("$"), !expected.utf8.contains(where: { "?[&=".utf8.contains($0) })
            else {
                return nil
            }
            guard expected.hasPrefix("^/"), !expected.contains("|"), !expected.contains(".*") else { return nil }
            return .path(.expression(expected), ignoresCase: ignoresCase)
        case "remote_addr":
            guard variables.hasClientAddress, kind == "=", let network = NetworkText.network(expected) else {
                return nil
            }
            return .client(network)
        default: break
        }
        if name.hasPrefix("http_") {
            let field = NginxVariables.fieldName(name.dropFirst(5))
            guard FieldText.isName(field) else { return nil }
            // A field that is not there is empty to nginx.
            if kind == "=", expected.isEmpty { return .not(.header(field, "~.")) }
            return matchesEmpty(kind, expected) ? nil : .header(field, value)
        }
        if name.hasPrefix("arg_") {
            if kind == "=", expected.isEmpty { return .not(.query(String(name.dropFirst(4)), "~.")) }
            return matchesEmpty(kind, expected) ? nil : .query(String(name.dropFirst(4)), value)
        }
        if name.hasPrefix("cookie_") {
            if kind == "=", expected.isEmpty { return .not(.cookie(String(name.dropFirst(7)), "~.")) }
            return matchesEmpty(kind, expected) ? nil : .cookie(String(name.dropFirst(7)), value)
        }
        return nil
    }

    /// Whether the expression matches the empty text, which nginx sees in place of something that is missing.
    private func matchesEmpty(_ kind: String, _ expected: String) -> Bool {
        guard kind != "=" else { return expected.isEmpty }
        guard let pattern = try? Pattern(expected) else { return true }
        let empty: [UInt8] = []
        return (try? empty.withUnsafeBytes { try pattern.matches($0) }) ?? true
    }

    /// The words of `^(GET|POST)$`, `GET|POST` or `POST`; `nil` for another expression.
    private static func alternatives(_ expression: String) -> [String]? {
        var text = expression
        guard text.hasPrefix("^"), text.hasSuffix("$") else {
            // Without anchors other methods would match, too, but none has these as a part.
            let words = text.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let whole: Set = ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
            return words.allSatisfy { whole.contains($0) } ? words : nil
        }
        text = String(text.dropFirst().dropLast())
        if text.hasPrefix("("), text.hasSuffix(")") {
            text = String(text.dropFirst().dropLast())
            if text.hasPrefix("?:") { text = String(text.dropFirst(2)) }
        } else if text.contains("|") {
            return nil
        }
        let words = text.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        return words.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (0x41...0x5A).contains($0) } } ? words : nil
    }
}
