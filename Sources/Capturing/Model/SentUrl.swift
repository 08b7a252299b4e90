import HttpWare

/// URLs of other programs, as a browser sends them. URL Standard §4.4, RFC 3987 §3.1, RFC 5891 §4.4.
public enum SentUrl {
    /// The URL without user information, without its fragment and without surrounding spaces, with other characters percent-encoded, and
    /// with the name of its host in ASCII. A URL that cannot be read is returned as it is.
    public static func encoded(_ url: String) -> String {
        let url = withoutUser(url)
        let bytes = Array(url.utf8)
        let isPlain = bytes.allSatisfy { $0 > 0x20 && $0 < 0x7f && ![0x22, 0x23, 0x3c, 0x3e, 0x5c, 0x60].contains($0) }
        if isPlain { return url }
        // Browsers remove these everywhere.
        let text = bytes.filter { $0 != 0x09 && $0 != 0x0a && $0 != 0x0d }.prefix { $0 != 0x23 }
        let start = text.firstIndex { $0 > 0x20 } ?? text.endIndex
        let end = text.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? start
        guard start < end, let colon = text[start..<end].firstIndex(of: 0x3a), colon + 2 < end,
            isSlash(text[colon + 1]), isSlash(text[colon + 2])
        else { return url }
        let authority = text[(colon + 3)..<end].prefix { !isSlash($0) && $0 != 0x3f }
        let host = text[((authority.lastIndex(of: 0x40) ?? authority.startIndex - 1) + 1)..<authority.endIndex]
        let path = text[host.endIndex..<end].prefix { $0 != 0x3f }
        let query = text[path.endIndex..<end]
        var sent = String(decoding: text[start...colon], as: UTF8.self).lowercased() + "//"
        sent += name(String(decoding: host, as: UTF8.self))
        sent += percent(path.map { $0 == 0x5c ? 0x2f : $0 }, [0x22, 0x3c, 0x3e, 0x5e, 0x60, 0x7b, 0x7d])
        return sent + percent(Array(query), [0x22, 0x27, 0x3c, 0x3e])
    }

    /// The URL without the user information before its host, which no client sends in a target. RFC 9110 §4.2.4.
    static func withoutUser(_ url: String) -> String {
        let bytes = url.utf8
        guard bytes.contains(0x40), let colon = bytes.firstIndex(of: 0x3a),
            bytes[..<colon].allSatisfy({ PercentText.isUnreserved($0) || $0 == 0x2b })
        else { return url }
        let slashes = bytes[colon...].dropFirst().prefix(2)
        guard slashes.count == 2, slashes.allSatisfy(isSlash) else { return url }
        let authority = bytes[slashes.endIndex...].prefix { !isSlash($0) && $0 != 0x3f && $0 != 0x23 }
        guard let end = authority.lastIndex(of: 0x40) else { return url }
        return String(url[..<slashes.endIndex]) + url[bytes.index(after: end)...]
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == 0x2f || byte == 0x5c }

    private static func percent(_ bytes: [UInt8], _ others: Set<UInt8>) -> String {
        let text = PercentText.encoded(bytes) { $0 > 0x20 && $0 < 0x7f && !others.contains($0) }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Names

    /// An authority whose labels are in ASCII.
    private static func name(_ authority: String) -> String {
        guard authority.utf8.contains(where: { $0 >= 0x80 }) else { return authority }
        // Ideographic full stops separate labels, too. URL Standard §3.3.
        let dots: Set<Character> = [".", "\u{3002}", "\u{ff0e}", "\u{ff61}"]
        return authority.lowercased().split(omittingEmptySubsequences: false) { dots.contains($0) }
            .map { label($0) }.joined(separator: ".")
    }

    private static func label(_ label: Substring) -> String {
        label.utf8.allSatisfy { $0 < 0x80 } ? String(label) : punycode(label).map { "xn--" + $0 } ?? String(label)
    }

    /// The label in Punycode; `nil` if it is longer than a label may be. RFC 3492 §6.3.
    private static func punycode(_ label: Substring) -> String? {
        let scalars = label.unicodeScalars.map { Int($0.value) }
        guard scalars.count <= 63 else { return nil }
        var output = scalars.filter { $0 < 0x80 }
        let basic = output.count
        if basic > 0 { output.append(0x2d) }
        var (next, delta, bias, handled) = (0x80, 0, 72, basic)
        while handled < scalars.count {
            guard let least = scalars.filter({ $0 >= next }).min() else { return nil }
            delta += (least - next) * (handled + 1)
            next = least
            for scalar in scalars {
                if scalar < next { delta += 1 }
                guard scalar == next else { continue }
                var rest = delta
                var step = 36
                while true {
                    let threshold = step <= bias ? 1 : step >= bias + 26 ? 26 : step - bias
                    if rest < threshold { break }
                    output.append(digit(threshold + (rest - threshold) % (36 - threshold)))
                    rest = (rest - threshold) / (36 - threshold)
                    step += 36
                }
                output.append(digit(rest))
                bias = adapted(delta, handled + 1, isFirst: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            next += 1
        }
        return String(decoding: output.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    private static func digit(_ value: Int) -> Int { value < 26 ? 0x61 + value : 0x30 + value - 26 }

    private static func adapted(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / count
        var result = 0
        while delta > 455 {
            delta /= 35
            result += 36
        }
        return result + 36 * delta / (delta + 38)
    }
}
