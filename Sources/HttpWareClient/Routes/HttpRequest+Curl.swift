public import HttpWare

extension HttpRequest {
    /// The command that sends this request with curl, for a terminal or a report. Unless `showsCredentials` is set, it masks the
    /// values of `Authorization`, `Cookie`, `Proxy-Authorization` and `X-Api-Key`, and of query parameters whose names suggest
    /// credentials. Content that is not text, or not in memory, is left out.
    public func curl(showsCredentials: Bool = false) -> String {
        // With `-X HEAD`, curl would wait for content.
        var words = method == .head ? ["curl", "--head"] : ["curl", "-X", HttpRequest.quoted(method.name)]
        for (name, value) in fields {
            switch name.lowercased() {
            case "host", "content-length": continue
            // curl decodes only codings that it requested itself.
            case "accept-encoding" where value == DecodedContent.accepted: words.append("--compressed")
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
            // Otherwise curl states the media type of a form.
            if !fields.contains(.contentType) { words += ["-H", "Content-Type:"] }
            // Not `--data-binary`, for which a text that begins with `@` names a file.
            words += ["--data-raw", HttpRequest.quoted(text)]
        }
        let target = String(decoding: targetUri(), as: UTF8.self)
        // curl would make several requests of these characters.
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
