/// A client's preferences for content codings. RFC 9110 §12.5.3.
///
/// A malformed member makes its coding unacceptable. A coding that is named twice has its lower weight. Both are safe, because content
/// without a coding is never wrong. Weights are in thousandths.
public struct AcceptEncoding: Sendable {
    private enum Name: Int {
        case gzip, br, zstd, identity, any
    }

    /// The weights by `Name`; -1 for a coding that is not named.
    private var weights = InlineArray<5, Int>(repeating: -1)

    /// Makes an empty value, without preferences.
    public init() {}

    /// The preferences in a request, as received.
    public init(_ request: borrowing HttpRequest) {
        request.fields.forEachReceivedValue(of: .acceptEncoding) { add(UnsafeRawBufferPointer($0)) }
    }

    /// The weight of a coding, from 0, not acceptable, to 1000. A coding that is not named has the weight of `*`, or else 0.
    public func weight(of coding: ContentCoding) -> Int {
        let named: Name =
            switch coding {
            case .gzip: .gzip
            case .br: .br
            case .zstd: .zstd
            }
        return max(0, weights[named.rawValue] >= 0 ? weights[named.rawValue] : weights[Name.any.rawValue])
    }

    /// Whether content without a coding is acceptable: unless `identity`, or else `*`, has the weight 0.
    public var acceptsIdentity: Bool {
        let named = weights[Name.identity.rawValue]
        return (named >= 0 ? named : weights[Name.any.rawValue]) != 0
    }

    /// The coding with the highest weight, the first of equals; `nil` if none is acceptable, or if `identity` has a higher weight.
    public func best(of offered: [ContentCoding]) -> ContentCoding? {
        var best: ContentCoding?
        var most = 0
        for coding in offered where weight(of: coding) > most {
            best = coding
            most = weight(of: coding)
        }
        return weights[Name.identity.rawValue] > most ? nil : best
    }

    // MARK: Reading

    /// Adds the members of a field line.
    public mutating func add(_ value: UnsafeRawBufferPointer) {
        var start = 0
        while start <= value.count {
            var end = start
            while end < value.count, value[end] != 0x2c { end += 1 }
            addMember(UnsafeRawBufferPointer(rebasing: value[start..<end]))
            start = end + 1
        }
    }

    private mutating func addMember(_ member: UnsafeRawBufferPointer) {
        let nameEnd = member.firstIndex { $0 == 0x3b } ?? member.count
        guard let name = AcceptEncoding.name(AcceptEncoding.trimmed(member[..<nameEnd])) else { return }
        let weight =
            nameEnd == member.count
            ? 1000 : AcceptEncoding.weight(AcceptEncoding.trimmed(member[(nameEnd + 1)...])) ?? 0
        let known = weights[name.rawValue]
        weights[name.rawValue] = known < 0 ? weight : min(known, weight)
    }

    private static func trimmed(_ part: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer {
        var part = part
        while let first = part.first, first == 0x20 || first == 0x09 { part = part.dropFirst() }
        while let last = part.last, last == 0x20 || last == 0x09 { part = part.dropLast() }
        return UnsafeRawBufferPointer(rebasing: part)
    }

    /// Names are case-insensitive; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    private static func name(_ text: UnsafeRawBufferPointer) -> Name? {
        if isWord(text, "gzip") || isWord(text, "x-gzip") { return .gzip }
        if isWord(text, "br") { return .br }
        if isWord(text, "zstd") { return .zstd }
        if isWord(text, "identity") { return .identity }
        return isWord(text, "*") ? .any : nil
    }

    private static func isWord(_ text: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        text.count == word.utf8CodeUnitCount
            && word.withUTF8Buffer { word in text.indices.allSatisfy { ByteClass.lower(text[$0]) == word[$0] } }
    }

    /// `weight = OWS ";" OWS "q=" qvalue`, §12.4.2: from 0 to 1, with at most three decimals. `nil` for anything else.
    private static func weight(_ text: UnsafeRawBufferPointer) -> Int? {
        guard text.count >= 3, text.count <= 7, ByteClass.lower(text[0]) == 0x71, text[1] == 0x3d,
            text[2] == 0x30 || text[2] == 0x31, text.count == 3 || text[3] == 0x2e
        else { return nil }
        var weight = text[2] == 0x31 ? 1000 : 0
        var unit = 100
        for digit in text.dropFirst(4) {
            guard (0x30...0x39).contains(digit) else { return nil }
            weight += Int(digit - 0x30) * unit
            unit /= 10
        }
        return weight <= 1000 ? weight : nil
    }
}
