import Testing

@testable import HttpWareCommand

@Suite struct TerminalStyleTests {
    @Test func `colours need a terminal, and NO_COLOR or a dumb terminal turns them off`() {
        func hasColours(_ isTerminal: Bool, _ environment: [String: String]) -> Bool {
            TerminalStyle(isTerminal: isTerminal, columns: 80, environment: environment).hasColours
        }
        #expect(hasColours(true, ["TERM": "xterm"]))
        #expect(hasColours(true, ["NO_COLOR": ""]))  // an empty one says nothing
        #expect(!hasColours(true, ["NO_COLOR": "1"]))
        #expect(!hasColours(true, ["TERM": "dumb"]))
        #expect(!hasColours(false, ["TERM": "xterm"]))
    }

    @Test func `the width is the terminal's, else that of COLUMNS, else 80`() {
        #expect(TerminalStyle(isTerminal: true, columns: 132, environment: ["COLUMNS": "90"]).width == 132)
        #expect(TerminalStyle(isTerminal: true, columns: 0, environment: ["COLUMNS": "90"]).width == 90)
        #expect(TerminalStyle(isTerminal: true, columns: 0, environment: [:]).width == 80)
        #expect(TerminalStyle(isTerminal: true, columns: 1, environment: [:]).width == 20)
        #expect(TerminalStyle(isTerminal: false, columns: 132, environment: [:]).width == nil)
    }

    @Test(arguments: [
        (["LANG": "de_DE.UTF-8"], true), (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false), ([:], false),
        (["LC_ALL": "", "LC_CTYPE": "C.utf8"], true),
    ])
    func `more than ASCII is for locales that say so`(environment: [String: String], isUnicode: Bool) {
        #expect(TerminalStyle(isTerminal: true, columns: 80, environment: environment).isUnicode == isUnicode)
    }

    @Test(arguments: [
        ("plain", "plain"), ("a\u{1b}[31mb", "a?[31mb"), ("a\r\nb\u{7f}\u{9b}", "a??b??"), ("…", "..."), ("é", "?"),
    ])
    func `nothing that moves the cursor reaches a terminal`(text: String, shown: String) {
        #expect(TerminalStyle(isUnicode: false).shown(text) == shown)
    }

    @Test func `marks that turn or hide text are not shown`() {
        #expect(TerminalStyle.plain.shown("a\u{202e}b\u{200b}é…") == "a?b?é…")
    }

    @Test(arguments: [
        ("abc", 5, "abc  "), ("abcdefghijklmnop", 10, "abcdef…nop"), ("abcdef", 3, "ab…"), ("abc", 0, ""),
    ])
    func `a text is filled up or cut in the middle`(text: String, columns: Int, fitted: String) {
        #expect(TerminalStyle.plain.fitted(text, columns) == fitted)
    }

    @Test(arguments: [
        (0.0, "0.00 ms"), (0.456, "0.46 ms"), (9.994, "9.99 ms"), (9.996, "10.0 ms"), (99.96, "100 ms"),
        (999.4, "999 ms"),
        (999.9, "1.00 s"), (61_000, "61.0 s"), (-1, "0.00 ms"),
    ])
    func `a time has three digits and the unit that suits it`(milliseconds: Double, text: String) {
        #expect(TerminalStyle.time(milliseconds) == text)
    }

    @Test(arguments: [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (10_240, "10 KiB"), (1_048_575, "1.0 MiB"),
        (5 << 30, "5.0 GiB"), (.max, "8192 PiB"),
    ])
    func `a size has the unit that suits it`(bytes: Int, text: String) {
        #expect(TerminalStyle.size(bytes) == text)
    }
}
