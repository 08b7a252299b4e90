extension String {
    /// The text with a mark for the user information of each URL in it, whose part before `@` may be a password (RFC 3986 §3.2.1), and of
    /// each `user:password@` without a scheme. Also masks user information that makes its URL invalid.
    var withoutUserInformation: String {
        guard utf8.contains(0x40) else { return self }
        let bytes = Array(utf8)
        var shown: [UInt8] = []
        shown.reserveCapacity(bytes.count)
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(where: UserInformation.isBetweenWords) ?? bytes.count
            if let hidden = UserInformation.range(in: bytes[start..<end]) {
                shown += bytes[start..<hidden.lowerBound]
                shown += UserInformation.mark
                shown += bytes[hidden.upperBound..<end]
            } else {
                shown += bytes[start..<end]
            }
            if end < bytes.count { shown.append(bytes[end]) }
            start = end + 1
        }
        return String(decoding: shown, as: UTF8.self)
    }
}

/// Finds user information in words of a text.
private enum UserInformation {
    static let mark = Array("…".utf8)

    /// Whether the byte ends a word.
    static func isBetweenWords(_ byte: UInt8) -> Bool { byte <= 0x20 }

    /// The part of a word that may be a user and a password; `nil` without one. Several URLs in a word, as in a list with commas, are
    /// masked together.
    static func range(in word: ArraySlice<UInt8>) -> Range<Int>? {
        guard let last = word.lastIndex(of: 0x40) else { return nil }
        guard let slashes = word.indices.dropLast().first(where: { word[$0] == 0x2f && word[$0 + 1] == 0x2f }),
            slashes + 2 <= last
        else { return bareRange(in: word) }
        let start = slashes + 2
        let end = word[start...].firstIndex { $0 == 0x2f || $0 == 0x3f || $0 == 0x23 } ?? word.endIndex
        let later = word[start...].indices.dropLast(2).contains {
            word[$0] == 0x3a && word[$0 + 1] == 0x2f && word[$0 + 2] == 0x2f
        }
        if later { return start..<last }
        if let at = word[start..<end].lastIndex(of: 0x40) { return start..<at }
        // A password with `/`, `?` or `#` ends the authority too early: `http://user:pass/word@host`. A port has digits only.
        guard let colon = word[start..<end].firstIndex(of: 0x3a), word[start] != 0x5b,
            colon + 1 == end || !word[(colon + 1)..<end].allSatisfy(ByteClass.isDigit)
        else { return nil }
        return start..<last
    }

    /// `user:password@host` without a scheme, as some programs write a proxy; not an address for mail.
    private static func bareRange(in word: ArraySlice<UInt8>) -> Range<Int>? {
        let opening = Array("([{'\"=".utf8)
        let start = word.firstIndex { !opening.contains($0) } ?? word.startIndex
        guard let colon = word[start...].firstIndex(of: 0x3a), colon > start,
            let at = word[colon...].lastIndex(of: 0x40), !word[start..<colon].elementsEqual("mailto".utf8)
        else { return nil }
        return start..<at
    }
}
