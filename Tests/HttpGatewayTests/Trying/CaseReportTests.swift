import HttpWare
import Testing

@testable import HttpGateway

@Suite struct CaseReportTests {
    private let report: CaseReport = {
        let place = SourceLocation(file: "a.test.yaml", line: 2, column: 5)
        var failed = CaseOutcome(name: "b <&> \"c\"", location: place)
        failed.differences = [
            CaseDifference(
                at: SourceLocation(file: "a.test.yaml", line: 4, column: 9), "response.status", expected: "200",
                actual: "401"),
            CaseDifference(at: place, "calls has no answer for GET \"http://a/\""),
        ]
        failed.decisions = ["jwt aborted 401"]
        return CaseReport([CaseOutcome(name: "a", location: place), failed])
    }()

    @Test func `the text has a line for each case, and the differences`() {
        #expect(CaseReport.text(report.outcomes[0]) == "ok      a")
        #expect(
            CaseReport.text(report.outcomes[1]) == """
                FAILED  b <&> "c"
                  a.test.yaml:4:9: response.status
                    expected  200
                    actual    401
                  a.test.yaml:2:5: calls has no answer for GET "http://a/"
                  the wares: jwt aborted 401
                """)
        #expect(report.summary == "2 cases: 1 passed, 1 failed")
    }

    @Test func `a name cannot move the cursor of a terminal`() {
        let outcome = CaseOutcome(name: "a\u{1b}[2J\nok", location: .code)
        #expect(CaseReport.text(outcome) == #"ok      "a\u{1b}[2J\nok""#)
    }

    @Test func `the JSON has each difference with its place`() throws {
        let json = try JsonValue(Array(report.json.text.utf8))
        #expect(json["summary"]?["failed"]?.whole == 1)
        let cases = try #require(json["cases"]?.elements)
        #expect(cases.map { $0["passed"]?.boolean } == [true, false])
        let difference = try #require(cases[1]["differences"]?.elements?.first)
        #expect(difference["line"]?.whole == 4 && difference["expected"]?.string == "200")
        #expect(cases[1]["wares"]?.elements?.first?.string == "jwt aborted 401")
    }

    @Test func `the XML escapes what is special in it`() {
        let xml = report.junit
        #expect(xml.contains(#"<testsuites tests="2" failures="1">"#))
        #expect(xml.contains(#"<testcase name="b &lt;&amp;&gt; &quot;c&quot;" classname="a.test.yaml""#))
        #expect(xml.contains(#"<failure message="response.status: expected 200, but it is 401">"#))
        let odd = CaseReport([CaseOutcome(name: "\u{1}\u{b}", location: .code)]).junit
        #expect(odd.contains("name=\"\u{fffd}\u{fffd}\""))
    }
}
