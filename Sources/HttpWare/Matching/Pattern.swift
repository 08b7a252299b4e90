import CPcre2
import Synchronization

/// A regular expression (PCRE2), compiled when the configuration is loaded, with limits for its execution.
///
/// It matches bytes, anywhere in the subject unless it is anchored; `$` is the very end. The work of a match is limited, so
/// that no subject can block a loop: beyond the limit the match throws, and the caller must fail as for any error.
/// Several loops may use one pattern at once.
///
/// `@unchecked Sendable`: the compiled code never changes after `init`, and each workspace is used by one match at a time.
public final class Pattern: @unchecked Sendable {
    /// The expression as written.
    public let source: String
    /// The number of capturing groups.
    public let groupCount: Int
    private let limits: Limits
    private let style: Style
    private let code: OpaquePointer
    private let spares = Mutex<[Workspace]>([])

    /// A limit was reached: it is unknown whether the subject matches.
    public struct LimitReached: Error, Sendable, Equatable {
        /// Makes the error.
        public init() {}
    }

    /// Options of a pattern.
    public struct Style: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// ASCII letters match in either case.
        public static let ignoresCase = Style(rawValue: 1)
        /// `^` and `$` also match at each line.
        public static let byLine = Style(rawValue: 2)
        /// `.` also matches the end of a line.
        public static let dotMatchesAll = Style(rawValue: 4)
        /// Only the whole subject matches.
        public static let whole = Style(rawValue: 8)
    }

    /// The limits of a match.
    public struct Limits: Sendable, Hashable {
        /// The maximum length of a subject, in bytes.
        public var subject: Int
        /// The maximum time of one match.
        public var time: Duration
        /// The maximum number of start positions tried between two checks of the clock.
        public var step: Int

        /// Makes limits.
        public init(subject: Int, time: Duration, step: Int = 512) {
            self.subject = subject
            self.time = time
            self.step = max(step, 1)
        }

        /// For a match on a loop that serves requests.
        public static let loop = Limits(subject: 1 << 20, time: .milliseconds(20), step: 32)
    }

    /// The source is not a valid regular expression.
    public struct Malformed: Error, Sendable, Equatable {
        /// The error in PCRE2's words.
        public let message: String
        /// The place of the error, in bytes of the source.
        public let offset: Int
    }

    /// The ranges of a match: first the whole, then each group; `nil` for a group that did not take part.
    public struct Match: Sendable, Equatable {
        /// The whole, then each group, as offsets into the subject.
        public let ranges: [Range<Int>?]
        /// The whole match.
        public var range: Range<Int> { ranges.first.flatMap(\.self) ?? 0..<0 }
    }

    /// The version of PCRE2, such as `10.42 2022-12-11`.
    public static var libraryVersion: String {
        var text = [UInt8](repeating: 0, count: 64)
        let length = pcre2_config_8(UInt32(PCRE2_CONFIG_VERSION), nil)
        guard length > 0, Int(length) <= text.count else { return "" }
        _ = text.withUnsafeMutableBytes { pcre2_config_8(UInt32(PCRE2_CONFIG_VERSION), $0.baseAddress) }
        return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Compiles the pattern.
    public convenience init(_ source: String) throws(OptionMistake) {
        do throws(Malformed) {
            try self.init(source, [])
        } catch {
            guard error != Pattern.tooLong else {
                throw OptionMistake(
                    "write at most \(Self.longestSource) bytes", problem: "the regular expression is too long")
            }
            throw OptionMistake("\(error.message) at character \(error.offset + 1)")
        }
    }

    /// Compiles the pattern in a style, with limits for its matches.
    public init(_ source: String, _ style: Style, limits: Limits = .loop) throws(Malformed) {
        let text = Array(source.utf8)
        guard text.count <= Self.longestSource else { throw Pattern.tooLong }
        var options = PCRE2_DOLLAR_ENDONLY | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP
        if style.contains(.ignoresCase) { options |= PCRE2_CASELESS }
        if style.contains(.byLine) { options |= PCRE2_MULTILINE }
        if style.contains(.dotMatchesAll) { options |= PCRE2_DOTALL }
        if style.contains(.whole) { options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED }
        var status: Int32 = 0
        var offset = 0
        guard let code = pcre2_compile_8(text, text.count, options, &status, &offset, nil) else {
            throw Malformed(message: Self.message(status), offset: min(max(offset, 0), text.count))
        }
        // If the system forbids JIT compilation, the interpreter runs instead.
        _ = pcre2_jit_compile_8(code, UInt32(PCRE2_JIT_COMPLETE))
        var groups: UInt32 = 0
        _ = pcre2_pattern_info_8(code, UInt32(PCRE2_INFO_CAPTURECOUNT), &groups)
        self.source = source
        self.style = style
        self.limits = limits
        self.code = code
        groupCount = Int(groups)
    }

    private static let tooLong = Malformed(message: "regular expression is too long", offset: longestSource)

    deinit {
        spares.withLock { spares in
            for spare in spares { spare.free() }
        }
        pcre2_code_free_8(code)
    }

    /// Whether the pattern matches anywhere in the subject.
    public func matches(_ subject: UnsafeRawBufferPointer) throws(LimitReached) -> Bool {
        var bound = TimeBound(limits.time)
        return try search(subject, &bound) { _ in true } ?? false
    }

    /// Whether the pattern matches anywhere in the subject, within the remaining time of an exchange.
    public func matches(
        _ subject: UnsafeRawBufferPointer, within time: inout PatternTime
    ) throws(LimitReached) -> Bool {
        try time.spend { (bound) throws(LimitReached) in try search(subject, &bound) { _ in true } ?? false }
    }

    /// The leftmost match.
    public func firstMatch(in subject: UnsafeRawBufferPointer) throws(LimitReached) -> Match? {
        var bound = TimeBound(limits.time)
        return try search(subject, &bound) { match(in: $0, of: subject) }
    }

    private func match(in workspace: Workspace, of subject: UnsafeRawBufferPointer) -> Match {
        // One pair for the whole and one for each group, because the match data was made from this code.
        guard let offsets = pcre2_get_ovector_pointer_8(workspace.data) else { return Match(ranges: []) }
        return Match(
            ranges: (0...groupCount).map { group in
                let (start, end) = (offsets[2 * group], offsets[2 * group + 1])
                // PCRE2_UNSET is -1 here, for a group that did not take part.
                return 0 <= start && start <= end && end <= subject.count ? start..<end : nil
            })
    }

    /// The subject with its first match replaced; `nil` without a match. It takes at most the remaining time of an exchange.
    ///
    /// In the replacement `$1` … `$9` are groups, `$0` is the whole match, and `$$` is a dollar sign.
    public func replacingFirst(
        in subject: UnsafeRawBufferPointer, with replacement: [UInt8], within time: inout PatternTime
    ) throws(LimitReached) -> [UInt8]? {
        let found = try time.spend { (bound) throws(LimitReached) in
            try search(subject, &bound) { match(in: $0, of: subject) }
        }
        guard let match = found else { return nil }
        var result = [UInt8](subject[..<match.range.lowerBound])
        Self.append(replacement, of: match, in: subject, to: &result)
        return result + subject[match.range.upperBound...]
    }

    /// The subject with its matches replaced, from left to right and at most `most` of them, and their number; `nil` without a
    /// match. It throws if the result exceeds `size` bytes, or if all matches together exceed `time` or the time limit of one match.
    ///
    /// The replacement is as in `replacingFirst`. An empty match is never inside a UTF-8 character.
    public func replacingAll(
        in subject: UnsafeRawBufferPointer, with replacement: [UInt8], atMost most: Int = .max, upTo size: Int = .max,
        within time: Duration = .seconds(1)
    ) throws(LimitReached) -> (bytes: [UInt8], count: Int)? {
        guard subject.count <= limits.subject, let workspace = takeWorkspace() else { throw LimitReached() }
        defer { giveBack(workspace) }
        var bound = TimeBound(min(time, limits.time))
        var result: [UInt8] = []
        var count = 0
        /// Bytes before this place are already in the result.
        var copied = 0
        var start = 0
        while count < most, start <= subject.count {
            guard
                let match = try search(
                    subject, from: start, in: workspace, &bound, { self.match(in: $0, of: subject) })
            else { break }
            let range = match.range
            // With \K or a lookbehind, a match may begin before the start of its search.
            guard range.lowerBound >= copied else { throw LimitReached() }
            result.append(contentsOf: subject[copied..<range.lowerBound])
            Self.append(replacement, of: match, in: subject, to: &result)
            guard result.count <= size, !bound.isOver() else { throw LimitReached() }
            count += 1
            copied = range.upperBound
            start = copied
            if range.isEmpty {
                repeat { start += 1 } while start < subject.count && subject[start] & 0xc0 == 0x80
            }
        }
        guard count > 0 else { return nil }
        result.append(contentsOf: subject[copied...])
        guard result.count <= size else { throw LimitReached() }
        return (result, count)
    }

    private static func append(
        _ replacement: [UInt8], of match: Match, in subject: UnsafeRawBufferPointer, to result: inout [UInt8]
    ) {
        let dollar = UInt8(ascii: "$")
        var rest = replacement[...]
        while let byte = rest.popFirst() {
            if byte == dollar, rest.first == dollar {
                result.append(dollar)
                rest.removeFirst()
            } else if byte == dollar, let digit = rest.first, (0x30...0x39).contains(digit) {
                let group = Int(digit - 0x30)
                if group < match.ranges.count, let range = match.ranges[group] { result += subject[range] }
                rest.removeFirst()
            } else {
                result.append(byte)
            }
        }
    }

    // MARK: Matching

    private static let longestSource = 8192
    /// The number of start positions tried first, and again after a step that was not quick.
    private static let firstStep = 32
    private static let quickStep = Duration.microseconds(20)

    /// Matches in short steps, so that the total time is bounded: PCRE2 restarts its limit at every start position.
    private func search<T>(
        _ subject: UnsafeRawBufferPointer, _ bound: inout TimeBound, _ found: (Workspace) -> T
    ) throws(LimitReached) -> T? {
        guard subject.count <= limits.subject, let workspace = takeWorkspace() else { throw LimitReached() }
        defer { giveBack(workspace) }
        return try search(subject, from: 0, in: workspace, &bound, found)
    }

    private func search<T>(
        _ subject: UnsafeRawBufferPointer, from start: Int, in workspace: Workspace, _ bound: inout TimeBound,
        _ found: (Workspace) -> T
    ) throws(LimitReached) -> T? {
        var former: ContinuousClock.Instant?
        var step = min(Self.firstStep, limits.step)
        var offset = start
        while true {
            let last = min(offset + step, subject.count)
            pcre2_set_offset_limit_8(workspace.context, last)
            var result = match(subject, from: offset, in: workspace, options: 0)
            if result == PCRE2_ERROR_JIT_STACKLIMIT {
                result = match(subject, from: offset, in: workspace, options: UInt32(PCRE2_NO_JIT))
            }
            if result > 0 { return found(workspace) }
            guard result == PCRE2_ERROR_NOMATCH else { throw LimitReached() }
            if last == subject.count || style.contains(.whole) { return nil }
            offset = last + 1
            let now = ContinuousClock.now
            if bound.isOver(at: now) { throw LimitReached() }
            if let former {
                let isQuick = former.duration(to: now) < Self.quickStep
                step = isQuick ? min(step * 2, limits.step) : min(Self.firstStep, limits.step)
            }
            former = now
        }
    }

    private func match(
        _ subject: UnsafeRawBufferPointer, from offset: Int, in workspace: Workspace, options: UInt32
    ) -> Int32 {
        // Bound to bytes only for the C call, which only reads them.
        guard let start = subject.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            // An empty buffer may have no address, and PCRE2 10.42 refuses a null subject.
            return withUnsafePointer(to: 0 as UInt8) {
                pcre2_match_8(code, $0, 0, 0, options, workspace.data, workspace.context)
            }
        }
        return pcre2_match_8(code, start, subject.count, offset, options, workspace.data, workspace.context)
    }

    /// The memory of one match. Made once per concurrent use and kept, because making it costs more than a short match.
    ///
    /// `@unchecked Sendable`: it is either in the list of spares or with one caller, never both.
    private struct Workspace: @unchecked Sendable {
        let data: OpaquePointer
        let context: OpaquePointer

        func free() {
            pcre2_match_data_free_8(data)
            pcre2_match_context_free_8(context)
        }
    }

    private func takeWorkspace() -> Workspace? {
        if let spare = spares.withLock({ $0.popLast() }) { return spare }
        guard let data = pcre2_match_data_create_from_pattern_8(code, nil) else { return nil }
        guard let context = pcre2_match_context_create_8(nil) else {
            pcre2_match_data_free_8(data)
            return nil
        }
        pcre2_set_match_limit_8(context, 50_000)
        pcre2_set_depth_limit_8(context, 10_000)
        pcre2_set_heap_limit_8(context, 1024)  // KiB
        return Workspace(data: data, context: context)
    }

    private func giveBack(_ workspace: Workspace) {
        spares.withLock { $0.append(workspace) }
    }

    private static func message(_ status: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 256)
        let length = pcre2_get_error_message_8(status, &buffer, buffer.count)
        return length > 0 ? String(decoding: buffer.prefix(Int(length)), as: UTF8.self) : "error \(status)"
    }
}

extension Pattern: OptionValue {
    public static let optionType = "regular expression"
    public var optionText: String { source }
    public convenience init(optionText: String) throws(OptionMistake) { try self.init(optionText) }
}

extension Pattern: Hashable {
    /// Two patterns are equal if their source and style are equal.
    public static func == (left: Pattern, right: Pattern) -> Bool {
        left.source == right.source && left.style == right.style
    }
    public func hash(into hasher: inout Hasher) { hasher.combine(source) }
}
