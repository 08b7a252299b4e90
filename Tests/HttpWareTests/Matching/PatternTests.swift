import HttpWare
import Testing

@Suite struct PatternTests {
    private func matches(_ pattern: String, _ subject: String) throws -> Bool {
        try Array(subject.utf8).withUnsafeBytes { try Pattern(pattern).matches($0) }
    }

    @Test func `a pattern matches anywhere unless it is anchored`() throws {
        #expect(try matches("b+", "abbc"))
        #expect(try !matches("^b+", "abbc"))
        #expect(try matches("^a.*c$", "abbc"))
        #expect(try matches("", "") && matches("^$", "") && !matches("a", ""))
        #expect(try !matches("a$", "a\n"))
        #expect(try matches("(?i)ABC", "xabc"))
    }

    @Test func `a match far behind is found, and lookbehind sees what is before`() throws {
        let subject = String(repeating: "x", count: 10_000) + "needle"
        #expect(try matches("needle$", subject))
        #expect(try matches("(?<=xxxx)needle", subject))
        #expect(try !matches("(?<!x)needle", subject))
    }

    @Test func `groups are where they matched`() throws {
        let pattern = try Pattern("(a+)(b)?(c)")
        let match = try Array("xxaac".utf8).withUnsafeBytes { try pattern.firstMatch(in: $0) }
        #expect(match?.ranges == [2..<5, 2..<4, nil, 4..<5])
        #expect(pattern.groupCount == 3)
    }

    @Test func `the first match is replaced`() throws {
        let pattern = try Pattern("^/api/(v[0-9]+)/(x)?")
        func replaced(_ subject: String, _ replacement: String) throws -> String? {
            var time = PatternTime()
            return try Array(subject.utf8).withUnsafeBytes { subject in
                try pattern.replacingFirst(in: subject, with: Array(replacement.utf8), within: &time).map {
                    String(decoding: $0, as: UTF8.self)
                }
            }
        }
        #expect(try replaced("/api/v2/users", "/$1$2/") == "/v2/users")
        #expect(try replaced("/api/v2/users", "$$1 $0 $9 $x $") == "$1 /api/v2/  $x $users")
        #expect(try replaced("/other", "x") == nil)
    }

    @Test(arguments: ["(", "[a", "a**b(", "(?<n>a)(?<n>b)", "\\", "(*UTF)a", "((((a{1000}){1000}){1000}){1000})"])
    func `an invalid regular expression is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try Pattern(text) }
    }

    @Test(arguments: [
        ("(a+)+$", String(repeating: "a", count: 60_000) + "b"),
        ("(a|aa)+$", String(repeating: "a", count: 5000) + "b"),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", String(repeating: "a", count: 5000)),
        ("(.*)*(.*)*(.*)*x", String(repeating: "ab", count: 30_000)),
        (".*.*.*=x", String(repeating: "=", count: 65_536)),
        ("(?:a?){50}a{50}b", String(repeating: "a", count: 200)),
        ("(x+x+)+y", String(repeating: "x", count: 65_536)),
        ("((a)*)*\\1b", String(repeating: "a", count: 65_536)),
    ])
    func `a catastrophic pattern ends soon`(pattern: String, subject: String) throws {
        let pattern = try Pattern(pattern)
        let begin = ContinuousClock.now
        let isMatch = Array(subject.utf8).withUnsafeBytes { subject in try? pattern.matches(subject) }
        let took = begin.duration(to: .now)
        #expect(isMatch != true)
        #expect(took < .milliseconds(500), "\(pattern.source): \(took)")
    }

    @Test func `all patterns of an exchange have the time of one`() throws {
        var time = PatternTime()
        func matches(_ pattern: String, _ subject: String) throws -> Bool {
            let pattern = try Pattern(pattern)
            return try Array(subject.utf8).withUnsafeBytes { try pattern.matches($0, within: &time) }
        }
        #expect(try matches("b", "abc"))
        // From each of its places the subject is read to its end, which takes some milliseconds.
        let long = String(repeating: "a", count: 8000)
        #expect(throws: Pattern.LimitReached.self) {
            for _ in 0..<1000 {
                let isMatch = try matches("a[^x]*[yz]", long)
                #expect(!isMatch)
            }
        }
        #expect(throws: Pattern.LimitReached.self) { try matches("b", "abc") }
        time = PatternTime()
        #expect(try matches("b", "abc"))
    }

    @Test func `several tasks use one pattern at once`() async throws {
        let pattern = try Pattern("([0-9]+)-(?:x)")
        let found = await withTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<2000).allSatisfy { round in
                        let number = "\(task * 10_000 + round)"
                        return Array("abc \(number)-x".utf8).withUnsafeBytes { subject in
                            (try? pattern.firstMatch(in: subject))??.ranges[1] == 4..<(4 + number.utf8.count)
                        }
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(found)
    }
}
