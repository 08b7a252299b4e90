import HttpWare

/// The cookies of messages in the form of archives. HAR 1.2, `cookies`; RFC 6265 §4.
enum HarCookies {
    /// The cookies in `Cookie`.
    static func sent(_ message: CapturedMessage) -> Json {
        .list(
            message.values(of: "cookie").flatMap { CookieReader.pairs($0).prefix(HarEntry.mostParts) }
                .prefix(HarEntry.mostParts).compactMap { name, value in
                    value.map { .object([("name", .text(name)), ("value", .text($0))]) }
                })
    }

    /// The cookies in `Set-Cookie`.
    static func received(_ message: CapturedMessage) -> Json {
        .list(message.values(of: "set-cookie").prefix(HarEntry.mostParts).compactMap(received))
    }

    private static func received(_ value: String) -> Json? {
        let parts = CookieReader.pairs(value).prefix(65)
        guard let first = parts.first, let text = first.value else { return nil }
        var path: Json?
        var domain: Json?
        var expires: Json?
        var sameSite: Json?
        var isHttpOnly = false
        var isSecure = false
        for part in parts.dropFirst() {
            let value = part.value ?? ""
            switch part.name.lowercased() {
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
            ("name", .text(first.name)), ("value", .text(text)), ("path", path), ("domain", domain),
            ("expires", expires),
            ("httpOnly", .bool(isHttpOnly)), ("secure", .bool(isSecure)), ("sameSite", sameSite),
        ])
    }
}
