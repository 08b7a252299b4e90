public import HttpWare

extension HttpRequest {
    /// The command that sends this request with curl, for a terminal or a report. The values of `Authorization`, `Cookie` and
    /// `Proxy-Authorization` are left out unless they are asked for. Content that is not text, or not at hand, is left out, too.
    public func curl(showsCredentials: Bool = false) -> String {
        var words = ["curl", "-X", HttpRequest.quoted(method.name)]
        for (name, value) in fields where name.lowercased() != "host" && name.lowercased() != "content-length" {
            let isSecret = HttpRequest.secretFields.contains(name.lowercased())
            words += ["-H", HttpRequest.quoted("\(name): \(isSecret && !showsCredentials ? "…" : value)")]
        }
        if let bytes = content.bytes, let text = String(validating: bytes, as: UTF8.self) {
            words += ["--data-binary", HttpRequest.quoted(text)]
        }
        words.append(HttpRequest.quoted(String(decoding: targetUri(), as: UTF8.self)))
        return words.joined(separator: " ")
    }

    private static let secretFields: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    /// One word of a POSIX shell, whatever is in it.
    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x2f, 0x3a, 0x5f: true
            default: false
            }
        }
        if isPlain, !text.isEmpty { return text }
        return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
