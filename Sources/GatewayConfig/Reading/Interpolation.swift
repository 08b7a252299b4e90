import HttpWare

/// Replaces `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:PATH}` and `$$` in the values of a tree. It runs after
/// parsing, so that a value can never become structure. Keys stay unchanged, and so does a `$` before any other character.
struct Interpolation {
    let environment: [String: String]
    let files: ConfigurationFiles
    /// The base of relative paths of secrets: the folder of the file that names them.
    let directory: String
    private(set) var diagnostics = Diagnostics()
    /// The paths of secrets that were read, so that they can be watched.
    private(set) var read: [String] = []

    init(environment: [String: String], files: ConfigurationFiles, directory: String) {
        self.environment = environment
        self.files = files
        self.directory = directory
    }

    private static let largestSecret = 1 << 20

    /// The tree with its values replaced. The depth of the recursion is bounded by the reader's limit.
    mutating func apply(to node: ConfigNode, keyPath: String = "") -> ConfigNode {
        var node = node
        switch node.content {
        case .scalar(let text, let isQuoted):
            guard text.utf8.contains(UInt8(ascii: "$")) else { return node }
            let (result, isSecret) = replaced(text, node.location, keyPath)
            node.content = .scalar(result, isQuoted: isQuoted)
            node.isSecret = isSecret
        case .list(let members):
            node.content = .list(
                members.enumerated().map { apply(to: $0.element, keyPath: "\(keyPath)[\($0.offset)]") })
        case .map(let entries):
            node.content = .map(
                entries.map { entry in
                    var entry = entry
                    let key = entry.key.shortened
                    entry.value = apply(to: entry.value, keyPath: keyPath.isEmpty ? key : "\(keyPath).\(key)")
                    return entry
                })
        }
        return node
    }

    private mutating func replaced(
        _ text: String, _ location: SourceLocation, _ keyPath: String
    ) -> (text: String, isSecret: Bool) {
        var result = ""
        var isSecret = false
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            if rest.first == "$" {
                result += "$"
                rest.removeFirst()
            } else if rest.first == "{" {
                guard let end = rest.firstIndex(of: "}") else {
                    diagnostics.error(at: location, keyPath, "\"${\" is not closed; write $$ for a literal $")
                    return (result + "$" + rest, isSecret)
                }
                let inside = rest[rest.index(after: rest.startIndex)..<end]
                rest = rest[rest.index(after: end)...]
                if inside.hasPrefix("file:"), !inside.hasPrefix("file:-"), !inside.hasPrefix("file:?") {
                    isSecret = true
                    result += secret(String(inside.dropFirst(5)), location, keyPath)
                } else {
                    result += variable(inside, location, keyPath)
                }
            } else {
                result += "$"
            }
        }
        return (result + rest, isSecret)
    }

    private mutating func variable(_ inside: Substring, _ location: SourceLocation, _ keyPath: String) -> String {
        let name = inside.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        let rest = inside[name.endIndex...]
        let value = environment[String(name)]
        guard !name.isEmpty, name.first?.isNumber == false, rest.isEmpty || rest.hasPrefix(":-") || rest.hasPrefix(":?")
        else {
            diagnostics.error(
                at: location, keyPath,
                "\("${\(inside)}".quotedForErrors) is not a variable; write ${NAME}, ${NAME:-default}, ${NAME:?message}"
                    + " or ${file:PATH}, or $$ for a literal $")
            return ""
        }
        if rest.contains("${") {
            diagnostics.error(at: location, keyPath, "a default cannot contain another variable")
            return ""
        }
        if rest.hasPrefix(":-") { return value.flatMap { $0.isEmpty ? nil : $0 } ?? String(rest.dropFirst(2)) }
        if let value, rest.isEmpty || !value.isEmpty { return value }
        let message = rest.dropFirst(2)
        diagnostics.error(
            at: location, keyPath,
            message.isEmpty
                ? "${\(name)} is not set; set the variable, or write ${\(name):-default}"
                : "${\(name)} is not set: \(String(message).shortened)")
        return ""
    }

    /// The texts that were read from files.
    private(set) var secrets: Set<String> = []

    private mutating func secret(_ path: String, _ location: SourceLocation, _ keyPath: String) -> String {
        let path = FilePath.joined(directory, path)
        read.append(path)
        do {
            var content = try files.read(path, Self.largestSecret)
            if content.last == UInt8(ascii: "\n") { content.removeLast() }
            guard let text = String(validating: content, as: UTF8.self) else {
                diagnostics.error(at: location, keyPath, "\(path): is not UTF-8")
                return ""
            }
            if !text.isEmpty { secrets.insert(text) }
            return text
        } catch {
            diagnostics.error(at: location, keyPath, "\(path): \(error.reason)")
            return ""
        }
    }
}
