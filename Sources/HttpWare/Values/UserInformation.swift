extension String {
    /// The text with a mark for the user information of each URL in it, whose part before `@` may be a password (RFC 3986 §3.2.1), and of
    /// each `user:password@` without a scheme. Also masks user information that makes its URL invalid, such as a password with a space.
    var withoutUserInformation: String {
        guard utf8.contains(0x40) else { return self }
        let bytes = Array(utf8)
        var shown: [UInt8] = []
        shown.reserveCapacity(bytes.count)
        var start = 0
        while start < bytes.count {
            var end = bytes[start...].firstIndex(where: UserInformation.isBetweenWords) ?? bytes.count
            if let hidden = UserInformation.range(in: bytes[start..<end]) {
                shown += bytes[start..<hidden.lowerBound]
                shown += UserInformation.mark
                shown += bytes[hidden.upperBound..<end]
            } else if let hidden = UserInformation.rangeBeyond(bytes[start..<end], of: bytes) {
                shown += bytes[start..<hidden.lowerBound]
                shown += UserInformation.mark
                end = bytes[hidden.upperBound...].firstIndex(where: UserInformation.isBetweenWords) ?? bytes.count
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
    /// Bytes that may stand before a user.
    private static let opening = Array("([{'\"=,;|\\".utf8)
    private static let separators = Array(",;|".utf8)
    private static let schemesOfNames = ["mailto", "unix"].map { Array($0.utf8) }
    /// The number of items of a list that are looked at.
    private static let mostItems = 64

    /// Whether the byte ends a word.
    static func isBetweenWords(_ byte: UInt8) -> Bool { byte <= 0x20 }

    /// The part of a word that may be a user and a password; `nil` without one. Several URLs in a word, as in a list with commas, are
    /// masked together.
    static func range(in word: ArraySlice<UInt8>) -> Range<Int>? {
        guard let last = word.lastIndex(of: 0x40) else { return nil }
        var rest = word
        for _ in 0..<mostItems {
            guard let start = startOfAuthority(in: rest), start <= last else { return bareRange(in: rest) }
            if let found = range(ofAuthorityAt: start, in: rest, last: last) { return found }
            guard let separator = rest[start...].firstIndex(where: separators.contains), separator < last
            else { return nil }
            rest = rest[(separator + 1)...]
        }
        return rest.startIndex..<last
    }

    private static func startOfAuthority(in word: ArraySlice<UInt8>) -> Int? {
        word.indices.dropLast().first { word[$0] == 0x2f && word[$0 + 1] == 0x2f }.map { $0 + 2 }
    }

    private static func endOfAuthority(from start: Int, in word: ArraySlice<UInt8>) -> Int {
        word[start...].firstIndex { $0 == 0x2f || $0 == 0x3f || $0 == 0x23 } ?? word.endIndex
    }

    private static func range(ofAuthorityAt start: Int, in word: ArraySlice<UInt8>, last: Int) -> Range<Int>? {
        let end = endOfAuthority(from: start, in: word)
        let later = word[start...].indices.dropLast(2).contains {
            word[$0] == 0x3a && word[$0 + 1] == 0x2f && word[$0 + 2] == 0x2f
        }
        if later { return start..<last }
        if let at = word[start..<end].lastIndex(of: 0x40) { return start..<at }
        // A password with `/`, `?` or `#` ends the authority too early: `http://user:pass/word@host`. A port has digits only.
        guard let colon = word[start..<end].firstIndex(of: 0x3a), word[start] != 0x5b,
            colon + 1 == end || !isPort(word[(colon + 1)..<end])
        else { return nil }
        return start..<last
    }

    /// Whether it is the port of an authority, with the punctuation that may follow in a list.
    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        let rest = text.drop(while: ByteClass.isDigit)
        return rest.count < text.count && (rest.isEmpty || separators.contains(rest[rest.startIndex]))
    }

    /// `user:password@host` without a scheme, as some programs write a proxy; not an address for mail.
    private static func bareRange(in word: ArraySlice<UInt8>) -> Range<Int>? {
        var start = word.startIndex
        while true {
            start = word[start...].firstIndex { !opening.contains($0) } ?? word.endIndex
            guard let colon = word[start...].firstIndex(of: 0x3a), colon > start else { return nil }
            // The name of a member in JSON is not a user.
            guard word[colon - 1] == 0x22 || word[colon - 1] == 0x27 else {
                guard let at = word[colon...].lastIndex(of: 0x40),
                    !schemesOfNames.contains(where: { word[start..<colon].elementsEqual($0) })
                else { return nil }
                return start..<at
            }
            start = colon + 1
        }
    }

    /// The user information that begins in a word and ends in a later one of the same line: `http://user:pass word@host`. If only digits
    /// follow the colon they may be a port, so that `@` must be in the next word.
    static func rangeBeyond(_ word: ArraySlice<UInt8>, of bytes: [UInt8]) -> Range<Int>? {
        guard let slashes = word.indices.dropLast().last(where: { word[$0] == 0x2f && word[$0 + 1] == 0x2f }),
            case let start = slashes + 2, start < word.endIndex, word[start] != 0x5b
        else { return nil }
        let end = endOfAuthority(from: start, in: word)
        guard let colon = word[start..<end].firstIndex(of: 0x3a), colon > start || colon + 1 < word.endIndex
        else { return nil }
        let password = word[(colon + 1)..<end]
        let digits = password.prefix(while: ByteClass.isDigit).count
        let mayBePort =
            digits > 0 && (digits < password.count ? ")]}>'\",;.".utf8.contains(password[colon + 1 + digits]) : true)
        if mayBePort, digits < password.count || end < word.endIndex { return nil }
        var at = word.endIndex
        var words = 0
        while at < bytes.count, bytes[at] != 0x0a {
            if isBetweenWords(bytes[at]) {
                words += 1
                if mayBePort, words > 1 { return nil }
            } else if bytes[at] == 0x2f, bytes[at - 1] == 0x2f {
                return nil
            } else if bytes[at] == 0x40 {
                let next = bytes[at...].firstIndex(where: isBetweenWords) ?? bytes.count
                return start..<(bytes[at..<next].lastIndex(of: 0x40) ?? at)
            }
            at += 1
        }
        return nil
    }
}
