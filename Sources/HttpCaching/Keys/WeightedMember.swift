public import HttpWare

/// A member of `Accept-Language` or `Accept-Encoding`: a token with a weight. RFC 9110 §12.4.2.
enum WeightedMember {
    /// The parts between semicolons, in lower case and without white space; empty parts are left out.
    static func parts(of member: ArraySlice<UInt8>) -> [[UInt8]] {
        member.split(separator: 0x3b).map { part in
            part.filter { $0 != 0x20 && $0 != 0x09 }.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
        }
    }

    /// The weight after `q=`, in thousandths; `nil` if it is invalid.
    static func weight(_ part: [UInt8]) -> Int? {
        guard part.starts(with: "q=".utf8) else { return nil }
        let text = part.dropFirst(2)
        let digits = text.filter { $0 != 0x2e }
        guard let first = text.first, first == 0x30 || first == 0x31, digits.count <= 4,
            digits.allSatisfy({ (0x30...0x39).contains($0) }),
            text.count == digits.count || text.dropFirst().first == 0x2e && text.count == digits.count + 1
        else { return nil }
        let padded = digits.dropFirst() + Array(repeating: 0x30, count: 4 - digits.count)
        let weight = (first == 0x31 ? 1000 : 0) + padded.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return weight <= 1000 ? weight : nil
    }

    static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text
        while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
        return text
    }
}

/// The preferred language of a request, if a stored response names its own language. RFC 9110 §12.5.4, §8.5.
public struct PreferredLanguage: Sendable, Equatable {
    /// The language tag in lower case.
    private let tag: [UInt8]

    /// The single most preferred range of `Accept-Language`; `nil` if there is none, several are equally preferred, it
    /// is `*`, or a member is invalid.
    public init?(_ request: HttpFields) {
        guard request.contains(.acceptLanguage) else { return nil }
        var best: (tag: [UInt8], weight: Int)?
        var isShared = false
        for line in request.rawValues(of: .acceptLanguage) {
            guard let members = VaryKey.members(line) else { return nil }
            for member in members where !member.isEmpty {
                let parts = WeightedMember.parts(of: member)
                guard let tag = parts.first, !tag.isEmpty, parts.count <= 2 else { return nil }
                var weight = 1000
                if parts.count == 2 {
                    guard let read = WeightedMember.weight(parts[1]) else { return nil }
                    weight = read
                }
                guard weight > 0 else { continue }
                if let best, weight == best.weight {
                    isShared = isShared || tag != best.tag
                } else if weight > best?.weight ?? 0 {
                    best = (tag, weight)
                    isShared = false
                }
            }
        }
        guard let best, !isShared, best.tag != [0x2a] else { return nil }
        tag = best.tag
    }

    /// Whether the response is in this language and no other, and every field of its `Vary` except `Accept-Language`
    /// matches the request.
    public func selects(_ stored: StoredResponse, for request: HttpFields) -> Bool {
        let vary = stored.vary
        guard vary.names.contains(.acceptLanguage), vary.matchesButLanguage(request) else { return false }
        let languages = stored.fields.rawValues(of: "Content-Language")
        guard languages.count == 1, let language = languages.first else { return false }
        return language.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 } == tag
    }
}
