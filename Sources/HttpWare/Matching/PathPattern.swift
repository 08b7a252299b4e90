/// A pattern of normalised paths: `/exact`, `/prefix/**`, `/users/{id}` (one segment, captured), `*` inside a segment.
///
/// `/prefix/**` matches `/prefix` and everything below it. A segment that is `*` or a capture is never empty; a `*` next to
/// other text matches any number of bytes, including none. The pattern itself is normalised like a path when it is read, so
/// `/%7euser` means `/~user`. Matching allocates nothing, and its time is linear in the path.
public struct PathPattern: Sendable, Hashable {
    /// The condition for one segment of the path.
    public enum Segment: Sendable, Hashable {
        case text([UInt8])
        /// Text with `*` in it.
        case glob([UInt8])
        case capture
    }

    /// The pattern as written.
    public let source: String
    /// The names of the captured segments, in order.
    public let captures: [String]
    /// The segments from the front, without the `**` at the end.
    public let segments: [Segment]
    /// Whether the pattern ends with `/**`.
    public let isPrefix: Bool
    /// Whether the case of ASCII letters in texts without `*` does not count.
    private(set) var ignoresCase = false

    /// Whether the path matches; it begins with `/` and has no query.
    public func matches(_ path: Span<UInt8>) -> Bool {
        walk(path) { _ in }
    }

    /// Whether the path, as bytes, matches.
    public func matches(_ path: UnsafeRawBufferPointer) -> Bool {
        matches(Span(_unsafeBytes: path))
    }

    /// The ranges of the captured segments, in the order of `captures`; `nil` if the path does not match.
    public func captured(in path: Span<UInt8>) -> [Range<Int>]? {
        var ranges: [Range<Int>] = []
        ranges.reserveCapacity(captures.count)
        return walk(path) { ranges.append($0) } ? ranges : nil
    }

    /// The ranges of the captured segments of a path as bytes.
    public func captured(in path: UnsafeRawBufferPointer) -> [Range<Int>]? {
        captured(in: Span(_unsafeBytes: path))
    }

    /// Whether this pattern certainly matches every path that the other one matches.
    public func covers(_ narrow: PathPattern) -> Bool {
        guard
            isPrefix
                ? segments.count <= narrow.segments.count
                : !narrow.isPrefix && segments.count == narrow.segments.count
        else { return false }
        return zip(segments, narrow.segments).allSatisfy { wide, narrow in
            switch narrow {
            case .text(let text): wide.matches(text)
            case .glob, .capture: wide == .capture || wide == narrow
            }
        }
    }

    @inline(__always)
    private func walk(_ path: Span<UInt8>, _ capture: (Range<Int>) -> Void) -> Bool {
        let slash = UInt8(ascii: "/")
        var start = 0  // at the slash before a segment, or at the end
        guard path.count > 0, path[0] == slash else { return false }
        for segment in segments {
            guard start < path.count, path[start] == slash else { return false }
            start += 1
            var end = start
            while end < path.count, path[end] != slash { end += 1 }
            switch segment {
            case .text(let text):
                guard text.count == end - start else { return false }
                for i in text.indices where text[i] != path[start + i] {
                    guard ignoresCase, ByteClass.lower(text[i]) == ByteClass.lower(path[start + i]) else {
                        return false
                    }
                }
            case .glob(let glob):
                guard end > start, Self.glob(glob, path.bytes, start, end) else { return false }
            case .capture:
                guard end > start else { return false }
                capture(start..<end)
            }
            start = end
        }
        return start == path.count || (isPrefix && path[start] == slash)
    }

    /// Whether a segment of the path, from `start` to `end`, matches text with `*`. It backtracks only to the last `*`:
    /// at most pattern × segment steps.
    static func glob(_ glob: [UInt8], _ path: RawSpan, _ start: Int, _ end: Int) -> Bool {
        let star = UInt8(ascii: "*")
        var at = 0
        var position = start
        var retry: (at: Int, position: Int)?
        while position < end {
            if at < glob.count, glob[at] == star {
                retry = (at + 1, position)
                at += 1
            } else if at < glob.count, glob[at] == path.byte(at: position) {
                at += 1
                position += 1
            } else if let last = retry {
                retry = (last.at, last.position + 1)
                at = last.at
                position = last.position + 1
            } else {
                return false
            }
        }
        while at < glob.count, glob[at] == star { at += 1 }
        return at == glob.count
    }
}

