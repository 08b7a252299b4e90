import HttpWare
import Testing

@testable import Capturing

@Suite struct ContentMaskTests {
    private func masked(_ text: String, _ form: ContentMask.Form) -> String? {
        ContentMask.masked(Array(text.utf8), form).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("user=a&password=b%26c&x=1", "user=a&password=…&x=1"), ("access_token=abc", "access_token=…"),
        ("a&pass%77ord=x&", "a&pass%77ord=…&"), ("password=", nil), ("user=a", nil), ("password", nil), ("", nil),
    ])
    func `the values of form members that are named like credentials are masked`(text: String, expected: String?) {
        #expect(masked(text, .form) == expected)
    }

    @Test(arguments: [
        (#"{"user":"a","password":"b\"c","x":1}"#, #"{"user":"a","password":"…","x":1}"#),
        (#"{"a":[{"client_secret" : 12345 , "b":true}]}"#, #"{"a":[{"client_secret" : "…" , "b":true}]}"#),
        (#"{"tokens":{"a":["}",{"b":"]"}]},"c":2}"#, #"{"tokens":"…","c":2}"#),
        (#"{"pass\u0077ord":"x"}"#, #"{"pass\u0077ord":"…"}"#), (#"{"password":"cut o"#, #"{"password":"…""#),
        (#"{"password":[1,2"#, #"{"password":"…""#), (#"{"password":"x\"#, #"{"password":"…""#),
        ("{\"otp\":1}\n{\"otp\":2}", "{\"otp\":\"…\"}\n{\"otp\":\"…\"}"), (#"{"user":"password"}"#, nil),
        (#"["password","x"]"#, nil), (#"{"password""#, nil), (#"{"password":"#, nil), ("\"", nil), ("\\", nil),
    ])
    func `the values of JSON members that are named like credentials are masked`(text: String, expected: String?) {
        #expect(masked(text, .json) == expected)
    }

    @Test func `masking takes linear time, whatever is nested`() {
        for text in [
            String(repeating: "{\"token\":[", count: 100_000), String(repeating: "\"", count: 1_000_000),
            String(repeating: "\"a\":", count: 200_000), String(repeating: "token=&", count: 150_000),
        ] {
            let time = ContinuousClock().measure { _ = (masked(text, .json), masked(text, .form)) }
            #expect(time < .seconds(5))
        }
    }

    @Test func `masked content counts as whole, and is repeated as it was`() throws {
        var request = CapturedMessage(fields: [.init("Content-Type", "application/json; charset=utf-8")])
        request.content.kept = Array(#"{"password":"secret"}"#.utf8)
        request.content.size = request.content.kept.count
        let original = request.content
        var exchange = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: "POST", url: "http://a.test/", version: "HTTP/1.1",
            listener: "web", request: request)
        let sent = exchange
        let store = CaptureStore(CaptureSettings())
        let id = store.take([exchange])[0]
        exchange = try #require(store.find(id))
        #expect(String(decoding: exchange.request.content.kept, as: UTF8.self) == #"{"password":"…"}"#)
        #expect(exchange.request.content.isWhole)
        #expect(try RequestRepetition(exchange).content == original.kept)
        #expect(exchange.restored.exchange.request.content == original && exchange.restored.missing == 0)
        var edits = RequestRepetition.Edits()
        edits.url = "http://b.test/"
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(exchange, edits) }
        exchange.secrets = nil
        #expect(throws: RequestRepetition.Refusal.self) { try RequestRepetition(exchange) }
        #expect(exchange.restored.missing == 1)
        var open = CaptureSettings()
        open.redacted = []
        let shown = CaptureStore(open)
        #expect(shown.find(shown.take([sent])[0])?.request.content == original)
    }
}
