import GatewayConfig
import HttpWare
import Testing

@testable import Importing

@Suite struct TraefikImportTests {
    private func draft(_ text: String) throws -> GatewayDraft {
        let node = try #require(YamlReader.read(Array(text.utf8), file: "t.yaml").node)
        return TraefikImport.translate([node])
    }

    private let service = "  services: { a: { loadBalancer: { servers: [{ url: \"http://h:1\" }] } } }\n"

    @Test(arguments: [
        ("Host(`a.test`, `b.test`)", "{ host: [a.test, b.test] }"),
        ("PathPrefix(`/a/{id}`)", "{ path: \"~^/a/[^/]+\" }"),
        ("Path(`/a/{id:[0-9]+}`)", "{ path: \"~^/a/(?:[0-9]+)$\" }"),
        ("Headers(`X`, `1`) && HeadersRegexp(`Y`, `^2`)", "{ headers: { X: 1, Y: \"~^2\" } }"),
        ("Query(`a=1`, `b`)", "{ query: { a: 1, b: \"~^\" } }"),
    ])
    func `rules of version 2 become matches`(rule: String, match: String) {
        #expect(MatchMap(TraefikRule.read(rule, syntax: .v2))?.node.flow == match)
    }

    @Test(arguments: [
        "", "Host(", "Host(`a`))", "Host(`a`) &", "Nothing(`a`)", "Host(`a`, `b`)", "(((Host(`a`))", "Host(`a b`)",
        "ALPN(`h2`)",
    ])
    func `a rule that is not understood is unknown`(rule: String) {
        #expect(!TraefikRule.read(rule).unknowns.isEmpty)
    }

    @Test func `a rule nested ten thousand deep is unknown`() {
        #expect(
            !TraefikRule.read(
                String(repeating: "(", count: 10_000) + "Host(`a`)" + String(repeating: ")", count: 10_000)
            ).unknowns.isEmpty)
    }

    @Test func `the longer rule comes first, and a priority before it`() throws {
        let draft = try draft(
            """
            http:
              routers:
                short: { rule: "Host(`a`)", service: a }
                long: { rule: "Host(`a`) && Path(`/x`)", service: a }
                wanted: { rule: "Path(`/y`)", service: a, priority: 99 }
            \(service)
            """)
        #expect(draft.routes.map(\.name) == ["wanted", "long", "short"])
    }

    @Test(arguments: [
        "plugin: { crowdsec: { enabled: \"true\" } }", "digestAuth: { users: [\"a:b:c\"] }",
        "basicAuth: { users: [\"a:$apr1$x$y\"] }",
        "forwardAuth: { address: \"http://auth\", tls: { ca: x } }",
        "ipAllowList: { sourceRange: [\"10.0.0.0/8\"], ipStrategy: { depth: 1 } }",
        "ipWhiteList: { sourceRange: [\"nonsense\"] }", "chain: { middlewares: [m] }",
        "chain: { middlewares: [missing] }", "unknownKind: {}",
    ])
    func `a middleware that is not understood refuses its router`(kind: String) throws {
        let draft = try draft(
            "http:\n  routers: { r: { rule: \"Host(`a`)\", service: a, middlewares: [m@file] } }\n  middlewares: { m: { \(kind) } }\n"
                + service)
        guard case .refused? = draft.routes.first?.target else {
            Issue.record("it is served: \(kind)")
            return
        }
        #expect(draft.notes.contains { $0.isNeeded })
    }

    @Test(arguments: [
        ("addPrefix: { prefix: /x }", "rewrite", "{ path: { add: /x } }"),
        ("rateLimit: { average: 10, burst: 5, period: 1m }", "rateLimit", "{ rate: 10/m, burst: 5 }"),
        ("inFlightReq: { amount: 3 }", "concurrency", "{ max: 3, status: 429 }"),
        ("buffering: { maxRequestBodyBytes: 2048 }", "bodyLimit", "{ max: 2KiB }"),
        ("ipAllowList: { sourceRange: [\"10.1.2.3/8\"] }", "ipRule", "{ allow: [10.0.0.0/8] }"),
        ("retry: { attempts: 9 }", "retry", "{ attempts: 5, retryOn: [connect, reset] }"),
        ("stripPrefix: { prefixes: [/a, /b] }", "requestHeaders", "{ set: { X-Forwarded-Prefix: /a } }"),
        (
            "headers: { customRequestHeaders: { X-A: \"{b}\", X-C: \"\" } }", "requestHeaders",
            "{ remove: [X-C], set: { X-A: \"{{b}\" } }"
        ),
    ])
    func `middlewares become wares`(kind: String, ware: String, options: String) throws {
        let draft = try draft(
            "http:\n  routers: { r: { rule: \"Host(`a`)\", service: a, middlewares: [m] } }\n  middlewares: { m: { \(kind) } }\n"
                + service)
        let first = draft.routes.first?.middlewares.first
        #expect(first?.name == ware)
        #expect(first?.options.flow == options)
    }

    @Test func `entry points redirect, and speak TLS with their certificates`() throws {
        let draft = try draft(
            """
            entryPoints:
              web: { address: ":80", http: { redirections: { entryPoint: { to: secure, scheme: https } } } }
              secure: { address: ":8443" }
            certificatesResolvers: { le: { acme: { email: a@b.test, httpChallenge: { entryPoint: web } } } }
            http:
              routers: { r: { rule: "Host(`a.test`)", service: a, entryPoints: [secure], tls: { certResolver: le } } }
            \(service)
            """)
        #expect(draft.listeners.map(\.bind) == ["0.0.0.0:80", "0.0.0.0:8443"])
        #expect(draft.listeners[1].acmeDomains == ["a.test"])
        #expect(draft.listeners[1].acmeChallenge == "http-01")
        #expect(draft.routes.first?.middlewares.first?.options.flow == "{ scheme: https, port: 8443, status: 301 }")
        #expect(draft.routes.last?.listeners == ["secure"])
    }

    @Test(arguments: [
        ("caFiles: [ca.pem]", "ca.pem"), ("caFiles: [ca.pem], clientAuthType: RequireAndVerifyClientCert", "ca.pem"),
        ("caFiles: [a.pem, b.pem]", "refused"), ("caFiles: [a.pem], clientAuthType: RequireAnyClientCert", "refused"),
        ("clientAuthType: NoClientCert", "open"),
    ])
    func `client certificates are required, or the router is refused`(options: String, outcome: String) throws {
        let draft = try draft(
            "http:\n  routers: { r: { rule: \"Host(`a`)\", service: a, tls: {} } }\n\(service)tls: { options: { default: { clientAuth: { \(options) } } } }\n"
        )
        let found = draft.listeners.first?.tlsOptions.first { $0.key == "clientCa" }?.value.text
        if case .refused? = draft.routes.first?.target {
            #expect(outcome == "refused")
        } else {
            #expect(found ?? "open" == outcome)
        }
    }

    @Test func `services that refer to each other in a loop are refused`() throws {
        let draft = try draft(
            """
            http:
              routers: { r: { rule: "Host(`a`)", service: x } }
              services:
                x: { weighted: { services: [{ name: y }] } }
                y: { weighted: { services: [{ name: x }] } }
            """)
        guard case .refused? = draft.routes.first?.target else {
            Issue.record("it is served")
            return
        }
    }

    @Test(arguments: [(10, 1000, "10/s"), (1, 60_000, "1/m"), (100, 60_000, "100/m"), (1, 7_200_000, nil)])
    func `rates keep their meaning`(count: Int, period: Int, rate: String?) {
        #expect(TraefikImport.rate(count, perMilliseconds: period) == rate)
    }
}
