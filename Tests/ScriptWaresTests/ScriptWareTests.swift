import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare
@testable import ScriptWares

/// A chain of one script.
private func chain(
    _ source: String, _ options: ConfigNode = [:], setting: TestExchange.Setting = TestExchange.Setting()
) throws -> TestExchange {
    var entries = options.entries ?? []
    entries.insert(.init(key: "source", location: .code, value: ConfigNode(.scalar(source, isQuoted: true))), at: 0)
    return try TestExchange(Script.self, options: ConfigNode(.map(entries)), setting: setting)
}

/// A chain of one script with the statements of its function `request`.
private func requestChain(_ body: String, _ options: ConfigNode = [:]) throws -> TestExchange {
    try chain("return { replays = true, request = function(req, opt, x)\n\(body)\nend }", options)
}

/// A chain of one script with the statements of its function `response`.
private func responseChain(_ body: String, _ options: ConfigNode = [:]) throws -> TestExchange {
    try chain("return { replays = true, response = function(res, opt, x)\n\(body)\nend }", options)
}

extension HttpResponse {
    fileprivate var text: String { String(decoding: content.bytes ?? [], as: UTF8.self) }
}

/// A store that never answers.
private final class SilentStore: RecordStore {
    let isReady = true
    var census: RecordCensus? { nil }

    func get(_ key: Digest256) async -> RecordReading {
        _ = try? await untilCancelled()
        return .unavailable
    }
    func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting { .unavailable }
    func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim { .unavailable }
    func remove(_ key: Digest256) async -> Bool { false }
    func close() {}
}

@Suite struct ScriptWareTests {
    private static let tenant = """
        return {
          options = { header = "X-Tenant" },
          request = function(req, opt, x)
            local tenant = req.host:match("^(%w+)%.")
            if not tenant then return { status = 404, text = "no such tenant\\n" } end
            req.fields[opt.header] = tenant
            req.path = "/" .. tenant .. req.path
          end,
          response = function(res, opt, x)
            res.fields["X-Tenant"] = nil
          end,
        }
        """

    @Test func `a script changes the request and the response`() async throws {
        let exchange = try chain(Self.tenant, ["options": ["header": "X-Customer"]])
        var answer = HttpResponse(.ok)
        try answer.fields.set("X-Tenant", to: "acme")
        exchange.upstream.respond(with: answer)
        let response = try await exchange.send(try HttpRequest(.get, "http://acme.example.com/orders?a=1"))
        let sent = try #require(exchange.upstream.requests.first)
        #expect(sent.fields["X-Customer"] == "acme")
        #expect(sent.path == "/acme/orders")
        #expect(sent.query == "a=1")
        #expect(response.fields["X-Tenant"] == nil)
    }

