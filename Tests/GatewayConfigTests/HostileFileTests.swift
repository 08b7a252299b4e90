import GatewayConfig
import HttpWare
import Testing

/// Nothing that a file contains may crash the reader, or hold it.
@Suite struct HostileFileTests {
    private func errors(_ bytes: [UInt8]) -> [String] {
        let files = ConfigurationFiles(
            read: { _, limit throws(ConfigurationFiles.Fault) in
                if bytes.count > limit { throw ConfigurationFiles.Fault("is larger than \(limit >> 10) KiB") }
                return bytes
            },
            list: { _ in [] })
        return ConfigurationReader(
            wares: ScriptedWares.all, stores: ScriptedWares.stores, environment: [:], files: files
        )
        .read(path: "f.yaml").errors.map(\.description)
    }

    private func errors(_ text: String) -> [String] { errors(Array(text.utf8)) }

    @Test func `invalid UTF-8 is one error at its place`() {
        #expect(
            errors(Array("version: 1\n# ä".utf8) + [0xFF, 0x0A])
                == ["f.yaml:2:4: error: this is not UTF-8; save the file in that encoding"])
        #expect(errors([0xFF, 0xFE, 0x61, 0x00]).count == 1)
        #expect(errors([0xED, 0xA0, 0x80]).count == 1)
    }

    @Test func `NUL and control characters are one error at their place`() {
        let expected = "control characters are not allowed; only printable characters, tabs and line ends"
        #expect(errors("version: 1\nlog: \0\n") == ["f.yaml:2:6: error: \(expected)"])
        #expect(errors("version: \u{1B}[2J") == ["f.yaml:1:10: error: \(expected)"])
        // Escaped, a NUL is a character of the text.
        #expect(
            errors(#"version: "\0""#).contains(#"f.yaml:1:10: error: version: "\u{0}" is not a known version; write 1"#)
        )
        let rest = "services: {a: {baseUrl: http://a}}\nroutes: [{service: a}]\n"
        #expect(
            errors("version: 1\ninclude: \"a\\0*\"\nlisteners: {l: {bind: \"unix:a\\0\"}}\n\(rest)")
                == [
                    #"f.yaml:3:23: error: listeners.l.bind: "unix:a\u{0}" is not an address; write 127.0.0.1:8080, [::1]:8080 or unix:/run/httpware.sock"#
                ])
    }

    @Test func `a key that holds control characters stays on one line`() {
        #expect(
            errors("version: 1\n\"a\\n\\e[2J\\tb\": 1\ninclude: \"x\\ny\"\n").map { $0.replacing("f.yaml", with: "") }
                .contains(#":2:1: error: a\n\u{1b}[2J\tb: unknown key"#))
        #expect(errors("version: 1\nlog: { \"a\\nb\": 1 }\n").allSatisfy { !$0.contains("\n") })
    }

    @Test func `a byte order mark is passed over, and counts as no column`() {
        let text =
            "version: 1\nlisteners: {l: {bind: 127.0.0.1:1}}\nservices: {a: {baseUrl: http://a}}\nroutes: [{service: a}]\n"
        #expect(errors("\u{FEFF}" + text) == [])
        #expect(errors("\u{FEFF}vers: 1\n" + text).contains { $0.hasPrefix("f.yaml:1:1: error: vers: unknown key") })
    }

    @Test(arguments: ["[", "{a: ", "- ", "? ", "[{b: "])
    func `deep nesting is one error`(opening: String) {
        for depth in [65, 1000, 100_000] {
            let found = errors("version: 1\nroutes: \n  " + String(repeating: opening, count: depth))
            #expect(found.count == 1)
            #expect(found.allSatisfy { !$0.contains("yaml_") })
        }
    }

    @Test func `aliases cannot grow without bound`() {
        var bomb = "version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1..<40 {
            let aliases = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            bomb += "a\(level): &a\(level) [\(aliases)]\n"
        }
        #expect(errors(bomb) == ["f.yaml:5:5: error: more than 100000 values"])
        let selfish = "version: 1\na: &a [*a]\n"
        #expect(errors(selfish) == ["f.yaml:2:8: error: *a has no anchor before it; quote a value that begins with *"])
    }

    @Test func `an alias cannot make nesting deeper than the limit`() {
        var ladder = "version: 1\na0: &a0 [x]\n"
        for level in 1..<100 { ladder += "a\(level): &a\(level) [*a\(level - 1)]\n" }
        #expect(errors(ladder).count == 1)
    }

    @Test func `huge scalars and keys are shown short`() {
        let huge = String(repeating: "x", count: 1 << 20)
        let errors = errors("version: \(huge)\n\(huge.prefix(1000)): 1\n\"\(huge)\": 1\nlog: { level: \(huge) }\n")
        #expect(!errors.isEmpty)
        #expect(errors.allSatisfy { $0.utf8.count < 400 })
    }

    @Test func `a file that is too large is refused`() {
        #expect(errors([UInt8](repeating: 0x20, count: 4 << 20 | 1)) == ["f.yaml: error: is larger than 4096 KiB"])
    }

    @Test func `many of everything takes no more than seconds`() {
        let rows = 9_000
        var text = "version: 1\nlisteners: { l: { bind: \"127.0.0.1:1\" } }\nservices:\n"
        for index in 0..<rows { text += "  s\(index): { baseUrl: \"http://a\" }\n" }
        text += "routes:\n"
        for index in 0..<rows { text += "  - { service: s\(index), match: { path: /\(index) } }\n" }
        let begin = ContinuousClock.now
        #expect(errors(text) == [])
        #expect(begin.duration(to: .now) < .seconds(60))
    }

    @Test func `chains that use each other twice do not grow without bound`() {
        var text = "version: 1\nlisteners: { l: { bind: \"127.0.0.1:1\", chain: c0 } }\nchains:\n"
        for index in 0..<60 {
            text += "  c\(index): { middlewares: [{ use: c\(index + 1) }, { use: c\(index + 1) }] }\n"
        }
        text += "  c60: { middlewares: [mock] }\n"
        #expect(errors(text).contains { $0.contains("deeper than 32") })
        let wide = (0..<20).map { "  c\($0): { middlewares: [{ use: c\($0 + 1) }, { use: c\($0 + 1) }] }\n" }.joined()
        let start = "version: 1\nlisteners: { l: { bind: \"127.0.0.1:1\", chain: c0 } }\nchains:\n"
        #expect(
            errors(start + wide + "  c20: { middlewares: [mock] }\n").contains { $0.contains("more than 1000 entries") }
        )
    }

    @Test func `chains and files that follow each other far are refused`() {
        var text = "version: 1\nlisteners: { l: { bind: \"127.0.0.1:1\", chain: c0 } }\nchains:\n"
        for index in 0..<10_000 { text += "  c\(index): { middlewares: [{ use: c\(index + 1) }] }\n" }
        #expect(errors(text).contains { $0.contains("deeper than 32") })
        let files = ConfigurationFiles(
            read: { path, _ throws(ConfigurationFiles.Fault) in Array("version: 1\ninclude: \(path)x\n".utf8) },
            list: { _ in [] })
        let found = ConfigurationReader(wares: [], environment: [:], files: files).read(path: "f").errors
        #expect(found.count == 1 && found[0].message == "files include each other deeper than 32")
    }

    /// A small fuzzer: pieces of all cases, cut and joined again. The test is that it returns.
    @Test func `nothing that is cut and joined crashes`() {
        var random = SystemRandomNumberGenerator()
        let corpus = ConfigurationCase.all.compactMap { $0.files["httpware.yaml"] }
        for _ in 0..<3000 {
            var text = corpus.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let other = corpus.randomElement(using: &random) ?? []
                let at = Int.random(in: 0...text.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: text.removeSubrange(at..<min(text.count, at + 7))
                case 1: text.insert(contentsOf: other.suffix(Int.random(in: 0...80, using: &random)), at: at)
                case 2: text.insert(UInt8.random(in: 0...255, using: &random), at: at)
                default: text.insert("[]{}:,&*!|>'\"%@`#-?\n\t $".utf8.randomElement(using: &random) ?? 0x20, at: at)
                }
            }
            _ = errors(text)
        }
    }
}
