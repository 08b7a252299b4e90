"""Logins, over the wire: a small OpenID provider, a browser's cookies, and providers that lie, hang and flood."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from urllib.parse import parse_qs, urlsplit

from Rig.origins import OriginConnection
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from cases.access import Issuer, b64

NO = "a ware of httpware"
SECRET = "a secret of the wire tests, thirty-two bytes"
TIMEOUT = 0.6

CONFIG = """version: 1
log: {{ level: debug }}
listeners: {{ web: {{ bind: "127.0.0.1:{web}", trustedProxies: ["127.0.0.2"], chain: logged }} }}
services: {{ app: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
stores: {{ sessions: {{ disk: {{ path: "{folder}/sessions", maxSize: 64MiB }} }} }}
chains:
  logged: {{ postwares: [{{ accessLog: {{ output: "file:{folder}/access.log", fields: [Cookie, Set-Cookie, Authorization] }} }}] }}
  cookie: {{ middlewares: [{{ oidcLogin: {{ {common}, callback: /cookie/back, logout: /cookie/out }} }}] }}
  stored: {{ middlewares: [{{ oidcLogin: {{ {common}, callback: /stored/back, logout: /stored/out, store: sessions }} }}] }}
routes:
  - {{ match: {{ path: "/cookie/**" }}, service: app, chain: cookie }}
  - {{ match: {{ path: "/stored/**" }}, service: app, chain: stored }}
  - {{ match: {{ path: "/open/**" }}, service: app }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
"""
COMMON = """issuer: "http://127.0.0.1:{second}", clientId: app, clientSecret: "client-secret-1", cookie: {{ secret: "{secret}", name: sid }},
    claimsToHeaders: {{ sub: X-User }}, passToken: true, timeout: {timeout}ms"""

PAGE = ["Accept: text/html", "Sec-Fetch-Mode: navigate"]
SCRIPT = ["Accept: */*", "Sec-Fetch-Mode: cors"]


class Gateway:
    def __init__(self, t: Trial, workers: int = 2):
        self.t, self.workers, self.web, self.admin = t, workers, free_port(), free_port()
        self.folder = t.setup.place.subfolder("oidc-login")
        ports = t.setup.ports
        common = " ".join(COMMON.format(second=ports["second"], secret=SECRET, timeout=int(TIMEOUT * 1000)).split())
        (self.folder / "httpware.yaml").write_text(CONFIG.format(
            web=self.web, admin=self.admin, main=ports["main"], folder=self.folder, common=common))
        self.start()
        t.at_end(lambda: self.process.stop())

    def start(self) -> None:
        self.process: Process = self.t.setup.place.command(
            [self.t.setup.binary, "run", "-c", str(self.folder / "httpware.yaml"), "--workers", str(self.workers)], [self.web, self.admin])

    def ask(self, path: str, *fields: str, method: str = "GET", port: int = 0, source: str | None = None) -> Message:
        client = connect(("127.0.0.1", port or self.web), 10.0, source)
        self.t.clients.append(client)
        lines = [f"{method} {path} HTTP/1.1", "Host: app.example.test", *fields] + (["Content-Length: 0"] if method == "POST" else [])
        client.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        return client.read_response(method)


class Browser:
    """Keeps the cookies of one gateway."""

    def __init__(self, gateway: Gateway, *fields: str, source: str | None = None):
        self.gateway, self.fields, self.source, self.jar = gateway, fields, source, {}

    def line(self) -> list[str]:
        return ["Cookie: " + "; ".join(f"{name}={value}" for name, value in self.jar.items())] if self.jar else []

    def ask(self, path: str, *fields: str, method: str = "GET") -> Message:
        response = self.gateway.ask(path, *(fields or PAGE), *self.fields, *self.line(), method=method, source=self.source)
        for line in response.all("Set-Cookie"):
            name, _, rest = line.partition("=")
            value, _, attributes = rest.partition(";")
            self.jar.pop(name, None)
            if "Max-Age=0;" not in attributes:
                self.jar[name] = value
        return response

    def log_in(self, provider: Provider, path: str) -> Message:
        response = self.ask(path)
        expect_status(response, 302)
        return self.ask(provider.answer_of_user(response.get("Location")))


class Provider:
    """Answers as OpenID Connect Core 1.0 says; each login is for the user `sub`."""

    def __init__(self, t: Trial, folder):
        self.base = f"http://127.0.0.1:{t.setup.ports['second']}"
        self.issuer, self.codes, self.calls, self.refresh_tokens = Issuer(folder), {}, [], {}
        self.signer = self.issuer
        self.lock, self.lifetime, self.more, self.claims, self.delay = threading.Lock(), 300, {}, {}, 0.0
        t.origin(self.serve, "second")

    def metadata(self) -> dict:
        return {"issuer": self.base, "authorization_endpoint": f"{self.base}/authorize", "token_endpoint": f"{self.base}/token",
                "jwks_uri": f"{self.base}/keys", "end_session_endpoint": f"{self.base}/logout"} | self.more

    def answer_of_user(self, location: str, sub: str = "ada") -> str:
        """Plays the page of the provider: the path to which it sends the browser back."""
        check(location.startswith(f"{self.base}/authorize?"), location)
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        expect_same("response_type", query["response_type"], "code")
        expect_same("method", query["code_challenge_method"], "S256")
        code = f"code-{len(self.codes)}"
        self.codes[code] = query | {"sub": sub}
        return f"{urlsplit(query['redirect_uri']).path}?code={code}&state={query['state']}"

    def id_token(self, login: dict) -> str:
        now = int(time.time())
        return self.signer.token(**({"iss": self.base, "aud": "app", "sub": login["sub"], "nonce": login["nonce"], "iat": now,
                                     "exp": now + self.lifetime} | self.claims))

    def token(self, request: Message) -> tuple[int, dict]:
        expect_same("credentials", request.get("Authorization"), "Basic " + base64.b64encode(b"app:client-secret-1").decode())
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        with self.lock:
            self.calls.append(form["grant_type"])
            if form["grant_type"] == "refresh_token":
                login = self.refresh_tokens.pop(form["refresh_token"], None)
            else:
                login = self.codes.pop(form["code"], None)
                if login is not None:
                    challenge = b64(hashlib.sha256(form["code_verifier"].encode()).digest())
                    check(login["code_challenge"] == challenge and login["redirect_uri"] == form["redirect_uri"], form)
            if login is None:
                return 400, {"error": "invalid_grant"}
            refresh = f"refresh-token-{len(self.calls)}"
            self.refresh_tokens[refresh] = login
        return 200, {"access_token": f"access-token-{len(self.calls)}", "token_type": "Bearer", "expires_in": self.lifetime,
                     "refresh_token": refresh, "id_token": self.id_token(login)}

    def serve(self, connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            if request.target == "/.well-known/openid-configuration":
                status, answer = 200, self.metadata()
            elif request.target == "/keys":
                status, answer = 200, {"keys": [self.issuer.jwk()]}
            else:
                if self.delay:
                    pause(self.delay, Why.SLOW)
                status, answer = self.token(request)
            body = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.send(head.encode() + body)


@case("oidcLogin: a session begins with a login, outlasts a restart, and ends with a logout", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    provider = Provider(t, g.folder)
    for place in ("cookie", "stored"):
        browser = Browser(g)
        expect_status(browser.ask(f"/{place}/a", *SCRIPT), 401)
        expect_status(browser.ask(f"/{place}/a", *PAGE, method="POST"), 401)
        back = browser.log_in(provider, f"/{place}/a?b=c")
        expect_status(back, 303)
        expect_same("the page", back.get("Location"), f"/{place}/a?b=c")
        expect_same("cookies", list(browser.jar), ["sid"])
        t.main.requests.clear()
        expect_status(browser.ask(f"/{place}/a", *SCRIPT, "X-User: root", "x_user: root", "Authorization: Bearer forged"), 200)
        g.process.stop()
        g.start()
        for _ in range(3):
            expect_status(browser.ask(f"/{place}/a", *PAGE), 200)
        expect_same("requests", len(t.main.requests), 4)
        for request in t.main.requests:
            expect_same("X-User", request.all("X-User"), ["ada"])
            check(not request.has("Cookie") and not request.has("x_user"), request)
            check((request.get("Authorization") or "").startswith("Bearer access-token-"), request)
        expect_status(browser.ask(f"/{place}/out", *SCRIPT, "Sec-Fetch-Site: cross-site", method="POST"), 403)
        copy = dict(browser.jar)
        out = browser.ask(f"/{place}/out", *PAGE, "Sec-Fetch-Site: same-origin", method="POST")
        expect_status(out, 303)
        check(out.get("Location").startswith(f"{provider.base}/logout?client_id=app&id_token_hint="), out)
        expect_same("cookies", browser.jar, {})
        browser.jar = copy
        expect_status(browser.ask(f"/{place}/a", *SCRIPT), 401)
    log = (g.folder / "access.log").read_text() + g.process.log
    for secret in ("access-token-", "refresh-token-", "client-secret-1", SECRET, *[value[:40] for value in copy.values()]):
        check(secret not in log, f"{secret} is in a log")


@case("oidcLogin: if a trusted proxy reports TLS, cookies begin with __Host- and are secure", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    provider = Provider(t, g.folder)
    browser = Browser(g, "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example.test", source="127.0.0.2")
    first = browser.ask("/cookie/a")
    check("redirect_uri=https%3A%2F%2Fshop.example.test%2Fcookie%2Fback" in first.get("Location"), first)
    back = browser.ask(provider.answer_of_user(first.get("Location")))
    expect_status(back, 303)
    check(all(line.startswith("__Host-sid") and line.endswith("; HttpOnly; SameSite=Lax; Secure") for line in back.all("Set-Cookie")), back)
    expect_status(browser.ask("/cookie/a", *SCRIPT), 200)
    # A client that is not a trusted proxy may send any value.
    expect_status(Browser(g, "X-Forwarded-Proto: https").ask("/cookie/a", *SCRIPT, *browser.line()), 401)


@case("oidcLogin: truncated, changed, swapped and replayed cookies are refused, and no request goes upstream", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    provider = Provider(t, g.folder)
    browser, other = Browser(g), Browser(g)
    browser.log_in(provider, "/cookie/a")
    other.log_in(provider, "/stored/a")
    good = browser.jar["sid"]
    login = Browser(g)
    page = provider.answer_of_user(login.ask("/cookie/a").get("Location"))
    begun = dict(login.jar)
    bad = [good[:-1], good[: len(good) // 2], good[:1], "", "2" + good[1:], good[:50] + ("A" if good[50] != "A" else "B") + good[51:],
           other.jar["sid"], "1" + list(begun.values())[0], "x" * 5000, good + good[1:]]
    t.main.requests.clear()
    for value in bad:
        expect_status(g.ask("/cookie/a", *SCRIPT, f"Cookie: sid={value}"), 401)
    expect_status(g.ask("/cookie/a", *SCRIPT, f"Cookie: sid={good}; sid={good}"), 401)
    expect_status(g.ask("/stored/a", *SCRIPT, f"Cookie: sid={good}"), 401)
    # Another browser, then this one, then this one again.
    expect_status(g.ask(page, *PAGE), 302)
    expect_status(login.ask(page), 303)
    login.jar = begun
    expect_status(login.ask(page), 302)
    expect_same("codes", provider.calls.count("authorization_code"), 3)
    expect_same("requests upstream", t.main.requests, [])


@case("oidcLogin: many requests of a session with expired tokens renew them once", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    provider = Provider(t, g.folder)
    for place in ("cookie", "stored"):
        browser = Browser(g)
        provider.lifetime, provider.delay = 1, 0.0
        browser.log_in(provider, f"/{place}/a")
        provider.calls.clear()
        provider.lifetime, provider.delay = 300, 0.2
        check(eventually(lambda: browser.ask(f"/{place}/a", *SCRIPT).status == 200 and len(provider.calls) > 0, 5), provider.calls)
        expect_same("calls", provider.calls, ["refresh_token"])
    # All at once, on both loops, with the cookie before.
    provider.lifetime, provider.delay = 1, 0.0
    browser = Browser(g)
    browser.log_in(provider, "/cookie/a")
    provider.calls.clear()
    provider.lifetime, provider.delay = 300, 0.3
    line, statuses = browser.line(), []
    end = time.monotonic() + 1.1
    check(eventually(lambda: time.monotonic() > end, 3))
    threads = [threading.Thread(target=lambda: statuses.append(g.ask("/cookie/a", *SCRIPT, *line).status)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect_same("statuses", set(statuses), {200})
    expect_same("calls", provider.calls, ["refresh_token"])


HOSTILE = {
    "nothing": b"",
    "a reset": None,
    "10 MB": b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000,
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{main}/open/evil\r\nContent-Length: 0\r\n\r\n",
    "no JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<ht>",
    "another issuer": b"HTTP/1.1 200 OK\r\nContent-Length: 93\r\n\r\n"
    + b'{"issuer":"http://evil.test","authorization_endpoint":"http://evil.test/a","jwks_uri":"x"}   ',
    "500": b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x00\x00" * 20,
}


@case("oidcLogin: the gateway starts without its provider, refuses with 503, retries rarely, and recovers", nginx=NO)
def _(t: Trial) -> None:
    for name, answer in HOSTILE.items():
        calls = []

        def script(connection: OriginConnection) -> None:
            request = connection.serve()
            calls.append(request.target)
            if answer is None:
                connection.reset()
            elif answer:
                connection.send(answer.replace(b"{main}", str(t.setup.ports["main"]).encode()))
            else:
                connection.read_request()  # hangs until the gateway gives up

        t.origin(script, "second")
        g = Gateway(t, workers=1)
        t.main.requests.clear()
        begun = time.monotonic()
        for _ in range(20):
            response = g.ask("/cookie/a", *PAGE)
            expect_status(response, 503)
            check(response.has("Retry-After") and not response.has("Location"), name, response)
        expect_status(g.ask("/open/a"), 200)
        expect_status(g.ask("/cookie/a", *SCRIPT), 401)
        check(time.monotonic() - begun < 5, name)
        check(len(calls) <= 3, name, calls)
        check(all(request.target == "/open/a" for request in t.main.requests), name, t.main.requests)
        provider = Provider(t, g.folder)
        check(eventually(lambda: g.ask("/cookie/a", *PAGE).status == 302, 10), name)
        expect_status(Browser(g).log_in(provider, "/cookie/a"), 303)
        g.process.stop()


@case("oidcLogin: ID tokens with another issuer, client, nonce, key or time are refused", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    provider = Provider(t, g.folder)
    now = int(time.time())
    good = provider.issuer
    (g.folder / "other").mkdir()
    other = Issuer(g.folder / "other")
    for claims, issuer in [({"iss": "http://evil.test"}, good), ({"aud": "other"}, good), ({"nonce": "x"}, good), ({"exp": now - 61}, good),
                           ({"iat": now + 120}, good), ({"azp": "other"}, good), ({"at_hash": "x"}, good), ({}, other)]:
        provider.claims = claims
        provider.signer = issuer
        browser = Browser(g)
        back = browser.log_in(provider, "/cookie/a")
        check(back.status == 502, claims, back)
        check(not back.has("Set-Cookie"), claims, back)
        expect_status(browser.ask("/cookie/a", *SCRIPT), 401)
    provider.claims, provider.signer = {"iat": now + 30}, good
    expect_status(Browser(g).log_in(provider, "/cookie/a"), 303)
    expect_same("requests upstream", t.main.requests, [])
