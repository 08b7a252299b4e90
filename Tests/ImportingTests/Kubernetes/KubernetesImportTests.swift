import GatewayConfig
import HttpWare
import Testing

@testable import Importing

@Suite struct KubernetesImportTests {
    private func routes(_ text: String, _ format: ImportFormat = .ingress) -> GatewayDraft {
        ForeignSources.kubernetes(
            [ImportSource(name: "k.yaml", text: text)], as: format == .ingress ? .ingress : .httpRoute)
    }

    private func ingress(_ annotations: String, path: String = "/", type: String = "Prefix") -> String {
        """
        kind: Ingress
        metadata: { name: i, annotations: { \(annotations) } }
        spec:
          rules:
            - host: a.test
              http:
                paths:
                  - { path: "\(path)", pathType: \(type), backend: { service: { name: s, port: { number: 80 } } } }
        """
    }

    @Test func `documents are split by the rules of YAML, with their lines`() {
        let documents = YamlDocuments.split(
            Array("# a\n---\na: 1\n--- # b\nb: |\n  ---x\n...\n---\n\n# only words\n---\nc: 3".utf8))
        #expect(documents.map(\.linesBefore) == [1, 3, 10])
        let nodes = documents.map { YamlReader.read($0.bytes, file: "k").node }
        #expect(nodes.compactMap { $0?.flow } == ["{ a: 1 }", "{ b: \"---x\\n\" }", "{ c: 3 }"])
    }

    @Test(arguments: [
        ("Exact", "/x", "{ host: a.test, path: /x }"), ("Prefix", "/x", "{ host: a.test, path: \"/x/**\" }"),
        ("Prefix", "/x/", "{ host: a.test, path: \"/x/**\" }"),
        ("ImplementationSpecific", "/x", "{ host: a.test, path: \"~^/x\" }"),
        ("Prefix", "/", "{ host: a.test }"), ("Exact", "/", "{ host: a.test, path: / }"),
    ])
    func `types of paths keep their meaning`(type: String, path: String, match: String) {
        let draft = routes(ingress("", path: path, type: type))
        #expect(draft.routes.first.flatMap { MatchMap($0.test)?.node.flow } == match)
    }

    @Test func `exact paths come first, then longer ones, and hosts before all hosts`() {
        let draft = routes(
            """
            kind: Ingress
            metadata: { name: i }
            spec:
              defaultBackend: { service: { name: d, port: { number: 1 } } }
              rules:
                - host: a.test
                  http:
                    paths:
                      - { path: /, pathType: Prefix, backend: { service: { name: root, port: { number: 1 } } } }
                      - { path: /long, pathType: Prefix, backend: { service: { name: long, port: { number: 1 } } } }
                      - { path: /x, pathType: Exact, backend: { service: { name: exact, port: { number: 1 } } } }
            """)
        #expect(draft.routes.map(\.target) == ["exact", "long", "root", "d"].map { .service($0) })
    }

    @Test(arguments: [
        "nginx.ingress.kubernetes.io/auth-tls-secret: a/b", "nginx.ingress.kubernetes.io/auth-type: digest",
        "nginx.ingress.kubernetes.io/auth-url: \"http://$host/\"",
        "nginx.ingress.kubernetes.io/whitelist-source-range: nonsense",
        "nginx.ingress.kubernetes.io/configuration-snippet: \"deny all;\"",
        "nginx.ingress.kubernetes.io/server-snippet: \"if ($x) { return 403; }\"",
        "nginx.ingress.kubernetes.io/satisfy: any", "nginx.ingress.kubernetes.io/enable-modsecurity: \"true\"",
        "traefik.ingress.kubernetes.io/router.middlewares: auth", "nginx.ingress.kubernetes.io/auth-something-new: x",
        "nginx.ingress.kubernetes.io/backend-protocol: FCGI",
    ])
    func `an annotation that may restrict access and is not understood refuses the Ingress`(annotation: String) {
        let draft = routes(ingress(annotation))
        guard case .refused? = draft.routes.first?.target else {
            Issue.record("it is served: \(annotation)")
            return
        }
        #expect(draft.notes.contains { $0.isNeeded })
    }

