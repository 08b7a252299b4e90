import GatewayConfig
import HttpWare
import Testing

@testable import Importing

@Suite struct NginxImportTests {
    /// The lines of a location, and a part of what they become.
    @Test(arguments: [
        ("proxy_pass http://127.0.0.1:3000;", "baseUrl: \"http://127.0.0.1:3000\""),
        ("proxy_pass http://app/;", "strip: /x"), ("proxy_pass http://app/y/;", "baseUrl: \"http://app:80/y\""),
        ("proxy_pass https://app;", "insecureSkipVerify: true"), ("grpc_pass grpc://app:50051;", "protocol: h2"),
        ("return 404;", "mock: { status: 404 }"),
        ("return 301 https://$host$request_uri;", "to: \"https://{request.host}{request.path}\""),
        ("return 444;", "fault: { abort: true }"), ("return 200 \"{request.path}\";", "{{request.path}"),
        ("root /srv/www;", "files: { root: /srv/www, precompressed: [] }"),
        ("alias /srv/pics/;", "root: /srv/pics/, strip: /x"),
        ("root /srv; try_files $uri $uri/ /index.html;", "fallback: index.html"),
        ("root /srv; autoindex on;", "browse: true"),
        ("allow 10.0.0.0/8; deny all; proxy_pass http://a;", "ipRule: { allow: [\"10.0.0.0/8\"] }"),
        ("deny 192.0.2.1; proxy_pass http://a;", "ipRule: { deny: [\"192.0.2.1/32\"] }"),
        (
            "auth_basic R; auth_basic_user_file /u; proxy_pass http://a;",
            "basicAuth: { usersFile: /u, realm: R, removeHeader: false }"
        ),
        ("proxy_set_header X-A $remote_addr; proxy_pass http://a;", "X-A: \"{client.ip}\""),
        ("proxy_set_header Host $http_host; proxy_pass http://a;", "host: preserve"),
        ("proxy_set_header X-A \"\"; proxy_pass http://a;", "remove: [X-A]"),
        ("add_header X-B c always; return 204;", "append: { X-B: c }"),
        ("client_max_body_size 10m; proxy_pass http://a;", "bodyLimit: { max: 10MiB }"),
        ("proxy_read_timeout 5m; proxy_pass http://a;", "response: 5m"),
        ("expires 1h; root /s;", "Cache-Control: \"max-age=3600\""),
        ("gzip on; root /s;", "compress:"), ("proxy_hide_header X-C; proxy_pass http://a;", "remove: [X-C]"),
        ("rewrite ^/x/(.*)$ /$1 break; proxy_pass http://a;", "to: \"/$1\""),
        ("internal; proxy_pass http://a;", "mock: { status: 404 }"),
    ])
    func `a directive becomes an option`(lines: String, expected: String) {
        let imported = Imported(.nginx, "server { listen 8080; location /x/ { \(lines) } }")
        #expect(imported.errors.isEmpty)
        #expect(imported.body.contains(expected), "\(imported.gateway.text)")
    }

    /// Rules of access that are not understood never leave a way to the service.
    @Test(arguments: [
        "auth_jwt realm;", "access_by_lua_block { return }", "modsecurity on;",
        "satisfy any; auth_basic a; auth_basic_user_file u; auth_request /a;",
        "allow example.com; deny all;", "auth_basic $realm; auth_basic_user_file u;", "auth_request $uri;",
        "if ($unknown) { return 403; }",
        "limit_except GET { auth_jwt x; }", "include missing.conf;", "secure_link $arg_md5;", "auth_basic r;",
        "if (-f $request_filename) { return 403; }",
        "set $block 0; if ($http_x = bad) { set $block 1; } if ($block = 1) { return 403; }",
        "satisfy any; deny 10.0.0.1; auth_basic a; auth_basic_user_file u;",
        "unknown_waf_module on;", "real_ip_header CF-Connecting-IP; set_real_ip_from 10.0.0.0/8;",
    ])
    func `an access rule that is not understood is answered 503, and named`(rule: String) {
        let isAddress = rule.contains("real_ip")
        let text =
            isAddress
            ? "server { listen 80; \(rule) location / { allow 10.0.0.0/8; deny all; proxy_pass http://secret:81; } }"
            : "server { listen 80; location / { \(rule) proxy_pass http://secret:81; } }"
        let imported = Imported(.nginx, text)
        #expect(imported.errors.isEmpty)
        #expect(imported.body.contains("status: 503"), "\(imported.gateway.text)")
        #expect(!imported.body.contains("service: secret"), "\(imported.gateway.text)")
        #expect(imported.gateway.untranslated > 0)
    }

