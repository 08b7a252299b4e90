"""External authorization, over the wire: small servers that play the exchanges which Authelia, oauth2-proxy, the examples for nginx's
`auth_request` and Traefik's forwardAuth document, and hostile ones."""

from __future__ import annotations

import json
import threading
import time
from urllib.parse import parse_qs, quote, urlsplit

from Rig.origins import OriginConnection
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message, Wire
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

NO = "a ware of httpware"
TIMEOUT = 0.6

CONFIG = """version: 1
log: {{ level: debug }}
listeners:
  web: {{ bind: "127.0.0.1:{web}", trustedProxies: ["127.0.0.2"] }}
services:
  app: {{ baseUrl: "http://127.0.0.1:{main}" }}
  login: {{ baseUrl: "http://127.0.0.1:{second}" }}
chains:
  authelia: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/api/authz/forward-auth", copy: [Remote-User, Remote-Groups, Remote-Email, Remote-Name], timeout: {timeout} }} }}] }}
  authrequest: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/api/authz/auth-request", copy: [Remote-User], signIn: "https://auth.example.test/?rd={{request.url}}", timeout: {timeout} }} }}] }}
  oauth2: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/oauth2/auth", copy: [X-Auth-Request-User, X-Auth-Request-Email], signIn: "/oauth2/sign_in?rd={{request.url}}", timeout: {timeout} }} }}] }}
  nginx: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/auth", timeout: {timeout} }} }}] }}
  traefik: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/verify", headers: [Authorization, X-Tenant], copy: [X-Auth-User, X-Secret], method: POST, body: 1KiB, timeout: {timeout} }} }}] }}
  kept: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/kept", copy: [Remote-User], cache: {{}}, timeout: {timeout} }} }}] }}
  open: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/open", copy: [Remote-User], failOpen: true, timeout: {timeout} }} }}] }}
  hostile: {{ middlewares: [{{ extAuthz: {{ url: "{auth}/hostile", status: 502, timeout: {timeout} }} }}], postwares: [timeLog] }}
routes:
  - {{ match: {{ path: "/oauth2/**" }}, service: login }}
  - {{ match: {{ path: "/authelia/**" }}, service: app, chain: authelia }}
  - {{ match: {{ path: "/authrequest/**" }}, service: app, chain: authrequest }}
  - {{ match: {{ path: "/app/**" }}, service: app, chain: oauth2 }}
  - {{ match: {{ path: "/nginx/**" }}, service: app, chain: nginx }}
  - {{ match: {{ path: "/traefik/**" }}, service: app, chain: traefik }}
  - {{ match: {{ path: "/kept/**" }}, service: app, chain: kept }}
  - {{ match: {{ path: "/open/**" }}, service: app, chain: open }}
  - {{ match: {{ path: "/hostile/**" }}, service: app, chain: hostile }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
"""

PAGE = ["Accept: text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Mode: navigate"]
SCRIPT = ["Accept: */*", "Sec-Fetch-Mode: cors"]


