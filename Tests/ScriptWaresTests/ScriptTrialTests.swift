import HttpWare
import Testing

@testable import ScriptWares

@Suite struct ScriptTrialTests {
    private func trial(_ source: String) throws -> ScriptTrial { try ScriptTrial(Array(source.utf8), name: "t.lua") }

    @Test func `the changes of a request are listed`() throws {
        let trial = try trial(
            """
            return { options = { header = "X-Tenant" }, request = function(req, opt, x)
              req.fields[opt.header] = "acme" req.fields.A = nil req.path = "/acme" .. req.path req.method = "POST" req.body = "b\\n"
              x:note("n", 1) x:log("info", "seen") x.vars.a = 1 x:note("a", x.vars.a)
            end }
            """)
        var request = try HttpRequest(.get, "http://acme.example.com/x?y=1")
        try request.fields.append("A", "1")
        let effects = trial.run(&request)
        #expect(effects.decision == "passes")
        #expect(!effects.isFailed)
        #expect(
            effects.changes == [
                "method: GET → POST", "target: /x?y=1 → /acme/x?y=1", "- A: 1", "+ X-Tenant: acme",
                "content: 2 bytes: b ", "n=1", "info: seen",
                "a=1",
            ])
    }

    @Test(arguments: [
        (
            "return { status = 404, text = 'no' }", "answers 404",
            ["+ Content-Type: text/plain; charset=utf-8", "content: 2 bytes: no"], false
        ),
        ("sleep(1)", "would wait for sleep 1s at line 1", [], false),
        ("http.fetch { service = 'users' }", "would wait for http.fetch users at line 1", [], false),
        ("error('no')", "fails: t.lua:1: no", [], true),
        ("return 1", "fails: the function must return nothing or a response, as a table", [], true),
        ("return tostring(x.route)", "fails: the function must return nothing or a response, as a table", [], true),
    ])
    func `each decision is named`(body: String, decision: String, changes: [String], isFailed: Bool) throws {
        let trial = try trial("return { request = function(req, opt, x) \(body) end }")
        var request = try HttpRequest(.get, "http://example.com/")
        let effects = trial.run(&request)
        #expect(effects.decision == decision)
        #expect(effects.changes == changes)
        #expect(effects.isFailed == isFailed)
    }

    @Test func `options can be given, with the types of their defaults`() throws {
        let source = Array(
            "return { options = { header = 'A', most = 1 }, request = function(req, opt) req.fields[opt.header] = opt.most + 1 end }"
                .utf8)
        var request = try HttpRequest(.get, "http://a.example/")
        let trial = try ScriptTrial(source, name: "t.lua", options: [("header", "B"), ("most", "7")])
        #expect(trial.run(&request).changes == ["+ B: 8"])
        for (options, line) in [
            ([("heder", "B")], "t.lua: options.heder: unknown option; did you mean \"header\"?"),
            ([("most", "x")], "t.lua: options.most: \"x\" is not a whole number"),
        ] {
            let fault = #expect(throws: ScriptTrial.Fault.self) {
                try ScriptTrial(source, name: "t.lua", options: options)
            }
            #expect(fault?.lines == [line])
        }
    }

    @Test func `the changes of a response are listed`() throws {
        let trial = try trial(
            "return { replays = true, response = function(res, opt, x) res.status = 201 res.fields.P = x.request.path res.fields.A = nil x:replay(2) end }"
        )
        var response = try #require(ScriptTrial.response("HTTP/1.1 200 OK\nA: 1\nB: 2\n\nhello\n"))
        #expect(response.content.bytes == Array("hello\n".utf8))
        let effects = trial.run(&response, to: try HttpRequest(.get, "http://example.com/p"))
        #expect(effects.decision == "asks for a replay after 2s")
        #expect(effects.changes == ["status: 200 → 201", "- A: 1", "+ P: /p"])
    }

    @Test func `a script with an error is refused, and an unknown member is a warning`() throws {
        #expect(throws: ScriptTrial.Fault.self) { try trial("return {") }
        #expect(throws: ScriptTrial.Fault.self) { try trial("return { request = 1 }") }
        #expect(
            try trial("return { reqest = 1 }").warnings == [
                "t.lua: the returned table has an unknown member \"reqest\"; did you mean \"request\"?"
            ])
    }

    @Test func `an option that the script does not use is a warning`() throws {
        #expect(
            try trial("return { options = { header = 'a' } }").warnings == [
                "t.lua: the script does not use its option \"header\""
            ])
        #expect(
            try trial(
                "return { options = { header = 'a' }, request = function(req, opt) return { text = opt.header } end }"
            ).warnings == [])
    }

    @Test(arguments: ["", "x", "HTTP/1.1", "200\nno field", "HTTP/1.1 9 no"])
    func `a text that is not a response is refused`(text: String) {
        #expect(ScriptTrial.response(text) == nil)
    }
}
