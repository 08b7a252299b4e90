import GatewayConfig
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct CaseFileTests {
    private func read(_ text: String, _ environment: [String: String] = [:]) -> CaseFile.Result {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        return CaseFile.read(path: "a.test.yaml", environment: environment, files: files)
    }

    private func errors(_ text: String) -> [String] { read(text).errors.map(\.description) }

    @Test func `a case with one request is a case with one step`() throws {
        let file = try #require(
            read(
                """
                cases:
                  - name: one
                    request: { method: POST, url: "http://a.example/x", headers: { Accept: [a/b, c/d] }, json: { a: 1 } }
                    upstream: { status: 201, json: [true] }
                    expect: { upstream: none, response: { status: 200 }, wares: { jwt: pass, cache: [miss, stored] } }
                """
            ).file)
        let step = try #require(file.cases.first?.steps.first)
        #expect(file.cases.count == 1 && file.cases[0].steps.count == 1)
        #expect(step.request?.method == .post)
        #expect(step.request?.fields.lines.map(\.value) == ["a/b", "c/d"])
        #expect(step.request?.content.bytes == Array(#"{"a":1}"#.utf8))
        #expect(step.repeatsAnswers && step.answers.map(\.status.code) == [201])
        #expect(step.expect.upstream?.isEmpty == true)
        #expect(step.expect.response?.status?.value == .ok)
        #expect(
            step.expect.wares.map { [$0.name] + $0.words } == [["jwt", "pass"], ["cache", "miss", "stored"]])
        #expect(step.expect.wares.map(\.isList) == [false, true])
    }

    @Test func `steps have a time of their own, and answers of their own`() throws {
        let file = try #require(
            read(
                """
                cases:
                  - name: two
                    time: 2030-02-03T04:05:06Z
                    steps:
                      - request: { url: /a }
                        upstream: [{ fails: connect }, { status: 204 }]
                      - after: 61s
                      - { after: 1h, request: { url: /b }, client: 192.0.2.7 }
                """
            ).file)
        let one = try #require(file.cases.first)
        #expect(one.time == WallTime(iso8601: "2030-02-03T04:05:06Z"))
        #expect(one.steps.map(\.after) == [.zero, .seconds(61), .seconds(3600)])
        #expect(one.steps.map { $0.request?.url } == ["/a", nil, "/b"])
        #expect(!one.steps[0].repeatsAnswers && one.steps[0].answers.map(\.fails) == [.connect, nil])
        #expect(one.steps[2].client == "192.0.2.7")
    }

    @Test func `a mistyped option is answered with its place and the option that was meant`() {
        #expect(
            errors("cases:\n  - name: a\n    request: { url: /, header: { A: b } }\n") == [
                "a.test.yaml:3:24: error: cases[0].request.header: unknown option; did you mean \"headers\"?"
            ])
        #expect(
            errors("cases:\n  - name: a\n    request: { url: / }\n    expect: { response: { statsu: 200 } }\n") == [
                "a.test.yaml:4:27: error: cases[0].expect.response.statsu: unknown option; did you mean \"status\"?"
            ])
    }

    @Test(arguments: [
        ("cases: []", "cases: is empty"),
        ("case: [{ name: a }]", "did you mean \"cases\"?"),
        ("cases: [{ name: a }]", "needs request or steps"),
        ("cases: [{ name: \"\", request: { url: / } }]", "name: is empty"),
        ("cases: [{ request: { url: / } }]", "name: is missing"),
        ("cases: [{ name: a, request: { url: / } }, { name: a, request: { url: / } }]", "also the name of the case at"),
        ("cases: [{ name: a, request: {} }]", "request.url: is missing"),
        ("cases: [{ name: a, request: { url: a b } }]", "write spaces as %20"),
        ("cases: [{ name: a, request: { url: example.com } }]", "is not a URL"),
        ("cases: [{ name: a, request: { url: \"ftp://a/\" } }]", "is not a scheme of requests"),
        ("cases: [{ name: a, request: { url: /, method: CONNECT } }]", "opens a tunnel"),
        ("cases: [{ name: a, request: { url: /, text: a, json: b } }]", "is written beside text"),
        ("cases: [{ name: a, request: { url: /, base64: \"%%\" } }]", "is not base64"),
        ("cases: [{ name: a, request: { url: /, headers: { A: \"b\\nc\" } } }]", "is not a field value"),
        ("cases: [{ name: a, request: { url: /, headers: { \"a b\": c } } }]", "a b"),
        ("cases: [{ name: a, request: { url: /, trailers: { A: b } } }]", "needs content"),
        (
            "cases: [{ name: a, request: { url: / }, upstream: { status: 100 } }]",
            "is not the status of a final response"
        ),
        ("cases: [{ name: a, request: { url: / }, upstream: { fails: conect } }]", "did you mean \"connect\"?"),
        (
            "cases: [{ name: a, request: { url: / }, upstream: { fails: reset, status: 200 } }]",
            "has no effect beside fails"
        ),
        ("cases: [{ name: a, request: { url: / }, after: 12000h }]", "is too large"),
        ("cases: [{ name: a, request: { url: / }, after: 99999999999999999999d }]", "after"),
        ("cases: [{ name: a, request: { url: / }, time: yesterday }]", "is not a time from 1970"),
        ("cases: [{ name: a, request: { url: / }, time: \"9999-01-01T00:00:00Z\" }]", "is not a time from 1970"),
        ("cases: [{ name: a, request: { url: / }, client: nowhere }]", "is not an IP address"),
        ("cases: [{ name: a, request: { url: / }, steps: [{ request: { url: / } }] }]", "is given beside steps"),
        ("cases: [{ name: a, steps: [] }]", "steps: is empty"),
        ("cases: [{ name: a, steps: [{ upstream: { status: 200 } }] }]", "has no effect without request"),
        ("cases: [{ name: a, steps: [{ }] }]", "needs request or after"),
        ("cases: [{ name: a, request: { url: / }, calls: [{ answer: {} }] }]", "needs url or service"),
        ("cases: [{ name: a, request: { url: / }, calls: [{ url: /token }] }]", "is not an absolute URL"),
        ("cases: [{ name: a, request: { url: / }, expect: { upstream: non } }]", "did you mean \"none\"?"),
        (
            "cases: [{ name: a, request: { url: / }, expect: { response: { headers: { A: { matches: \"(\" } } } } }]",
            "headers"
        ),
        (
            "cases: [{ name: a, request: { url: / }, expect: { response: { headers: { A: { matchs: a } } } } }]",
            "did you mean \"matches\"?"
        ),
        ("cases: [{ name: a, request: { url: / }, expect: { response: { headers: present } } }]", "is not a map"),
        (
            "cases: [{ name: a, request: { url: / }, expect: { response: { text: a, json: b } } }]",
            "is written beside text"
        ),
        ("cases: [{ name: a, request: { url: / }, expect: { wares: { jwt: { a: b } } } }]", "is not a decision"),
        ("cases: [{ name: a, request: { url: / }, expect: { wares: jwt } }]", "is not a map"),
        ("cases: 7", "is not a map of options"),
        ("- a", "is not a map of options"),
        ("", ""),
        ("cases: [", ""),
    ])
    func `a mistake is an error`(text: String, part: String) {
        let result = read(text)
        #expect(result.file == nil)
        #expect(result.errors.contains { $0.description.contains(part) }, "\(result.errors)")
    }

    @Test func `a case cannot have more steps than its clock has room for`() {
        let steps = String(repeating: "{ after: 9600h }, ", count: 101)
        #expect(errors("cases: [{ name: a, steps: [\(steps)] }]").contains { $0.contains("more than 100 steps") })
        let most = String(repeating: "{ after: 9600h }, ", count: 100)
        #expect(read("cases: [{ name: a, time: \"2199-12-31T00:00:00Z\", steps: [\(most)] }]").file != nil)
    }

    @Test func `JSON that is nested deeply is an error, and does not end the process`() {
        let deep = String(repeating: "[", count: 5_000) + String(repeating: "]", count: 5_000)
        #expect(read("cases: [{ name: a, request: { url: /, json: \(deep) } }]").file == nil)
        let text = String(repeating: "[", count: 100_000)
        #expect(read("cases: [{ name: a, request: { url: /, text: \"\(text)\" } }]").file != nil)
    }

    @Test func `variables of the environment are filled in`() throws {
        let file = read(
            "cases: [{ name: a, request: { url: /, headers: { Authorization: \"Bearer ${TOKEN}\" } } }]", ["TOKEN": "t"]
        )
        #expect(file.file?.cases.first?.steps.first?.request?.fields.lines.first?.value == "Bearer t")
    }

    @Test func `the schema has the options of a case and of a step`() throws {
        let items = try #require(CaseFile.schema["properties"]?["cases"]).json
        for key in [
            "name", "steps", "after", "request", "upstream", "expect", "calls", "jsonPart", "certificate", "fails",
        ] {
            #expect(items.contains("\"\(key)\":"), "\(key)")
        }
    }

    @Test func `the file of cases has the name of the configuration`() {
        #expect(CaseFile.path(beside: "conf/gateway.yaml") == "conf/gateway.test.yaml")
        #expect(CaseFile.path(beside: "a.yml") == "a.test.yml")
        #expect(CaseFile.configuration(of: "conf/gateway.test.yaml") == "conf/gateway.yaml")
        #expect(CaseFile.configuration(of: "gateway.yaml") == nil)
    }
}
