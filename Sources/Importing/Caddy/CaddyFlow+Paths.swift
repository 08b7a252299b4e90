import HttpWare

extension CaddyFlow {
    /// `uri strip_prefix|strip_suffix|replace|path_regexp|query …`.
    mutating func uri(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        let arguments = directive.arguments
        func unknown(_ reason: String) {
            draft.note(place, directive.segment.shown, reason)
            context.rewriter = context.rewriter ?? "uri"
        }
        switch arguments.first ?? "" {
        case "strip_prefix" where arguments.count == 2 && !arguments[1].contains("{"):
            var prefix = arguments[1]
            if !prefix.hasPrefix("/") { prefix = "/" + prefix }
            while prefix.hasSuffix("/") { prefix.removeLast() }
            guard !prefix.isEmpty else { return }
            stripPrefix(prefix, test, &context, place)
        case "strip_suffix" where arguments.count == 2 && !arguments[1].contains("{"):
            replacePath(PathTest.escaped(arguments[1]) + "$", "", test, &context, place, "uri strip_suffix")
        case "path_regexp" where arguments.count == 3 && !arguments[2].contains("{"):
            guard let to = Self.replacement(arguments[2]) else { return unknown("the replacement has no counterpart") }
            replacePath(arguments[1], to, test, &context, place, "uri path_regexp")
            draft.note(place, directive.segment.shown, "rewrite replaces the first match; Caddy replaces all")
        case "query" where arguments.count >= 2 || directive.segment.block != nil:
            let lines = directive.segment.block?.map { $0.words.map(\.text) } ?? [Array(arguments.dropFirst())]
            var set: [(String, String)] = []
            var removed: [String] = []
            for line in lines {
                if line.count == 1, line[0].hasPrefix("-") {
                    removed.append(String(line[0].dropFirst()))
                } else if line.count == 2, !line[0].hasPrefix("+"), !line[0].contains(">"),
                    let value = CaddyPlaceholders.template(line[1])
                {
                    set.append((line[0], value))
                } else {
                    unknown("the change of the query has no counterpart")
                }
            }
            guard !set.isEmpty || !removed.isEmpty else { return }
            let query = ConfigNode.map([
                "set": set.isEmpty ? nil : .map(set), "remove": removed.isEmpty ? nil : .list(removed),
            ])
            context.middlewares.append(WareDraft("rewrite", ["query": query], if: test, at: place))
        default: unknown("the change of the path has no counterpart")
        }
    }

    /// `rewrite TO`, where `{uri}` or `{path}` may stand at the end.
    mutating func rewrite(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        guard var target = directive.arguments.first else { return }
        func unknown(_ reason: String) {
            draft.note(place, directive.segment.shown, reason)
            context.rewriter = context.rewriter ?? "rewrite"
            context.refusal = context.refusal ?? "a rewrite is not understood: \(directive.segment.shown)"
        }
        if target == "{uri}" || target == "{path}" { return }
        for end in ["{uri}", "{path}", "{http.request.uri}", "{http.request.uri.path}"] where target.hasSuffix(end) {
            var prefix = String(target.dropLast(end.utf8.count))
            while prefix.hasSuffix("/") { prefix.removeLast() }
            guard prefix.hasPrefix("/"), !prefix.contains("{"), !prefix.contains("?") else {
                return unknown("the target has no counterpart")
            }
            let path = ConfigNode.map(["add": .text(PathTest.encoded(prefix))])
            context.middlewares.append(WareDraft("rewrite", ["path": path], if: test, at: place))
            context.rewriter = context.rewriter ?? "rewrite"
            return
        }
        if let mark = target.firstIndex(of: "?") {
            let text = String(target[target.index(after: mark)...])
            target = String(target[..<mark])
            guard text == "{query}" else { return unknown("a query in the target has no counterpart") }
        }
        guard target.hasPrefix("/"), !target.contains("{") else { return unknown("the target has no counterpart") }
        replacePath("^.*$", PathTest.encoded(target).replacingBytes("$", by: "$$"), test, &context, place, "rewrite")
    }

    /// Replaces what an expression finds in the path.
    private mutating func replacePath(
        _ expression: String, _ to: String, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation,
        _ name: String
    ) {
        let path = ConfigNode.map(["regex": .text(expression), "to": .text(to)])
        context.middlewares.append(WareDraft("rewrite", ["path": path], if: test, at: place))
        context.rewriter = context.rewriter ?? name
    }

    /// A replacement of Go, with `$1` and `${1}`, as ours; `nil` if it names groups or has what no path can have.
    static func replacement(_ text: String) -> String? {
        var result = ""
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            let isBraced = rest.hasPrefix("{")
            if rest.hasPrefix("$") {
                result += "$$"
                rest = rest.dropFirst()
                continue
            }
            let name = (isBraced ? rest.dropFirst() : rest).prefix {
                $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")
            }
            guard let number = Int(name), (0...9).contains(number), name.utf8.count == 1 else { return nil }
            result += "$\(number)"
            rest = rest.dropFirst(name.count + (isBraced ? 1 : 0))
            if isBraced {
                guard rest.hasPrefix("}") else { return nil }
                rest = rest.dropFirst()
            }
        }
        result += rest
        return result.utf8.contains { $0 <= 0x20 || "?#".utf8.contains($0) } ? nil : result
    }
}
