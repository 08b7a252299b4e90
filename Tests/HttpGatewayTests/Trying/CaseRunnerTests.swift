import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct CaseRunnerTests {
    /// Runs the cases, and returns the differences of all.
    private func run(_ chain: String, _ cases: String, rest: String = "") throws -> [String] {
        let configuration = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080", trustedProxies: [10.0.0.0/8] } }
            services:
              api: { baseUrl: "http://192.0.2.1:3000/base" }
              other: { baseUrl: "http://192.0.2.2:3000" }
            chains: { all: \(chain) }
            routes: [{ match: { path: "/other/**" }, service: other, chain: all }, { service: api, chain: all }]
            \(rest)
            """
        return try outcomes(configuration, cases).flatMap(\.differences).map { "\($0.location): \($0.text)" }
    }

    private func outcomes(_ configuration: String, _ cases: String) throws -> [CaseOutcome] {
        let runner = CaseRunner { [files = Self.files(configuration)] in
            ConfigurationReader(wares: BuiltinWares.all, stores: StandInStores.all, environment: [:], files: files)
                .read(path: "c.yaml")
        }
        #expect(runner.configuration().errors.filter { $0.severity == .error } == [])
        let read = CaseFile.read(path: "t", environment: [:], files: Self.files(cases))
        return try #require(read.file, "\(read.errors)").cases.map { runner.run($0) }
    }

    private static func files(_ text: String) -> ConfigurationFiles {
        ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
    }

    @Test func `a request passes the chain, and the origin server is the case's`() throws {
        let found = try run(
            "{ middlewares: [requestId, { requestHeaders: { set: { X-Tenant: acme }, remove: [Cookie] } }], postwares: [{ responseHeaders: { set: { X-Seen: yes } } }] }",
            """
            cases:
              - name: one
                request: { method: POST, url: "/a?b=1", headers: { Cookie: c, Accept: x/y }, json: { n: 1 } }
                upstream: { status: 201, headers: { X-Origin: o }, json: { ok: true } }
                expect:
                  upstream:
                    service: api
                    method: POST
                    path: "/base/a?b=1"
                    headers: { X-Tenant: acme, Cookie: absent, Host: "192.0.2.1:3000", Content-Type: application/json, Via: present }
                    json: { n: 1 }
                  response: { status: 201, headers: { X-Seen: "yes", X-Origin: o, X-Request-Id: present }, json: { ok: true } }
                  wares: { requestId: pass, requestHeaders: pass }
                  calls: none
              - name: another service
                request: { url: /other/a }
                expect: { upstream: { service: other, path: /other/a } }
            """)
        #expect(found == [])
    }

    @Test func `a difference is reported with the place of the expectation`() throws {
        let found = try run(
            "{ middlewares: [{ mock: { status: 403 } }] }",
            """
            cases:
              - name: one
                request: { url: / }
                expect: { upstream: {}, response: { status: 200 }, wares: { mock: pass } }
            """)
        #expect(
            found == [
                "t:4:25: upstream: expected 1 request, but it is 0 requests",
                "t:4:49: response.status: expected 200, but it is 403",
                "t:4:71: wares.mock: expected pass, but it is aborted",
            ])
    }

    @Test func `time passes only as the case says, and stored responses become old`() throws {
        let found = try run(
            "{ middlewares: [httpCache] }",
            """
            cases:
              - name: a response is stored for a minute
                steps:
                  - request: { url: /a }
                    upstream: { headers: { Cache-Control: max-age=60 }, text: first }
                    expect: { upstream: {}, response: { text: first }, wares: { httpCache: miss } }
                  - after: 59s
                    request: { url: /a }
                    expect: { upstream: none, response: { text: first, headers: { Age: "59" } }, wares: { httpCache: hit } }
                  - after: 2s
                    request: { url: /a }
                    upstream: { text: second }
                    expect: { upstream: {}, response: { text: second } }
              - name: nothing is left of an earlier case
                request: { url: /a }
                upstream: { text: third }
                expect: { response: { text: third } }
            """)
        #expect(found == [])
    }

    @Test func `coded content is compared without its coding`() throws {
        let found = try run(
            "{ postwares: [compress] }",
            """
            cases:
              - name: gzip
                request: { url: /, headers: { Accept-Encoding: gzip } }
                upstream: { headers: { Content-Type: text/plain }, text: "\(String(repeating: "hello ", count: 500))" }
                expect: { response: { headers: { Content-Encoding: gzip }, contains: hello hello } }
            """)
        #expect(found == [])
    }

    @Test func `a script's call of a service is answered by the case`() throws {
        let script =
            "return { request = function(req) local r = http.fetch { service = 'other', path = '/u?a=b' } req.fields['X-U'] = r.body end }"
        let found = try run(
            "{ middlewares: [{ script: { source: \"\(script)\" } }] }",
            """
            x-answer: &anna { text: anna }
            cases:
              - name: fetch
                calls: [{ service: other, answer: *anna }]
                request: { url: / }
                expect: { upstream: { service: api, headers: { X-U: anna } }, calls: { service: other, path: "/u?a=b" } }
            """)
        #expect(found == [])
    }

    @Test func `limits count on the case's clock`() throws {
        let found = try run(
            "{ middlewares: [{ rateLimit: { rate: 1/m, burst: 1 } }] }",
            """
            cases:
              - name: one a minute
                steps:
                  - { request: { url: / }, expect: { response: { status: 200 } } }
                  - { request: { url: / }, expect: { upstream: none, response: { status: 429, headers: { Retry-After: present } } } }
                  - { request: { url: / }, client: 192.0.2.9, expect: { response: { status: 200 } } }
                  - { after: 61s, request: { url: / }, expect: { response: { status: 200 } } }
            """)
        #expect(found == [])
    }

    @Test func `a store in Redis is in memory, with its server`() throws {
        let found = try run(
            "{ middlewares: [{ rateLimit: { rate: 1/m, burst: 1, store: shared } }, { httpCache: { store: shared } }] }",
            """
            cases:
              - name: one a minute
                steps:
                  - request: { url: / }
                    upstream: { headers: { Cache-Control: max-age=600 }, text: first }
                    expect: { response: { status: 200 } }
                  - { request: { url: / }, expect: { response: { status: 429 } } }
                  - after: 61s
                    request: { url: / }
                    expect: { upstream: none, response: { text: first }, wares: { httpCache: hit } }
            """, rest: "stores: { shared: { redis: { url: \"redis://192.0.2.3:6379/0\" } } }")
        #expect(found == [])
    }

    @Test func `answers are used in order, and failures are retried`() throws {
        let found = try run(
            "{ middlewares: [{ retry: { attempts: 3 } }] }",
            """
            cases:
              - name: the second attempt is answered
                request: { url: /a }
                upstream: [{ fails: reset }, { text: there }]
                expect: { upstream: [{ path: /base/a }, { path: /base/a }], response: { status: 200, text: there } }
              - name: no connection
                request: { url: /a, method: POST }
                upstream: { fails: connect }
                expect: { upstream: none, response: { status: 502 } }
              - name: no answer in time
                request: { url: /a, method: POST }
                upstream: { fails: timeout }
                expect: { upstream: {}, response: { status: 504 } }
            """)
        #expect(found == [])
    }

    @Test func `a request without an answer that is left fails the case`() throws {
        let found = try run(
            "{ middlewares: [{ retry: { attempts: 3 } }] }",
            """
            cases:
              - name: one
                request: { url: /a }
                upstream: [{ fails: reset }]
            """)
        #expect(
            found.first?.contains("one more request goes upstream: GET /base/a to api; upstream has 1 answer") == true)
    }

    private static let login = """
        credentials:
          api: { grant: clientCredentials, tokenUrl: "https://login.example.com/token", clientId: a, clientSecret: b }
        """

    @Test func `a side call is answered by the case, and a token is renewed in time`() throws {
        let found = try run(
            "{ middlewares: [{ tokenRefresh: { credential: api } }, { tokenInject: { credential: api } }] }",
            """
            cases:
              - name: the token
                calls:
                  - { url: "https://login.example.com/token", answer: { json: { access_token: t1, token_type: Bearer, expires_in: 300 } } }
                steps:
                  - request: { url: / }
                    expect:
                      upstream: { headers: { Authorization: Bearer t1 } }
                      calls: { url: "https://login.example.com/token", method: POST, contains: grant_type=client_credentials }
                  - request: { url: / }
                    expect: { upstream: { headers: { Authorization: Bearer t1 } }, calls: none }
                  - after: 301s
                    request: { url: / }
                    expect: { calls: {} }
            """, rest: Self.login)
        #expect(found == [])
    }

    @Test func `a side call without an answer fails the case with its URL`() throws {
        let found = try run(
            "{ middlewares: [{ tokenRefresh: { credential: api } }, { tokenInject: { credential: api } }] }",
            "cases: [{ name: one, request: { url: / } }]", rest: Self.login)
        #expect(found.first == "t:1:31: calls has no answer for POST \"https://login.example.com/token\"")
    }

    @Test func `random values are the same in each run`() throws {
        let configuration = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { a: { baseUrl: "http://192.0.2.1:1" }, b: { baseUrl: "http://192.0.2.2:2" } }
            chains: { all: { middlewares: [requestId] } }
            routes: [{ split: [{ service: a, weight: 1 }, { service: b, weight: 1 }], chain: all }]
            """
        let cases = """
            cases:
              - name: one
                steps: [\(String(repeating: "{ request: { url: / }, expect: { upstream: { service: x, headers: { X-Request-Id: y } } } }, ", count: 8))]
            """
        let first = try outcomes(configuration, cases).first?.differences.map(\.actual)
        #expect(first?.isEmpty == false)
        #expect(try outcomes(configuration, cases).first?.differences.map(\.actual) == first)
    }

    @Test(arguments: [
        ("command: [python3, -u, decide/tenant.py, --fast]", "http://localhost/tenant.py"),
        ("command: [/usr/bin/decide]", "http://localhost/decide"), ("command: [./a b.sh]", "http://localhost/a%20b.sh"),
        (#"url: "unix:/run/decide.sock""#, "http://localhost/run/decide.sock"),
        (#"url: "http://127.0.0.1:9092/x""#, "http://127.0.0.1:9092/x"),
    ])
    func `a callout is answered by the case, and no program is started`(receiver: String, url: String) throws {
        let found = try run(
            "{ middlewares: [{ callout: { \(receiver), response: true } }] }",
            """
            cases:
              - name: both halves
                calls: [{ url: "\(url)", answer: { json: { set: { X-Tenant: acme } } } }]
                request: { url: / }
                expect:
                  calls: [{ url: "\(url)", jsonPart: { half: request } }, { jsonPart: { half: response } }]
                  upstream: { headers: { X-Tenant: acme } }
                  response: { headers: { X-Tenant: acme } }
              - name: no answer
                calls: [{ url: "\(url)", answer: { fails: connect } }]
                request: { url: / }
                expect: { upstream: none, response: { status: 503 } }
            """)
        #expect(found == [])
    }

    @Test func `a response that is cut off is expected as such`() throws {
        let found = try run(
            "{ middlewares: [{ fault: { abort: true }, if: { path: /cut } }] }",
            """
            cases:
              - { name: cut, request: { url: /cut }, expect: { response: { cut: true } } }
              - { name: whole, request: { url: / }, expect: { response: { cut: true } } }
              - { name: not expected, request: { url: /cut }, expect: { response: { status: 200 } } }
            """)
        #expect(
            found == [
                "t:3:61: response: expected cut off, but it is complete",
                "t:4:71: the response was cut off",
            ])
    }

    @Test func `a service that refuses connections counts as down`() throws {
        let found = try run(
            "{ middlewares: [{ accumulate: { while: upstreamDown, timeout: 30s } }] }",
            """
            cases:
              - name: the request waits until the service is there again
                request: { url: / }
                upstream: [{ fails: connect }, { status: 201 }]
                expect: { response: { status: 201 }, wares: { accumulate: replay } }
              - name: the wait has an end
                request: { url: / }
                upstream: { fails: connect }
                expect: { response: { status: 503 } }
            """)
        #expect(found == [])
    }

    @Test func `the client, the listener and the scheme are those of the case`() throws {
        let found = try run(
            "{ middlewares: [{ ipRule: { allow: [192.0.2.0/24] } }] }",
            """
            cases:
              - { name: another client, request: { url: / }, expect: { upstream: none, response: { status: 403 } } }
              - { name: an allowed client, client: 192.0.2.5, request: { url: / }, expect: { upstream: {} } }
              - name: a client behind a proxy
                client: 10.1.2.3
                request: { url: /, headers: { X-Forwarded-For: 192.0.2.5 } }
                expect: { upstream: {} }
              - { name: no listener, listener: wep, request: { url: / } }
              - { name: no TLS, request: { url: "https://a/" } }
            """)
        #expect(found.count == 2)
        #expect(found.first?.contains("there is no listener \"wep\"; did you mean \"web\"?") == true)
        #expect(found.last?.contains("no listener has tls") == true)
    }

    @Test func `a request that the gateway refuses to read gets the refusal`() throws {
        let found = try run(
            "{}",
            """
            cases:
              - name: two hosts
                request: { url: /, headers: { Host: [a, b] } }
                expect: { upstream: none, response: { status: 400 } }
              - name: too much content is announced
                request: { url: /, method: POST, headers: { Content-Length: "x" } }
                expect: { upstream: none, response: { status: 400 } }
            """)
        #expect(found == [])
    }

    @Test func `a wait that does not end is reported, and the run goes on`() throws {
        let found = try run(
            "{ middlewares: [{ script: { source: \"return { request = function(req, opt, x) sleep(3) end }\", timeout: 10s } }] }",
            """
            cases:
              - name: a script sleeps on the case's clock
                request: { url: / }
                expect: { upstream: {}, response: { status: 200 } }
            """)
        #expect(found == [])
    }

    @Test func `years of timers end with a sentence`() throws {
        let found = try run(
            "{ middlewares: [{ tokenRefresh: { credential: api } }, { tokenInject: { credential: api } }] }",
            """
            cases:
              - name: years
                calls: [{ url: "https://login.example.com/*", answer: { json: { access_token: t, token_type: Bearer, expires_in: 5 } } }]
                steps: [{ request: { url: / } }, { after: 9600h }, { after: 9600h }, { request: { url: / } }]
            """, rest: Self.login)
        #expect(found.count <= 1)
    }
}
