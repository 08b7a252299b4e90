import Testing

@testable import Scripting

/// The match of a pattern, or the reason why there is none.
private func search(
    _ pattern: String, in subject: String, from first: Int = 0, steps: Int = .max
) throws(PatternMatcher.Fault) -> (Range<Int>, [PatternMatcher.Capture])? {
    let pattern = Array(pattern.utf8)
    let subject = Array(subject.utf8)
    var asked = 0
    var matcher = PatternMatcher(
        UnsafeBufferPointer(start: pattern.withUnsafeBufferPointer(\.baseAddress), count: pattern.count),
        in: UnsafeBufferPointer(start: subject.withUnsafeBufferPointer(\.baseAddress), count: subject.count)
    ) {
        asked += 1
        return asked * 4_096 > steps
    }
    defer {
        withExtendedLifetime(pattern) {}
        withExtendedLifetime(subject) {}
    }
    guard let range = try matcher.search(from: first) else { return nil }
    return (range, (0..<matcher.captureCount).map { matcher.captures[$0] })
}

@Suite struct PatternMatcherTests {
    @Test(arguments: [
        ("b", "abc", 1..<2), ("", "abc", 0..<0), ("^b", "abc", nil), ("^a", "abc", 0..<1), ("c$", "abc", 2..<3),
        ("b$", "abc", nil), ("$", "abc", 3..<3), ("a.c", "xabc", 1..<4), ("%a+", "12ab3", 2..<4),
        ("%d*", "ab12", 0..<0), ("%d+", "ab12", 2..<4), ("a-b", "aaab", 0..<4), ("a-", "aaa", 0..<0),
        ("ab?c", "ac", 0..<2), ("ab?c", "abc", 0..<3), ("[abc]+", "xxbcay", 2..<5), ("[^abc]+", "abxyc", 2..<4),
        ("[a-c]+", "xbcd", 1..<3), ("[%d_]+", "ab1_2", 2..<5), ("[]]", "a]", 1..<2), ("[^]]", "]a", 1..<2),
        ("[a-]+", "x-a-", 1..<4), ("%.", "a.b", 1..<2), ("%b()", "f(a(b)c)d", 1..<8), ("%b()", "((", nil),
        ("%f[%w]%w+", "  one two", 2..<5), ("%f[%W]", "one two", 3..<3), ("(.)%1", "abccd", 2..<4),
        ("%u%l+", "aBcd", 1..<4), ("%s+", "a \t b", 1..<4), ("%x+", "xyzFf09", 3..<7), ("%p", "ab!", 2..<3),
        ("%S", "  a", 2..<3), ("%D", "1a", 1..<2), ("%c", "a\u{1}", 1..<2), ("%g", " a", 1..<2),
        ("$a", "x$a", 1..<3), ("a$b", "a$b", 0..<3), ("[%]]", "]", 0..<1), ("%%", "a%", 1..<2),
    ])
    func `a pattern matches as Lua's manual says`(pattern: String, subject: String, expected: Range<Int>?) throws {
        #expect(try search(pattern, in: subject)?.0 == expected)
    }

    @Test func `captures have their ranges, and a position has no end`() throws {
        let found = try #require(try search("(%w+)=()(%w*)", in: "  key=value"))
        #expect(found.0 == 2..<11)
        #expect(found.1 == [.init(start: 2, end: 5), .init(start: 6, end: -1), .init(start: 6, end: 11)])
    }

    @Test func `nested captures close from the inside`() throws {
        let found = try #require(try search("((a)(b))", in: "xab"))
        #expect(found.1 == [.init(start: 1, end: 3), .init(start: 1, end: 2), .init(start: 2, end: 3)])
    }

    @Test(arguments: [
        ("%", PatternMatcher.Reason.endsWithPercent), ("[a", .missingBracket), ("[", .missingBracket),
        ("[^", .missingBracket), ("[%", .missingBracket), ("[]", .missingBracket), ("%f", .missingSet),
        ("%b", .missingBalance), ("%b(", .missingBalance), ("(a", .unfinishedCapture), ("a)", .invalidCapture),
        ("%1", .invalidCapture), ("%0", .invalidCapture), ("(%1)", .invalidCapture), ("()%1", .invalidCapture),
    ])
    func `a pattern that cannot be used is refused with its reason`(pattern: String, reason: PatternMatcher.Reason) {
        #expect(throws: PatternMatcher.Fault.invalid(reason)) {
            try search(pattern, in: String(repeating: "a", count: 400))
        }
    }

    @Test func `a pattern with too many parts is refused`() {
        #expect(throws: PatternMatcher.Fault.invalid(.tooManyCaptures)) {
            try search(String(repeating: "()", count: 33), in: "a")
        }
        #expect(throws: PatternMatcher.Fault.invalid(.tooComplex)) {
            try search(String(repeating: "a?", count: 300), in: String(repeating: "a", count: 400))
        }
    }

    /// The parts of a pattern and of a subject, each with its number of repetitions.
    @Test(arguments: [
        ("a?", 30, "b", "a", 30), (".-", 8, "b", "a", 200), (".*", 8, "b", "a", 200), ("%b()", 1, "", "(", 100_000),
        ("(.-)%1(.-)%2b", 1, "", "a", 3_000), ("[bbbbbbbbbb]", 150, "", "a", 500_000), ("%w-%d", 1, "x", "a", 100_000),
    ])
    func `a pattern that backtracks ends when its time has passed`(
        part: String, count: Int, last: String, subject: String, subjectCount: Int
    ) {
        #expect(throws: PatternMatcher.Fault.overTime) {
            try search(
                String(repeating: part, count: count) + last, in: String(repeating: subject, count: subjectCount),
                steps: 1_000_000)
        }
    }
}
