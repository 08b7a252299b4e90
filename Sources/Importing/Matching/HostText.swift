import HttpWare

/// What a host pattern of ours can say.
enum HostText {
    /// Whether the text is the name of one host: letters, digits, `-`, `_` and dots, or an IPv6 address in brackets.
    static func isName(_ text: String) -> Bool {
        if text.hasPrefix("["), text.hasSuffix("]") {
            return text.utf8.count > 3
                && text.dropFirst().dropLast().utf8.allSatisfy { "0123456789abcdefABCDEF:.".utf8.contains($0) }
        }
        guard !text.isEmpty, text.utf8.count <= 253 else { return false }
        return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            !label.isEmpty
                && label.utf8.allSatisfy { byte in
                    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                }
        }
    }

    /// Whether the text is such a name, or `*.` and one.
    static func isPattern(_ text: String) -> Bool {
        isName(text.hasPrefix("*.") ? String(text.dropFirst(2)) : text)
    }

    /// A host and its port in one spelling, so that one server is found twice: letters in lower case, IPv6 addresses by RFC 5952.
    static func canonical(_ authority: String) -> String {
        guard authority.hasPrefix("["), let end = authority.firstIndex(of: "]") else { return authority.lowercased() }
        let address = String(authority[authority.index(after: authority.startIndex)..<end])
        guard let network = IPNetwork(address) else { return authority.lowercased() }
        return "[\(network.description)]\(authority[authority.index(after: end)...])"
    }

    /// Whether the text is an IP address, which no public authority certifies.
    static func isAddress(_ text: String) -> Bool {
        if text.hasPrefix("[") || text.contains(":") { return true }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether the name is one of this machine or of a private network, for which no public authority gives certificates.
    static func isLocal(_ text: String) -> Bool {
        let name = text.lowercased()
        return isAddress(name) || !name.contains(".")
            || [".localhost", ".local", ".internal", ".home.arpa"].contains { name.hasSuffix($0) }
    }
}
