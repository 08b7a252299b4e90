import Synchronization

/// Hides credentials in logs and records.
public enum Redaction {
    /// The fields whose values are hidden by default.
    public static let fields: [FieldName] = [
        .authorization, .proxyAuthorization, .cookie, .setCookie, "X-Api-Key",
    ]

    /// Replaces a hidden value.
    public static let mark = "…"

    /// A target with marks for hidden parts: the values of query parameters that are named like credentials, and
    /// user information before a host.
    public static func target(_ target: String) -> String {
        var target = target
        let shown = target.withUTF8 { text in hidden(in: text).map { String(decoding: $0, as: UTF8.self) } }
        return shown ?? target
    }

    /// A text of a configuration with marks for user information, and for parameters of URLs that are named like credentials, whatever
    /// its option is for: for values that are shown to people.
    public static func text(_ text: String) -> String {
        var shown = text.withoutUserInformation
        guard shown.utf8.contains(0x3f), shown.utf8.contains(0x3d) else { return shown }
        return shown.withUTF8 { text in
            var output: [UInt8] = []
            output.reserveCapacity(text.count)
            for word in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 <= 0x20 }) {
                if word.startIndex > 0 { output.append(text[word.startIndex - 1]) }
                let hidden = isTarget(word) ? withoutCredentials(UnsafeBufferPointer(rebasing: word)) : nil
                if let hidden { output += hidden } else { output += word }
            }
            return String(decoding: output, as: UTF8.self)
        }
    }

    /// Whether a word is a URL, or a path with a query, also in quotes or brackets.
    private static func isTarget(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard let question = word.firstIndex(of: 0x3f) else { return false }
        let path = word[..<question].drop { $0 == 0x22 || $0 == 0x27 || $0 == 0x5b || $0 == 0x7b || $0 == 0x28 }
        return path.first == 0x2f || path.indices.dropLast().contains { path[$0] == 0x2f && path[$0 + 1] == 0x2f }
    }

    /// Passes the bytes of a target to `show`, with marks for hidden parts. `show` is called once; the bytes are valid only
    /// during the call. If nothing must be hidden, nothing is copied.
    public static func withTarget(
        _ target: UnsafeBufferPointer<UInt8>, _ show: (UnsafeBufferPointer<UInt8>) -> Void
    ) {
        guard let hidden = hidden(in: target) else { return show(target) }
        hidden.withUnsafeBufferPointer(show)
    }

    /// Whether a parameter is named like a credential; the name may be percent-encoded, in any case.
    public static func isSecret(parameter name: String) -> Bool {
        var name = name
        return name.withUTF8 { isSecret($0) }
    }

    /// Whether a field, a parameter or a member is named like a credential, or is one of the `fields`.
    public static func isSecret(name: String) -> Bool {
        isSecret(parameter: name) || fields.contains { $0 == FieldName(name) }
    }

    /// Hides the values of query parameters with that name, because a configuration uses them for credentials. For the rest
    /// of the process; safe to call from any thread.
    public static func hide(parameter name: String) {
        let name = name.utf8.map { ByteClass.lower($0) }
        hiddenNames.withLock { names in
            if !names.contains(name) { names.append(name) }
        }
    }

    private static let hiddenNames = Mutex<[[UInt8]]>([])

    // MARK: Targets

    /// The target with marks for hidden parts; `nil` if nothing has to be hidden.
    private static func hidden(in target: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard let anonymous = withoutUserInformation(target) else { return withoutCredentials(target) }
        return anonymous.withUnsafeBufferPointer { withoutCredentials($0) } ?? anonymous
    }

    /// The target without user information, whose part before `@` may be a password; `nil` without it. RFC 3986 §3.2.1.
    private static func withoutUserInformation(_ target: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard target.contains(0x40) else { return nil }
        var shown: [UInt8] = []
        var copied = 0
        var place = 0
        let question = target.firstIndex(of: 0x3f) ?? target.endIndex
        // A parameter may contain a URL, too. Only there, `&` ends it: user information may have one.
        while let slashes = target[place...].indices.dropLast().first(where: {
            target[$0] == 0x2f && target[$0 + 1] == 0x2f
        }) {
            let start = slashes + 2
            let isParameter = slashes > question
            let end =
                target[start...].firstIndex { $0 == 0x2f || $0 == 0x3f || isParameter && $0 == 0x26 } ?? target.endIndex
            if let at = target[start..<end].lastIndex(of: 0x40) {
                shown += target[copied..<start]
                shown += mark.utf8
                copied = at
            }
            place = end
        }
        return copied == 0 ? nil : shown + target[copied...]
    }

    private static func withoutCredentials(_ target: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        let question = target.firstIndex(of: 0x3f)
        guard question != nil || target.contains(0x3b) else { return nil }
        var shown: [UInt8] = []
        var copied = 0
        // Path parameters, as in `/a;jsessionid=1`: each ends with its segment. RFC 3986 §3.3.
        let pathEnd = question ?? target.endIndex
        var start = target.startIndex
        while let semicolon = target[start..<pathEnd].firstIndex(of: 0x3b) {
            start = semicolon + 1
            let end = target[start..<pathEnd].firstIndex { $0 == 0x3b || $0 == 0x2f } ?? pathEnd
            hideParameter(start..<end, of: target, &shown, &copied)
        }
        start = pathEnd + 1
        while start < target.endIndex {
            let end = parameterEnd(from: start, target)
            hideParameter(start..<end, of: target, &shown, &copied)
            start = end + 1
        }
        return shown.isEmpty ? nil : shown + target[copied...]
    }

    /// Replaces the value by a mark if the parameter is named like a credential.
    private static func hideParameter(
        _ parameter: Range<Int>, of target: UnsafeBufferPointer<UInt8>, _ shown: inout [UInt8], _ copied: inout Int
    ) {
        guard let equals = target[parameter].firstIndex(of: 0x3d),
            isSecret(UnsafeBufferPointer(rebasing: target[parameter.lowerBound..<equals]))
        else { return }
        shown += target[copied...equals]
        shown += mark.utf8
        copied = parameter.upperBound
    }

    /// The end of a query parameter: at `&`, or at a `;` that another `name=` follows. Some servers accept both separators.
    private static func parameterEnd(from start: Int, _ target: UnsafeBufferPointer<UInt8>) -> Int {
        let isSeparator = { (byte: UInt8) in byte == 0x26 || byte == 0x3b }
        var end = target[start...].firstIndex(where: isSeparator) ?? target.endIndex
        while end < target.endIndex, target[end] == 0x3b {
            let piece = target[(end + 1)...].prefix { !isSeparator($0) }
            if piece.contains(0x3d) { break }
            end = piece.endIndex
        }
        return end
    }

    // MARK: Names

    private static let exact = ["auth", "_auth", "sig", "pwd", "pin", "otp", "code", "sid"].map { Array($0.utf8) }
    private static let ending = Array("key".utf8)
    private static let parts = [
        "token", "secret", "passw", "passphrase", "passcode", "signature", "credential", "session", "authorization",
        "oauth", "jwt", "assertion", "key-data",
    ].map { Array($0.utf8) }
    /// The words by their first letter, ignoring case, so that each place in a name is compared with only a few.
    private static let partsByLetter = (0..<32).map { letter in parts.filter { Int($0[0] & 31) == letter } }

    /// The same for bytes.
    public static func isSecret(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if name.contains(0x25) {
            // `%74oken` is a token, too.
            return QueryParameters.decoded(name).withUnsafeBufferPointer { isSecretAsItIs($0) }
        }
        return isSecretAsItIs(name)
    }

    private static func isSecretAsItIs(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if name.count <= 5, exact.contains(where: { $0.count == name.count && isAt(0, $0, name) }) { return true }
        if name.count >= 3, isAt(name.count - 3, ending, name) { return true }
        let isHidden = hiddenNames.withLock { names in
            names.contains { $0.count == name.count && isAt(0, $0, name) }
        }
        if isHidden { return true }
        let partsByLetter = partsByLetter
        for index in name.indices {
            for part in partsByLetter[Int(name[index] & 31)]
            where part.count <= name.count - index && isAt(index, part, name) {
                return true
            }
        }
        return false
    }

    /// Whether the word, in any case, is at that place of the text, which must be long enough.
    private static func isAt(_ start: Int, _ word: [UInt8], _ text: UnsafeBufferPointer<UInt8>) -> Bool {
        word.indices.allSatisfy { ByteClass.lower(text[start + $0]) == word[$0] }
    }
}
