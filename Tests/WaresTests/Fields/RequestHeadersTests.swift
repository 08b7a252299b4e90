import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct RequestHeadersTests {
    private func sent(_ options: ConfigNode, _ request: HttpRequest) async throws -> HttpFields {
        let exchange = try TestExchange(RequestHeaders.self, options: options)
        let response = try await exchange.send(request)
        #expect(response.status == .ok)
        return try #require(exchange.upstream.requests.first).fields
    }

    @Test func `set replaces all lines of the name and adds one that was not there`() async throws {
        let fields = try await sent(
            ["set": ["X-A": "new", "Accept": "text/html"]], .get("/", fields: ["x-a": "one", "X-A": "two"]))
        #expect(fields.values(of: "X-A") == ["new"])
        #expect(fields[.accept] == "text/html")
    }

    @Test func `many fixed fields are set in one go beside others of like names`() async throws {
        let names = (1...20).map { "X-Rule-\($0)" }
        let options = ConfigNode(
            .map([
                .init(
                    key: "set", location: .code,
                    value: ConfigNode(
                        .map(names.map { .init(key: $0, location: .code, value: "value") })))
            ]))
        let fields = try await sent(options, .get("/", fields: ["X-Rule-7": "client", "X-Rule-21": "client"]))
        for name in names { #expect(fields.values(of: try #require(FieldName(name))) == ["value"]) }
        #expect(fields["X-Rule-21"] == "client")
    }

    @Test func `a field that is set, renamed or removed takes its twins along, and no other field`() async throws {
        let fields = try await sent(
            [
                "set": ["X-User": "ada", "X-Made": "{client.ip}"], "setIfAbsent": ["X-Absent": "own", "X-Here": "own"],
                "remove": ["X-Debug-Mode"], "rename": ["X-Old-Name": "X-New-Name"], "append": ["X-Seen": "gateway"],
            ],
            .get(
                "/",
                fields: [
                    "X_User": "root", "x_made": "evil", "X_Absent": "evil", "X-Here": "client's", "X_Debug-Mode": "1",
                    "X-Debug_Mode": "1", "X_Old_Name": "evil", "X_New_Name": "evil", "X-Old-Name": "old",
                    "X_Seen": "client", "X_Other": "stays",
                ]))
        #expect(fields.map(\.name).filter { $0.contains("_") } == ["X_Seen", "X_Other"])
        #expect(fields["X-User"] == "ada" && fields["X-Absent"] == "own" && fields["X-Here"] == "client's")
        #expect(fields["X-New-Name"] == "old" && fields["X-Seen"] == "gateway")
    }

    @Test(arguments: ["Content_Length", "transfer_encoding", "Keep_Alive", "Proxy_Connection"])
    func `a twin of a field that is the gateway's own is refused at load`(name: String) {
        let set = ConfigNode(
            .map([.init(key: name, location: .code, value: ConfigNode(.scalar("5", isQuoted: true)))]))
        #expect(throws: ConfigError.self) { try TestExchange.make(RequestHeaders.self, ["set": set]) }
    }

    @Test func `setIfAbsent leaves what the client sent`() async throws {
        let options: ConfigNode = ["setIfAbsent": ["Accept": "*/*", "X-New": "yes"]]
        let fields = try await sent(options, .get("/", fields: ["Accept": "text/html"]))
        #expect(fields.values(of: .accept) == ["text/html"])
        #expect(fields["X-New"] == "yes")
    }

    @Test func `append adds one line or several behind the present ones`() async throws {
        let fields = try await sent(["append": ["X-A": ["two", "three"]]], .get("/", fields: ["X-A": "one"]))
        #expect(fields.values(of: "X-A") == ["one", "two", "three"])
    }

    @Test func `remove takes all lines of the name away, whatever its case`() async throws {
        let fields = try await sent(
            ["remove": ["x-debug", "Cookie"]], .get("/", fields: ["X-Debug": "1", "X-DEBUG": "2", "Cookie": "a=b"]))
        #expect(!fields.contains("X-Debug"))
        #expect(!fields.contains(.cookie))
    }

    @Test func `rename keeps each value and replaces what had the new name`() async throws {
        let fields = try await sent(
            ["rename": ["X-Old": "X-New"]], .get("/", fields: ["X-Old": "a", "X-New": "forged", "x-old": "b"]))
        #expect(fields.values(of: "X-New") == ["a", "b"])
        #expect(!fields.contains("X-Old"))
    }

    @Test func `rename changes nothing when the old name is not there`() async throws {
        let fields = try await sent(["rename": ["X-Old": "X-New"]], .get("/", fields: ["X-New": "kept"]))
        #expect(fields["X-New"] == "kept")
    }

    @Test func `the verbs act in the order rename, remove, set, setIfAbsent, append`() async throws {
        let fields = try await sent(
            [
                "append": ["X-A": "5"], "setIfAbsent": ["X-A": "4", "X-B": "4"], "set": ["X-A": "3"],
                "remove": ["X-B"], "rename": ["X-Old": "X-B"],
            ], .get("/", fields: ["X-Old": "1", "X-A": "0"]))
        #expect(fields.values(of: "X-A") == ["3", "5"])
        #expect(fields.values(of: "X-B") == ["4"])
    }

    @Test func `placeholders are filled from the request`() async throws {
        var setting = TestExchange.Setting()
        setting.captures = [("id", "7%20a")]
        let exchange = try TestExchange(
            RequestHeaders.self,
            options: [
                "set": [
                    "X-All": "{request.method} {request.path} {request.query.q} {request.header.X-A} {path.id} {{x}",
                    "X-Client": "{client.ip}", "X-Peer": "{peer.ip}",
                ]
            ], setting: setting)
        _ = try await exchange.send(.get("/p?q=1", fields: ["X-A": "a"]))
        let fields = try #require(exchange.upstream.requests.first).fields
        #expect(fields["X-All"] == "GET /p 1 a 7%20a {x}")
        #expect(fields["X-Client"] == "203.0.113.7")
        #expect(fields["X-Peer"] == "203.0.113.7")
    }

    @Test func `a placeholder without a value leaves no space at the ends`() async throws {
        let fields = try await sent(["set": ["X-A": "Bearer {request.query.none}"]], .get("/"))
        #expect(fields["X-A"] == "Bearer")
    }

    @Test(arguments: ["a\r\nX-Evil: 1", "a\u{0}b", "a\nb", "\u{7f}"])
    func `a placeholder that brings a control character refuses the request with 400 - RFC 9110 §5.5`(value: String)
        async throws
    {
        var setting = TestExchange.Setting()
        setting.captures = [("name", value)]
        let exchange = try TestExchange(
            RequestHeaders.self, options: ["set": ["X-A": "x{path.name}x"]], setting: setting)
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .badRequest)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `setting Host changes the authority`() async throws {
        let exchange = try TestExchange(RequestHeaders.self, options: ["set": ["Host": "other.example:8080"]])
        _ = try await exchange.send(.get("/"))
        #expect(exchange.upstream.requests.first?.fields.values(of: .host) == ["other.example:8080"])
        #expect(exchange.upstream.requests.first?.host == "other.example")
    }

    @Test func `a Host made of an unknown placeholder refuses the request`() async throws {
        let exchange = try TestExchange(RequestHeaders.self, options: ["set": ["Host": "{request.query.h}"]])
        #expect(try await exchange.send(.get("/?h=a@b")).status == .badRequest)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [
        "Content-Length", "transfer-encoding", "Connection", "Upgrade", "TE", "Keep-Alive", "Proxy-Connection",
        "HTTP2-Settings",
    ])
    func `fields that frame the message are refused at load by every verb`(name: String) throws {
        let entry = { (value: ConfigNode) in ConfigNode(.map([.init(key: name, location: .code, value: value)])) }
        let forms: [(String, ConfigNode)] = [
            ("set", entry("1")), ("setIfAbsent", entry("1")), ("append", entry("1")),
            ("remove", ConfigNode(.list([ConfigNode(.scalar(name, isQuoted: true))]))), ("rename", entry("X-A")),
            ("rename", ["X-A": ConfigNode(.scalar(name, isQuoted: true))]),
        ]
        for (verb, value) in forms {
            let options = ConfigNode(.map([.init(key: verb, location: .code, value: value)]))
            let error = #expect(throws: ConfigError.self) { try TestExchange.make(RequestHeaders.self, options) }
            #expect(error?.message.contains("frames the message") == true)
            #expect(throws: ConfigError.self) { try TestExchange.make(ResponseHeaders.self, options) }
        }
    }

    @Test(
        arguments: [
            ["set": ["X A": "1"]], ["set": ["X-A": "a\nb"]], ["set": ["X-A": " a"]], ["set": ["X-A": "{nope}"]],
            ["set": ["X-A": "{client.ip"]], ["remove": ["Host"]], ["append": ["Host": "a"]], ["rename": ["Host": "X"]],
            ["set": ["Host": "a b"]], ["set": ["X-A": "1", "x-a": "2"]], ["sett": ["X-A": "1"]], [:],
            ["set": ["X-A": "{client.ip}\r\nX: y"]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(RequestHeaders.self, options) }
    }

    @Test func `a chain in code sets fixed fields`() async throws {
        let exchange = try TestExchange([RequestHeaders(FieldEdits(set: ["X-A": "1"], remove: ["X-B"]))])
        _ = try await exchange.send(.get("/", fields: ["X-B": "2"]))
        let fields = try #require(exchange.upstream.requests.first).fields
        #expect(fields["X-A"] == "1")
        #expect(!fields.contains("X-B"))
    }
}
