"""The wares of the first tier, each once or twice from outside; their own tests go deeper."""

from __future__ import annotations

import json
import time

from Rig.origins import answering
from Rig.processes import free_port
from Rig.waits import Why, pause
from suite import Message, Trial, case, check, connect, eventually, expect_same, expect_status

from .fields import answer
from .refused_requests import head

NO_WARE = "nginx has no wares"


def with_chain(name: str, chain: str, *, listener: str = "", service: str = "", route: str = "", extra: str = ""):
    """Runs the case with a gateway of its own whose only route has this chain; the case gets `ask(request)`."""

    def register(run) -> None:
        @case(name, nginx=NO_WARE)
        def _(t: Trial) -> None:
            port = free_port()
            config = f"""
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}"{listener} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{t.main.port}"{service} }} }}
chains:
{chain}
{extra}
routes: [{{ service: origin, chain: test{route} }}]
"""
            process = t.setup.place.gateway(t.setup.binary, config, [port])
            t.at_end(process.stop)

            def ask(request: bytes) -> Message:
                client = connect(("127.0.0.1", port))
                t.clients.append(client)
                client.send(request)
                return client.read_response(request.split(b" ", 1)[0].decode())

            ask.process = process
            run(t, ask)

    return register


def middlewares(*entries: str) -> str:
    return "  test:\n    middlewares:\n" + "".join(f"      - {entry}\n" for entry in entries)


def postwares(*entries: str) -> str:
    return "  test:\n    postwares:\n" + "".join(f"      - {entry}\n" for entry in entries)


@with_chain("requestHeaders: set, setIfAbsent, append, remove and rename change the fields",
            middlewares("requestHeaders: { set: { X-Set: new }, setIfAbsent: { X-There: no, X-Absent: yes-it-is }, append: { X-More: two }, remove: [X-Gone], rename: { X-Old: X-New } }"))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"X-Set: old", b"X-There: kept", b"X-More: one", b"X-Gone: a", b"X-Old: value")), 200)
    request = t.main.requests[0]
    expect_same("fields", [request.get(name) for name in ("X-Set", "X-There", "X-Absent", "X-More", "X-Gone", "X-Old", "X-New")],
                ["new", "kept", "yes-it-is", "one, two", None, None, "value"])


@with_chain("requestHeaders: placeholders are replaced, and a value cannot inject a field",
            middlewares('requestHeaders: { set: { X-P: "{request.method} {request.path} {request.query.q} {request.header.X-In} {client.ip} {{literal" } }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"X-In: there", start=b"GET /a%20b?q=c%0d%0aX-Evil:1 HTTP/1.1")), 200)
    request = t.main.requests[0]
    check(not request.has("X-Evil"), request)
    expect_same("value", request.get("X-P"), "GET /a%20b c%0d%0aX-Evil:1 there 127.0.0.1 {literal")


@with_chain("responseHeaders: the same options apply, with a filter by status",
            postwares("responseHeaders: { set: { X-Set: new }, remove: [X-Gone] }", "responseHeaders: { statuses: [404], set: { X-Lost: yes-it-is } }"))
def _(t: Trial, ask) -> None:
    t.origin(answering(answer(b"X-Set: old", b"X-Gone: a"), answer(status=b"404 Not Found")))
    first, second = ask(head()), ask(head())
    expect_same("first", (first.get("X-Set"), first.get("X-Gone"), first.get("X-Lost")), ("new", None, None))
    expect_same("second", (second.status, second.get("X-Lost")), (404, "yes-it-is"))


@with_chain("requiredHeaders: a missing field is 400 with problem+json that names it", middlewares("requiredHeaders: { headers: [X-Needed, X-There] }"))
def _(t: Trial, ask) -> None:
    response = ask(head(b"X-There: 1"))
    expect_status(response, 400)
    check("x-needed" in response.body.decode().lower(), response)
    expect_same("status", json.loads(response.body)["status"], 400)
    check(not t.main.received())
    expect_status(ask(head(b"X-There: 1", b"X-Needed: 2")), 200)


@with_chain("requiredHeaders: a field must match its pattern", middlewares('requiredHeaders: { headers: { X-Id: "^[0-9]{3}$" }, status: 422 }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"X-Id: 12x")), 422)
    expect_status(ask(head(b"X-Id: 123")), 200)


@with_chain("userAgent: the value replaces the received one", middlewares("userAgent: { value: gateway/1.0, mode: replace }"))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"User-Agent: curl/8")), 200)
    expect_same("User-Agent", t.main.requests[0].all("User-Agent"), ["gateway/1.0"])


@with_chain("userAgent: the value is appended, or added if absent", middlewares("userAgent: { value: gateway/1.0, mode: append }"))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"User-Agent: curl/8")), 200)
    expect_status(ask(head()), 200)
    expect_same("User-Agent", [request.get("User-Agent") for request in t.main.requests], ["curl/8 gateway/1.0", "gateway/1.0"])


