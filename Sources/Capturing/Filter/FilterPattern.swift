import HttpWare

/// The regular expression of an operator. An expression without special characters is searched for literally, which is ten times
/// as fast.
struct FilterPattern: Sendable {
    /// The expression as written.
    var source: String { pattern.source }
    private let pattern: Pattern
    private let literal: LiteralSearch?
    private let isWhole: Bool

    init(_ source: String, _ style: Pattern.Style, limits: Pattern.Limits) throws(Pattern.Malformed) {
        pattern = try Pattern(source, style, limits: limits)
        let isPlain = source.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x80...0xff: true
            default: " -_/:=%&@,;'\"<>~!".utf8.contains(byte)
            }
        }
        literal = isPlain && style.contains(.ignoresCase) ? LiteralSearch(source) : nil
        isWhole = style.contains(.whole)
    }

    /// Whether a text with this byte may match; the byte must not be a letter.
    func mayMatch(with byte: UInt8) -> Bool { literal?.contains(byte) ?? true }

    func isFound(in text: String) throws(Pattern.LimitReached) -> Bool {
        try isFound(inPartOf: text) { $0 }
    }

    /// Whether the pattern is found in a part of a text, which is matched in place.
    func isFound(
        inPartOf text: String, _ part: (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
    ) throws(Pattern.LimitReached) -> Bool {
        let found = text.utf8.withContiguousStorageIfAvailable { result(in: part(UnsafeRawBufferPointer($0))) }
        if let found { return try found.get() }
        return try Array(text.utf8).withUnsafeBytes { result(in: part($0)) }.get()
    }

    func isFound(in bytes: ArraySlice<UInt8>) throws(Pattern.LimitReached) -> Bool {
        try bytes.withUnsafeBytes { result(in: $0) }.get()
    }

    func isFound(in bytes: [UInt8]) throws(Pattern.LimitReached) -> Bool {
        try bytes.withUnsafeBytes { result(in: $0) }.get()
    }

    private func result(in bytes: UnsafeRawBufferPointer) -> Result<Bool, Pattern.LimitReached> {
        do throws(Pattern.LimitReached) {
            return .success(try isFound(in: bytes))
        } catch {
            return .failure(error)
        }
    }

    func isFound(in bytes: UnsafeRawBufferPointer) throws(Pattern.LimitReached) -> Bool {
        guard let literal else { return try pattern.matches(bytes) }
        if isWhole { return literal.isSame(as: bytes) }
        if let isFound = literal.isFound(in: bytes) { return isFound }
        return try pattern.matches(bytes)
    }
}
