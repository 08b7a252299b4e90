"""Routes by client, cookie, scheme and regular expressions, and by `not` and `any`."""

from __future__ import annotations

from gateways import OwnGateway
from Rig.origins import answering
from suite import Trial, case, expect_same, expect_status

from .fields import answer

NO = "nginx has no such routes"

CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}", trustedProxies: [127.0.0.1] }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services: {{ main: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
chains:
  main:
    postwares:
      - responseHeaders: {{ set: {{ X-Failed: "yes" }} }}
        if: {{ not: {{ any: [{{ status: 2xx }}, {{ path: "/quiet" }}] }} }}
  a: {{ middlewares: [{{ mock: {{ body: a }} }}] }}
  b: {{ middlewares: [{{ mock: {{ body: b }} }}] }}
  c: {{ middlewares: [{{ mock: {{ body: c }} }}] }}
  d: {{ middlewares: [{{ mock: {{ body: d }} }}] }}
routes:
  - {{ chain: a, match: {{ path: ['~\\.php$', '~^/([0-9]+)$'] }} }}
  - {{ chain: b, match: {{ path: "/b/**", any: [{{ client: 10.0.0.0/8 }}, {{ cookies: {{ tester: '~^[12]$' }}, scheme: https }}] }} }}
  - {{ chain: c, match: {{ path: "/b/**", cookies: {{ c: x }} }} }}
  - {{ service: main, chain: main, match: {{ not: {{ path: ["/health", "/c/**"] }} }} }}
  - {{ chain: d }}
"""


@case("match: the first route whose conditions all hold answers", nginx=NO)
def _(t: Trial) -> None:
    gateway = OwnGateway(t, "matching", CONFIG, main=t.setup.ports["main"])
    t.origin(answering(answer(content=b"main")))
    asked = [
        ("/x/y.php?q=1", [], b"a"), ("/%78.p%68p", [], b"a"), ("/12", [], b"a"), ("/12/", [], b"main"),
        ("/b/1", ["X-Forwarded-For: 10.1.1.1"], b"b"), ("/b/1", ["X-Forwarded-For: 11.1.1.1"], b"main"),
        ("/b/1", ["Cookie: a=b; tester=2", "X-Forwarded-Proto: https"], b"b"),
        ("/b/1", ["Cookie: a=b; tester=2"], b"main"), ("/b/1", ["Cookie: tester=3", "Cookie: c=x"], b"c"),
        ("/health", [], b"d"), ("/c", [], b"d"), ("/healthy", [], b"main"), ("/HEALTH", [], b"main"),
    ]
    for path, fields, body in asked:
        message = gateway.ask(path, "GET", *fields)
        expect_status(message, 200)
        expect_same(f"who answers {path} with {fields}", message.body, body)


@case("match: a path whose expression takes too long is answered 500, and later routes are not tried", nginx=NO)
def _(t: Trial) -> None:
    config = CONFIG.replace("'~\\.php$'", "'~^/(a+)+$'")
    gateway = OwnGateway(t, "matching-long", config, main=t.setup.ports["main"])
    t.origin(answering(answer(content=b"main")))
    expect_status(gateway.ask("/" + "a" * 60 + "!"), 500)
    expect_status(gateway.ask("/b"), 200)


@case("match: all expressions for a request share one time limit", nginx=NO)
def _(t: Trial) -> None:
    # Each reads the path to its end from each place, and takes some milliseconds.
    slow = ", ".join(f"{{{{ path: '~a[^x]*[yz](?#{number})' }}}}" for number in range(200))
    config = CONFIG.replace('not: {{ path: ["/health", "/c/**"] }}', f"not: [{slow}]")
    gateway = OwnGateway(t, "matching-many", config, main=t.setup.ports["main"])
    t.origin(answering(answer(content=b"main")))
    expect_status(gateway.ask("/" + "a" * 6000), 500)
    expect_status(gateway.ask("/a"), 200)


@case("if: not and any may contain conditions about the response", nginx=NO)
def _(t: Trial) -> None:
    gateway = OwnGateway(t, "matching-if", CONFIG, main=t.setup.ports["main"])
    for status, path, failed in ((b"200 OK", "/", None), (b"404 Not Found", "/", "yes"), (b"404 Not Found", "/quiet", None)):
        t.origin(answering(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"))
        expect_same(f"X-Failed of {status} for {path}", gateway.ask(path).get("x-failed"), failed)
