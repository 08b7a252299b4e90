"""Paths that origin servers read differently, and clients that end their side of the connection."""

from __future__ import annotations

from gateways import OwnGateway
from Rig.origins import OK, OriginConnection, answering
from Rig.processes import free_port
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_same, expect_status

from .refused_requests import head

NO = "how httpware refuses paths"

CONFIG = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}" }}
  written: {{ bind: "127.0.0.1:{lenient}", paths: lenient }}
  strict: {{ bind: "127.0.0.1:{strict}", paths: strict }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services: {{ main: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
chains:
  guarded: {{ middlewares: [{{ ipRule: {{ allow: [192.0.2.0/24] }} }}] }}
  strip: {{ middlewares: [{{ rewrite: {{ path: {{ strip: /api }} }} }}] }}
routes:
  - {{ listener: [web, written], match: {{ path: "/admin/**" }}, service: main, chain: guarded }}
  - {{ match: {{ path: "/api/**" }}, service: main, chain: strip }}
  - {{ service: main }}
"""

AMBIGUOUS = ["//admin/x", "/%2Fadmin/x", "/x/..%5cadmin", "/admin%2fx", "/admin;a/x", "/admin%3Ba/x", "/x/\\admin", "/%2561dmin/x"]


class Gateway(OwnGateway):
    def __init__(self, t: Trial):
        self.lenient, self.strict = free_port(), free_port()
        super().__init__(t, "paths", CONFIG, main=t.setup.ports["main"], lenient=self.lenient, strict=self.strict)


@case("paths: if the path decides about access, an ambiguous path is 400", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(OK))
    expect_status(gateway.ask("/admin/x"), 403)
    for path in AMBIGUOUS:
        expect_status(gateway.ask(path), 400)
    check(not t.main.requests, "one of them reached the origin")
    expect_status(gateway.ask("/shop/a%20b?q=//;"), 200)


@case("paths: if the path decides about a limit, an ambiguous path is 400", nginx=NO)
def _(t: Trial) -> None:
    config = CONFIG.replace("ipRule: {{ allow: [192.0.2.0/24] }}", "rateLimit: {{ rate: 1/h }}").replace("/admin/**", "/rate/**")
    gateway = OwnGateway(t, "paths of limits", config, main=t.setup.ports["main"], lenient=free_port(), strict=free_port())
    t.origin(answering(OK, OK))
    expect_status(gateway.ask("/rate/b"), 200)
    expect_status(gateway.ask("/rate/b"), 429)
    for path in ("//rate/b", "/%2Frate/b", "/rate%2fb", "/rate;a/b"):
        expect_status(gateway.ask(path), 400)
    expect_status(gateway.ask("/shop"), 200)


@case("paths: an explicit setting wins, and strict refuses ambiguous paths without access wares", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(OK))
    for path in ("//admin/x", "/@scope%2Fname", "/page;jsessionid=1"):
        expect_status(gateway.ask(path, port=gateway.lenient), 200)
        expect_status(gateway.ask(path, port=gateway.strict), 400)
    expect_same("targets", [request.target for request in t.main.requests], ["//admin/x", "/@scope%2Fname", "/page;jsessionid=1"])


@case("rewrite: a path without its prefix never begins with a host", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    t.origin(answering(OK))
    expect_status(gateway.ask("/api//evil.test/x", port=gateway.lenient), 200)
    expect_same("target", t.main.requests[0].target, "/evil.test/x")


@case("RFC 9112 §9.6: a client that ends its side behind a whole request receives the answer, even a late one", nginx="nginx gives up")
def _(t: Trial) -> None:
    for delay in (0.0, 1.6):
        def script(c: OriginConnection, delay: float = delay) -> None:
            c.serve()
            pause(delay, Why.SLOW)
            c.send(OK)

        t.origin(script)
        client = t.client()
        client.send(head(start=b"GET /patient/ HTTP/1.1"))
        client.end_sending()
        response = client.read_response()
        expect_same("body", response.body, b"ok")
        expect_same("interim", [each.status for each in response.interim], [100] if delay else [])
        check(client.ends(), "stays open")


@case("RFC 9112 §9.6: a client that closes while the origin works cancels its request", nginx="nginx gives up at once")
def _(t: Trial) -> None:
    t.origin(lambda c: (c.serve(), c.fill()))
    client = t.client()
    client.send(head(start=b"GET /patient/ HTTP/1.1"))
    check(eventually(lambda: t.main.requests), "nothing arrived")
    client.close()
    check(eventually(lambda: t.main.used[0].at_end, 3), "the connection upstream stays open")
