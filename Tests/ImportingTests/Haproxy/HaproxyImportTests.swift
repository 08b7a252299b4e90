import HttpWare
import Testing

@testable import Importing

@Suite struct HaproxyImportTests {
    private static func file(_ front: String, _ back: String = "") -> String {
        """
        defaults
          mode http
        frontend web
          bind :8080
          \(front)
          default_backend app
        backend app
          \(back)
          server a 10.0.0.1:3000
        """
    }

    @Test(arguments: [
        ("http-request deny if { path_beg /x }", "path: \"~^/x\""),
        ("http-request set-header X-A %[src]", "X-A: \"{client.ip}\""),
        ("http-request redirect scheme https unless { ssl_fc }", "to: \"https://{request.host}{request.path}\""),
        ("http-request return status 200 string hi if { path /hi }", "body: hi"),
        ("http-response del-header Server", "remove: [Server]"),
        ("http-request replace-path /a/(.*) /\\1", "to: \"/$1\""), ("compression algo gzip", "compress:"),
        ("use_backend app if { hdr(host) -i a.test } { method POST }", "match: { host: a.test, method: POST }"),
        ("acl n src 10.0.0.0/8\n  http-request deny unless n", "not: { client: \"10.0.0.0/8\" }"),
        ("monitor-uri /up", "body: \"ok\\n\""),
        ("option forwardfor", "forwarded: { remove: [] }"), ("timeout client 5s", "idleTimeout: 5s"),
        (
            "stick-table type ip size 1m expire 10s store http_req_rate(10s)\n  http-request track-sc0 src\n  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 20 }",
            "rateLimit: { rate: 2/s, burst: 20 }"
        ),
    ])
    func `a line of a frontend becomes a part`(line: String, expected: String) {
        let imported = Imported(.haproxy, Self.file(line))
        #expect(imported.errors.isEmpty, "\(imported.gateway.text)")
        #expect(imported.body.contains(expected), "\(imported.gateway.text)")
    }

    @Test(arguments: [
        ("balance leastconn", "balance: leastRequests"), ("balance source", "hashKey: ip"),
        ("cookie S insert", "sticky: { cookie: S, httpOnly: false }"),
        ("option httpchk GET /up\n  server b 10.0.0.2:80 check inter 1s fall 2", "path: /up, interval: 1s"),
        ("timeout server 9s", "response: 9s"),
        ("server b 10.0.0.2:443 ssl verify none weight 9 backup", "backup: true"),
        ("server b 10.0.0.2:80 send-proxy-v2", "proxyProtocol: v2"),
    ])
    func `a line of a backend becomes an option`(line: String, expected: String) {
        let imported = Imported(.haproxy, Self.file("", line))
        #expect(imported.errors.isEmpty, "\(imported.gateway.text)")
        #expect(imported.body.contains(expected), "\(imported.gateway.text)")
    }

    /// Rules of access that are not understood never leave a way to the service.
    @Test(arguments: [
        "http-request deny if { lua.check }", "http-request deny if !undefined", "http-request lua.guard",
        "http-request auth if { src 10.0.0.0/8 }",
        "http-request deny if { src -f /etc/list }", "http-request deny unless { ssl_c_verify 0 }",
        "filter spoe engine waf", "http-request use-service lua.x",
        "reqdeny ^x", "tcp-request content reject if { var(txn.bad) -m bool }",
        "http-request deny if { sc_http_req_rate(0) gt 10 }",
        "acl ok http_auth(nobody)\n  http-request auth unless ok", "http-request set-uri http://x/",
        "http-request deny deny_status 999",
    ])
    func `an access rule that is not understood is answered 503, and named`(rule: String) {
        let imported = Imported(.haproxy, Self.file(rule))
        #expect(imported.errors.isEmpty, "\(imported.gateway.text)")
        #expect(imported.body.contains("status: 503"), "\(imported.gateway.text)")
        #expect(!imported.body.contains("service: app"), "\(imported.gateway.text)")
        #expect(imported.gateway.untranslated > 0)
    }

    @Test func `users with passwords hashed by bcrypt become a file`() {
        let users = "userlist u\n  user anna password $2y$10$abcdefghijklmnopqrstuv\n  user ben insecure-password x\n"
        let imported = Imported(.haproxy, users + Self.file("http-request auth unless { http_auth(u) }"))
        #expect(imported.gateway.files.map(\.name) == ["u.htpasswd"])
        #expect(imported.gateway.files.map(\.text) == ["anna:$2y$10$abcdefghijklmnopqrstuv\n"])
        #expect(imported.head.contains("user ben"))
    }

    @Test(arguments: [
        "\u{0}", "bind", "frontend", "frontend a\n bind\n bind :0\n bind :99999\n", "frontend a\n mode http\n bind 'x",
        "listen a\n mode tcp\n bind :1",
        String(repeating: "frontend a\n", count: 11_000),
        "defaults\n mode http\nfrontend a\n bind :80\n use_backend\n use_backend b if\n acl\n acl x\n http-request\n redirect\n",
        "defaults\n mode http\nfrontend a\n bind :80\n use_backend b if "
            + String(repeating: "!{ path / } ", count: 1500),
        "defaults\n mode http\nbackend b\n server\n server x\n server y z:99999\nfrontend a\n bind :80\n default_backend b",
        "defaults\n mode http\nfrontend a\n bind :80\n http-request deny if { path_reg ( }\n http-request set-path %[\n",
    ])
    func `hostile files end with notes`(text: String) {
        let imported = Imported(.haproxy, text)
        #expect(imported.errors.isEmpty, "\(imported.gateway.text.prefix(2000))")
        #expect(imported.gateway.untranslated > 0)
    }
}