extension PathPattern {
    /// The same pattern, whose texts match in any case.
    var ignoringCase: PathPattern {
        var copy = self
        copy.ignoresCase = true
        return copy
    }

    /// A regular expression for the paths that match in any case.
    var expressionIgnoringCase: String {
        var text = "(?is)\\A"
        for segment in segments {
            switch segment {
            case .text(let bytes): text += "/" + PathPattern.escaped(bytes)
            case .glob(let bytes):
                let parts = bytes.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
                text += "/(?=[^/])" + parts.map { PathPattern.escaped(Array($0)) }.joined(separator: "[^/]*")
            case .capture: text += "/[^/]+"
            }
        }
        // Every path begins with a slash.
        return text + (!isPrefix ? "\\z" : segments.isEmpty ? "/.*\\z" : "(?:/.*)?\\z")
    }

    private static func escaped(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            ByteClass.isAlphanumeric(byte)
                ? String(UnicodeScalar(byte))
                : "\\x{" + String(byte, radix: 16) + "}"
        }.joined()
    }
}

extension PathPattern.Segment {
    /// Whether a segment of a path, without slashes, matches.
    public func matches(_ segment: [UInt8]) -> Bool {
        switch self {
        case .text(let text): text == segment
        case .glob(let glob): !segment.isEmpty && PathPattern.glob(glob, segment.span.bytes, 0, segment.count)
        case .capture: !segment.isEmpty
        }
    }
}

extension PathPattern: OptionValue {
    public static let optionType = "path pattern"
    public static var optionForm: OptionForm { .pattern("/[^?#]*") }
    public var optionText: String { source }

    public init(optionText: String) throws(OptionMistake) {
        let hint = "write a path such as /exact, /prefix/**, /users/{id} or /img/*.png"
        guard optionText.utf8.first == UInt8(ascii: "/"), optionText.utf8.count <= 4096 else {
            throw OptionMistake(hint)
        }
        guard !optionText.contains("?"), !optionText.contains("#") else {
            throw OptionMistake("match the query with query", problem: "a path has no query or fragment")
        }
        var parts = optionText.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        isPrefix = parts.last == "**"
        if isPrefix { parts.removeLast() }
        var segments: [Segment] = []
        var captures: [String] = []
        for part in parts {
            if part.contains("**") {
                throw OptionMistake(
                    "write it once, as the last segment: /prefix/**", problem: "** is inside the path")
            }
            if part == "." || part == ".." {
                throw OptionMistake(hint, problem: "a normalised path has no \(part) segment")
            }
            if part.hasPrefix("{"), part.hasSuffix("}"), Self.isName(part.dropFirst().dropLast()) {
                let name = String(part.dropFirst().dropLast())
                if captures.contains(name) { throw OptionMistake("name it once", problem: "{\(name)} is used twice") }
                captures.append(name)
                segments.append(.capture)
            } else if part.contains("{") || part.contains("}") {
                throw OptionMistake("a capture is a whole segment with a plain name, such as /users/{id}")
            } else {
                let text = try Self.normalised(part)
                segments.append(text.contains(UInt8(ascii: "*")) ? .glob(text) : .text(text))
            }
        }
        source = optionText
        self.segments = segments
        self.captures = captures
    }

    private static func isName(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") || ByteClass.isAlphanumeric($0)
            }
    }

    /// The text with percent-encodings in upper case, unreserved characters decoded (RFC 3986 §6.2.2), and invalid characters encoded.
    private static func normalised(_ part: Substring) throws(OptionMistake) -> [UInt8] {
        var result: [UInt8] = []
        var rest = Array(part.utf8)[...]
        while let byte = rest.popFirst() {
            var value = byte
            if byte == UInt8(ascii: "%") {
                guard let decoded = Hex.byte(rest, at: rest.startIndex) else {
                    throw OptionMistake("write two hexadecimal digits after a %")
                }
                value = decoded
                rest = rest.dropFirst(2)
                if value == 0 { throw OptionMistake("a forwarded path never has it", problem: "%00 never matches") }
            }
            let isEncoded = byte == UInt8(ascii: "%")
            if ByteClass.isUnreserved(value) || (!isEncoded && "!$&'()*+,;=:@".utf8.contains(value)) {
                result.append(value)
            } else {
                PercentText.append(value, to: &result)
            }
        }
        return result
    }
}