    @Test func `a directive is named if it is neither translated nor needless`() {
        let imported = Imported(
            .nginx,
            "worker_processes 4;\nhttp {\nserver {\nlisten 80;\nfancy_module on;\nsub_filter a b;\nlocation / { return 204; }\n}\n}"
        )
        #expect(imported.head.contains("file:5: fancy_module on;"))
        #expect(imported.head.contains("file:6: sub_filter a b;"))
        #expect(imported.head.contains("file:1: worker_processes 4; – one loop"))
        #expect(imported.gateway.untranslated == 2)
    }

    @Test func `an add_header of a location hides those of the server`() {
        let text =
            "server { listen 80; add_header X-Outer a; location /a { return 204; } location /b { add_header X-Inner b; return 204; } }"
        let imported = Imported(.nginx, text)
        // At /a, and where no location matches.
        #expect(imported.body.split(separator: "X-Outer").count == 3)
        #expect(imported.body.split(separator: "X-Inner").count == 2)
    }

    @Test func `hostile words stay words`() {
        let text =
            "server { listen 80; location / { return 200 \"x\\n  routes: []\\n# y: ${HOME} {client.ip}\"; add_header X-A \"a: b, { c\"; } }"
        let imported = Imported(.nginx, text)
        #expect(imported.errors.isEmpty, "\(imported.gateway.text)")
        #expect(imported.configuration?.routes.count == 1)
    }

    @Test(arguments: [
        String(repeating: "a {", count: 10_000), String(repeating: "}", count: 1000),
        "server { listen 80; location / { return 200 'x",
        String(repeating: "a b;\n", count: 110_000), "\u{0}\u{0};", "server {\u{0}}", "include file;",
        "server { include file; }",
        "server { listen 80; " + String(repeating: "location /a { ", count: 60) + String(repeating: "}", count: 60)
            + "}",
        "server { listen 99999; listen -1; listen [::; listen unix:; server_name ~(; location ~ ( { } rewrite ( x; if ( { } return; }",
        "upstream u { server; server unix:/x; server a:99999; } server { listen 80; location / { proxy_pass http://u; } }",
        "server { listen 80; location / { rewrite ^ /b last; } location /b { rewrite ^ / last; } }",
        "limit_req_zone $x zone=; server { listen 80; limit_req; limit_req zone; limit_conn a b c; location { } location = ; }",
    ])
    func `hostile files end with notes`(text: String) {
        let files = ImportFiles(read: { _ in Array(text.utf8) }, list: { [$0] })
        let imported = Imported(.nginx, text, files: files)
        #expect(imported.errors.isEmpty, "\(imported.gateway.text.prefix(2000))")
        #expect(imported.gateway.untranslated > 0)
    }

    @Test func `files are included once they are read, with their own places`() {
        let files = ImportFiles(
            read: { $0 == "conf.d/a.conf" ? Array("server { listen 80;\nreturn 403; }".utf8) : nil },
            list: { _ in ["conf.d/a.conf"] })
        let imported = Imported(.nginx, "http { include conf.d/*.conf; }", files: files)
        #expect(imported.gateway.text.contains("# conf.d/a.conf:2"))
    }
}
