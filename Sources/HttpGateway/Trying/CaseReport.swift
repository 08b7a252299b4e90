public import HttpWare

/// The outcomes of the cases of one file or several, as a report: for people, for programs, and for build servers.
public struct CaseReport: Sendable {
    public var outcomes: [CaseOutcome]

    public init(_ outcomes: [CaseOutcome]) { self.outcomes = outcomes }

    /// The number of cases that failed.
    public var failures: Int { outcomes.count { !$0.hasPassed } }

    /// `3 cases: 2 passed, 1 failed`.
    public var summary: String {
        "\(CaseText.count(outcomes.count, "case")): \(outcomes.count - failures) passed, \(failures) failed"
    }

    /// The lines of one case.
    public static func text(_ outcome: CaseOutcome) -> String {
        guard !outcome.hasPassed else { return "ok      \(CaseText.plain(outcome.name))" }
        var lines = ["FAILED  \(CaseText.plain(outcome.name))"]
        for difference in outcome.differences {
            lines.append(
                "  \(difference.location): \(difference.path.isEmpty ? CaseText.plain(difference.actual) : difference.path)"
            )
            guard let expected = difference.expected else { continue }
            lines.append("    expected  \(CaseText.plain(expected))")
            lines.append("    actual    \(CaseText.plain(difference.actual))")
        }
        if !outcome.decisions.isEmpty {
            lines.append("  the wares: \(CaseText.plain(outcome.decisions.joined(separator: ", ")))")
        }
        return lines.joined(separator: "\n")
    }

    /// The report as JSON.
    public var json: Json {
        .object([
            ("cases", .list(outcomes.map(CaseReport.json))),
            (
                "summary",
                .object([
                    ("cases", .number(outcomes.count)), ("passed", .number(outcomes.count - failures)),
                    ("failed", .number(failures)),
                ])
            ),
        ])
    }

    private static func json(_ outcome: CaseOutcome) -> Json {
        .object([
            ("name", .text(outcome.name)), ("file", .text(outcome.location.file)),
            ("line", .number(outcome.location.line)), ("passed", .bool(outcome.hasPassed)),
            (
                "differences",
                .list(
                    outcome.differences.map { difference in
                        .object([
                            ("file", .text(difference.location.file)), ("line", .number(difference.location.line)),
                            ("column", .number(difference.location.column)), ("path", .text(difference.path)),
                            ("expected", .optional(difference.expected)), ("actual", .text(difference.actual)),
                        ])
                    })
            ),
            ("wares", .list(outcome.decisions.map { .text($0) })),
        ])
    }

    /// The report in the form of JUnit's XML, which build servers read. Each file is a suite.
    public var junit: String {
        var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
        lines.append("<testsuites tests=\"\(outcomes.count)\" failures=\"\(failures)\">")
        var files: [String] = []
        for outcome in outcomes where !files.contains(outcome.location.file) { files.append(outcome.location.file) }
        for file in files {
            let own = outcomes.filter { $0.location.file == file }
            let name = XmlText.escaped(file)
            lines.append(
                "  <testsuite name=\"\(name)\" tests=\"\(own.count)\" failures=\"\(own.count { !$0.hasPassed })\" errors=\"0\">"
            )
            for outcome in own {
                let head =
                    "    <testcase name=\"\(XmlText.escaped(outcome.name))\" classname=\"\(name)\" file=\"\(name)\" line=\"\(outcome.location.line)\""
                if outcome.hasPassed {
                    lines.append(head + "/>")
                    continue
                }
                lines.append(head + ">")
                let first = outcome.differences.first?.text ?? ""
                let all = outcome.differences.map { "\($0.location): \($0.text)" }.joined(separator: "\n")
                lines.append(
                    "      <failure message=\"\(XmlText.escaped(first))\">\(XmlText.escaped(all))</failure>")
                lines.append("    </testcase>")
            }
            lines.append("  </testsuite>")
        }
        lines.append("</testsuites>")
        return lines.joined(separator: "\n")
    }
}

/// Text in XML 1.0.
private enum XmlText {
    /// The text with references for special characters. Characters that XML cannot contain become U+FFFD.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n": result += "&#10;"
            case "\t": result += "&#9;"
            case _ where scalar.value < 0x20 || scalar.value == 0xfffe || scalar.value == 0xffff:
                result.unicodeScalars.append("\u{fffd}")
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension CaseText {
    /// The text without characters that move a terminal's cursor.
    fileprivate static func plain(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return text }
        return quoted(text)
    }
}
