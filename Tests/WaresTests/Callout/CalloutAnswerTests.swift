import HttpWare
import HttpWareTesting
import Testing

@testable import GatewayWares

@Suite struct CalloutAnswerTests {
    private func read(_ json: String, _ half: CalloutMessage.Half = .request) throws -> CalloutAnswer {
        try CalloutAnswer(Array(json.utf8), to: half)
    }

    /// The reason why an answer is refused.
    private func reason(_ json: String, _ half: CalloutMessage.Half = .request) -> String? {
        do throws(CalloutFault) {
            _ = try CalloutAnswer(Array(json.utf8), to: half)
            return nil
        } catch {
            #expect(error.kind == .wrongAnswer)
            return error.reason
        }
    }

    private func edits(_ json: String, _ half: CalloutMessage.Half = .request) throws -> CalloutEdits {
        guard case .edits(let edits) = try read(json, half).decision else { throw CalloutFault.wrong("no edits") }
        return edits
    }

    @Test func `an empty object passes the message`() throws {
        for json in ["{}", #"{"drop": false, "notes": {}}"#] {
            let answer = try read(json)
            #expect(answer.decision == .edits(CalloutEdits()) && answer.notes.isEmpty)
        }
    }

    @Test func `edits name fields, the method, the URL and the content`() throws {
        let edits = try edits(
            #"""
            {"set": {"X-A": "1", "X-B": ["2", "3"]}, "remove": ["Cookie"], "append": [["Link", "<a>"]],
             "method": "POST", "url": "/b?c", "content": {"base64": "AP8="}, "notes": {"tenant": "acme"}}
            """#)
        #expect(edits.set.map(\.name.text) == ["X-A", "X-B"])
        #expect(edits.set.map { $0.values.map { String(decoding: $0.value, as: UTF8.self) } } == [["1"], ["2", "3"]])
        #expect(edits.remove == [.cookie])
        #expect(edits.append.map(\.name.text) == ["Link"])
        #expect(edits.method == .post && edits.url == "/b?c" && edits.content == [0, 255] && edits.status == nil)
        #expect(try self.edits(#"{"status": 404}"#, .response).status == .notFound)
    }

    @Test func `a response has a status, fields and content`() throws {
        let json =
            #"{"respond": {"status": 429, "fields": [["A", "1"], ["A", "2"]], "content": {"text": "ä"}}, "notes": {"a": "b"}}"#
        let answer = try read(json)
        guard case .respond(let made) = answer.decision else { throw CalloutFault.wrong("no response") }
        #expect(made.response.status == .tooManyRequests)
        #expect(made.response.fields.values(of: "A") == ["1", "2"])
        #expect(made.response.content.bytes == Array("ä".utf8))
        #expect(answer.notes == [.init(name: "a", value: "b")])
        #expect(try read(#"{"drop": true}"#).decision == .drop)
    }

    @Test(arguments: [
        ("", "the answer is not valid JSON"),
        ("[]", "the answer must be a JSON object"),
        ("{}{}", "the answer is not valid JSON"),
        (#"{"set": {}, "set": {}}"#, "the answer is not valid JSON"),
        (#"{"sets": {}}"#, #"the answer has an unknown member "sets"; did you mean "set"?"#),
        (#"{"set": []}"#, "set must be an object"),
        (#"{"set": {"A": 1}}"#, "set.A must be a text, or a list of texts"),
        (#"{"set": {"A": []}}"#, "set.A is an empty list; use remove"),
        (#"{"set": {"A": "1", "a": "2"}}"#, "set has a twice"),
        (#"{"set": {"A B": "1"}}"#, #"set: "A B" is not a field name"#),
        (#"{"set": {"": "1"}}"#, "set: \"\" is not a field name"),
        (#"{"set": {"A": "1\r\nB: 2"}}"#, "set: the value of A cannot be sent in a field"),
        (#"{"set": {"A": "1\u0000"}}"#, "the answer is not valid JSON"),
        (#"{"set": {"Content-Length": "1"}}"#, "set: the gateway sets Content-Length itself"),
        (#"{"set": {"content_length": "1"}}"#, "set: the gateway sets content_length itself"),
        (#"{"append": [["Transfer-Encoding", "chunked"]]}"#, "append: the gateway sets Transfer-Encoding itself"),
        (#"{"remove": ["Connection"]}"#, "remove: the gateway sets Connection itself"),
        (#"{"set": {"Host": "b"}}"#, "set: change url instead of the field Host"),
        (#"{"append": [["A"]]}"#, "append[0] must be a list of a name and a value"),
        (#"{"append": {"A": "1"}}"#, "append must be a list of pairs"),
        (#"{"remove": "A"}"#, "remove must be a list of field names"),
        (#"{"remove": [1]}"#, "remove must be a list of field names"),
        (#"{"method": "A B"}"#, #""A B" is not a method"#),
        (#"{"method": "CONNECT"}"#, "CONNECT changes how the response is framed; write another method"),
        (#"{"method": 1}"#, "method must be a text"),
        (#"{"url": null}"#, "url must be a text"),
        (#"{"status": 200}"#, "status can be changed only in the response half"),
        (#"{"content": "x"}"#, "content must be an object with either text or base64"),
        (#"{"content": {"text": "x", "base64": "eA=="}}"#, "content must be an object with either text or base64"),
        (#"{"content": {"base64": "?"}}"#, "content.base64 is not valid base64"),
        (#"{"content": {"text": 1}}"#, "content.text must be a text"),
        (#"{"content": {"body": "x"}}"#, #"content has an unknown member "body"; write text or base64"#),
        (#"{"notes": ["a"]}"#, "notes must be an object with at most 64 texts"),
        (#"{"notes": {"a": 1}}"#, #"notes: "a" must be a text"#),
        (#"{"drop": 1}"#, "drop must be true or false"),
        (#"{"drop": true, "set": {}}"#, "set cannot stand beside drop"),
        (#"{"drop": true, "respond": {"status": 200}}"#, "respond and drop cannot stand together"),
        (#"{"respond": {"status": 200}, "url": "/"}"#, "url cannot stand beside respond"),
        (#"{"respond": {}}"#, "respond.status is missing"),
        (#"{"respond": 200}"#, "respond must be an object"),
        (#"{"respond": {"status": 200, "text": "x"}}"#, #"respond has an unknown member "text""#),
        (#"{"respond": {"status": 101}}"#, "respond.status must be a number from 200 to 599"),
        (#"{"respond": {"status": 200.5}}"#, "respond.status must be a number from 200 to 599"),
        (#"{"respond": {"status": 1e99}}"#, "respond.status must be a number from 200 to 599"),
        (#"{"respond": {"status": 200, "fields": {}}}"#, "respond.fields must be a list of pairs"),
        (#"{"respond": {"status": 200, "fields": [["A", "\n"]]}}"#, "respond.fields: the value of A cannot be sent"),
    ])
    func `a wrong answer has a reason`(json: String, expected: String) throws {
        let reason = try #require(self.reason(json))
        #expect(reason.hasPrefix(expected), "\(reason)")
    }

    @Test func `the URL and the method belong to requests only`() {
        #expect(reason(#"{"url": "/"}"#, .response) == "url can be changed only in the request half")
        #expect(reason(#"{"method": "GET"}"#, .response) == "method can be changed only in the request half")
        #expect(reason(#"{"status": 600}"#, .response) == "status must be a number from 200 to 599")
    }

    @Test func `a deep or endless answer is refused`() {
        #expect(reason(String(repeating: "[", count: 100_000)) != nil)
        let many = #"{"notes": {"# + (0..<60_000).map { "\"\($0)\": \"\"" }.joined(separator: ",") + "}}"
        #expect(reason(many)?.hasPrefix("the answer is not valid JSON") == true)
    }

    @Test(arguments: [
        ("{}", true, false, nil as Int?, nil as Int?),
        (#"{"request": false, "response": true}"#, false, true, nil, nil),
        (#"{"content": {"request": "64KiB", "response": "1MiB"}}"#, true, false, 65_536, 1_048_576),
    ])
    func `the first answer chooses halves and content`(
        json: String, request: Bool, response: Bool, ofRequest: Int?, ofResponse: Int?
    ) throws {
        let wants = try CalloutHello(Array(json.utf8)).applied(to: CalloutWants())
        #expect(
            wants
                == CalloutWants(
                    request: request, response: response, requestContent: ofRequest, responseContent: ofResponse))
    }

    @Test(arguments: [
        (#"{"request": 1}"#, "request must be true or false"), (#"{"content": 1}"#, "content must be an object"),
        (#"{"content": {"request": "65GiB"}}"#, "content.request must be a byte count"),
        (#"{"content": {"body": "1KiB"}}"#, #"content has an unknown member "body""#),
        (#"{"set": {}}"#, #"the answer has an unknown member "set""#), (#"{"error": 1}"#, "error must be a text"),
    ])
    func `a wrong first answer has a reason`(json: String, expected: String) {
        do throws(CalloutFault) {
            _ = try CalloutHello(Array(json.utf8))
            Issue.record("accepted")
        } catch {
            #expect(error.reason.hasPrefix(expected), "\(error.reason)")
        }
    }

    @Test func `the first message has the options`() {
        let message = CalloutHello.message(options: .object([("a", 1)]))
        #expect(String(decoding: message, as: UTF8.self) == #"{"version":1,"half":"hello","options":{"a":1}}"#)
    }
}
