public import HttpWare

/// A replacement of texts in content.
public struct RewriteRule: Sendable {
    /// The text or pattern to find.
    enum Target: Sendable {
        case text(TextReplacer.Search)
        case pattern(Pattern)
    }

    let target: Target
    let replacement: [UInt8]
    /// The maximum number of replacements in one message.
    let max: Int

    /// Replaces a text, which must not be empty.
    public init(find: String, replace: String, max: Int = .max) {
        precondition(!find.isEmpty, "the text to find is empty")
        target = .text(TextReplacer.Search(Array(find.utf8)))
        replacement = Array(replace.utf8)
        self.max = max
    }

    /// Replaces the matches of a pattern. In `replace`, `$1` … `$9` are its groups, `$0` is the whole match and `$$` a dollar
    /// sign.
    public init(regex: Pattern, replace: String, max: Int = .max) throws(Pattern.Malformed) {
        target = .pattern(try Pattern(regex.source, [], limits: RewriteRule.limits))
        replacement = Array(replace.utf8)
        self.max = max
    }

    /// The limits for all matches in one content.
    private static let limits = Pattern.Limits(subject: largestBody.bytes, time: .milliseconds(100))
    static let largestBody = ByteCount.mebibytes(16)

    /// The content with its replacements, and their number; `nil` if nothing was found. `time` is the limit for a regular
    /// expression.
    func apply(to content: [UInt8], upTo size: Int, within time: Duration) throws -> (bytes: [UInt8], count: Int)? {
        switch target {
        case .text(let search):
            var replacer = TextReplacer(search, with: replacement, atMost: max)
            var result: [UInt8] = []
            do {
                try content.withUnsafeBytes { try replacer.replace(in: $0, into: &result, upTo: size) }
            } catch is TextReplacer.Outgrown {
                throw EditingFault.tooLarge(size)
            }
            guard replacer.count > 0 else { return nil }
            replacer.finish(into: &result)
            return (result, replacer.count)
        case .pattern(let pattern):
            guard time > .zero else { throw Pattern.LimitReached() }
            return try content.withUnsafeBytes {
                try pattern.replacingAll(in: $0, with: replacement, atMost: max, upTo: size, within: time)
            }
        }
    }
}

extension RewriteRule {
    /// Reads a rule. If it is invalid, records a mistake and returns `nil`.
    init?(options: inout OptionsReader) {
        var find: String?
        var regex: Pattern?
        var replace: String?
        var max: Int?
        options.read("find", into: &find, doc: "text to find, byte for byte")
        options.read("regex", into: &regex, doc: "regular expression (PCRE2) to find; (?i) at its start ignores case")
        options.requireOne(of: "find", "regex")
        options.read(
            "replace", into: &replace,
            doc: "text in its place; with regex, $1 … $9 are groups, $0 is the whole match and $$ a dollar sign")
        options.require("replace")
        options.read("max", into: &max, in: 1...1_000_000_000, doc: "maximum number of replacements in a message")
        guard let replace else { return nil }
        if let find {
            if find.isEmpty {
                options.fail(at: "find", "is empty; write the text to find")
                return nil
            }
            self.init(find: find, replace: replace, max: max ?? .max)
        } else if let regex {
            if let group = RewriteRule.highestGroup(in: replace), group > regex.groupCount {
                options.fail(
                    at: "replace", "names group \(group), but the regular expression has \(regex.groupCount) groups")
                return nil
            }
            guard let rule = try? RewriteRule(regex: regex, replace: replace, max: max ?? .max) else { return nil }
            self = rule
        } else {
            return nil
        }
    }

    private static func highestGroup(in replacement: String) -> Int? {
        var highest: Int?
        var rest = Array(replacement.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "$"), let next = rest.first else { continue }
            if next == byte { rest.removeFirst() }
            if (0x30...0x39).contains(next) { highest = Swift.max(highest ?? 0, Int(next - 0x30)) }
        }
        return highest
    }
}
