"""Routes whose requests several services share, and clients that stay with their share."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

from gateways import OwnGateway
from Rig.origins import Origin, answering
from suite import Trial, case, check, eventually, expect_same, expect_status

from .fields import answer

NO = "shares of httpware"

CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}", trustedProxies: [127.0.0.1] }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services:
  a: {{ baseUrl: "http://127.0.0.1:{a}" }}
  b: {{ baseUrl: "http://127.0.0.1:{b}" }}
chains:
  said: {{ middlewares: [{{ requestHeaders: {{ set: {{ X-Share: "{{service}}" }} }} }}] }}
  cached: {{ middlewares: [{{ httpCache: {{ }} }}] }}
routes:
  - {{ name: cached, match: {{ path: "/cached/**" }}, chain: cached, split: [{{ service: a }}, {{ service: b }}], sticky: {{ header: X-Stick }} }}
  - {{ name: keyed, match: {{ path: "/keyed/**" }}, split: [{{ service: a }}, {{ service: b }}], sticky: {{ hashKey: header.X-User }} }}
  - {{ name: drawn, match: {{ path: "/drawn/**" }}, split: [{{ service: a, weight: 3 }}, {{ service: b }}] }}
  - {{ name: shop, chain: said, split: [{{ service: a, weight: 1 }}, {{ service: b, weight: 1 }}], sticky: {{ cookie: shop, ttl: 1h }} }}
"""


class Gateway(OwnGateway):
    def __init__(self, t: Trial, folder: str, config: str = CONFIG):
        self.origins = {name: Origin() for name in "ab"}
        for name, origin in self.origins.items():
            t.at_end(origin.close)
            origin.begin(answering(answer(b"Cache-Control: max-age=60", content=name.encode())))
        super().__init__(t, folder, config, **{name: origin.port for name, origin in self.origins.items()})

    def shop(self, *cookies: str) -> tuple[str, str | None]:
        """The share that answers, and the cookie that the client is given."""
        fields = [f"Cookie: {'; '.join(cookies)}"] if cookies else []
        message = self.ask("/x", "GET", *fields)
        expect_status(message, 200)
        return message.body.decode(), message.get("set-cookie")


