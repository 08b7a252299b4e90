import HttpWare

/// Texts of HAProxy with `%[fetch]` and `%variables`, as templates.
enum HaproxyFormat {
    /// The template that says the same; `nil` if a part has no counterpart. `literal` writes the fixed parts.
    static func template(_ text: String, literal: (String) -> String = Template.literal) -> String? {
        var result = ""
        var fixed: [UInt8] = []
        let bytes = Array(text.utf8)
        var index = 0
        func flush() {
            if !fixed.isEmpty { result += literal(String(decoding: fixed, as: UTF8.self)) }
            fixed = []
        }
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "%"), index + 1 < bytes.count else {
                fixed.append(bytes[index])
                index += 1
                continue
            }
            if bytes[index + 1] == UInt8(ascii: "%") {
                fixed.append(bytes[index])
                index += 2
            } else if bytes[index + 1] == UInt8(ascii: "[") {
                guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "]")) else { return nil }
                guard let placeholder = placeholder(String(decoding: bytes[(index + 2)..<end], as: UTF8.self)) else {
                    return nil
                }
                flush()
                result += placeholder
                index = end + 1
            } else {
                var end = index + 1
                while end < bytes.count, isLetter(bytes[end]) { end += 1 }
                let known = [
                    "ci": "{client.ip}", "ID": "{exchange.id}", "HM": "{request.method}", "HP": "{request.path}",
                ]
                guard let placeholder = known[String(decoding: bytes[(index + 1)..<end], as: UTF8.self)] else {
                    return nil
                }
                flush()
                result += placeholder
                index = end
            }
        }
        flush()
        return result
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) }

    private static func placeholder(_ fetch: String) -> String? {
        let fetch = fetch.trimmed
        switch fetch {
        case "src": return "{client.ip}"
        case "path": return "{request.path}"
        case "method": return "{request.method}"
        case "uuid()", "uuid", "unique-id": return "{exchange.id}"
        case "hdr(host)", "req.hdr(host)", "req.hdr(Host)", "hdr(Host)": return "{request.header.Host}"
        case "ssl_c_s_dn": return "{tls.subject}"
        default: break
        }
        for prefix in ["req.hdr(", "hdr(", "req.fhdr("] where fetch.hasPrefix(prefix) && fetch.hasSuffix(")") {
            let name = String(fetch.dropFirst(prefix.count).dropLast())
            return FieldText.isName(name) ? "{request.header.\(name)}" : nil
        }
        for prefix in ["url_param(", "urlp("] where fetch.hasPrefix(prefix) && fetch.hasSuffix(")") {
            let name = fetch.dropFirst(prefix.count).dropLast()
            return !name.isEmpty && !name.utf8.contains { "{},".utf8.contains($0) } ? "{request.query.\(name)}" : nil
        }
        return nil
    }

    /// A replacement with groups `\1` as `path.to` writes it; `nil` if it has other parts, or is no path.
    static func pathReplacement(_ text: String) -> String? {
        var result = ""
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "\\"), let next = bytes.first, (0x30...0x39).contains(next) {
                bytes.removeFirst()
                result += "$" + String(UnicodeScalar(next))
            } else if byte == UInt8(ascii: "%"), bytes.first != UInt8(ascii: "%") {
                return nil
            } else if byte > 0x20, byte != 0x7F, !"?#".utf8.contains(byte) {
                if byte == UInt8(ascii: "%") { bytes.removeFirst() }
                result += byte == UInt8(ascii: "$") ? "$$" : byte < 0x80 ? String(UnicodeScalar(byte)) : ""
                if byte >= 0x80 { return nil }
            } else {
                return nil
            }
        }
        return result.hasPrefix("/") || result.hasPrefix("$") ? result : nil
    }

    /// A time, in milliseconds without a unit, as a duration within bounds.
    static func duration(_ text: String?, in bounds: ClosedRange<Int> = 1...86_400_000) -> String? {
        guard let text else { return nil }
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        let microseconds = text.hasSuffix("us")
        guard let time = microseconds ? 1 : NginxUnits.milliseconds(isNumber ? text + "ms" : text) else { return nil }
        return NginxUnits.duration(milliseconds: min(max(time, bounds.lowerBound), bounds.upperBound))
    }
}
