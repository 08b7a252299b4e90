import HttpWare

/// The cookies of messages in the form of archives. HAR 1.2, `cookies`; RFC 6265 §4.
enum HarCookies {
    /// The cookies in `Cookie`.
    static func sent(_ message: CapturedMessage) -> Json {
        .list(
            message.values(of: "cookie").flatMap { $0.split(separator: ";", maxSplits: HarEntry.mostParts) }
                .prefix(HarEntry.mostParts).compactMap { text in
                    pair(text).map { .object([("name", .text($0)), ("value", .text($1))]) }
                })
    }

    /// The cookies in `Set-Cookie`.
    static func received(_ message: CapturedMessage) -> Json {
        .list(message.values(of: "set-cookie").prefix(HarEntry.mostParts).compactMap(received))
    }

    private static func received(_ value: String) -> Json? {
        let parts = value.split(separator: ";", maxSplits: 64, omittingEmptySubsequences: false)
        guard let first = parts.first, let (name, text) = pair(first) else { return nil }
        var path: Json?
        var domain: Json?
        var expires: Json?
        var sameSite: Json?
        var isHttpOnly = false
        var isSecure = false
        for part in parts.dropFirst() {
            let (attribute, value) = pair(part) ?? (trimmed(part), "")
            switch attribute.lowercased() {
            case "path": path = .text(value)
            case "domain": domain = .text(value)
            // Readers expect ISO 8601 here.
            case "expires":
                expires = HttpDate.time(value, now: WallTime(seconds: 1_795_262_400)).map { .text($0.rfc3339) }
            case "samesite": sameSite = .text(value)
            case "httponly": isHttpOnly = true
            case "secure": isSecure = true
            default: break
            }
        }
        return .object(given: [
            ("name", .text(name)), ("value", .text(text)), ("path", path), ("domain", domain), ("expires", expires),
            ("httpOnly", .bool(isHttpOnly)), ("secure", .bool(isSecure)), ("sameSite", sameSite),
        ])
    }

    private static func pair(_ text: Substring) -> (String, String)? {
        guard let equals = text.firstIndex(of: "=") else { return nil }
        return (trimmed(text[..<equals]), trimmed(text[text.index(after: equals)...]))
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
