/// Placeholders of Caddy, turned into ours.
enum CaddyPlaceholders {
    private static let simple = [
        "path": "request.path", "http.request.uri.path": "request.path", "method": "request.method",
        "http.request.method": "request.method", "host": "request.host", "http.request.host": "request.host",
        "hostport": "request.host", "http.request.hostport": "request.host", "remote_host": "peer.ip",
        "http.request.remote.host": "peer.ip", "client_ip": "client.ip", "http.vars.client_ip": "client.ip",
        "http.request.client_ip": "client.ip",
        "http.auth.user.id": "principal", "http.request.uuid": "exchange.id", "uuid": "exchange.id",
        "tls_client_subject": "tls.subject", "http.request.tls.client.subject": "tls.subject",
    ]

    /// The text as a template of ours; `nil` if it has a placeholder without a counterpart.
    ///
    /// `extra` are further placeholders, with the text that takes their place. In `isContent`, a brace without a placeholder stands for
    /// itself; elsewhere it is doubled.
    static func template(_ text: String, extra: [String: String] = [:], isContent: Bool = false) -> String? {
        guard text.utf8.contains(UInt8(ascii: "{")) else { return text }
        let brace = isContent ? "{" : "{{"
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            if result.hasSuffix("\\") {
                // An escaped brace stands for itself.
                result.removeLast()
                result += "{{"
                rest = rest[rest.index(after: open)...]
                continue
            }
            guard let close = rest[open...].firstIndex(of: "}") else {
                result += brace + rest[rest.index(after: open)...]
                return result
            }
            let name = String(rest[rest.index(after: open)..<close])
            if let made = extra[name] {
                result += made
            } else if let ours = ours(name) {
                result += "{" + ours + "}"
            } else if !name.isEmpty, name.utf8.allSatisfy({ isNameByte($0) }) {
                return nil
            } else {
                // Not a placeholder: the brace stands for itself.
                result += brace
                rest = rest[rest.index(after: open)...]
                continue
            }
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }

    private static func ours(_ name: String) -> String? {
        if let ours = simple[name] { return ours }
        for (prefix, ours) in [
            ("http.request.header.", "request.header."), ("header.", "request.header."),
            ("http.request.uri.query.", "request.query."), ("query.", "request.query."),
        ] where name.hasPrefix(prefix) && name.utf8.count > prefix.utf8.count {
            return ours + name.dropFirst(prefix.utf8.count)
        }
        return nil
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || "._-$*:/[]".utf8.contains(byte)
    }
}
