/// A pattern of hosts: `example.com`, `*.example.com` (one or more labels before it, not `example.com` itself), `[::1]`.
/// With `:8443` after it, it matches only that port.
///
/// Letter case and one trailing dot are ignored. Matching allocates nothing.
public struct HostPattern: Sendable, Hashable {
    /// The pattern as written.
    public let source: String
    /// The name in lower case without a trailing dot; for a wildcard, the part after `*`, with its dot.
    public let name: [UInt8]
    /// Whether the pattern begins with `*.`.
    public let isWildcard: Bool
    /// The port; `nil` matches any.
    public let port: Int?

    /// Whether a host matches. Its port is passed separately; `nil` if it is unknown.
    public func matches(_ host: Span<UInt8>, port: Int?) -> Bool {
        if let wanted = self.port, wanted != port { return false }
        var count = host.count
        if count > 0, host[count - 1] == UInt8(ascii: ".") { count -= 1 }
        guard isWildcard ? count > name.count : count == name.count else { return false }
        let start = count - name.count
        for i in name.indices {
            let byte = host[start + i]
            let lower = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            if lower != name[i] { return false }
        }
        return true
    }

    /// Whether a host, as bytes, matches.
    public func matches(_ host: UnsafeRawBufferPointer, port: Int?) -> Bool {
        matches(Span(_unsafeBytes: host), port: port)
    }
}

extension HostPattern: OptionValue {
    public static let optionType = "host pattern"
    public static var optionForm: OptionForm {
        .pattern("(\\[[0-9A-Fa-f:.]+\\]|(\\*\\.)?[0-9A-Za-z_-]+(\\.[0-9A-Za-z_-]+)*\\.?)(:[1-9][0-9]{0,4})?")
    }
    public var optionText: String { source }

    public init(optionText: String) throws(OptionMistake) {
        let hint = "write a host such as example.com, *.example.com, [::1] or example.com:8443"
        var host = optionText.lowercased()[...]
        var port: Int?
        let colon = host.hasPrefix("[") ? host.range(after: "]:") : host.range(after: ":")
        if let colon {
            guard let number = UnitText.number(host[colon...].utf8), (1...65535).contains(number) else {
                throw OptionMistake(hint)
            }
            port = number
            host = host[..<host.index(before: colon)]
        }
        isWildcard = host.hasPrefix("*.")
        if isWildcard { host = host.dropFirst() }
        if host.hasSuffix(".") { host = host.dropLast() }
        let isAddress = host.hasPrefix("[") && host.hasSuffix("]") && host.contains(":") && !isWildcard
        let inner = isAddress ? host.dropFirst().dropLast() : isWildcard ? host.dropFirst() : host
        let allowed = isAddress ? "0123456789abcdef:." : "0123456789abcdefghijklmnopqrstuvwxyz-_."
        guard !inner.isEmpty, inner.utf8.count <= 255, inner.utf8.allSatisfy({ allowed.utf8.contains($0) }),
            isAddress || !inner.split(separator: ".", omittingEmptySubsequences: false).contains("")
        else { throw OptionMistake(hint) }
        source = optionText
        // In the form in which requests name it.
        name = Array((isAddress ? Authority.oneForm(String(host)) : String(host)).utf8)
        self.port = port
    }
}

extension Substring {
    /// The place after the first occurrence of the separator.
    fileprivate func range(after separator: String) -> Index? {
        ranges(of: separator).first?.upperBound
    }
}
