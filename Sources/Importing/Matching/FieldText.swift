/// Names and values of fields in files of others.
enum FieldText {
    private static let framing: Set<String> = [
        "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "upgrade",
        "http2-settings",
    ]

    /// Whether wares may set a field of this name: a token (RFC 9110 §5.1) that does not belong to the framing.
    static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 256 && !framing.contains(text.lowercased())
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    /// Whether the text can be the value of a field: no control characters (RFC 9110 §5.5).
    static func isValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }
}