@case("split: a client stays by its cookie, which never goes upstream", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares")
    seen = set()
    for _ in range(12):
        share, given = gateway.shop()
        attributes = re.fullmatch(r"(shop=[\w-]{59}); Path=/; Max-Age=3600; HttpOnly; SameSite=Lax", given or "")
        check(attributes, "the cookie is", given)
        cookie = attributes.group(1)
        for _ in range(4):
            expect_same("the share and the cookie of the next requests", gateway.shop("x=1", cookie, "y=2"), (share, None))
        seen.add(share)
    expect_same("the shares of 12 clients", seen, {"a", "b"})
    requests = [request for origin in gateway.origins.values() for request in origin.requests]
    expect_same("cookies upstream", {request.get("cookie") for request in requests}, {None, "x=1; y=2"})
    expect_same("{service} upstream", {(request.get("x-share")) for request in requests}, {"a", "b"})
    secure = gateway.ask("/x", "GET", "X-Forwarded-Proto: https").get("set-cookie") or ""
    check(secure.endswith("; Secure"), "the cookie of an https client is", secure)


@case("RFC 9111 §5.2.2.7: a shared cache does not store a response that makes a client sticky", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares-stored")
    first = gateway.ask("/x")
    expect_same("Cache-Control with the cookie", first.all("cache-control"), ["max-age=60", "private"])
    cookie = (first.get("set-cookie") or "").split(";")[0]
    expect_same("Cache-Control without", gateway.ask("/x", "GET", f"Cookie: {cookie}").all("cache-control"), ["max-age=60"])
    expect_same("Cache-Control with the field", gateway.ask("/cached/x").all("cache-control"), ["max-age=60", "private"])


@case("split: an unsealed cookie is ignored, and the client is drawn again", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares-garbage")
    _, given = gateway.shop()
    good = (given or "").split(";")[0].removeprefix("shop=")
    for value in ("", "x", "A" * 59, good[:-1], good + "A", good[::-1], "a" * 4000, '"' + good[:-2] + '"'):
        _, again = gateway.shop(f"shop={value}", "z=3")
        check(again, "no new cookie after", value)
    _, again = gateway.shop(*["shop=x"] * 500)
    check(again, "no new cookie after 500 of them")
    check(all(request.get("cookie") in (None, "z=3") for o in gateway.origins.values() for request in o.requests), "one went upstream")


@case("split: weights decide, a hash keeps its share, and a cache separates the shares", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares-drawn")
    drawn = [gateway.ask("/drawn/x").body for _ in range(120)]
    check(60 <= drawn.count(b"a") <= 112, "of 120 requests, a with 3 of 4 got", drawn.count(b"a"))
    for user in range(10):
        shares = {gateway.ask("/keyed/x", "GET", f"X-User: u{user}").body for _ in range(3)}
        expect_same(f"the number of shares of user {user}", len(shares), 1)
    kept: dict[bytes, str] = {}
    for _ in range(40):
        message = gateway.ask("/cached/x")
        kept.setdefault(message.body, message.get("x-stick") or "")
    expect_same("the shares behind the cache", set(kept), {b"a", b"b"})
    for body, token in kept.items():
        message = gateway.ask("/cached/x", "GET", f"X-Stick: {token}")
        expect_same("the share of a token", (message.body, message.get("x-stick")), (body, None))
    upstream = [r for o in gateway.origins.values() for r in o.requests if r.target == "/cached/x"]
    expect_same("requests that the cache let pass", len(upstream), 2)
    for name in "ab":
        count = sum(1 for line in gateway.metrics() if line.startswith("httpware_requests_total") and f'service="{name}"' in line)
        check(count, "no metrics of service", name)


@case("split: a reload and an upgrade keep clients with their share, and weight 0 accepts no new clients", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares-reload")
    cookies: dict[str, str] = {}
    while len(cookies) < 2:
        share, given = gateway.shop()
        cookies[share] = (given or "").split(";")[0]
    gateway.file.write_text(gateway.file.read_text().replace("service: a, weight: 1 }, { service: b, weight: 1", "service: b, weight: 1 }, { service: a, weight: 0"))
    gateway.process.signal(signal.SIGHUP)
    check(eventually(lambda: "reloaded: " in gateway.process.log, 5), "no reload:", gateway.process.log)
    for share, cookie in cookies.items():
        expect_same("the share after the reload", gateway.shop(cookie), (share, None))
    expect_same("the shares of new clients", {gateway.shop()[0] for _ in range(12)}, {"b"})
    gateway.process.signal(signal.SIGUSR2)
    check(eventually(lambda: "takes over" in gateway.process.log, 20), "no upgrade:", gateway.process.log)
    successor = re.search(r"process (\d+) takes over", gateway.process.log)
    if successor:
        t.at_end(lambda: os.kill(int(successor.group(1)), signal.SIGTERM))
    for share, cookie in cookies.items():
        expect_same("the share after the upgrade", gateway.shop(cookie), (share, None))


@case("split: httpware services and the admin listener show the shares", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t, "shares-shown")
    splits = json.loads(gateway.ask("/v1/services", port=gateway.admin).body)["splits"]
    shop = next(split for split in splits if split["route"] == "shop")
    expect_same("the shares", shop["shares"], [{"service": "a", "weight": 1}, {"service": "b", "weight": 1}])
    expect_same("what keeps a client", shop["sticky"], "cookie shop for 1h")
    shown = subprocess.run(
        [t.setup.binary, "services", "--admin", f"127.0.0.1:{gateway.admin}"], capture_output=True, text=True, timeout=20)
    check(re.search(r"drawn +a +3 +75\.0 % +-", shown.stdout), "the table is", shown.stdout, shown.stderr)
