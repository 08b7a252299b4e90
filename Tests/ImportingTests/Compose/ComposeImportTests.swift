import GatewayConfig
import HttpWare
import Testing

@testable import Importing

@Suite struct ComposeImportTests {
    private func draft(_ text: String) -> GatewayDraft {
        ForeignSources.compose([ImportSource(name: "compose.yaml", text: text)])
    }

    @Test func `labels of Traefik become routes to their service`() {
        let draft = draft(
            """
            services:
              app:
                image: app
                labels:
                  - "traefik.enable=true"
                  - "traefik.http.routers.app.rule=Host(`a.${DOMAIN:-b.test}`)"
                  - "traefik.http.routers.app.middlewares=users"
                  - "traefik.http.middlewares.users.basicauth.users=bob:$$2y$$05$$DaWrqLGCPBlpIuaV03g2CuePYKPHbRz4ZNzgY28bzPu1NX180CqV."
                  - "traefik.http.services.app.loadbalancer.server.port=3000"
            """)
        #expect(draft.services.map(\.endpoints.first?.url) == ["http://app:3000"])
        #expect(draft.routes.first.flatMap { MatchMap($0.test)?.node.flow } == "{ host: a.b.test }")
        #expect(draft.files.first?.lines.first?.hasPrefix("bob:$2y$05$") == true)
    }

    @Test func `merged labels count, and a variable becomes an invalid name`() {
        let draft = draft(
            """
            x-labels: &labels { traefik.http.routers.app.middlewares: "missing" }
            services:
              app: { expose: [80], labels: { <<: *labels, traefik.http.routers.app.rule: "Host(`${DOMAIN}`)" } }
            """)
        #expect(draft.routes.first.flatMap { MatchMap($0.test)?.node.flow } == "{ host: domain.invalid }")
        guard case .refused? = draft.routes.first?.target else {
            Issue.record("the merged middleware is ignored")
            return
        }
    }

    @Test func `labels of caddy-docker-proxy become directives`() {
        let draft = draft(
            """
            services:
              app:
                labels:
                  caddy: "http://a.test"
                  caddy.0_header: "X-A b"
                  caddy.handle_path: "/api/*"
                  caddy.handle_path.0_reverse_proxy: "{{upstreams 3000}}"
                  caddy_ingress_network: web
            """)
        #expect(draft.services.map(\.endpoints.first?.url) == ["http://app:3000"])
        #expect(draft.routes.first?.middlewares.map(\.name) == ["rewrite"])
        #expect(draft.routes.count == 2)
    }

    @Test func `our own labels are read as the article says`() {
        let draft = draft(
            """
            services:
              orders:
                expose: ["8080"]
                labels:
                  httpware.route: "a.test/api/**, /orders"
                  httpware.port: "3000"
                  httpware.wares: "[{ rateLimit: { rate: 10/s } }, accessLog]"
                  httpware.service: "{ healthCheck: { path: /healthz } }"
            """)
        #expect(draft.services.first?.endpoints.first?.url == "http://orders:3000")
        #expect(draft.services.first?.options.map(\.key) == ["healthCheck"])
        #expect(
            draft.routes.compactMap { MatchMap($0.test)?.node.flow } == [
                "{ host: a.test, path: \"/api/**\" }", "{ path: /orders }",
            ])
        #expect(draft.routes.first?.middlewares.map(\.name) == ["rateLimit"])
        #expect(draft.routes.first?.postwares.map(\.name) == ["accessLog"])
    }

    @Test(arguments: ["httpware.wares: \"not: a: list\"", "httpware.chain: web"])
    func `a label of ours that is not understood refuses the route`(label: String) {
        let draft = draft("services:\n  a:\n    labels:\n      httpware.route: a.test\n      \(label)\n")
        guard case .refused? = draft.routes.first?.target else {
            Issue.record("it is served")
            return
        }
    }

    @Test func `services with ports and no labels become services`() {
        let draft = draft("services:\n  a: { ports: [\"8080:80\"] }\n  b: { image: x }\n")
        #expect(draft.services.map(\.endpoints.first?.url) == ["http://a:80"])
        #expect(draft.notes.contains { !$0.isNeeded && $0.text == "b" })
    }
}
