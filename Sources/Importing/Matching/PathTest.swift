/// A condition on the path of a request, as the gateways of others know them.
enum PathTest: Hashable, Sendable {
    /// The whole path.
    case exact(String)
    /// The path begins with this text, whether or not a segment ends there.
    case prefix(String)
    /// The path is this one, or lies below it.
    case segments(String)
    /// The path ends with this text.
    case suffix(String)
    /// The text is somewhere in the path.
    case contains(String)
    /// A text with `*`, which stands for any number of bytes of one segment.
    case glob(String)
    /// A regular expression that is searched anywhere in the path.
    case expression(String)

    /// The condition as `match.path` writes it; `nil` if every path meets it.
    var pattern: String? {
        switch self {
        case .exact(let path):
            return Self.isPlain(path) ? Self.encoded(path) : "~^" + Self.escaped(path) + "$"
        case .prefix(let path):
            return path.isEmpty || path == "/" ? nil : "~^" + Self.escaped(path)
        case .segments(let path):
            var path = path
            while path.hasSuffix("/") { path.removeLast() }
            if path.isEmpty { return nil }
            return Self.isPlain(path) ? Self.encoded(path) + "/**" : "~^" + Self.escaped(path) + "(/|$)"
        case .suffix(let text): return "~" + Self.escaped(text) + "$"
        case .contains(let text): return text.isEmpty ? nil : "~" + Self.escaped(text)
        case .glob(let text):
            let pieces = text.split(separator: "*", omittingEmptySubsequences: false).map { Self.escaped(String($0)) }
            return "~^" + pieces.joined(separator: "[^/]*") + "$"
        case .expression(let expression): return expression.isEmpty ? nil : "~" + expression
        }
    }

    /// The same condition for paths from which `text` was removed at the front: it is met by the path with the text.
    func behind(_ text: String) -> PathTest? {
        if text.isEmpty { return self }
        switch self {
        case .exact(let path): return .exact(text + path)
        case .prefix(let path): return .prefix(text + path)
        case .segments(let path): return .segments(text + path)
        case .glob(let path): return .glob(text + path)
        case .suffix, .contains: return self
        case .expression(let expression):
            guard expression.hasPrefix("^"), !expression.contains("|") else { return nil }
            return .expression("^" + Self.escaped(text) + expression.dropFirst())
        }
    }

    /// The text as a part of a regular expression that means nothing but it, in the form in which paths are matched.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in encoded(text).unicodeScalars {
            if "\\^$.|?*+()[]{}#".unicodeScalars.contains(scalar) { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result
    }

    /// Whether a path pattern of this text means nothing but it.
    private static func isPlain(_ path: String) -> Bool {
        path.hasPrefix("/") && !path.utf8.contains { "*{}".utf8.contains($0) } && !path.hasSuffix("/**")
    }

    /// The text as a path would hold it: bytes that no path can have are percent-encoded.
    static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            if byte > 0x20, byte < 0x7F, !"\"<>\\^`{|}?#".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