    @Test(arguments: [
        ("limit-rps: \"5\"", "rateLimit", "{ rate: 5/s, burst: 25, status: 503 }"),
        ("whitelist-source-range: 10.0.0.0/8", "ipRule", "{ allow: [10.0.0.0/8] }"),
        ("proxy-body-size: 8m", "bodyLimit", "{ max: 8MiB }"),
        ("auth-url: \"http://auth/\"", "extAuthz", "{ url: \"http://auth/\", timeout: 30s }"),
        ("force-ssl-redirect: \"true\"", "redirect", "{ scheme: https, status: 308 }"),
    ])
    func `annotations become wares`(annotation: String, ware: String, options: String) {
        let draft = routes(ingress("nginx.ingress.kubernetes.io/" + annotation))
        #expect(draft.routes.first?.middlewares.first { $0.name == ware }?.options.flow == options)
    }

    @Test func `the target of a rewrite takes the groups of the path`() {
        let draft = routes(
            ingress(
                "nginx.ingress.kubernetes.io/rewrite-target: /$2", path: "/api(/|$)(.*)", type: "ImplementationSpecific"
            ))
        #expect(
            draft.routes.first.flatMap { MatchMap($0.test)?.node.flow }
                == "{ host: a.test, path: \"~(?i)^/api(/|$)(.*)\" }")
        #expect(
            draft.routes.first?.middlewares.last?.options.flow
                == "{ path: { regex: \"(?i)^/api(/|$)(.*).*$\", to: \"/$2\" } }")
    }

    @Test func `a canary shares the requests, and its header decides before`() {
        let canary = ingress(
            "nginx.ingress.kubernetes.io/canary: \"true\", nginx.ingress.kubernetes.io/canary-weight: \"20\", nginx.ingress.kubernetes.io/canary-by-header: X-Next"
        )
        .replacing("name: s,", with: "name: next,")
        let draft = routes(ingress("") + "\n---\n" + canary)
        #expect(
            draft.routes.map(\.target) == [
                .service("next"), .service("s"),
                .split(
                    [TargetDraft.Share(service: "s", weight: 80), TargetDraft.Share(service: "next", weight: 20)],
                    cookie: nil),
            ])
    }

    @Test func `routes of the Gateway API have their precedence`() {
        let draft = routes(
            """
            kind: Gateway
            metadata: { name: g }
            spec: { listeners: [{ name: http, port: 8080, protocol: HTTP, hostname: "*.a.test" }] }
            ---
            kind: HTTPRoute
            metadata: { name: r, namespace: n }
            spec:
              parentRefs: [{ name: g }]
              hostnames: [x.a.test, other.test]
              rules:
                - { matches: [{ path: { value: /long/er } }], backendRefs: [{ name: prefix, port: 1 }] }
                - { matches: [{ path: { type: Exact, value: /e } }], backendRefs: [{ name: exact, port: 1 }] }
                - { matches: [{ method: GET }, { headers: [{ name: X, value: "1" }] }], backendRefs: [{ name: one, port: 1, weight: 3 }, { name: two, port: 1 }] }
                - { matches: [{ path: { value: /closed } }], filters: [{ type: ExtensionRef }], backendRefs: [{ name: prefix, port: 1 }] }
            """, .httproute)
        let matches = draft.routes.compactMap { MatchMap($0.test)?.node.flow }
        #expect(
            matches == [
                "{ host: x.a.test, path: /e }", "{ host: x.a.test, path: \"/long/er/**\" }",
                "{ host: x.a.test, path: \"/closed/**\" }",
                "{ host: x.a.test, method: GET }", "{ host: x.a.test, headers: { X: 1 } }",
            ])
        #expect(draft.services.first?.endpoints.first?.url == "http://prefix.n.svc.cluster.local:1")
        guard case .refused = draft.routes[2].target, case .split = draft.routes[3].target else {
            Issue.record("the filter is ignored, or the weights are")
            return
        }
    }

    @Test func `a document that is not YAML is named, and the others are read`() {
        let draft = routes("a: {{ template }}\nb: [\n---\n" + ingress(""))
        #expect(draft.notes.contains { $0.isNeeded && $0.place.line <= 3 })
        #expect(draft.routes.count == 1)
    }
}
