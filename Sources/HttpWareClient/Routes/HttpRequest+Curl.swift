public import HttpWare

extension HttpRequest {
    /// The command that sends this request with curl, for a terminal or a report. Unless `showsCredentials` is true,
    /// the command shows no value of `Authorization`, `Cookie`, `Proxy-Authorization` or `X-Api-Key`. It also hides
    /// query parameters that are named like credentials. Content is left out if it is not text or not available.
    public func curl(showsCredentials: Bool = false) -> String {
        // With `-X HEAD`, curl would wait for content.
        var words = method == .head ? ["curl", "--head"] : ["curl", "-X", HttpRequest.quoted(method.name)]
        for (name, value) in fields {
            switch name.lowercased() {
            case "host", "content-length": continue
            // curl decodes content only if it asks for the codings by its own option.
            case "accept-encoding" where value == DecodingFilter.accepted: words.append("--compressed")
            default:
                let isSecret = FieldName(name).map { Redaction.fields.contains($0) } ?? false
                // curl leaves out a field without a value unless it ends with a semicolon.
                let line =
                    value.isEmpty ? "\(name);" : "\(name): \(isSecret && !showsCredentials ? Redaction.mark : value)"
                words += ["-H", HttpRequest.quoted(line)]
            }
        }
        if let bytes = content.bytes, !bytes.isEmpty, !bytes.contains(0),
            let text = String(validating: bytes, as: UTF8.self)
        {
            // Without this, curl would add the type of a form.
            if !fields.contains(.contentType) { words += ["-H", "Content-Type:"] }
            // `--data-binary` would read a file if the text begins with `@`.
            words += ["--data-raw", HttpRequest.quoted(text)]
        }
        let target = String(decoding: targetUri(), as: UTF8.self)
        // curl makes several requests of a URL with braces or brackets.
        if target.utf8.contains(where: { $0 == 0x7b || $0 == 0x7d || $0 == 0x5b || $0 == 0x5d }) {
            words.append("--globoff")
        }
        words.append(HttpRequest.quoted(showsCredentials ? target : Redaction.target(target)))
        return words.joined(separator: " ")
    }

    /// One word of a POSIX shell, quoted if necessary.
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
