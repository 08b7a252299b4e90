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

    @Test(arguments: [
        // A field, a file, JSON in a part, a folded line, a name without quotes; what is around stays.
        (
            "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\na\r\n--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\nx\r\ny\r\n--b--\r\n",
            "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\na\r\n--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\n…\r\n--b--\r\n"
        ),
        (
            "--b\nContent-Disposition: form-data;\n filename=\"a;b\"; name=token\n\nsecret\n--b--",
            "--b\nContent-Disposition: form-data;\n filename=\"a;b\"; name=token\n\n…\n--b--"
        ),
        (
            "--b\nContent-Disposition: form-data; name=data\nContent-Type: application/json; x=y\n\n{\"password\":\"x\",\"a\":1}\n--b--",
            "--b\nContent-Disposition: form-data; name=data\nContent-Type: application/json; x=y\n\n{\"password\":\"…\",\"a\":1}\n--b--"
        ),
        (
            "--b\nContent-Type: multipart/mixed; boundary=\"c d\"\n\n--c d\nContent-Disposition: x; name=otp\n\n1\n--c d--\n--b--",
            "--b\nContent-Type: multipart/mixed; boundary=\"c d\"\n\n--c d\nContent-Disposition: x; name=otp\n\n…\n--c d--\n--b--"
        ),
        // Cut off, or with a line that only begins like a delimiter.
        (
            "--b\r\nContent-Disposition: form-data; name=\"pass\\word\"\r\n\r\nx\r\n--bother\r\nx\r\n-",
            "--b\r\nContent-Disposition: form-data; name=\"pass\\word\"\r\n\r\n…"
        ), ("--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n", nil),
        ("--b\r\nContent-Disposition: form-data; name=\"password\"", nil), ("--b", nil), ("", nil),
        ("--b\nContent-Disposition: form-data; name=\"note\"\n\npassword=x\n--b--", nil),
    ])
    func `the parts of a form that are named like credentials are masked`(text: String, expected: String?) {
        #expect(masked(text, .parts(boundary: [0x62])) == expected)
    }

    @Test(arguments: [
        ("data: {\"password\":\"x\"}\n\n", "data: {\"password\":\"…\"}\n\n"),
        ("id: 1\rdata:{\"token\":\rdata:\"x\"}\r\r", "id: 1\rdata:{\"token\":\rdata:\"…\"}\r\r"),
        ("data: {\"token\":[1,\r\ndata: 2]}\r\n\r\n", "data: {\"token\":\"…\"}\r\n\r\n"),
        ("\u{feff}data: {\"token\":1", "\u{feff}data: {\"token\":\"…\""), ("data: {\"token\":\n\ndata: 1", nil),
        ("event: {\"token\":1}\n\n", nil), ("data", nil), ("data:", nil), ("", nil),
    ])
    func `JSON in events is masked, over the lines of an event`(text: String, expected: String?) {
        #expect(masked(text, .events) == expected)
        var events = MaskedEvents()
        let bytes = Array(text.utf8)
        for count in 0...bytes.count { _ = events.update(Array(bytes[..<count]), isLast: false) }
        #expect(String(decoding: events.update(bytes, isLast: true), as: UTF8.self) == expected ?? text)
        #expect(events.hasMarks == (expected != nil))
    }

    @Test func `events of a running response are masked from the first byte on`() {
        var events = MaskedEvents()
        let bytes = Array("data: {\"password\":\"secret\"}\n\ndata: {\"password\":\"secret\"}\n\n".utf8)
        for count in 0...bytes.count {
            let shown = events.update(Array(bytes[..<count]), isLast: false)
            #expect(!String(decoding: shown, as: UTF8.self).contains("\"s"))
        }
    }

    @Test func `JSON in messages is masked, in binary messages too, and gRPC is not touched`() {
        func shown(_ form: CapturedPiece.Form, _ text: String) -> String {
            let piece = CapturedPiece(
                .send, form, time: WallTime(seconds: 0), data: Array(text.utf8), size: text.utf8.count)
            return String(decoding: ContentMask.maskedData(piece) ?? piece.data, as: UTF8.self)
        }
        #expect(shown(.webSocket(opcode: 1), #"42["in",{"password":"x"}]"#) == #"42["in",{"password":"…"}]"#)
        #expect(shown(.webSocket(opcode: 2), #"{"password":"x"}"#) == #"{"password":"…"}"#)
        #expect(shown(.webSocket(opcode: 2), #"\u{1}{"password":"x"}"#) == #"\u{1}{"password":"…"}"#)
        #expect(shown(.webSocket(opcode: 1), "a=1&password=x") == "a=1&password=…")
        #expect(shown(.webSocket(opcode: 8), #"{"password":"x"}"#) == #"{"password":"x"}"#)
        #expect(shown(.event(type: nil, id: nil), #"{"password":"x"}"#) == #"{"password":"…"}"#)
        #expect(shown(.grpc, #"{"password":"x"}"#) == #"{"password":"x"}"#)
    }

    @Test(arguments: [
        ("multipart/form-data; boundary=\"a b\"", ContentMask.Form.parts(boundary: Array("a b".utf8))),
        ("Multipart/Form-Data; charset=x; BOUNDARY=ab", .parts(boundary: Array("ab".utf8))), ("multipart/mixed", nil),
        ("multipart/mixed; boundary=\"\"", nil), ("text/event-stream; charset=utf-8", .events), ("text/plain", nil),
    ])
    func `the media type says how content is masked`(type: String, form: ContentMask.Form?) {
        #expect(ContentMask.form(ofType: type) == form)
    }

    @Test func `the look for names passes over nothing that would be masked`() {
        var generator = SystemRandomNumberGenerator()
        let pieces = ["\"", "\\", ":", ",", "{", "}", " ", "x", "pass", "word", "\\u0070", "\"token\"", "é", "1"]
        var masked = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 1...12, using: &generator)
            let text = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            var marks = JsonMarks(Array(text.utf8))
            let expected = marks.find().map(\.range)
            #expect(ContentMask.marks(in: Array(text.utf8), .json).map(\.range) == expected, "\(text)")
            if !expected.isEmpty { masked += 1 }
        }
        #expect(masked > 100)
        #expect(!JsonMarks.mayBeThere(in: Array(#"{"a": {"b" : "token: x"}, "c": [1]}"#.utf8)))
    }

    @Test func `masked content stays as it is when it is masked again, and pieces of events give the same`() {
        let words = [
            "data:", "data: ", "event:", "\n", "\r", "\r\n", "\n\n", "--b", "--b--", "{", "}", "[", "]", ":", ",", "\"",
            "\\",
            "\"password\":", "\"x\"", "token", "name=", "; ", "Content-Disposition: form-data; name=\"password\"", "&",
            "=", "1",
            "Content-Type: application/json", "Content-Type: multipart/mixed; boundary=b", "…", "\u{feff}", "\0",
        ]
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...24, using: &random)).map { _ in words.randomElement() ?? "" }.joined()
            let bytes = Array(text.utf8)
            for form in [ContentMask.Form.form, .json, .parts(boundary: [0x62])] {
                guard let masked = ContentMask.masked(bytes, form) else { continue }
                #expect(ContentMask.masked(masked, form) ?? masked == masked, "\(form) of \(text.debugDescription)")
            }
            var events = MaskedEvents()
            for _ in 0..<3 {
                _ = events.update(Array(bytes[..<Int.random(in: 0...bytes.count, using: &random)]), isLast: false)
            }
            let shown = events.update(bytes, isLast: true)
            #expect(shown == ContentMask.masked(bytes, .events) ?? bytes, "\(text.debugDescription)")
        }
    }

    @Test func `masking takes linear time, whatever is nested`() {
        for text in [
            String(repeating: "{\"token\":[", count: 40_000), String(repeating: "\"", count: 300_000),
            String(repeating: "\"a\":", count: 70_000), String(repeating: "\n--b", count: 70_000),
            String(repeating: "data:\n", count: 60_000), String(repeating: "\nname=\"", count: 50_000),
            String(repeating: "token=&", count: 50_000),
        ] {
            let time = ContinuousClock().measure {
                _ = (masked(text, .json), masked(text, .form), masked("data:" + text, .events))
                _ = masked("--b\n\n" + text, .parts(boundary: [0x62]))
            }
            #expect(time < .seconds(15))
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

    private static let labels: [String?] = [
        nil, "", "text/plain", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", "application/json",
        "application/octet-stream", "text/html", "text/xml", "image/png", "multipart/form-data; boundary=other",
        "multipart/form-data", "application/javascript", "text/css", "nonsense", "application/vnd.api+json",
    ]

    private func content(_ text: String, _ label: String?) -> CapturedMessage {
        var message = CapturedMessage(fields: label.map { [.init("Content-Type", $0)] } ?? [])
        message.content.kept = Array(text.utf8)
        message.content.size = message.content.kept.count
        return message
    }

    private func shown(_ text: String, _ label: String?) -> String {
        var message = content(text, label)
        _ = CaptureRedaction(CaptureSettings()).maskContent(&message, limit: 1 << 20)
        return String(decoding: message.content.kept, as: UTF8.self)
    }

    @Test(arguments: labels)
    func `content with the names of credentials is masked whatever its media type says`(label: String?) {
        for (text, expected) in [
            ("user=a&password=hunter2&x=1", "user=a&password=…&x=1"), ("password=hunter2", "password=…"),
            ("?access_token=hunter2", "?access_token=…"), ("\u{feff}pass%77ord=hunter2&a=", "\u{feff}pass%77ord=…&a="),
            ("user[password]=hunter2", "user[password]=…"),
            ("a&b&c=1&client_secret=hunter2", "a&b&c=1&client_secret=…"),
            (#"{"password":"hunter2"}"#, #"{"password":"…"}"#),
            (#"[{"a":1,"api_token" : "hunter2"}]"#, #"[{"a":1,"api_token" : "…"}]"#),
            (#"{"data":"{\"password\": \"hunter2\", \"b\": 1}"}"#, #"{"data":"{\"password\": \"…\", \"b\": 1}"}"#),
            (
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--b--\r\n",
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n…\r\n--b--\r\n"
            ),
        ] {
            #expect(shown(text, label) == expected, "\(label ?? "no label")")
        }
    }

    @Test func `an escape in a name has four hexadecimal digits, without a sign`() {
        #expect(shown(#"{"\u0070assword":"hunter2"}"#, "text/plain") == #"{"\u0070assword":"…"}"#)
        #expect(shown(#"{"\u+070assword":"hunter2"}"#, "text/plain") == #"{"\u+070assword":"hunter2"}"#)
    }

    @Test(
        arguments: [nil, "text/plain", "application/json", "application/octet-stream", "text/html", "message/http"]
            as [String?])
    func `text around the names of credentials does not hide them`(label: String?) {
        for text in [
            #"{"form":{"password":"hunter2"},"data":"user=a&password=hunter2"}"#,
            "You sent: a=1&password=hunter2 as a form",
            "<p>password=hunter2</p>", "<a href=\"/x?a=1&token=hunter2&b=2\">x</a>", "<password>hunter2</password>",
            "<a><wsse:Password Type=\"x\">hunter2</wsse:Password></a>", "<a><token><v>hunter2</v></token></a>",
            "<token><![CDATA[hunter2]]></token>", "<user password=\"hunter2\"/>", "<password>hunter2",
            "(password='hunter2')",
            "POST / HTTP/1.1\r\nAuthorization: Bearer hunter2\r\nX-Api-Key: hunter2\r\n\r\npassword=hunter2",
            "# settings\nDB_PASSWORD=hunter2 hunter2\nexport API_TOKEN=\"hunter2\"\npassword = hunter2\n",
            "user: a\n  password: hunter2 hunter2\n", #"{"query":"mutation { login(password: \"hunter2\") { id } }"}"#,
            #"mutation { login(password: "hunter2") { id } }"#, #"{'password': 'hunter2'}"#,
            #"{"a":"{\"b\":\"{\\\"password\\\":\\\"hunter2\\\"}\"}"}"#, #"5" long {"password":"hunter2"}"#,
            "user=a b\r\npassword=hunter2 hunter2\r\nx=1\r\n", "user=a&password=hunter2 hunter2\nhunter2&x=1",
            "\0\u{1}\u{2}password=hunter2",
            "preamble\r\n--b\r\nContent-Disposition: form-data; name=token\r\n\r\nhunter2",
            #"{"tokens":{"a":["hunter2",{"b":"hunter2"}]}}"#, #"{\"token\":{\"a\":\"}hunter2\"},\"b\":1}"#,
        ] {
            #expect(!shown(text, label).contains("hunter2"), "\(text), \(label ?? "no label"): \(shown(text, label))")
        }
    }

    /// Values of credentials in every form, each of which is a line, or lines.
    private static let forms = [
        "password: hunter2", "password: hunter2 hunter2", "  - password: hunter2", "# password: hunter2",
        "// password: hunter2",
        "Authorization: Bearer hunter2", "X-Api-Key: hunter2", "pin: hunter2", "password = hunter2", "password=hunter2",
        "aws_secret_access_key = hunter2 hunter2", "api_key=hunter2", "export API_TOKEN=hunter2", "token = 'hunter2'",
        #"apiKey: "hunter2""#, #""apiKey": "hunter2","#, #"{"api_key":"hunter2"}"#, "{'password': 'hunter2'}",
        "{password: \"hunter2\"}",
        #"{"password"=>"hunter2", :token=>"hunter2"}"#, "'password' => 'hunter2'",
        #"callback({"apiKey":"hunter2","pwd":"hunter2"})"#,
        "https://a.test/cb?access_token=hunter2", "https://a.test/cb?a=1&code=hunter2",
        #"u = "https://a.test/cb?code=hunter2""#,
        "<password>hunter2</password>", #"<input name="password" value="hunter2">"#,
        #"[{"name":"password","value":"hunter2"}]"#, "f({password: `hunter2`})", "f('password=hunter2')",
        "this.password = hunter2",
    ]

    @Test(
        arguments: [
            "", "[default]\n", "[INFO] a\n", "{a}\n", "{{ head }}\n", "<pre>\n", "<!-- a -->\n", "<?php\n", "\"a\"\n",
            "'a'\n", "(a)\n",
            "# a\n", "// a\n", "/* a */\n", ";a\n", "--\n", "1\n", "a\n", "\u{feff}", "\n\n", "a = 1\n", "a: 1\r\n",
            "é\n", "\0\n", "%\n", "$a\n", "@a\n",
        ],
        labels)
    func `values are masked whatever the first byte and the label are`(head: String, label: String?) {
        for form in Self.forms {
            for text in [head + form, head + form + "\n", head + form + "\nlast line\n"] {
                let shown = shown(text, label)
                #expect(
                    !shown.contains("hunter2"),
                    "\(text.debugDescription), \(label ?? "no label"): \(shown.debugDescription)")
            }
        }
    }

    @Test(arguments: labels)
    func `secrets in the files of other programs are masked`(label: String?) {
        for text in [
            "machine a.test login b password hunter2\n",
            "machine a.test\n  login b\n  password hunter2\nmachine c.test\n",
            "# a\ndefault login anonymous password hunter2",
            "machine a login b account hunter2 password \"hunter2 \\\" x\"",
            "machine a.test login b\n# a comment\npassword hunter2\n\nmachine c password hunter2",
            #"{"file":"machine a.test\nlogin b\npassword hunter2\nmachine c\npassword hunter2"}"#,
            "//registry.npmjs.org/:_authToken=hunter2\nregistry=https://registry.npmjs.org/\n",
            "_auth=hunter2\nemail=a@a.test", "//r.test/:_password=\"hunter2\"",
            "always-auth=true\n//r.test/:_auth = hunter2",
            "[pypi]\nusername = __token__\npassword = hunter2\n",
            "https://user:hunter2@github.com\nhttps://hunter2@github.com\n",
            "[remote]\n\turl = https://hunter2:x@a.test/b.git",
            #"{"database":"postgres://u:hunter2@db.test:5432/x"}"#, "amqp://u:hunter2@a.test,amqp://u:hunter2@b.test",
            "[default]\naws_access_key_id = AKIA0000\naws_secret_access_key = hunter2\naws_session_token=hunter2\n",
            "> GET / HTTP/1.1\n> Host: a.test\n> Cookie: PHPSESSID=hunter2; a=b\n< Set-Cookie: ASPX=hunter2; Path=/\n",
            "GET / HTTP/1.1\r\nAuthorization: Basic hunter2\r\nProxy-Authorization: hunter2\r\nX-Api-Key: hunter2\r\n\r\n",
            "users:\n- name: a\n  user:\n    client-key-data: hunter2\n    token: hunter2\n",
            "-----BEGIN EC PRIVATE KEY-----\nhunter2\nhunter2\n-----END EC PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----\nhunter2",
            #"{"pem":"-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\n"}"#,
        ] {
            // In a program, a value is a literal; the lines of a tool are something else.
            if text.hasPrefix(">"), ["application/javascript", "text/css"].contains(label) { continue }
            let shown = shown(text, label)
            #expect(!shown.contains("hunter2"), "\(text), \(label ?? "no label"): \(shown)")
        }
    }

    @Test(arguments: [
        "the machine learning a password", "machine", "machine a.test login b", "default", "default: a machine login",
        "https://a.test/@user/b@1", "ssh://git@a.test/b", "mailto:a@a.test", "https://a.test?u=a@b", "a://", "://@",
        "cookie recipes",
        "-----BEGIN PUBLIC KEY-----\na\n-----END PUBLIC KEY-----", "-----END PRIVATE KEY-----", "PRIVATE KEY-----",
    ])
    func `text that only looks like such a file stays as it is`(text: String) {
        #expect(shown(text, "text/plain") == text)
    }

    @Test(arguments: labels)
    func `a value that is not the first of its line is masked in text`(label: String?) {
        for text in [
            "{password: hunter2}", "[INFO] password: hunter2", "[INFO] password: hunter2, hunter2",
            "2026-01-01 INFO password = hunter2 used",
            "[{password: hunter2, a: 1}]", "<p>Password: hunter2</p>", #"{"log":"[INFO] a\npassword: hunter2"}"#,
            #"{"lines":["Authorization: Bearer hunter2","b"]}"#, "password: |\n  hunter2\n  hunter2\nlast: 1",
            "Authorization: Bearer\n\thunter2\nA: b",
        ] {
            #expect(!shown(text, label).contains("hunter2"), "\(text), \(label ?? "no label"): \(shown(text, label))")
        }
    }

    @Test(arguments: [
        (#"<input name="password" type="text" value="x">"#, #"<input name="password" type="text" value="…">"#),
        (#"<INPUT value='x' id=a name='user[password]'/>"#, #"<INPUT value='…' id=a name='user[password]'/>"#),
        (
            #"<input name="dir" value="C:\"><input type="password" value="x">"#,
            #"<input name="dir" value="C:\"><input type="password" value="…">"#
        ),
        (#"<meta value="C:\"/><password>x</password>"#, #"<meta value="C:\"/><password>…</password>"#),
        (#"<input value="<password>x</password>"#, #"<input value="<password>…</password>"#),
        (#"<input type=password value=x>y"#, #"<input type=password value=…>y"#),
        (#"<meta name="csrf-token" content="x">"#, #"<meta name="csrf-token" content="…">"#),
        (
            #"<input name="user" value="x"><input name="password">"#,
            #"<input name="user" value="x"><input name="password">"#
        ),
        (#"<input name=password value"#, #"<input name=password value"#),
        (#"<input value="x" name="password"#, #"<input value="…" name="password"#),
        (#"["<input name=\"otp\" value=\"x\">"]"#, #"["<input name=\"otp\" value=\"…\">"]"#),
        (
            #"[{"name":"password","value":"x"},{"name":"a","value":"y"}]"#,
            #"[{"name":"password","value":"…"},{"name":"a","value":"y"}]"#
        ),
        (
            #"[{"value":"x","name":"password"},{"value":"y","name":"a"}]"#,
            #"[{"value":"…","name":"password"},{"value":"y","name":"a"}]"#
        ),
        (#"[{"name":"token","type":1,"value":[1,2]},3]"#, #"[{"name":"token","type":1,"value":"…"},3]"#),
        (#"{"a":"[{\"name\":\"otp\",\"value\":\"x\"}]"}"#, #"{"a":"[{\"name\":\"otp\",\"value\":\"…\"}]"}"#),
        (#"[{"name":"password"},{"value":"x"}]"#, #"[{"name":"password"},{"value":"x"}]"#),
        ("password:\n  a: x\n  b: y\nc: z\n", "password:\n  …\nc: z\n"),
        ("a:\n  token: x\n  b: y", "a:\n  token: …\n  b: y"),
        ("<div>\n  Password:\n    <input>\n</div>", "<div>\n  Password:\n    <input>\n</div>"),
        ("<pre>\npassword: x</pre>", "<pre>\npassword: …</pre>"),
    ])
    func `of fields in HTML, of pairs of name and value, and of blocks only the value is masked`(
        text: String, expected: String
    ) {
        #expect(shown(text, nil) == expected)
    }

    @Test(arguments: [
        ("application/javascript", #"var token=e.token;if(a&&token==b){f({token:e,key:"x","code":1});n.key="Enter"}"#),
        ("text/css", "a[data-token=x]{color:red}"), ("text/html", "<script>var a=1,token=e.token,b={token:e}</script>"),
        ("text/plain", "The token is good: see https://a.test/?q=1 & more"),
        ("application/xml", "<a><Key>b.txt</Key></a>"),
        (
            "application/javascript",
            "for (let i=0;i<tokens.length;i++) {\n  f(token => token.id)\n  if (key === a ? key : b) g(e.key)\n}"
        ),
        ("text/css", "a{color:red}\n[data-session=x]{color:red}\na[data-token=x],\nb{c:d}"),
        ("image/png", "\u{1}\u{2}PNG\0\0=\0:<\0\0"), ("text/plain", ""), ("text/plain", "password"),
        ("text/plain", "password="),
    ])
    func `programs and other content without such values stay as they are`(label: String, text: String) {
        #expect(shown(text, label) == text)
    }

    @Test func `masked content is valid JSON where it was`() throws {
        for text in [
            #"{"a":"token=x y","b":{"secret":null},"c":"{\"token\":[1,\"]\",2]}"}"#,
            #"{"a":"\"token\":1 \\","token":-1e5}"#,
            #"["password=\"x\"","token: \"x\"","<token>x</token>"]"#,
            #"{"a":"[x]\npassword: x, y; z","b":["token: x","your key : \n x"],"c":"<input name=\"otp\" value=\"x\">"}"#,
            #"{"query":"mutation($password: String!) { login(password: $password) { id } }"}"#,
            #"[{"name":"password","value":{"a":[1]}},{"value":-1,"name":"pin"}]"#,
            #"{"a":"x\\\"token\\\":\\\"y","b":1}"#,
        ] {
            let masked = shown(text, "application/json")
            #expect(masked != text)
            #expect(throws: Never.self) { try JsonValue(Array(masked.utf8)) }
        }
    }

    @Test func `the search by shape takes linear time and stays within the content`() {
        var random = SystemRandomNumberGenerator()
        let words = [
            "\"", "\\", "'", ":", "=", "&", "<", ">", "/", "\n", " ", "token", "password", "<token>", "</token>", "{",
            "}", "[", "]",
            "--b", "Content-Disposition: x; name=token", "\r\n", "<script>", "</script>", "data: ", "é", "\0",
            "\\\"token\\\":", "\"name\":", "\"value\":", "<input ", "name=", "value=", "token: ", "=>", "?", "export ",
            "(", ";", "  ",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...24, using: &random)).map { _ in words.randomElement() ?? "" }.joined()
            for label in [nil, "application/javascript", "text/event-stream"] as [String?] { _ = shown(text, label) }
        }
        for piece in words + [
            "token=", "token:", "\"token\":", "<token ", "<token/", "token=\"", "\\\"", "\\\\\\\":", "'token':",
            "&token", "\ntoken=", "' ':", "{\"value\":", "{\"name\":\"token\",\"value\":", "\"value\":\"",
            "\"name\":\"token", "<input a=\"",
            "<input name=token value='", "\ntoken:", "\n token:\n", "\ntoken: x\n  y", "token: (", "?token=", "a?b",
            "export token=",
            "\"token\"=>", "token=>", "\"=", "\\\"=",
        ] {
            let text = String(repeating: piece, count: 400_000 / piece.utf8.count)
            let time = ContinuousClock().measure {
                for label in [nil, "text/css"] as [String?] { _ = shown(text, label) }
                _ = shown("<" + text + ">", nil)
            }
            #expect(time < .seconds(8), "\(piece) takes \(time)")
        }
    }
}
