public import HttpWare

/// A pattern for origins of web pages: all origins, one origin, or all subdomains of a host. RFC 6454 §6.2.
public enum OriginPattern: Sendable, Hashable {
    /// Every origin.
    case any
    /// Scheme, host and port, as browsers write them.
    case exact(String)
    /// Hosts with one or more labels before `rest`.
    case subdomains(scheme: String, rest: String)

    /// Whether the value of the field `Origin` matches. Browsers write it in lower case, without a default port.
    ///
    /// Compares bytes, because two strings can be equal although their bytes differ.
    func matches(_ origin: String) -> Bool {
        switch self {
        case .any: return true
        case .exact(let text): return origin.utf8.elementsEqual(text.utf8)
        case .subdomains(let scheme, let rest):
            let host = origin.utf8.dropFirst(scheme.utf8.count)
            let labels = host.dropLast(rest.utf8.count)
            return origin.utf8.starts(with: scheme.utf8) && host.dropFirst(labels.count).elementsEqual(rest.utf8)
                && !labels.isEmpty && labels.first != UInt8(ascii: ".")
                && labels.allSatisfy { OriginPattern.isHostByte($0) }
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension OriginPattern: OptionValue {
    public static let optionType = "origin"
    public static var optionForm: OptionForm { .pattern("^(\\*|[a-z][a-z0-9+.-]*://[^/?#@A-Z]+)$") }

    public var optionText: String {
        switch self {
        case .any: "*"
        case .exact(let text): text
        case .subdomains(let scheme, let rest): "\(scheme)*\(rest)"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        if optionText == "*" {
            self = .any
            return
        }
        let hint = "write an origin as browsers send it, such as https://app.example.com or https://*.example.com"
        let parts = optionText.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty,
            optionText.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }), !parts[1].contains(where: { "/?#@".contains($0) }),
            optionText == optionText.lowercased()
        else { throw OptionMistake(hint) }
        let port = parts[1].last == "]" ? nil : parts[1].split(separator: ":").dropFirst().last
        if parts[0] == "http" && port == "80" || parts[0] == "https" && port == "443" {
            throw OptionMistake("leave out the default port, as browsers do")
        }
        guard parts[1].contains("*") else {
            self = .exact(optionText)
            return
        }
        let rest = parts[1].dropFirst()
        guard parts[1].hasPrefix("*."), !rest.contains("*"), rest.count > 1 else { throw OptionMistake(hint) }
        self = .subdomains(scheme: "\(parts[0])://", rest: String(rest))
    }
}