@with_chain("requestId: an ID is made and sent both ways; an ID received on the loopback is kept", middlewares("requestId"))
def _(t: Trial, ask) -> None:
    first = ask(head())
    identifier = t.main.requests[0].get("X-Request-Id")
    check(identifier and len(identifier) == 36 and identifier[14] == "7", "no UUIDv7:", identifier)
    expect_same("echo", first.all("X-Request-Id"), [identifier])
    ask(head(b"X-Request-Id: mine-1"))
    expect_same("trusted", t.main.requests[1].all("X-Request-Id"), ["mine-1"])


@with_chain("requestId: an ID from an untrusted client is replaced", middlewares("requestId: { trustInbound: false, header: X-Id, echo: false }"))
def _(t: Trial, ask) -> None:
    response = ask(head(b"X-Id: forged"))
    check(t.main.requests[0].get("X-Id") != "forged" and len(t.main.requests[0].all("X-Id")) == 1, t.main.requests[0])
    check(not response.has("X-Id"), response)


@with_chain("rewrite: prefixes are stripped and added, and the query is changed", middlewares('rewrite: { path: { strip: "/api/v1", add: "/v2" }, query: { set: { a: "1" }, remove: [gone], rename: { old: new } } }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(start=b"GET /api/v1/users?gone=x&old=y&kept=z HTTP/1.1")), 200)
    path, _, query = t.main.requests[0].target.partition("?")
    expect_same("path", path, "/v2/users")
    expect_same("query", sorted(query.split("&")), ["a=1", "kept=z", "new=y"])


@with_chain("rewrite: the path is changed by a regular expression, and the method is replaced", middlewares('rewrite: { path: { regex: "^/item-([0-9]+)$", to: "/items/$1" }, method: PUT }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head(start=b"GET /item-42?q HTTP/1.1")), 200)
    expect_same("upstream", (t.main.requests[0].method, t.main.requests[0].target), ("PUT", "/items/42?q"))


@with_chain("redirect: the query is kept, and nothing goes upstream", middlewares('redirect: { to: "https://new.test/there", status: 301 }'))
def _(t: Trial, ask) -> None:
    response = ask(head(start=b"GET /here?a=b HTTP/1.1"))
    expect_same("response", (response.status, response.get("Location")), (301, "https://new.test/there?a=b"))
    check(not t.main.received())


@with_chain("rewriteRedirects, rewriteCookies: an app that names its own host keeps the browser on the gateway", middlewares("requestId"),
            service=', rewriteCookies: { domain: "", path: /, secure: false }, host: "app.test:81"')
def _(t: Trial, ask) -> None:
    own = f"127.0.0.1:{t.main.port}"
    for location, expected in ((f"http://{own}/app/login?a=b", "http://www.test:8080/app/login?a=b"), ("http://app.test:81/x", "http://www.test:8080/x"), ("/app", "/app"),
                               ("https://app.test:81/", "http://www.test:8080/"), ("https://other.test/app", "https://other.test/app"), ("../app", "../app")):
        t.main.begin(answering(b"HTTP/1.1 302 Found\r\nLocation: %s\r\nRefresh: 0;url=%s\r\nSet-Cookie: a=b; Domain=app.test; Path=/app; Secure; HttpOnly\r\nContent-Length: 0\r\n\r\n" % ((location.encode(),) * 2)))
        response = ask(head(start=b"GET /in HTTP/1.1", host=b"Host: www.test:8080\r\n"))
        expect_same(location, (response.status, response.get("Location"), response.get("Refresh")), (302, expected, "0;url=" + expected))
        expect_same("cookie", response.all("Set-Cookie"), ["a=b; Path=/; HttpOnly"])
    expect_same("upstream", t.main.requests[-1].get("Host"), "app.test:81")


@with_chain("securityHeaders: the nonce of the policy goes to the origin, a field of the response is kept",
            middlewares('requestHeaders: { set: { X-Nonce: "{cspNonce}" } }') + "    postwares:\n      - securityHeaders: { hsts: max-age=60, csp: \"script-src 'nonce-{cspNonce}'\" }\n")
def _(t: Trial, ask) -> None:
    t.main.begin(answering(b"HTTP/1.1 200 OK\r\nX-Frame-Options: SAMEORIGIN\r\nContent-Length: 0\r\n\r\n"))
    response = ask(head())
    expect_same("fields", (response.get("Content-Security-Policy"), response.all("X-Frame-Options"), response.get("X-Content-Type-Options"), response.has("Strict-Transport-Security")),
                (f"script-src 'nonce-{t.main.requests[0].get('X-Nonce')}'", ["SAMEORIGIN"], "nosniff", False))


@with_chain("mock: the answer has the configured status, fields and JSON after the delay", middlewares("mock: { status: 418, headers: { X-A: b }, json: { a: [1, 2] }, delay: 300ms }"))
def _(t: Trial, ask) -> None:
    began = time.monotonic()
    response = ask(head())
    check(time.monotonic() - began >= 0.29, "no delay")
    expect_same("response", (response.status, response.get("X-A"), json.loads(response.body)), (418, "b", {"a": [1, 2]}))
    check((response.get("Content-Type") or "").startswith("application/json"), response)


@with_chain("ipRule: a client outside the allowed addresses is 403", middlewares('ipRule: { allow: ["10.0.0.0/8"] }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head()), 403)
    check(not t.main.received())


@with_chain("ipRule: a denied client is answered with the configured status", middlewares('ipRule: { deny: ["127.0.0.1"], status: 404 }'))
def _(t: Trial, ask) -> None:
    expect_status(ask(head()), 404)


@with_chain("ipRule: the client behind a trusted proxy counts, and a forged address is ignored", middlewares('ipRule: { deny: ["1.2.3.4"] }'),
            listener=', trustedProxies: ["127.0.0.0/8", "9.9.9.9"]')
def _(t: Trial, ask) -> None:
    expect_status(ask(head(b"X-Forwarded-For: 1.2.3.4")), 403)
    expect_status(ask(head(b"X-Forwarded-For: 1.2.3.4, 9.9.9.9")), 403)
    expect_status(ask(head(b"X-Forwarded-For: 1.2.3.4, 5.6.7.8")), 200)  # 5.6.7.8 is not a trusted proxy: it is the client
    expect_status(ask(head()), 200)


@with_chain("errorPage: a status gets its page, also for an error of the gateway", postwares('errorPage: { statuses: [404, 5xx], body: "sorry" }'))
def _(t: Trial, ask) -> None:
    t.origin(answering(answer(b"X-A: b", b"ETag: \"x\"", status=b"404 Not Found", content=b"theirs"), answer(content=b"fine")))
    response = ask(head())
    expect_same("response", (response.status, response.body, response.get("X-A")), (404, b"sorry", "b"))
    expect_same("other", ask(head()).body, b"fine")
    t.origin(lambda c: c.serve())
    expect_same("ours", ask(head()).body, b"sorry")


@with_chain("errorPage: the form of the page is negotiated", postwares("errorPage: { statuses: [404], format: negotiate }"))
def _(t: Trial, ask) -> None:
    t.origin(answering(answer(status=b"404 Not Found")))
    check("html" in (ask(head(b"Accept: text/html")).get("Content-Type") or ""), "no HTML")
    check("json" in (ask(head(b"Accept: application/problem+json")).get("Content-Type") or ""), "no problem+json")


@with_chain("timeLog: the response has Server-Timing", postwares("timeLog: { serverTiming: true }"))
def _(t: Trial, ask) -> None:
    check("dur=" in (ask(head()).get("Server-Timing") or ""), "no Server-Timing")


@with_chain("accessLog: JSON has an object per line, with secrets redacted", postwares("accessLog: { format: json, output: stdout }"))
def _(t: Trial, ask) -> None:
    ask(head(b"Authorization: Bearer very-secret", b"Cookie: a=very-secret", b"User-Agent: quote\"back\\slash\xff", start=b"GET /path?x=y HTTP/1.1"))

    def entries() -> list[dict]:
        found = []
        for line in ask.process.log.splitlines():
            if line.startswith("{") and "/path" in line:
                found.append(json.loads(line))
        return found

    check(eventually(entries, 5), "no line in the log:", ask.process.log[-500:])
    text = json.dumps(entries()[0])
    check("very-secret" not in ask.process.log, "a secret in the log")
    check("GET" in text and "200" in text and "127.0.0.1" in text, text)


@with_chain("accessLog: combined has the format of Apache", postwares("accessLog: { format: combined, output: stdout }"))
def _(t: Trial, ask) -> None:
    ask(head(b"User-Agent: some\"agent", b"Referer: http://r.test/", start=b"GET /path HTTP/1.1"))
    check(eventually(lambda: '"GET /path HTTP/1.1" 200 2 "http://r.test/"' in ask.process.log, 5), ask.process.log[-500:])


@with_chain("chains: if, use, as and order decide which wares run, and in which order",
            """  base:
    middlewares: [{ requestHeaders: { append: { X-Order: base } } }]
  test:
    middlewares:
      - requestHeaders: { append: { X-Order: late } }
        order: late
      - use: base
      - requestHeaders: { append: { X-Order: first } }
        order: first
      - requestHeaders: { append: { X-Order: post } }
        if: { method: POST }
      - requestHeaders: { append: { X-Order: labelled } }
        as: mine
        if: { path: "/a/**" }
""")
def _(t: Trial, ask) -> None:
    expect_status(ask(head(start=b"GET /a/b HTTP/1.1")), 200)
    expect_status(ask(head(b"Content-Length: 0", start=b"POST /c HTTP/1.1")), 200)
    orders = [[value.strip() for value in request.get("X-Order").split(",")] for request in t.main.requests]
    expect_same("orders", orders, [["first", "base", "labelled", "late"], ["first", "base", "post", "late"]])


@with_chain("chains: a route's with changes an option, or drops a ware", "  test:\n    middlewares: [{ requestHeaders: { set: { X-A: one } } }, { userAgent: { value: x, mode: replace } }]",
            route=", with: { requestHeaders: { set: { X-B: two } }, userAgent: false }")
def _(t: Trial, ask) -> None:
    expect_status(ask(head()), 200)
    request = t.main.requests[0]
    expect_same("fields", (request.get("X-A"), request.get("X-B"), request.get("User-Agent")), (None, "two", None))


@with_chain("postwares run for every response: after an abort, and for a bad gateway", """  test:
    middlewares: [{ mock: { status: 200 }, if: { path: /mocked } }]
    postwares: [{ responseHeaders: { set: { X-Post: ran } } }]""")
def _(t: Trial, ask) -> None:
    t.origin(lambda c: c.serve())
    expect_same("abort", ask(head(start=b"GET /mocked HTTP/1.1")).get("X-Post"), "ran")
    response = ask(head())
    expect_same("bad gateway", (response.status, response.get("X-Post")), (502, "ran"))


@with_chain("accessLog: each exchange has one line, whatever its outcome", postwares("accessLog: { format: json, output: stdout }"))
def _(t: Trial, ask) -> None:
    def lines(path: str) -> list[str]:
        return [line for line in ask.process.log.splitlines() if line.startswith("{") and path in line]

    ask(head(start=b"GET /good HTTP/1.1"))
    t.origin(lambda c: c.serve())
    expect_status(ask(head(start=b"GET /closed HTTP/1.1")), 502)
    t.origin(lambda c: (c.serve(), c.send(b"nonsense\r\n\r\n")))
    expect_status(ask(head(start=b"GET /malformed HTTP/1.1")), 502)
    t.origin(lambda c: (c.serve(), c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")))
    ask(head(start=b"GET /cut HTTP/1.1"))
    for path in ("/good", "/closed", "/malformed", "/cut"):
        check(eventually(lambda: lines(path), 5), f"no line for {path}:", ask.process.log[-500:])
    pause(0.3, Why.NOTHING)
    for path in ("/good", "/closed", "/malformed", "/cut"):
        expect_same(f"lines for {path}", len(lines(path)), 1)


@with_chain("a segment captured by a route's path is available in every template",
            middlewares('requestHeaders: { set: { X-Id: "{path.id}" } }',
                        'userAgent: { value: "agent-{path.post}", mode: replace }',
                        'redirect: { to: "/{path.post}/{path.id}" }\n        if: { query: { go: redirect } }',
                        'mock: { headers: { X-Mock: "{path.id}" } }\n        if: { query: { go: mock } }',
                        'rewrite: { query: { set: { id: "{path.id}" } }, host: "{path.post}.test" }')
            + """    postwares:
      - responseHeaders: { set: { X-Post: "{path.post}" } }
      - accessLog: { format: template, template: "captured={path.id},{path.post}", output: stdout }
""", route=', match: { path: "/users/{id}/{post}" }')
def _(t: Trial, ask) -> None:
    response = ask(head(start=b"GET /users/7%20a/b HTTP/1.1"))
    expect_status(response, 200)
    expect_same("X-Post", response.get("X-Post"), "b")
    request = t.main.requests[0]
    expect_same("upstream", [request.get(name) for name in ("X-Id", "User-Agent", "Host")], ["7%20a", "agent-b", "b.test"])
    expect_same("target", request.target, "/users/7%20a/b?id=7%20a")
    expect_same("redirect", ask(head(start=b"GET /users/7/b?go=redirect HTTP/1.1")).get("Location"), "/b/7?go=redirect")
    expect_same("mock", ask(head(start=b"GET /users/7/b?go=%6dock HTTP/1.1")).get("X-Mock"), "7")
    check(eventually(lambda: "captured=7%20a,b" in ask.process.log, 5), ask.process.log[-500:])


@case("accessLog: an exchange whose origin is unreachable has one line", nginx=NO_WARE)
def _(t: Trial) -> None:
    port = free_port()
    process = t.setup.place.gateway(t.setup.binary, f"""
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ dead: {{ baseUrl: "http://127.0.0.1:{t.setup.ports['closed']}" }}, nameless: {{ baseUrl: "http://does-not-exist.invalid" }} }}
chains: {{ test: {{ middlewares: [requestId], postwares: [timeLog, {{ accessLog: {{ format: json, output: stdout }} }}] }} }}
routes: [{{ match: {{ path: /dead }}, service: dead, chain: test }}, {{ service: nameless, chain: test }}]
""", [port])
    t.at_end(process.stop)
    for path in ("/dead", "/nameless"):
        client = connect(("127.0.0.1", port), timeout=12)
        t.clients.append(client)
        client.send(head(start=f"GET {path} HTTP/1.1".encode()))
        expect_status(client.read_response(), 502, 503, 504)

    def lines(path: str) -> list[str]:
        return [line for line in process.log.splitlines() if line.startswith("{") and path in line]

    check(eventually(lambda: lines("/dead") and lines("/nameless"), 5), process.log[-500:])
    pause(0.3, Why.NOTHING)
    expect_same("lines", (len(lines("/dead")), len(lines("/nameless"))), (1, 1))
