public import HttpWare

extension HttpRequest {
    /// The command that sends this request with curl, for a terminal or a report. Unless `showsCredentials` is true,
    /// the command shows no value of `Authorization`, `Cookie`, `Proxy-Authorization` or `X-Api-Key`. It also hides
    /// query parameters and fields that are named like credentials. Content in memory is part of the command; if it is not text,
    /// `printf` writes it for curl, up to 64 KiB. Other content is read from the command's standard input.
    public func curl(showsCredentials: Bool = false) -> String {
        curl(showsCredentials: showsCredentials, sending: nil)
    }

    /// The same, for a request with this content.
    func curl(showsCredentials: Bool, sending sent: RequestContent?) -> String {
        // With `-X HEAD`, curl would wait for content.
        var words = method == .head ? ["curl", "--head"] : ["curl", "-X", HttpRequest.quoted(method.name)]
        for (name, value) in fields {
            switch name.lowercased() {
            case "host", "content-length": continue
            // curl decodes content only if it asks for the codings by its own option.
            case "accept-encoding" where value == DecodingFilter.accepted: words.append("--compressed")
            default:
                let isSecret =
                    FieldName(name).map { Redaction.fields.contains($0) } ?? false
                    || Redaction.isSecret(parameter: name)
                // curl leaves out a field without a value unless it ends with a semicolon.
                let line =
                    value.isEmpty ? "\(name);" : "\(name): \(isSecret && !showsCredentials ? Redaction.mark : value)"
                words += ["-H", HttpRequest.quoted(line)]
            }
        }
        var source: String?
        let isStreamed = if case .streamed? = sent?.storage { true } else { content.bytes == nil && !content.isEmpty }
        if isStreamed || content.bytes?.isEmpty == false {
            // Without this, curl would add the type of a form.
            if !fields.contains(.contentType) { words += ["-H", "Content-Type:"] }
        }
        if let bytes = content.bytes, !bytes.isEmpty {
            if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
                // `--data-binary` would read a file if the text begins with `@`.
                words += ["--data-raw", HttpRequest.quoted(text)]
            } else {
                words += ["--data-binary", "@-"]
                if bytes.count <= 64 << 10 { source = HttpRequest.printf(bytes) }
            }
        } else if isStreamed {
            words += ["--data-binary", HttpRequest.quoted("@" + (sent?.path ?? "-"))]
        }
        let target = String(decoding: targetUri(), as: UTF8.self)
        // curl makes several requests of a URL with braces or brackets.
        if target.utf8.contains(where: { $0 == 0x7b || $0 == 0x7d || $0 == 0x5b || $0 == 0x5d }) {
            words.append("--globoff")
        }
        words.append(HttpRequest.quoted(showsCredentials ? target : Redaction.target(target)))
        let command = words.joined(separator: " ")
        return source.map { "\($0) | \(command)" } ?? command
    }

    /// The command of a POSIX shell that writes these bytes.
    private static func printf(_ bytes: [UInt8]) -> String {
        var text = ""
        for byte in bytes {
            switch byte {
            case 0x20, 0x2b...0x3a, 0x41...0x5a, 0x61...0x7a: text.unicodeScalars.append(UnicodeScalar(byte))
            default:
                let octal = String(byte, radix: 8)
                text += "\\" + String(repeating: "0", count: 3 - octal.count) + octal
            }
        }
        return "printf '\(text)'"
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