    @Test func `a returned response answers the request, and nothing goes upstream`() async throws {
        let exchange = try chain(Self.tenant)
        let response = try await exchange.send(try HttpRequest(.get, "http://localhost:80/orders"))
        #expect(response.status == .notFound)
        #expect(response.text == "no such tenant\n")
        #expect(response.fields[.contentType] == "text/plain; charset=utf-8")
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [
        (
            "return { status = 201, json = { b = { 1, 2 }, a = json.null } }", 201, #"{"a":null,"b":[1,2]}"#,
            "application/json"
        ),
        ("return { html = '<p>' }", 200, "<p>", "text/html; charset=utf-8"),
        ("return { body = 'x', fields = { ['Content-Type'] = 'image/png', A = { '1', '2' } } }", 200, "x", "image/png"),
        ("return { json = json.encode({ a = 1 }) }", 200, #"{"a":1}"#, "application/json"),
        (
            "return { status = 200, text = req:param('q') .. #req:params('q') }", 200, "a b2",
            "text/plain; charset=utf-8"
        ),
        (
            "return { text = req.method .. req.scheme .. req.host .. tostring(req.port) .. req.path .. req.query .. req.target }",
            200,
            "GEThttpexample.comnil/p/xq=a%20b&q=2/p/x?q=a%20b&q=2", "text/plain; charset=utf-8"
        ),
        (
            "return { text = (req.fields.accept or 'none') .. tostring(req.fields['X-None']) .. req.cookies.sid }", 200,
            "text/html, */*nil7", "text/plain; charset=utf-8"
        ),
        (
            "return { text = #req.fields:all('Accept') .. x.listener .. x.route .. x.attempt .. tostring(req.principal) .. req.client }",
            200,
            "2testtest1nil203.0.113.7", "text/plain; charset=utf-8"
        ),
        (
            "local t = {} for name, value in req.fields:each() do t[#t + 1] = name .. '=' .. value end return { text = table.concat(t, ';') }",
            200,
            "Accept=text/html;Accept=*/*;Cookie=sid=7; b=2", "text/plain; charset=utf-8"
        ),
        (
            "return { text = hash.sha256('abc') }", 200,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "text/plain; charset=utf-8"
        ),
        (
            "return { text = hmac.sha256('key', 'The quick brown fox jumps over the lazy dog') }", 200,
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", "text/plain; charset=utf-8"
        ),
        (
            "return { text = base64.encode('a?>') .. base64.decode('YT8+') .. base64.encodeUrl('a?>') .. hex.encode('ab') .. hex.decode('6162') }",
            200,
            "YT8+a?>YT8-6162ab", "text/plain; charset=utf-8"
        ),
        (
            "return { text = url.encode('a b/ä') .. url.decode('a%20b') .. time.http(0) .. tostring(equal('a', 'a')) }",
            200,
            "a%20b%2F%C3%A4a bThu, 01 Jan 1970 00:00:00 GMTtrue", "text/plain; charset=utf-8"
        ),
        (
            "return { text = re.match('v12', '^v([0-9]+)') .. re.replace('a-b', '[a-z]', '<$0>') .. #random.hex(4) .. #random.uuid() }",
            200,
            "12<a>-<b>836", "text/plain; charset=utf-8"
        ),
        (
            "local t = jwt.peek('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.') return { text = t.header.alg .. t.claims.sub .. tostring(jwt.peek('x')) }",
            200,
            "noneanil", "text/plain; charset=utf-8"
        ),
        (
            "local v, e = json.decode('{\"a\":[1,2.5,null]}') return { text = v.a[1] .. v.a[2] .. tostring(v.a[3] == json.null) .. tostring(json.decode('{')) }",
            200, "12.5truenil", "text/plain; charset=utf-8"
        ),
        (
            "x.vars.a = { 1 } return { text = x.vars.a[1] .. tostring(x.vars.b) .. time.now() // 1 }", 200,
            "1nil1767225600.0", "text/plain; charset=utf-8"
        ),
        ("return { status = 204 }", 204, "", nil),
    ])
    func `the request, the exchange and the library are there`(body: String, status: Int, text: String, type: String?)
        async throws
    {
        let exchange = try requestChain(body)
        var request = try HttpRequest(.get, "http://example.com/p/x?q=a%20b&q=2")
        try request.fields.append(.accept, "text/html")
        try request.fields.append(.accept, "*/*")
        try request.fields.append(.cookie, "sid=7; b=2")
        let response = try await exchange.send(request)
        #expect(response.text == text)
        #expect(response.status.code == status)
        #expect(response.fields[.contentType] == type)
    }

    @Test(arguments: [
        ("req.method = 'POST'", "POST /p?q=1"), ("req.path = '/x'", "GET /x?q=1"), ("req.query = nil", "GET /p"),
        ("req.query = 'a=2'", "GET /p?a=2"), ("req.target = '/y?z'", "GET /y?z"),
        ("req:setParam('q', 'a b')", "GET /p?q=a%20b"),
        ("req:setParam('r', 1)", "GET /p?q=1&r=1"), ("req:setParam('q', nil)", "GET /p"),
    ])
    func `assignments change the request`(body: String, expected: String) async throws {
        let exchange = try requestChain(body)
        _ = try await exchange.send(try HttpRequest(.get, "http://example.com/p?q=1"))
        let sent = try #require(exchange.upstream.requests.first)
        #expect("\(sent.method) \(sent.path)\(sent.query.map { "?" + $0 } ?? "")" == expected)
    }

    @Test func `fields, cookies, authority and content can be changed`() async throws {
        let exchange = try chain(
            """
            return { content = { request = "1KiB", response = "1KiB" },
              request = function(req)
                req.fields.A = "1" req.fields:add("A", 2) req.fields["Accept"] = nil
                req.cookies.sid = nil req.cookies.b = "3" req.cookies.new = "4"
                req.host = "other.example"
                req.body = req.body:upper()
              end,
              response = function(res, opt, x)
                res.status = res.status + 1 res.fields.Path = x.request.path
                res.body = res.body .. "!" .. res.responder
              end }
            """)
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("hello")))
        var request = try HttpRequest(.post, "http://example.com/p", content: .text("abc"))
        try request.fields.append(.accept, "text/html")
        try request.fields.append(.cookie, "sid=7; b=2")
        let response = try await exchange.send(request)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(sent.fields.values(of: "A") == ["1", "2"])
        #expect(sent.fields[.accept] == nil)
        #expect(sent.fields[.cookie] == "b=3; new=4")
        #expect(sent.host == "other.example")
        #expect(sent.content.bytes == Array("ABC".utf8))
        #expect(response.status.code == 201)
        #expect(response.fields["Path"] == "/p")
        #expect(response.text == "hello!upstream")
    }

    @Test(arguments: [
        ("req.fields['Content-Length'] = '1'", "the gateway sets Content-Length itself"),
        ("req.fields['a b'] = '1'", "is not a field name"),
        ("req.fields.A = 'a\\nb'", "cannot be sent in a field"), ("req.fields.Host = 'x'", "assign req.host"),
        ("req.path = 'x'", "not a path"),
        ("req.path = '/a b'", "not a path"), ("req.query = 'a b'", "not a query"),
        ("req.method = 'a b'", "the method is invalid"),
        ("req.host = 'a/b'", "the authority is invalid"), ("req.cookies['a;b'] = '1'", "cannot be sent"),
        ("req.client = '1'", "cannot be changed"),
        ("req.nothing = 1", "the request has no member 'nothing'"),
        ("return { statu = 1 }", "no member \"statu\"; did you mean \"status\""),
        ("return 5", "must return nothing or a response"),
        ("return { status = 99 }", "a status is a number from 200 to 599"),
        ("return { text = 'a', body = 'b' }", "only one of text, html, json and body"),
        ("return { fields = { A = {} }, text = {} }", "must be a string"),
        ("return { fields = { ['a b'] = '1' } }", "invalid name"),
        ("return { json = { f = function() end } }", "JSON has no form"),
        ("return req.body", "the content is not held"), ("x.id = 'a'", "x cannot be changed"),
        ("x.claims.sub = 'a'", "claims cannot be changed"),
        ("x.vars.f = function() end", "x.vars keeps no such value"), ("x:log('loud', 'a')", "a level is trace"),
        ("x:replay(1)", "returns replays = true"),
        ("json.decode(('x'):rep(1100000))", "has more than 1048576 bytes"),
        ("re.match('a', '(')", "the expression is invalid"),
        ("random.hex(0)", "must be 1 to 1024"), ("time.http(-1)", "not in the years"),
        ("hash.sha256(nil)", "argument 1 must be a string"),
        ("http.fetch('x')", "needs a table"), ("http.fetch({})", "needs either service or url"),
        ("http.fetch({ servic = 'a' })", "did you mean \"service\""),
        ("http.fetch({ url = 'http://evil.example/' })", "allowUrls does not list the host \"evil.example\""),
        ("sleep(-1)", "0 to 3600 seconds"),
        ("leak = 1", "write 'local leak'"), ("error({})", "the error value is a table"),
        ("while true do end", "longer than its time"),
        ("local s = 'x' while true do s = s .. s end", "more memory than its limit"),
    ])
    func `an error in a script fails the exchange, with its line in the record`(body: String, reason: String)
        async throws
    {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("127.0.0.1:5000")
        setting.records = RecordRing(mostRecords: 10, mostBytes: .mebibytes(1))
        let exchange = try chain(
            "return { request = function(req, opt, x)\n\(body)\nend }", ["time": "50ms"], setting: setting)
        let response = try await exchange.send(try HttpRequest(.post, "http://example.com/p", content: .text("abc")))
        #expect(response.status.code == 500)
        #expect(
            response.text.contains("source:") && response.text.contains(reason.replacing("\"", with: "\\\"")),
            "\(response.text)")
        #expect(exchange.upstream.requests.isEmpty)
        let outcome = try #require(exchange.outcomes.first)
        #expect(outcome.failure?.fault == .wareFailed)
        #expect(outcome.record.wares.contains { $0.note?.contains(reason) == true }, "\(outcome.record.wares)")
        // The next exchange finds a state in order.
        let second = try HttpRequest(.post, "http://example.com/p", content: .text("abc"))
        #expect(try await exchange.send(second).status.code == 500)
    }

    @Test(arguments: [
        "json.decode('[' .. ('1,'):rep(400000) .. '1]')",
        "local t = {} for i = 1, 9000 do t[i] = { i } end while true do json.encode(t) end",
        "json.decode(('[' ):rep(60) .. (']'):rep(60)) while true do json.decode('{\"a\":' .. ('['):rep(50) .. (']'):rep(50) .. '}') end",
        "while true do hash.sha512(('x'):rep(1000000)) end", "while true do base64.encode(('x'):rep(1000000)) end",
        "while true do re.match(('a'):rep(100000), '(a*)*b') end", "while true do url.encode(('/'):rep(500000)) end",
        "while true do req.fields.A = ('x'):rep(10000) end", "while true do req:setParam('a', ('x'):rep(10000)) end",
    ])
    func `a function of the library does not let a call run on`(body: String) async throws {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("127.0.0.1:5000")
        let exchange = try chain("return { request = function(req, opt, x) \(body) end }", setting: setting)
        let text = try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text
        #expect(["longer", "exceeds its limits"].contains { text.contains($0) }, "\(text)")
    }

    @Test func `a value with too many parts is refused`() async throws {
        let exchange = try requestChain(
            "local t = {} for i = 1, 30000 do t[i] = i end return { text = tostring(pcall(json.encode, t)) }",
            ["time": "50ms"])
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "false")
    }

    @Test func `another client learns only that a script failed`() async throws {
        let exchange = try requestChain("error('secret')")
        let response = try await exchange.send(try HttpRequest(.get, "http://example.com/p"))
        #expect(response.status.code == 500)
        #expect(response.text.contains("the script failed") && !response.text.contains("secret"))
    }

    @Test func `with onError open an exchange continues as it was`() async throws {
        let exchange = try requestChain("req.path = '/changed' req.fields.A = '1' error('no')", ["onError": "open"])
        let response = try await exchange.send(try HttpRequest(.get, "http://example.com/p"))
        #expect(response.status == .ok)
        #expect(exchange.upstream.requests.first?.path == "/p")
        #expect(exchange.upstream.requests.first?.fields["A"] == nil)
    }

    @Test func `a failing response half answers 502`() async throws {
        let exchange = try responseChain("error('no')")
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).status == .badGateway)
    }

    @Test func `a response half can replace the response`() async throws {
        let exchange = try responseChain(
            "if res.status == 404 then return { status = 200, text = 'instead of ' .. res.fields.A } end")
        var answer = HttpResponse(.notFound)
        try answer.fields.set("A", to: "a")
        exchange.upstream.respond(with: answer)
        let response = try await exchange.send(try HttpRequest(.get, "http://example.com/p"))
        #expect(response.status == .ok)
        #expect(response.text == "instead of a")
    }

    @Test func `a response half can ask for a replay`() async throws {
        let exchange = try responseChain("if res.status == 503 and x.attempt == 1 then x:replay(0) end")
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("second")))
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "second")
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `values of one half are there in the other, and in no other exchange`() async throws {
        let exchange = try chain(
            """
            return {
              request = function(req, opt, x) x.vars.n = (x.vars.n or 0) + 1 x:note("n", x.vars.n) end,
              response = function(res, opt, x) res.fields.N = x.vars.n end,
            }
            """)
        for _ in 0..<2 {
            #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).fields["N"] == "1")
        }
    }

    @Test func `a file-level local is the state of the loop`() async throws {
        let exchange = try chain("local n = 0 return { request = function() n = n + 1 return { text = n } end }")
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "1")
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "2")
    }

    @Test func `ended runs once, after the response`() async throws {
        let exchange = try chain(
            """
            local ended = 0
            return {
              request = function(req, opt, x) x.vars.path = req.path return { text = ended } end,
              ended = function(x) if x.vars.path == "/p" then ended = ended + 1 end end,
            }
            """)
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "0")
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/p")).text == "1")
    }

    @Test func `each script of a chain has its own end`() async throws {
        let source: ConfigNode = """
            local n = 0
            return {
              response = function(res) res.fields:add("N", n) end, ended = function() n = n + 1 end }
            """
        let exchange = try TestExchange((0..<2).map { _ in try TestExchange.make(Script.self, ["source": source]) })
        _ = try await exchange.send(try HttpRequest(.get, "http://example.com/p"))
        let response = try await exchange.send(try HttpRequest(.get, "http://example.com/p"))
        #expect(response.fields.values(of: "N") == ["1", "1"])
    }

    // MARK: Waits

    @Test func `sleep waits without the loop, and calls run side by side`() async throws {
        let exchange = try requestChain("sleep(2) return { text = req.path }")
        let first = await exchange.start(try HttpRequest(.get, "http://example.com/1"))
        let second = await exchange.start(try HttpRequest(.get, "http://example.com/2"))
        await exchange.advance(by: .seconds(2))
        #expect(try await first.response().text == "/1")
        #expect(try await second.response().text == "/2")
    }

    @Test func `a call that waits longer than timeout fails`() async throws {
        let exchange = try requestChain("sleep(10)", ["timeout": "3s", "onError": "closed"])
        let pending = await exchange.start(try HttpRequest(.get, "http://example.com/1"))
        await exchange.advance(by: .seconds(3))
        #expect(try await pending.response().status.code == 500)
    }

    @Test func `a client that leaves ends the wait, and the state serves the next`() async throws {
        let exchange = try requestChain("if req.path == '/1' then sleep(4) end return { text = 'well' }")
        let pending = await exchange.start(try HttpRequest(.get, "http://example.com/1"))
        await pending.leave()
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/2")).text == "well")
    }

    @Test func `http fetch asks a service`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET /check?k=k1 HTTP/1.1", lines: ["Accept: application/json"]),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\nX-A: b\r\n\r\n{\"user\":\"al\"}"),
        ])
        var setting = TestExchange.Setting()
        setting.services = ["users": origin.port]
        let exchange = try chain(
            """
            return { request = function(req, opt, x)
              local res, reason = http.fetch { service = "users", path = "/check?k=" .. req.fields.Key, fields = { Accept = "application/json" } }
              if not res then return { status = 503, text = reason } end
              return { text = res.status .. res.fields["x-a"] .. json.decode(res.body).user }
            end }
            """, setting: setting)
        var request = try HttpRequest(.get, "http://example.com/1")
        try request.fields.append("Key", "k1")
        #expect(try await exchange.send(request).text == "200bal")
        try await origin.verify()
    }

    @Test func `http fetch reports a service that does not exist`() async throws {
        let exchange = try requestChain(
            "local r, e = http.fetch { service = 'none' } return { text = tostring(r) .. e }")
        #expect(
            try await exchange.send(try HttpRequest(.get, "http://example.com/1")).text.contains(
                "the service \"none\" cannot be called"))
    }

    @Test func `a call makes at most maxCalls fetches`() async throws {
        let exchange = try requestChain("for i = 1, 3 do http.fetch { service = 'none' } end", ["maxCalls": "2"])
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/1")).status.code == 500)
    }

    @Test func `a store that does not answer is waited for until timeout`() async throws {
        var mistakes = LoadedScript.Mistakes()
        var limits = LoadedScript.Limits()
        limits.timeout = .seconds(3)
        let source = "return { request = function() store:get('k') end }"
        let script = try LoadedScript(Array(source.utf8), name: "s", limits: limits, mistakes: &mistakes) { $0 }
        let exchange = try TestExchange([Script(script, failsOpen: false, store: SilentStore())])
        let pending = await exchange.start(try HttpRequest(.get, "http://example.com/1"))
        await exchange.advance(by: .seconds(3))
        #expect(try await pending.response().status.code == 500)
    }

    @Test func `x vars holds at most 256 KiB`() async throws {
        let exchange = try requestChain("x.vars.a = string.rep('x', tonumber(req.query)) return { text = 'kept' }")
        let kept = try await exchange.send(try HttpRequest(.get, "http://example.com/1?\(250 << 10)"))
        #expect(kept.text == "kept")
        let refused = try await exchange.send(try HttpRequest(.get, "http://example.com/1?\(257 << 10)"))
        #expect(refused.status.code == 500)
        // Small values count, too.
        let many = try requestChain("local t = {} for i = 1, 10000 do t[i] = '' end x.vars.t = t", ["time": "50ms"])
        #expect(try await many.send(try HttpRequest(.get, "http://example.com/1")).status.code == 500)
    }

    @Test func `the record has the line of each change`() async throws {
        var setting = TestExchange.Setting()
        setting.records = RecordRing(mostRecords: 10, mostBytes: .mebibytes(1))
        let exchange = try chain(
            """
            return {
              request = function(req)
                req.fields["X-Tenant"] = "acme"
                req.path = "/p"
                req.fields:add("X-More", "1")
              end,
              response = function(res) res.status = 404 end,
            }
            """, setting: setting)
        _ = try await exchange.send(try HttpRequest(.get, "http://example.com/"))
        let notes = exchange.outcomes.last?.record.wares.compactMap(\.note) ?? []
        #expect(notes == ["X-Tenant at line 3, path at line 4, X-More at line 5", "status at line 7"])
    }

    @Test func `a note is a placeholder`() async throws {
        let script = try TestExchange.make(
            Script.self,
            ["source": "return { request = function(req, opt, x) x:note('tenant', 'acme') x:note('tenant', 'b') end }"])
        let fields = try TestExchange.make(RequestHeaders.self, ["set": ["X-Tenant": "{note.tenant}-{note.other}"]])
        let exchange = try TestExchange([script, fields])
        _ = try await exchange.send(try HttpRequest(.get, "http://example.com/1"))
        #expect(exchange.upstream.requests.first?.fields["X-Tenant"] == "b-")
    }

    @Test func `a store keeps values for a time, and adds each once`() async throws {
        let exchange = try requestChain(
            """
            if req.path == "/add" then return { text = tostring(store:add("k", "v", 10)) } end
            if req.path == "/set" then return { text = tostring(store:set("k", 7, 10)) } end
            if req.path == "/remove" then return { text = tostring(store:remove("k")) } end
            return { text = store:get("k") or "none" }
            """)
        func send(_ path: String) async throws -> String {
            try await exchange.send(try HttpRequest(.get, "http://example.com\(path)")).text
        }
        for (path, text) in [
            ("/", "none"), ("/add", "true"), ("/add", "false"), ("/", "v"), ("/set", "true"), ("/", "7"),
            ("/remove", "true"), ("/", "none"),
        ] { #expect(try await send(path) == text, "\(path)") }
    }

    @Test(arguments: [
        ("store.get('k')", "write a colon"), ("store:get(1)", "the key must be a string"),
        ("store:set('k', {}, 1)", "the value must be a string"),
        ("store:set('k', 'v')", "the lifetime must be"), ("store:add('k', 'v', 0)", "the lifetime must be"),
        ("for i = 1, 9 do store:get('k') end", "maxCalls"),
    ])
    func `a wrong use of the store is an error`(body: String, reason: String) async throws {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("127.0.0.1:5000")
        let exchange = try chain("return { request = function(req) \(body) end }", setting: setting)
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/")).text.contains(reason))
    }

    // MARK: Options

    @Test(arguments: [
        ("return {", "source: line 1: "), ("error('no')", "source: line 1: no"), ("return 1", "returns no table"),
        ("return { request = 1 }", "request must be a function"), ("return { options = 1 }", "options must be a table"),
        ("return { content = { request = '1 apple' } }", "content.request must be a byte count"),
        ("return { replays = 1 }", "replays must be true or false"),
        ("x = 1 return {}", "write 'local x'"), ("return { a = b }", "the variable 'b' is not defined"),
        ("while true do end", "longer than its time"),
        ("http.fetch {} return {}", "this function waits"),
    ])
    func `a script with an error is refused at load`(source: String, reason: String) {
        let error = #expect(throws: ConfigError.self) { try chain(source) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    private static let wrongOptions: [(ConfigNode, String)] = [
        (["headr": "x"], "options.headr: unknown option; did you mean \"header\"?"),
        (["count": "x"], "is not a whole number"),
        (["on": "yes"], "is not true or false"), (["list": ["a": "b"]], "is not a list"),
        (["header": ["a"]], "is not a text"),
        (["ratio": "x"], "is not a number"), ("x", "must be a map"),
    ]

    @Test(arguments: wrongOptions)
    func `an option that the script does not have, or of another type, is refused at load`(
        options: ConfigNode, reason: String
    ) {
        let source = "return { options = { header = 'a', count = 1, on = true, list = { 'a' }, ratio = 0.5 } }"
        let error = #expect(throws: ConfigError.self) { try chain(source, ["options": options]) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    @Test func `options have the types of their defaults`() async throws {
        let exchange = try chain(
            """
            return { options = { header = "a", count = 1, on = true, list = { "a" }, ratio = 0.5, map = {} },
              request = function(req, opt)
                return { text = opt.header .. opt.count + 1 .. tostring(opt.on) .. table.concat({ table.unpack(opt.list) }, ",") .. opt.ratio .. opt.map.k[2] }
              end }
            """,
            [
                "options": [
                    "header": "7", "count": 5, "on": false, "list": ["x", "2"], "ratio": 2, "map": ["k": ["a", 3]],
                ]
            ])
        #expect(try await exchange.send(try HttpRequest(.get, "http://example.com/1")).text == "76falsex,22.03")
    }

    @Test func `a script needs a file or its source`() {
        for options: ConfigNode in [[:], ["file": "a", "source": "b"], ["file": "/does/not/exist.lua"]] {
            #expect(throws: ConfigError.self) { try TestExchange(Script.self, options: options) }
        }
    }
}
