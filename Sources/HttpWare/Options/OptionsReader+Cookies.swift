extension OptionsReader {
    /// The maximum number of secrets of one option.
    private static let mostSecrets = 8

    /// Reads secrets that seal cookies or stored texts. The first one seals, and all of them open.
    package mutating func readSecrets(_ key: String, into secrets: inout [Secret], least: Int = 16, doc: String) {
        read(key, into: &secrets, doc: doc)
        if secrets.count > OptionsReader.mostSecrets {
            fail(at: key, "has \(secrets.count) secrets; write at most \(OptionsReader.mostSecrets)")
        }
        if secrets.contains(where: { $0.revealed.utf8.count < least }) {
            fail(
                at: key, "a secret is shorter than \(least) bytes; write a random text, such as 32 letters and digits")
        }
    }

    /// Reads the name of a cookie.
    package mutating func readCookieName(_ key: String, into name: inout String?, such example: String, doc: String) {
        read(key, into: &name, doc: doc)
        guard let name, FieldName(name) == nil else { return }
        fail(at: key, "\(name.quotedForErrors) is not the name of a cookie; write a token such as \(example)")
    }

    /// Reads the attributes Domain and Path of a cookie.
    package mutating func readCookiePlace(
        domain: inout String?, path: inout String?, docs: (domain: String, path: String)
    ) {
        read("domain", into: &domain, doc: docs.domain)
        read("path", into: &path, doc: docs.path)
        for (key, text) in [("domain", domain), ("path", path)] {
            guard let text, !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 0x3b && $0 != 0x2c }) else {
                continue
            }
            fail(at: key, "contains a space, a semicolon, a comma or a character that no cookie attribute can have")
        }
        if let path, !path.hasPrefix("/") { fail(at: "path", "does not begin with a slash") }
    }
}