class Gateway:
    """A process of the case's own, before the origin `main` and the authorization server `second`."""

    def __init__(self, t: Trial):
        self.t, self.web, self.admin = t, free_port(), free_port()
        folder = t.setup.place.subfolder("ext-authz")
        ports = t.setup.ports
        (folder / "httpware.yaml").write_text(CONFIG.format(
            web=self.web, admin=self.admin, main=ports["main"], second=ports["second"],
            auth=f"http://127.0.0.1:{ports['second']}", timeout=f"{int(TIMEOUT * 1000)}ms"))
        self.process: Process = t.setup.place.command(
            [t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [self.web, self.admin])
        t.at_end(self.process.stop)

    def client(self, port: int = 0, source: str | None = None) -> Wire:
        client = connect(("127.0.0.1", port or self.web), 5.0, source)
        self.t.clients.append(client)
        return client

    def ask(self, path: str, *fields: str, method: str = "GET", body: bytes = b"", source: str | None = None) -> Message:
        lines = [f"{method} {path} HTTP/1.1", "Host: app.example.test", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        client = self.client(source=source)
        client.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return client.read_response(method)

    def records(self) -> str:
        client = self.client(self.admin)
        client.send(f"GET /v1/requests HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\n\r\n".encode())
        return client.read_response("GET").body.decode()

    def memory(self) -> int:
        """Resident memory in KiB."""
        with open(f"/proc/{self.process.popen.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def serving(answers):
    """Answers each request by what `answers` says: (status, fields, body)."""

    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            status, fields, body = answers(request)
            head = [f"HTTP/1.1 {status} X", *fields] + ([] if status == 204 else [f"Content-Length: {len(body)}"])
            connection.send(("\r\n".join(head) + "\r\n\r\n").encode() + (b"" if request.method == "HEAD" else body))

    return script


def cookies(request: Message) -> dict[str, str]:
    pairs = [pair.strip().split("=", 1) for pair in (request.get("Cookie") or "").split(";") if "=" in pair]
    return {name: value for name, value in pairs}


# Authelia: /api/authz/forward-auth reads X-Forwarded-Method, -Proto, -Host and -Uri, and redirects pages to its portal; scripts get 401.
# Beside the Location of both it sends a short HTML page. /api/authz/auth-request reads X-Original-URL and X-Original-Method instead, and
# never redirects.

SESSION = {"ada-session": ("ada", "admins,dev", "ada@example.test", "Ada")}


def authelia(request: Message):
    if request.target == "/api/authz/forward-auth":
        method, scheme, host, uri = (request.get(f"X-Forwarded-{name}") for name in ("Method", "Proto", "Host", "Uri"))
        check(method and scheme and host and uri, "a field that Authelia requires is missing:", request)
        url = f"{scheme}://{host}{uri}"
    else:
        url, method = request.get("X-Original-URL"), request.get("X-Original-Method")
        check(url and method, "a field that Authelia requires is missing:", request)
    user = SESSION.get(cookies(request).get("authelia_session", ""))
    if user is None:
        location = f"https://auth.example.test/?rd={quote(url, safe='')}&rm={method}"
        isPage = request.get("X-Requested-With") != "XMLHttpRequest" and "text/html" in (request.get("Accept") or "")
        isRedirecting = isPage and request.target.endswith("/forward-auth")
        status = (302 if method in ("GET", "HEAD", "OPTIONS") else 303) if isRedirecting else 401
        return status, [f"Location: {location}", "Content-Type: text/html; charset=utf-8"], f'<a href="{location}">{status}</a>'.encode()
    if "/forbidden" in url:
        return 403, ["Content-Type: text/plain; charset=utf-8"], b"403 Forbidden"
    names = ["Remote-User", "Remote-Groups", "Remote-Email", "Remote-Name"]
    return 200, [f"{name}: {value}" for name, value in zip(names, user)], b"200 OK"


@case("extAuthz: Authelia's forward-auth endpoint works as documented", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    second = t.origin(serving(authelia), "second")
    page = g.ask("/authelia/a?b=c&d", *PAGE)
    expect_status(page, 302)
    target = "http://app.example.test/authelia/a?b=c&d"
    expect_same("the portal", page.get("Location"), f"https://auth.example.test/?rd={quote(target, safe='')}&rm=GET")
    check(b"<a href" in page.body and page.get("Content-Type") == "text/html; charset=utf-8", page)
    expect_status(g.ask("/authelia/a", *PAGE, method="POST", body=b"x=y"), 303)
    expect_status(g.ask("/authelia/a", *SCRIPT), 401)
    expect_status(g.ask("/authelia/a", *PAGE, "X-Requested-With: XMLHttpRequest"), 401)
    check(not t.main.requests, "a request without a session reached the origin server:", t.main.requests)
    forged = ["Remote-User: root", "remote_user: root", "Remote-Groups: root"]
    expect_status(g.ask("/authelia/a", *PAGE, "Cookie: authelia_session=ada-session", *forged), 200)
    (served,) = t.main.requests
    expect_same("the user", served.all("Remote-User"), ["ada"])
    expect_same("the groups", served.all("Remote-Groups"), ["admins,dev"])
    check(not served.has("remote_user"), served)
    expect_status(g.ask("/authelia/forbidden", *PAGE, "Cookie: authelia_session=ada-session"), 403)
    expect_same("where the client is", {r.get("X-Forwarded-For") for r in second.requests}, {"127.0.0.1"})
    check("ada-session" not in g.process.log + g.records(), "the session is in the log or the records")


@case("extAuthz: behind a trusted proxy, Authelia sees the client's own scheme, host and address", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    second = t.origin(serving(authelia), "second")
    fields = ["X-Forwarded-Proto: https", "X-Forwarded-Host: public.example.test", "X-Forwarded-For: 192.0.2.7"]
    for source, url, addresses in [
        ("127.0.0.2", "https://public.example.test/authelia/a", "192.0.2.7, 127.0.0.2"),
        ("127.0.0.3", "http://app.example.test/authelia/a", "127.0.0.3"),
    ]:
        page = g.ask("/authelia/a", *PAGE, *fields, source=source)
        expect_same("the URL to return to", parse_qs(urlsplit(page.get("Location")).query)["rd"], [url])
        expect_same("the addresses", second.requests[-1].get("X-Forwarded-For"), addresses)


@case("extAuthz: Authelia's auth-request endpoint with signIn redirects pages only", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin(serving(authelia), "second")
    page = g.ask("/authrequest/a%20b?c=d&e=%26", *PAGE)
    expect_status(page, 302)
    url = "http://app.example.test/authrequest/a%20b?c=d&e=%26"
    expect_same("the URL to return to", parse_qs(urlsplit(page.get("Location")).query), {"rd": [url]})
    check(page.get("Location").startswith("https://auth.example.test/?rd="), page)
    expect_status(g.ask("/authrequest/a", *PAGE, method="POST", body=b"a"), 303)
    expect_status(g.ask("/authrequest/a", *SCRIPT), 401)
    expect_status(g.ask("/authrequest/a", *PAGE, "Cookie: authelia_session=ada-session"), 200)
    expect_status(g.ask("/authrequest/forbidden", *PAGE, "Cookie: authelia_session=ada-session"), 403)


# oauth2-proxy: /oauth2/auth answers 202 or 401, with X-Auth-Request-* (--set-xauthrequest); it renews its cookie on the way.
# /oauth2/sign_in?rd=URL begins to sign in.


def oauth2_proxy(request: Message):
    path = urlsplit(request.target)
    if path.path == "/oauth2/auth":
        session = cookies(request).get("_oauth2_proxy")
        if session not in ("old", "new"):
            return 401, ["Content-Type: text/plain; charset=utf-8"], b"Unauthorized\n"
        renewed = ["Set-Cookie: _oauth2_proxy=new; Path=/; HttpOnly", "Set-Cookie: _oauth2_proxy_1=more; Path=/"] if session == "old" else []
        return 202, ["Gap-Auth: ada@example.test", "X-Auth-Request-User: ada", "X-Auth-Request-Email: ada@example.test", *renewed], b"Authenticated"
    check(path.path == "/oauth2/sign_in", "an unknown endpoint:", request)
    return 200, ["Content-Type: text/html"], ("sign in and return to " + parse_qs(path.query)["rd"][0]).encode()


@case("extAuthz: oauth2-proxy's auth endpoint, its renewed cookies and its sign-in page work as documented", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin(serving(oauth2_proxy), "second")
    page = g.ask("/app/a?b=c&d=e%2Bf", *PAGE)
    expect_status(page, 302)
    expect_same("it is not kept", page.get("Cache-Control"), "no-store")
    signed = g.ask(page.get("Location"), *PAGE)
    expect_same("the page", signed.body, b"sign in and return to http://app.example.test/app/a?b=c&d=e%2Bf")
    refused = g.ask("/app/a", *SCRIPT)
    expect_status(refused, 401)
    expect_same("its content", refused.body, b"Unauthorized\n")
    passed = g.ask("/app/a", *PAGE, "Cookie: _oauth2_proxy=old; other=1", "X-Auth-Request-Email: root@example.test")
    expect_status(passed, 200)
    expect_same("the cookies", [c.split(";")[0] for c in passed.all("Set-Cookie")], ["_oauth2_proxy=new", "_oauth2_proxy_1=more"])
    expect_same("the mail address", t.main.requests[-1].all("X-Auth-Request-Email"), ["ada@example.test"])
    check(not t.main.requests[-1].has("Gap-Auth"), t.main.requests[-1])
    check(not g.ask("/app/a", "Cookie: _oauth2_proxy=new").has("Set-Cookie"), "a cookie that was not renewed")


# nginx's auth_request: the examples set X-Original-URI and send no content; 2xx allows, 401 with its challenge and 403 deny.


def subrequest(request: Message):
    check(request.method == "GET" and not request.body and not request.has("Content-Length"), "content was sent:", request)
    if request.get("Authorization") != "Basic YWRhOng=":
        return 401, ['WWW-Authenticate: Basic realm="closed"'], b""
    return (403, [], b"") if request.get("X-Original-URI").startswith("/nginx/admin") else (204, [], b"")


@case("extAuthz: a server for nginx's auth_request works as documented", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    second = t.origin(serving(subrequest), "second")
    refused = g.ask("/nginx/a", method="POST", body=b"content")
    expect_status(refused, 401)
    expect_same("the challenge", refused.get("WWW-Authenticate"), 'Basic realm="closed"')
    ada = "Authorization: Basic YWRhOng="
    expect_status(g.ask("/nginx/admin?a", ada), 403)
    expect_same("the URI", second.requests[-1].get("X-Original-URI"), "/nginx/admin?a")
    expect_status(g.ask("/nginx/a", ada, method="POST", body=b"content"), 200)
    expect_same("the content", t.main.requests[-1].body, b"content")
    check(not second.faults, second.faults)


# Traefik's forwardAuth: X-Forwarded-*, authRequestHeaders, authResponseHeaders and forwardBody with maxBodySize.


@case("extAuthz: a server for Traefik's forwardAuth works as documented, content included", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)

    def verify(request: Message):
        if request.get("X-Tenant") == "away":
            return 307, ["Location: https://login.example.test/", "Set-Cookie: state=1", "Set-Cookie: nonce=2"], b""
        return 200, [f"X-Auth-User: {request.get('X-Tenant')}", "X-Other: no"], b""

    second = t.origin(serving(verify), "second")
    body = b'{"a": 1}'
    passed = g.ask("/traefik/a?b", "X-Tenant: t1", "Cookie: c=d", "X-Secret: forged", "Content-Type: application/json", method="PUT", body=body)
    expect_status(passed, 200)
    asked, served = second.requests[-1], t.main.requests[-1]
    expect_same("what was asked", [asked.method, asked.target, asked.body, asked.get("Content-Type")], ["POST", "/verify", body, "application/json"])
    expect_same("the facts", [asked.get(f"X-Forwarded-{n}") for n in ("Method", "Proto", "Host", "Uri", "For")],
                ["PUT", "http", "app.example.test", "/traefik/a?b", "127.0.0.1"])
    check(not asked.has("Cookie") and not asked.has("X-Secret"), asked)
    expect_same("the user", served.all("X-Auth-User"), ["t1"])
    check(not served.has("X-Secret") and not served.has("X-Other") and served.body == body, served)
    away = g.ask("/traefik/a", "X-Tenant: away")
    expect_status(away, 307)
    expect_same("its fields", [away.get("Location"), away.all("Set-Cookie")], ["https://login.example.test/", ["state=1", "nonce=2"]])
    count = len(second.requests)
    expect_status(g.ask("/traefik/a", "X-Tenant: t1", method="POST", body=b"a" * 1025), 413)
    expect_same("questions", len(second.requests), count)


# Memory


@case("extAuthz: an answer is cached for the time that it states, for its own client only", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)

    def kept(request: Message):
        name = (request.get("Authorization") or "").replace("Bearer ", "")
        status = 403 if name == "mallory" else 200
        return status, [f"Remote-User: {name}", "Cache-Control: " + ("no-store" if name == "eve" else "private, max-age=60")], name.encode()

    second = t.origin(serving(kept), "second")
    for _ in range(3):
        for name, status in [("ada", 200), ("bob", 200), ("mallory", 403), ("eve", 200)]:
            response = g.ask("/kept/a", f"Authorization: Bearer {name}", "Remote-User: root")
            expect_status(response, status)
            if status == 200:
                expect_same("the user", t.main.requests[-1].all("Remote-User"), [name])
            else:
                expect_same("the refusal", response.body, b"mallory")
    asked = [r.get("Authorization").split()[1] for r in second.requests]
    expect_same("questions", asked, ["ada", "bob", "mallory", "eve", "eve", "eve"])
    expect_status(g.ask("/kept/b", "Authorization: Bearer ada"), 200)
    expect_status(g.ask("/kept/a", "Authorization: Bearer ada", method="DELETE"), 200)
    expect_same("questions", len(second.requests), 8)


@case("extAuthz: concurrent requests share one call", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)

    def slow(_: Message):
        pause(0.3, Why.SLOW)
        return 200, [], b""

    second = t.origin(serving(slow), "second")
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(g.ask("/nginx/a", "Authorization: a").status)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect_same("statuses", statuses, [200] * 10)
    expect_same("questions", len(second.requests), 1)


# Hostile servers


def endless(first: bytes, piece: bytes):
    """Sends a beginning, then the same piece for ever."""

    def script(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(first)
        end = time.monotonic() + 5
        while time.monotonic() < end and connection.send(piece):
            pass

    return script


def once(response: bytes, bytewise: float = 0.0):
    """Sends this and closes; or a byte at a time."""

    def script(connection: OriginConnection) -> None:
        connection.serve()
        if not bytewise:
            connection.send(response)
            return
        for index in range(len(response)):
            if not connection.send(response[index:index + 1]):
                return
            pause(bytewise, Why.SLOW)

    return script


def silent(connection: OriginConnection) -> None:
    connection.serve()
    connection.is_readable(5)


HEAD = b"HTTP/1.1 200 OK\r\n"
HOSTILE = {
    "an endless head": endless(HEAD, b"X-A: " + b"a" * 1000 + b"\r\n"),
    "an endless field": endless(HEAD + b"X-A: ", b"a" * 10_000),
    "an endless status line": endless(b"HTTP/1.1 200 ", b"a" * 10_000),
    "endless content": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"2710\r\n" + b"a" * 10_000 + b"\r\n"),
    "content until it closes": endless(HEAD + b"\r\n", b"a" * 10_000),
    "a huge length": endless(HEAD + b"Content-Length: 99999999999\r\n\r\n", b"a" * 10_000),
    "an endless chunk extension": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 10_000),
    "endless refusal": endless(b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"2710\r\n" + b"a" * 10_000 + b"\r\n"),
    "a storm of 1xx": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * 50),
    "a storm of 100": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
    "a byte at a time": once(HEAD + b"Content-Length: 0\r\n\r\n", 0.1),
    "silence": silent,
    "a close at once": once(b""),
    "a close in the head": once(b"HTTP/1.1 200 OK\r\nContent-"),
    "a close in the content": once(HEAD + b"Content-Length: 10\r\n\r\nabc"),
    "no HTTP": once(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "two lengths": once(HEAD + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n"),
    "a switch of protocols": once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "a status of 600": once(b"HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n"),
    "304": once(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "a huge Set-Cookie": once(HEAD + b"Set-Cookie: a=" + b"b" * 1_000_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "100,000 fields": once(HEAD + b"A: b\r\n" * 100_000 + b"\r\n"),
}


@case("extAuthz: with a hostile server each request is refused in time and in bounded memory, with the reason in the record", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_status(g.ask("/nothing"), 404)
    before = g.memory()
    for name, script in HOSTILE.items():
        t.origin(script, "second")
        start = time.monotonic()
        response = g.ask("/hostile/" + quote(name))
        took = time.monotonic() - start
        check(response.status == 502, name, response)
        expect_same(name, json.loads(response.body)["detail"], "the authorization server gave no decision")
        check(took < TIMEOUT + 1, name, "took", took)
    check(not t.main.requests, "a request reached the origin server:", t.main.requests)
    grown = g.memory() - before
    check(grown < 24 << 10, f"{grown} KiB more memory")
    records = g.records()
    check(records.count("no decision: ") >= len(HOSTILE), records)
    check(eventually(lambda: g.process.log.count("extAuthz: no decision from ") >= len(HOSTILE)), g.process.log[-2000:])


@case("extAuthz: a redirect of the server to itself goes to the client and is not followed", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    second = t.origin(serving(lambda r: (302, [f"Location: http://127.0.0.1:{t.setup.ports['second']}{r.target}"], b"")), "second")
    expect_status(g.ask("/hostile/a"), 302)
    expect_same("questions", len(second.requests), 1)


@case("extAuthz: framing fields of an answer are never passed on", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin(once(b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "second")
    refused = g.ask("/hostile/a")
    expect_status(refused, 403)
    expect_same("the content", [refused.body, refused.get("Content-Length")], [b"abc", "3"])
    check(not refused.has("X-Hop") and not refused.has("Keep-Alive") and not refused.has("Transfer-Encoding"), refused)
    t.origin(serving(lambda _: (403, [], b"abc")), "second")
    head = g.ask("/hostile/a", method="HEAD")
    expect_same("HEAD", [head.status, head.body], [403, b""])


@case("extAuthz: failOpen passes requests without an answer, and removes a forged user", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin(once(b""), "second")
    expect_status(g.ask("/open/a", "Remote-User: root", "Remote_User: root"), 200)
    check(not t.main.requests[0].has("Remote-User") and not t.main.requests[0].has("Remote_User"), t.main.requests[0])
    t.origin(serving(lambda _: (403, [], b"")), "second")
    expect_status(g.ask("/open/a"), 403)


@case("extAuthz: WebSockets and requests with a body are checked before anything goes upstream", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    t.origin(serving(subrequest), "second")
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    expect_status(g.ask("/nginx/a", *upgrade), 401)
    check(not t.main.requests, t.main.requests)
