extension ConfigNode {
    /// This value on one line, as in a file: `{ max: 5MiB, status: 413 }`. Secrets are `***`.
    public var flow: String {
        switch content {
        case .scalar where isSecret: return "***"
        case .scalar(let text, let isQuoted): return isQuoted && !Self.isPlain(text) ? text.jsonString : text
        case .list(let members): return "[" + members.map(\.flow).joined(separator: ", ") + "]"
        case .map(let entries):
            if entries.isEmpty { return "{}" }
            return "{ " + entries.map { "\($0.key): \($0.value.flow)" }.joined(separator: ", ") + " }"
        }
    }

    /// This value with each secret replaced by `***`, and with marks for user information: for people.
    public var masked: ConfigNode { masked(key: "", isFree: false) }

    private func masked(key: String, isFree: Bool) -> ConfigNode {
        var copy = self
        switch content {
        case .scalar(let text, let isQuoted):
            let isSecret = isSecret || isFree && ConfigNode.isSecret(text, named: key)
            copy.content = isSecret ? .scalar("***", isQuoted: true) : .scalar(Redaction.text(text), isQuoted: isQuoted)
        case .list(let members): copy.content = .list(members.map { $0.masked(key: key, isFree: isFree) })
        case .map(let entries):
            // Everything below a secret name is secret.
            let isSecret = isFree && Redaction.isSecret(name: key)
            let isFree = isFree || ConfigNode.freelyNamed.contains(key)
            copy.content = .map(
                entries.map {
                    let value = $0.value.masked(key: isSecret ? key : $0.key, isFree: isFree)
                    return Entry(key: Redaction.text($0.key), location: $0.location, value: value)
                })
        }
        return copy
    }

    /// The options whose members have names of the user's choice, such as those of fields and parameters.
    package static let freelyNamed: Set<String> = [
        "set", "setIfAbsent", "append", "headers", "responseHeaders", "exportHeaders", "query", "cookies", "json",
        "options",
    ]

    /// Whether a value is secret because the name that its user chose is like that of a credential. One placeholder alone, such as
    /// `{request.header.X-Token}`, tells nothing.
    package static func isSecret(_ text: String, named name: String) -> Bool {
        Redaction.isSecret(name: name) && !(text.first == "{" && text.firstIndex(of: "}") == text.indices.last)
    }

    /// The secret texts in this value, which must not be printed.
    public var secretTexts: [String] {
        switch content {
        case .scalar(let text, _): isSecret && !text.isEmpty ? [text] : []
        case .list(let members): members.flatMap(\.secretTexts)
        case .map(let entries): entries.flatMap(\.value.secretTexts)
        }
    }

    /// A copy with the values at these key paths marked as secret; members of a list have the path of their list.
    public func marking(secrets: Set<[String]>) -> ConfigNode {
        secrets.isEmpty ? self : marking(secrets, [], isInside: false)
    }

    private func marking(_ secrets: Set<[String]>, _ path: [String], isInside: Bool) -> ConfigNode {
        let isInside = isInside || secrets.contains(path)
        var copy = self
        copy.isSecret = isSecret || isInside
        switch content {
        case .scalar: break
        case .list(let members):
            copy.content = .list(members.map { $0.marking(secrets, path, isInside: isInside) })
        case .map(let entries):
            copy.content = .map(
                entries.map { entry in
                    let value = entry.value.marking(secrets, path + [entry.key], isInside: isInside)
                    return Entry(key: entry.key, location: entry.location, value: value)
                })
        }
        return copy
    }

    /// Whether the text needs no quotes in a flow collection of YAML.
    private static func isPlain(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                ByteClass.isUnreserved(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "+")
            } && text.utf8.first != UInt8(ascii: "-")
    }
}
