import HttpWare
import Testing

@testable import Importing

@Suite struct CaddyImportTests {
    private func draft(_ text: String) throws -> GatewayDraft {
        try CaddyImport.read(Array(text.utf8), file: "Caddyfile") { _, _ in [] }
    }

    /// The routes as `host path → target`, with the wares' names.
    private func routes(_ text: String) throws -> [String] {
        try draft(text).routes.map { route in
            let target =
                switch route.target {
                case .service(let name): name
                case .split: "split"
                case .answered: "answered"
                case .refused: "refused"
                }
            let wares = (route.middlewares + route.postwares).map(\.name).joined(separator: " ")
            return "\(MatchMap(route.test)?.node.flow ?? "?") [\(wares)] \(target)"
        }
    }

    @Test func `directives run in the order of Caddy, the longer path first`() throws {
        let text = """
            http://a.test {
                reverse_proxy b:1
                respond /x/* no
                respond /x/longer/* yes
                redir /old /new
                handle /h {
                    respond h
                }
            }
            """
        #expect(
            try routes(text) == [
                "{ host: a.test, path: /old, ignoreCase: true } [redirect] answered",
                "{ host: a.test, path: /h, ignoreCase: true } [mock] answered",
                "{ host: a.test, path: \"~^/x/longer/\", ignoreCase: true } [mock] answered",
                "{ host: a.test, path: \"~^/x/\", ignoreCase: true } [mock] answered",
                "{ host: a.test } [] b",
            ])
    }

    @Test func `of several handles one runs, and what follows them runs without an answer`() throws {
        let text = """
            http://a.test {
                handle /a/* {
                    header X a
                }
                handle {
                    header X b
                }
                respond end
            }
            """
        #expect(
            try routes(text) == [
                "{ host: a.test, path: \"~^/a/\", ignoreCase: true } [mock responseHeaders] answered",
                "{ host: a.test } [mock responseHeaders] answered",
            ])
    }

    @Test func `paths inside of handle_path get the prefix back`() throws {
        let text = "http://a.test {\n\thandle_path /api/* {\n\t\trespond /x 201\n\t\treverse_proxy b:1\n\t}\n}\n"
        let routes = try routes(text)
        #expect(
            routes[0]
                == "{ host: a.test, path: \"~^/api/\", ignoreCase: true, any: [{ path: /api/x, ignoreCase: true }] } [rewrite mock] answered"
        )
        #expect(routes[1].hasSuffix("[rewrite] b"))
    }

    @Test(arguments: [
        "@x expression `{path} == \"/\"`\n respond @x 403",
        "basic_auth {\n bob plain\n }",
        "forward_auth unix//run/auth {\n uri /\n }",
        "forward_auth auth:1 {\n uri /\n copy_headers A>B\n }",
        "plugin_auth secret",
        "invoke unknown",
        "tls {\n client_auth {\n mode require\n }\n }",
    ])
    func `an access rule that is not understood refuses the site`(directive: String) throws {
        let draft = try draft("http://a.test {\n\(directive)\nreverse_proxy b:1\n}\n")
        #expect(
            draft.routes.allSatisfy { route in
                if case .refused = route.target { true } else { false }
            })
        #expect(draft.notes.contains { $0.isNeeded })
    }

    @Test func `an unknown matcher refuses no more than its block`() throws {
        let text =
            "http://a.test {\n@a path /a/*\nhandle @a {\n@x vars a b\nrespond @x 1\n}\nhandle {\nrespond 2\n}\n}\n"
        let routes = try routes(text)
        #expect(routes.first?.hasSuffix("refused") == true)
        #expect(routes.last == "{ host: a.test } [mock] answered")
    }

    @Test func `names get certificates by themselves, and clear text is redirected`() throws {
        let draft = try draft(
            "{\nemail a@b.test\n}\na.test {\nrespond 1\n}\nlocalhost:9000 {\ntls c.pem c.key\nrespond 2\n}\n")
        #expect(draft.listeners.map(\.bind) == ["0.0.0.0:443", "0.0.0.0:9000", "0.0.0.0:80"])
        #expect(draft.listeners[0].acmeDomains == ["a.test"])
        #expect(draft.listeners[0].acmeEmail == "a@b.test")
        #expect(draft.listeners[1].certificates.map(\.cert) == ["c.pem"])
        #expect(draft.routes.last?.middlewares.first?.name == "redirect")
        #expect(draft.routes.last?.listeners == ["http"])
    }

    @Test func `users with bcrypt hashes become a file`() throws {
        let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
        let draft = try draft("http://a.test {\nbasic_auth {\nbob \(hash)\n}\nrespond 1\n}\n")
        #expect(draft.files.map(\.lines) == [["bob:\(hash)"]])
        #expect(draft.routes.first?.middlewares.first?.options["usersFile"]?.text == draft.files.first?.name)
    }

    @Test(arguments: [
        ("{uri}", "https://b.test", "https://b.test{request.path}", "true"),
        ("/x", "https://b.test", "https://b.test/x", "false"),
        ("{path}?{query}", "https://{host}", "https://{request.host}{request.path}", "true"),
    ])
    func `redirects keep the path and the query as written`(end: String, start: String, to: String, keeps: String)
        throws
    {
        let ware = CaddyFlow.redirect(start + end, status: "301", at: .code)
        #expect(ware?.options["to"]?.text == to)
        #expect(ware?.options["keepQuery"]?.text == keeps)
    }

    @Test(arguments: ["https://{header.X}/", "https://www.{host}/", "//evil.test/", "{header.X}", "https://{scheme}/"])
    func `a redirect whose host a request could choose is refused`(target: String) {
        #expect(CaddyFlow.redirect(target, status: "302", at: .code) == nil)
    }

    @Test func `adapted JSON becomes the same routes as its Caddyfile`() throws {
        let json: ConfigNode = [
            "apps": [
                "http": [
                    "servers": [
                        "srv0": [
                            "listen": [":8080"],
                            "routes": [
                                [
                                    "match": [["host": ["a.test"], "path": ["/x/*"]]],
                                    "handle": [["handler": "reverse_proxy", "upstreams": [["dial": "b:1"]]]],
                                    "terminal": true,
                                ]
                            ],
                            "automatic_https": ["disable": true],
                        ]
                    ]
                ]
            ]
        ]
        let draft = CaddyImport.translate(try #require(CaddyJson.read(json)))
        #expect(draft.listeners.map(\.bind) == ["0.0.0.0:8080"])
        #expect(draft.services.map(\.name) == ["b"])
        #expect(
            draft.routes.first.flatMap { MatchMap($0.test)?.node.flow }
                == "{ host: a.test, path: \"~^/x/\", ignoreCase: true }")
    }

    @Test func `a directive that no request reaches is named`() throws {
        let draft = try draft("http://a.test {\nrespond 1\nfile_server\n}\n")
        #expect(draft.notes.contains { !$0.isNeeded && $0.text == "file_server" })
    }

    @Test func `blocks that do not answer cannot multiply the routes without bound`() throws {
        var text = "http://a.test {\n"
        for number in 0..<60 { text += "route /p\(number)/* {\nheader X \(number)\n}\n" }
        let draft = try draft(text + "respond 1\n}\n")
        #expect(draft.routes.count <= GatewayDraft.Limit.routes)
        #expect(draft.notes.contains { $0.isNeeded })
    }
}
