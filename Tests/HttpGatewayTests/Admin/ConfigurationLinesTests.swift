import GatewayConfig
import GatewayWares
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct ConfigurationLinesTests {
    private func shown(_ value: String) throws -> String {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains:
              c:
                middlewares:
                  - requestHeaders:
                      set:
                        X-A: \(value)
                        X-B: b
            routes: [{ service: api, chain: c }]

            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: ["URL": "http://user:pw123@h/"],
            files: files
        ).read(path: "a.yaml")
        let configuration = try #require(result.configuration, "\(result.errors)")
        for value in configuration.values { #expect(value.text?.contains("pw123") != true) }
        let lines = ConfigurationLines(of: "a.yaml", in: configuration, secrets: configuration.secretTexts).masked(text)
        #expect(lines.count == text.split(separator: "\n").count && lines.contains("            X-B: b"))
        return lines[8].trimmingPrefix { $0 == " " }.description
    }

    @Test(arguments: [
        (#""http://user:pw123@h/""#, #"X-A: "http://…@h/""#), ("http://user:pw123@h/", "X-A: http://…@h/"),
        ("'http://user:pw123@h/' # a", "X-A: 'http://…@h/' # a"),
        (#""http://user:pw123 x@h/""#, #"X-A: "http://…@h/""#),
        (#""http://user:pw123\u0040h/""#, "X-A: ***"), (#""http://user:pw123\x40h/""#, "X-A: ***"),
        (#""http:\u002f/user:pw123@h/""#, "X-A: ***"), (#""http://user\u003apw123@h/""#, #"X-A: "http://…@h/""#),
        (#""a\tb""#, #"X-A: "a\tb""#), (#""\u0041 http://h/""#, #"X-A: "\u0041 http://h/""#), ("${URL}", "X-A: ${URL}"),
    ])
    func `lines of a file show no user information, however it is written`(value: String, line: String) throws {
        #expect(try shown(value) == line)
    }

    // MARK: Names and comments

    /// The lines of a file with these fields and this end, and its values.
    private func fields(_ fields: String, end: String = "") throws -> (lines: String, values: [WrittenValue]) {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains:
              c:
                middlewares:
                  - \(fields)
            routes: [{ service: api, chain: c }]
            \(end)
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        let configuration = try #require(result.configuration, "\(result.errors)")
        let lines = ConfigurationLines(of: "a.yaml", in: configuration, secrets: configuration.secretTexts).masked(text)
        return (lines.joined(separator: "\n"), configuration.values)
    }

    @Test(arguments: [
        "requestHeaders: { set: { X-Api-Key: hush1 } }", "requestHeaders: { set: { Authorization: Bearer hush1 } }",
        "requestHeaders: { setIfAbsent: { X-Auth-Token: hush1 } }", "requestHeaders: { append: { Cookie: [a=hush1] } }",
        "requestHeaders: { append: { Cookie: 'sid=hush1' } }", "mock: { headers: { Set-Cookie: sid=hush1 } }",
        "rewrite: { query: { set: { access_token: hush1 } } }", "rewrite: { query: { set: { key: hush1 } } }",
        "mock: { headers: { X-Api-Key: hush1 } }", "mock: { json: { user: { password: hush1 } } }",
        "mock: { json: { password: { old: hush1 } } }", "mock: { json: { tokens: [hush1, hush2] } }",
        "jsonTransform: { set: { /user/password: hush1 } }",
        "{ requestHeaders: { set: { X-B: b } }, if: { headers: { X-Api-Key: hush1 } } }",
        "{ requestHeaders: { set: { X-B: b } }, if: { query: { token: hush1 } } }",
        "{ requestHeaders: { set: { X-B: b } }, if: { cookies: { session: hush1 } } }",
        "requestHeaders: { set: { X-B: 'https://a.test/?a=b&access_token=hush1' } }",
        "redirect: { to: 'https://a.test/x?api_key=hush1' }", "redirect: { to: '/x?sig=hush1&a=b' }",
        "script: { source: 'return { options = { apiKey = 1 } }', options: { apiKey: 1234567 } }",
    ])
    func `values of fields, parameters and members that are named like credentials are hidden`(ware: String) throws {
        let (lines, values) = try fields(ware)
        #expect(!lines.contains("hush") && !lines.contains("1234567"), "\(lines)")
        for value in values { #expect(value.text?.contains("hush") != true && value.text != "1234567", "\(value)") }
    }

    @Test func `other values of such maps, and placeholders, are shown`() throws {
        let (lines, values) = try fields(
            "requestHeaders: { set: { X-B: b, X-Token: '{request.header.X-Old-Token}', X-C: '/a?b=c' } }")
        #expect(lines.contains("set: { X-B: b, X-Token: '{request.header.X-Old-Token}', X-C: '/a?b=c' } }"))
        #expect(
            values.contains { $0.text == "{request.header.X-Old-Token}" } && values.contains { $0.text == "/a?b=c" })
    }

    @Test(arguments: [
        ("# clientSecret: hush1", "# clientSecret: …"), ("# was: X-Api-Key: hush1", "# was: X-Api-Key: …"),
        ("x-a: 1 # password=hush1", "x-a: 1 # password=…"), ("x-a: \"#1\" # token: hush1", "x-a: \"#1\" # token: …"),
        ("x-a: |\n  # token: shown", "x-a: |\n  # token: shown"), ("x-a: a#b token=shown", "x-a: a#b token=shown"),
        ("# https://a.test/?access_token=hush1", "# https://a.test/?access_token=…"),
        ("# http://user:hush1@a.test/", "# http://…@a.test/"),
        ("# curl -H 'Authorization: Bearer hush1' https://a.test/", "# curl -H 'Authorization: …' https://a.test/"),
        (
            "# clientSecret: |\n#   hush1\n#   hush2\n# grant: static",
            "# clientSecret: …\n#   …\n#   …\n# grant: static"
        ),
        (
            "# -----BEGIN PRIVATE KEY-----\n# hush1\n# hush2\n# -----END PRIVATE KEY-----\n# shown",
            "# …\n# …\n# …\n# …\n# shown"
        ),
        ("x-a: [1, # token: hush1\n  2] # secret: hush2", "x-a: [1, # token: …\n  2] # secret: …"),
    ])
    func `comments show no values that are named like credentials`(end: String, shown: String) throws {
        let lines = try fields("requestHeaders: { set: { X-B: b } }", end: end).lines
        #expect(lines.hasSuffix("\n" + shown), "\(lines)")
    }

    @Test func `each map whose names users choose is known`() throws {
        // These have values that are names, or definitions whose options are known.
        let others: Set = [
            "chains", "claimsToHeaders", "credentials", "listeners", "move", "rename", "require", "services", "stores",
            "types", "with",
        ]
        var found: Set<String> = []
        func walk(_ node: ConfigNode, _ name: String) {
            if node["additionalProperties"]?.entries != nil { found.insert(name) }
            for entry in node.entries ?? [] {
                if entry.key == "properties" {
                    for property in entry.value.entries ?? [] { walk(property.value, property.key) }
                } else {
                    walk(entry.value, name)
                }
            }
            if case .list(let members) = node.content { for member in members { walk(member, name) } }
        }
        walk(ConfigurationSchema(BuiltinWares.all).json, "")
        #expect(found.contains("headers"))
        #expect(found.subtracting(others).subtracting(ConfigNode.freelyNamed).subtracting([""]).isEmpty)
    }

    // MARK: Texts on several lines

    /// The lines of a file, of which `SECRET` marks the lines of the value of `tokenInject`.
    private func lines(_ secret: String, end: String = "\n", broken: String = "") throws -> (
        lines: [String], text: String
    ) {
        let isCredential = secret.hasPrefix("credentials")
        let credential = secret.replacing(
            "<<", with: "grant: clientCredentials\n    clientId: a\n    tokenUrl: https://a.test/")
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            \(isCredential ? credential : "")
            chains:
              c:
                middlewares:
            \(isCredential ? "" : secret)
                  - requestHeaders: { set: { X-B: b } }
            routes: [{ service: api, chain: c }]
            \(broken)
            """.split(separator: "\n").joined(separator: end) + end
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        if broken.isEmpty { #expect(result.configuration != nil, "\(result.errors)") }
        for value in result.configuration?.values ?? [] { #expect(value.text?.contains("hush") != true, "\(value)") }
        let lines = ConfigurationLines(
            of: "a.yaml", in: result.configuration, secrets: result.configuration?.secretTexts ?? []
        ).masked(text)
        return (lines, text)
    }

    private static let manyLines = [
        "credentials:\n  k:\n    <<\n    clientSecret: |\n      hush1\n\n      hush2: x\n     # a comment",
        "      - tokenInject:\n          value: >-2\n            hush1\n            hush2\n          header: X-A",
        "      - tokenInject:\n          value: hush1\n            hush2\n            hush3 # a comment",
        "      - tokenInject:\n          value:\n            hush1\n            hush2",
        "      - tokenInject:\n          value: \"hush1\n            hush2\\\"\n\n            hush3\"\n          header: X-A",
        "      - tokenInject:\n          value: 'hush1\n  hush2 ''\n\n            hush3'\n          header: X-A",
        "      - tokenInject: { value: hush1\n            hush2, header: X-A }",
        "      - tokenInject: {\n         value:\n           \"hush1\n            hush2\", header: X-A }",
        "      - tokenInject:\n          value: &hush0 !!str\n            hush1\n            hush2",
        "      - requestHeaders: { set: { X-A: &a hush1\n            hush2 } }\n      - tokenInject: { value: *a }",
        "      - requestHeaders:\n          set:\n            X-A: &a \"hush1\n            hush2\"\n      - tokenInject: { value: *a }",
        "      - tokenInject:\n          value: hush1hush1\n            hush2hush2\n      # was hush1hush1 hush2hush2",
        "credentials:\n  k:\n    clientSecret: |\n      hush1hush1\n      hush2hush2\n    <<\n    # was hush2hush2",
    ]

    @Test(arguments: manyLines, ["\n", "\r\n"])
    func `a secret is hidden with all of its lines`(secret: String, end: String) throws {
        let (lines, text) = try lines(secret, end: end)
        #expect(lines.count == text.split(separator: end).count)
        #expect(!lines.joined().contains { $0 == "\r" || $0 == "\r\n" })
        #expect(!lines.joined(separator: "\n").replacing("&hush0", with: "").contains("hush"), "\(lines)")
        #expect(lines.contains("      - requestHeaders: { set: { X-B: b } }"))
        #expect(lines.last == "routes: [{ service: api, chain: c }]")
    }

    @Test(arguments: manyLines, ["nonsense: hush8", "nonsense: [\n  a: hush9", "? [hush8, hush9]\n: hush9"])
    func `a file with errors shows no values, on however many lines`(secret: String, broken: String) throws {
        let (lines, _) = try lines(secret, broken: broken)
        #expect(!lines.joined().replacing("hush2: …", with: "").contains("hush"), "\(lines)")
        #expect(lines.starts(with: ["version: …", "listeners: …", "services: …"]))
    }

    @Test(arguments: [
        ("\"http://user:\n            pw123@h/\"", ["body: ***", "…"]),
        (">\n            http://user:\n            pw123@h/", ["body: ***", "…", "…"]),
        ("|\n            a b\n            http://user:pw123@h/", ["body: |", "a b", "http://…@h/"]),
    ])
    func `user information on several lines is hidden`(value: String, shown: [String]) throws {
        let (lines, _) = try lines("      - mock:\n         status: 200\n         body: \(value)")
        #expect(lines[8...].prefix(shown.count).map { $0.trimmingPrefix { $0 == " " } } == shown.map { $0[...] })
    }

    @Test func `a byte order mark moves no column`() throws {
        let text = "\u{feff}version: 1\n"
        let lines = ConfigurationLines(of: "a.yaml", in: nil, secrets: []).masked(text)
        #expect(lines == ["version: …"])
    }

    @Test func `a file that changed since it was read shows no values`() throws {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services: { api: { baseUrl: "http://192.0.2.1:3000" } }
            chains: { c: { middlewares: [tokenInject: { value: hush1 }] } }
            routes: [{ service: api, chain: c }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let configuration = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml").configuration
        let lines = ConfigurationLines(of: "a.yaml", in: configuration, secrets: []).masked(
            "# a new line\n" + text.replacing("hush1", with: "hush2"))
        #expect(lines[0] == "…" && !lines.joined().contains("hush2"))
    }
}
