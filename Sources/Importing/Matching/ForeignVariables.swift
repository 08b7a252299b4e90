/// Variables of the environment in the files of others, which an import does not know.
enum ForeignVariables {
    /// The text with each variable replaced: by its default, or else by a name that nobody can own, such as `domain.invalid` (RFC 2606) for `DOMAIN`.
    ///
    /// `open` begins a variable: `${` in compose files, `{$` in a Caddyfile. The names of variables without a default are returned, too.
    static func replaced(_ text: String, open: String, suffix: String = ".invalid") -> (text: String, names: [String]) {
        guard text.contains(open) else { return (text, []) }
        var result = ""
        var names: [String] = []
        var rest = text[...]
        while let start = rest.ranges(of: open).first, let end = rest[start.upperBound...].firstIndex(of: "}") {
            result += rest[..<start.lowerBound]
            let inner = rest[start.upperBound..<end]
            let name = inner.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
            let after = inner.dropFirst(name.count)
            if after.hasPrefix(":-") || after.hasPrefix("-") {
                result += after.dropFirst(after.hasPrefix(":") ? 2 : 1)
            } else if name.isEmpty {
                result += rest[start.lowerBound...end]
            } else {
                names.append(String(name))
                result += String(name).lowercased().replacing("_", with: "-") + suffix
            }
            rest = rest[rest.index(after: end)...]
        }
        return (result + rest, names)
    }
}
