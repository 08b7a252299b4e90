import HttpWare

/// The target of a redirection of nginx, as the ware `redirect` writes it.
struct NginxRedirect {
    /// The target: fixed text and `{request.host}`, `{request.path}`.
    var to: String
    /// Whether the query of the request is added.
    var keepsQuery = false
    /// The change of the path before, if the target has groups of an expression: the expression and the new path.
    var path: (from: String, to: String)?

    /// Reads a target; `nil` if it has no counterpart.
    init?(_ text: String, _ variables: NginxVariables, expression: String?) {
        guard text.utf8.count <= 4096 else { return nil }
        var prefix = ""
        var rest = variables.pieces(text)[...]
        guard case .text(let first)? = rest.first else {
            // `$request_uri` alone, or a value that is not known.
            return nil
        }
        var tail: [NginxVariables.Piece]
        if let scheme = ["http://", "https://"].first(where: { first.lowercased().hasPrefix($0) }) {
            rest.removeFirst()
            let behind = String(first.dropFirst(scheme.count))
            if behind.isEmpty {
                guard case .variable(let name)? = rest.first, name == "host" || name == "http_host" else { return nil }
                rest.removeFirst()
                prefix = scheme + "{request.host}"
                tail = Array(rest)
                // A port behind the host.
                if case .text(let next)? = tail.first, next.hasPrefix(":") {
                    let port = next.prefix { $0 != "/" && $0 != "?" }
                    guard let number = Int(port.dropFirst()), (1...65535).contains(number) else { return nil }
                    prefix += port
                    let left = String(next.dropFirst(port.count))
                    tail = (left.isEmpty ? [] : [.text(left)]) + tail.dropFirst()
                }
            } else {
                let host = behind.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
                // What follows a host without a slash would become part of it, unless it is a path.
                if host.utf8.count == behind.utf8.count, case .variable(let name)? = rest.first,
                    !["request_uri", "uri", "document_uri"].contains(name)
                {
                    return nil
                }
                guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"{}\"\\@".utf8.contains($0) })
                else { return nil }
                prefix = scheme + host
                let left = String(behind.dropFirst(host.count))
                tail = (left.isEmpty ? [] : [.text(left)]) + rest
            }
        } else if first.hasPrefix("/"), !first.hasPrefix("//") {
            tail = Array(rest)
        } else {
            return nil
        }
        // The query.
        var fixedQuery = ""
        if let mark = tail.firstIndex(where: { if case .text(let text) = $0 { text.contains("?") } else { false } }) {
            guard case .text(let text) = tail[mark], let at = text.firstIndex(of: "?") else { return nil }
            let behind: [NginxVariables.Piece] = [.text(String(text[text.index(after: at)...]))] + tail[(mark + 1)...]
            tail = tail[..<mark] + (at == text.startIndex ? [] : [.text(String(text[..<at]))])
            var ends = false
            for piece in behind {
                switch piece {
                case .text(let text): if !text.isEmpty { fixedQuery += text; ends = false }
                case .variable("args"), .variable("query_string"):
                    keepsQuery = true
                    ends = true
                default: return nil
                }
            }
            if keepsQuery, fixedQuery.hasSuffix("&") { fixedQuery.removeLast() }
            guard ends || !keepsQuery else { return nil }
        }
        if tail.last == .variable("args"), tail.dropLast().last == .variable("is_args") {
            tail.removeLast(2)
            keepsQuery = true
        }
        // The path.
        if tail == [.variable("request_uri")] {
            to = prefix + "{request.path}"
            keepsQuery = true
        } else if tail == [.variable("uri")] || tail == [.variable("document_uri")] {
            to = prefix + "{request.path}"
        } else if let uses = Optional(tail.contains(where: Self.isGroup)), uses {
            guard let expression, fixedQuery.isEmpty else { return nil }
            var target = ""
            for piece in tail {
                switch piece {
                case .text(let text):
                    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"?#".utf8.contains($0) }) else {
                        return nil
                    }
                    target += text.replacingBytes("$", by: "$$")
                case .variable(let name):
                    guard Self.isGroup(piece) else { return nil }
                    target += "$" + name
                }
            }
            guard target.hasPrefix("/") || target.hasPrefix("$") else { return nil }
            path = (expression, target)
            to = prefix + "{request.path}"
        } else {
            var target = prefix
            for piece in tail {
                switch piece {
                case .text(let text):
                    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
                    target += Template.literal(text)
                case .variable("uri"), .variable("document_uri"): target += "{request.path}"
                case .variable("request_uri"):
                    guard fixedQuery.isEmpty, piece == tail.last else { return nil }
                    target += "{request.path}"
                    keepsQuery = true
                default: return nil
                }
            }
            to = target
        }
        if !fixedQuery.isEmpty {
            guard fixedQuery.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
            to += "?" + Template.literal(fixedQuery)
        }
        guard !to.isEmpty else { return nil }
    }

    private static func isGroup(_ piece: NginxVariables.Piece) -> Bool {
        if case .variable(let name) = piece, let digit = name.utf8.first, name.utf8.count == 1 {
            (0x31...0x39).contains(digit)
        } else {
            false
        }
    }
}
