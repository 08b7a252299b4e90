/// The links of `Link` fields. RFC 8288 §3.
///
/// ```swift
/// let following = response.links["next"]
/// ```
///
/// If a field is malformed, only the links before the mistake are read.
public struct WebLinks: Sendable, Equatable {
    private var targets: [String: String] = [:]

    /// The most links that are read.
    private static let most = 256

    init(_ lines: [String]) {
        for line in lines { read(line) }
    }

    /// The target of the first link with the relation, as written: absolute, or relative to the request's URI. Relations are
    /// compared without case.
    public subscript(relation: String) -> String? { targets[relation.lowercased()] }

    private mutating func read(_ line: String) {
        var rest = line.utf8[...]
        while targets.count < WebLinks.most {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x2c }
            guard rest.popFirst() == 0x3c, let end = rest.firstIndex(of: 0x3e), let target = String(rest[..<end]) else {
                return
            }
            rest = rest[rest.index(after: end)...]
            var relations: String?
            while true {
                rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
                guard rest.first == 0x3b else { break }
                rest = rest.dropFirst().drop { $0 == 0x20 || $0 == 0x09 }
                guard let (name, value) = WebLinks.parameter(&rest) else { return }
                // If there are two, the first one counts. RFC 8288 §3.3.
                if name == "rel", relations == nil { relations = value }
            }
            guard rest.isEmpty || rest.first == 0x2c else { return }
            for relation in (relations ?? "").lowercased().split(separator: " ") where targets[String(relation)] == nil
            {
                targets[String(relation)] = target
            }
        }
    }

    /// Reads `name`, `name=token` or `name="text"`; `nil` for a quoted text without an end. An empty parameter has an empty name.
    private static func parameter(_ rest: inout Substring.UTF8View) -> (String, String)? {
        let name = rest.prefix { $0 != 0x3d && $0 != 0x3b && $0 != 0x2c && $0 != 0x20 && $0 != 0x09 }
        rest = rest[name.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
        let key = String(Substring(name)).lowercased()
        guard rest.first == 0x3d else { return (key, "") }
        rest = rest.dropFirst().drop { $0 == 0x20 || $0 == 0x09 }
        guard rest.first == 0x22 else {
            let value = rest.prefix { $0 != 0x3b && $0 != 0x2c && $0 != 0x20 && $0 != 0x09 }
            rest = rest[value.endIndex...]
            return (key, String(Substring(value)))
        }
        rest = rest.dropFirst()
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == 0x22 { return (key, String(decoding: value, as: UTF8.self)) }
            if byte == 0x5c {
                guard let escaped = rest.popFirst() else { return nil }
                value.append(escaped)
            } else {
                value.append(byte)
            }
        }
        return nil
    }
}
