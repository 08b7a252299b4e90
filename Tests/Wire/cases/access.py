"""Access: keys, passwords, tokens and introspection, over the wire."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import signal
import subprocess
import threading
import time

from Rig.origins import OriginConnection
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message, Wire
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

NO = "wares of httpware"
SECRET = "a secret of the wire tests, thirty-two bytes"
API_KEY = "an-api-key-of-the-wire-tests"
# htpasswd -nbBC 13 ada "correct horse": more than half a second of work. htpasswd -nbBC 5 bob "battery staple"
USERS = """ada:$2y$13$rfV3kNm/8nozvkwBhbfdFeWr4EQdMHhMILhbFB6ThMvORJKzy2h.a
bob:$2y$05$cYlmd0dSDchY3OwEzVjKFuaw5qsGzthjMd.eCO3PP0PgpKu99ZnTa
"""
ADA = base64.b64encode(b"ada:correct horse").decode()
BOB = base64.b64encode(b"bob:battery staple").decode()

CONFIG = """version: 1
log: {{ level: debug }}
listeners:
  web: {{ bind: "127.0.0.1:{web}", paths: lenient, chain: logged }}
  proxy: {{ bind: "127.0.0.1:{proxy}", mode: forward, forward: {{ connectPorts: [{main}], denyPrivate: false }}, chain: proxied }}
services:
  origin: {{ baseUrl: "http://127.0.0.1:{main}" }}
chains:
  logged: {{ postwares: [{{ accessLog: {{ output: "file:{folder}/access.log", fields: [Authorization, Cookie, X-API-Key, WWW-Authenticate] }} }}, timeLog] }}
  proxied: {{ middlewares: [{{ basicAuth: {{ usersFile: users }} }}] }}
  secret: {{ middlewares: [{{ jwt: {{ key: "{secret}", algorithms: [HS256], claimsToHeaders: {{ sub: X-User }}, require: {{ scope: [read] }} }} }}, {{ requestHeaders: {{ set: {{ X-Scope: "{{jwt.scope}}" }} }} }}] }}
  fetched: {{ middlewares: [{{ jwt: {{ jwksUrl: "http://127.0.0.1:{second}/keys", jwksTtl: 10s }} }}] }}
  discovered: {{ middlewares: [{{ jwt: {{ issuer: "http://127.0.0.1:{second}" }} }}] }}
  keyed: {{ middlewares: [{{ apiKey: {{ keysFile: keys }} }}] }}
  asked: {{ middlewares: [{{ apiKey: {{ keysFile: keys, in: query, name: zugang }} }}] }}
  people: {{ middlewares: [{{ basicAuth: {{ usersFile: users, realm: people }} }}] }}
  opaque: {{ middlewares: [{{ introspect: {{ url: "http://127.0.0.1:{second}/introspect", clientId: gateway, clientSecret: introspection-secret }} }}] }}
routes:
  - {{ match: {{ path: "/secret/**" }}, listener: web, service: origin, chain: secret }}
  - {{ match: {{ path: "/fetched/**" }}, listener: web, service: origin, chain: fetched }}
  - {{ match: {{ path: "/discovered/**" }}, listener: web, service: origin, chain: discovered }}
  - {{ match: {{ path: "/keyed/**" }}, listener: web, service: origin, chain: keyed }}
  - {{ match: {{ path: "/asked/**" }}, listener: web, service: origin, chain: asked }}
  - {{ match: {{ path: "/people/**" }}, listener: web, service: origin, chain: people }}
  - {{ match: {{ path: "/opaque/**" }}, listener: web, service: origin, chain: opaque }}
  - {{ match: {{ path: "/open/**" }}, listener: web, service: origin }}
  - {{ listener: proxy, service: passthrough }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
"""


def b64(data: bytes | str) -> str:
    return base64.urlsafe_b64encode(data.encode() if isinstance(data, str) else data).rstrip(b"=").decode()


def claims(**more) -> dict:
    return {"sub": "ada", "scope": "read write", "exp": int(time.time()) + 600} | more


def hs256(payload: dict | None = None, header: dict | None = None, secret: str = SECRET) -> str:
    signed = f"{b64(json.dumps({'alg': 'HS256', 'typ': 'JWT'} | (header or {})))}.{b64(json.dumps(payload or claims()))}"
    return f"{signed}.{b64(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())}"


class Issuer:
    """An RSA key of its own, made and used by openssl."""

    def __init__(self, folder, kid: str = "one"):
        self.kid, self.file = kid, folder / f"{kid}.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(self.file), "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", str(self.file), "-modulus", "-noout"], check=True, capture_output=True).stdout
        self.modulus = bytes.fromhex(modulus.decode().strip().split("=")[1])

    def jwk(self, **more) -> dict:
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "n": b64(self.modulus), "e": "AQAB"} | more

    def token(self, **more) -> str:
        signed = f"{b64(json.dumps({'alg': 'RS256', 'kid': self.kid}))}.{b64(json.dumps(claims(**more)))}"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.file)], input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{b64(signature)}"


class Gateway:
    """A process of the case's own, with the files that it reads."""

    def __init__(self, t: Trial, workers: int = 1):
        self.t = t
        self.web, self.proxy, self.admin = free_port(), free_port(), free_port()
        self.folder = t.setup.place.subfolder("access")
        (self.folder / "keys").write_text(f"# keys\nclient:{hashlib.sha256(API_KEY.encode()).hexdigest()}\n")
        (self.folder / "users").write_text(USERS)
        (self.folder / "httpware.yaml").write_text(
            CONFIG.format(web=self.web, proxy=self.proxy, admin=self.admin, folder=self.folder, secret=SECRET,
                          main=t.setup.ports["main"], second=t.setup.ports["second"]))
        self.process: Process = t.setup.place.command(
            [t.setup.binary, "run", "-c", str(self.folder / "httpware.yaml"), "--workers", str(workers)], [self.web, self.proxy, self.admin])
        t.at_end(self.process.stop)

    def client(self, port: int = 0, timeout: float = 5.0) -> Wire:
        client = connect(("127.0.0.1", port or self.web), timeout)
        self.t.clients.append(client)
        return client

    def ask(self, path: str, *fields: str | bytes, port: int = 0, client: Wire | None = None) -> Message:
        lines = [f"GET {path} HTTP/1.1", "Host: a.test", *fields]
        client = client or self.client(port)
        client.send(b"\r\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\r\n\r\n")
        return client.read_response("GET")

    def bearer(self, path: str, token: str, **more) -> Message:
        return self.ask(path, f"Authorization: Bearer {token}", **more)

    def records(self) -> str:
        client = self.client(self.admin)
        client.send(f"GET /v1/requests HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\n\r\n".encode())
        return client.read_response("GET").body.decode()


def challenge(response: Message) -> str:
    return response.get("WWW-Authenticate") or ""


# Tokens

NONE, NONE_MIXED = b64('{"alg":"none"}'), b64('{"alg":"nOnE"}')
PATH_AS_KID = b64('{"alg":"HS256","kid":"../../etc/passwd"}')


@case("RFC 7519: a valid token passes; its claims go upstream, the token does not", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    client, token = g.client(), hs256()
    for _ in range(3):
        expect_status(g.ask("/secret/a", f"Authorization: Bearer {token}", "X-User: root", "x-user: root", client=client), 200)
    for request in t.main.requests:
        expect_same("X-User", request.all("X-User"), ["ada"])
        expect_same("X-Scope", request.get("X-Scope"), "read write")
        check(not request.has("Authorization"), request)


@case("RFC 6750 §3: an invalid token is refused with the right challenge, and never goes upstream", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    now = int(time.time())
    header, body, signature = hs256().split(".")
    bad = {
        "another secret": hs256(secret="x" * 32),
        "none": f"{NONE}.{body}.",
        "nOnE": f"{NONE_MIXED}.{body}.{signature}",
        "expired": hs256(claims(exp=now - 62)),
        "nbf": hs256(claims(nbf=now + 90)),
        "no exp": hs256({"sub": "ada"}),
        "huge exp": hs256(claims(exp=1e300)),
        "crit": hs256(header={"crit": ["x"], "x": 1}),
        "nested": hs256(header={"cty": "JWT"}),
        "path as kid": f"{PATH_AS_KID}.{body}.{signature}",
        "two segments": f"{header}.{body}",
        "five segments": f"{header}.{body}.{signature}.x.y",
        "padding": f"{header}=.{body}.{signature}",
        "nothing": "x",
        "long": "A" * 20_000 + ".e30.e30",
    }
    for name, token in bad.items():
        response = g.bearer("/secret/a", token)
        check(response.status == 401, f"{name}: {response!r}")
        check('error="invalid_token"' in challenge(response), name, challenge(response))
        expect_same("type", response.get("Content-Type"), "application/problem+json")
    expect_status(g.bearer("/secret/a", hs256(claims(exp=now - 50))), 200)
    missing = g.ask("/secret/a")
    expect_status(missing, 401)
    check(challenge(missing).startswith("Bearer ") and "error" not in challenge(missing), challenge(missing))
    narrow = g.bearer("/secret/a", hs256(claims(scope="write")))
    expect_status(narrow, 403)
    check('error="insufficient_scope"' in challenge(narrow) and 'scope="read"' in challenge(narrow), challenge(narrow))
    expect_status(g.ask("/secret/a", f"Authorization: Bearer {hs256()}", f"Authorization: Bearer {hs256()}"), 400)
    expect_same("requests upstream", len(t.main.requests), 1)


@case("a token of a megabyte is 431, a token with NUL is 400, a token with other invalid bytes is 401", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_status(g.bearer("/secret/a", "A" * (1 << 20)), 431)
    expect_status(g.ask("/secret/a", b"Authorization: Bearer a\0b.c.d"), 400)
    expect_status(g.ask("/secret/a", b"Authorization: Bearer \xff\xfe.e30.e30"), 401)
    expect_status(g.bearer("/secret/a", hs256()), 200)


@case("credentials appear in no log, record or response", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    tokens = [hs256(), hs256(secret="x" * 32), hs256(claims(exp=1)), hs256(claims(scope="no"))]
    responses = [g.bearer("/secret/a", token) for token in tokens]
    responses.append(g.ask("/keyed/a", f"X-API-Key: {API_KEY}"))
    responses.append(g.ask("/keyed/a", "X-API-Key: another-key-that-was-shown"))
    responses.append(g.ask(f"/asked/a?b=1&zugang={API_KEY}"))
    responses.append(g.ask("/asked/a?zugang=another-key-that-was-shown"))
    responses.append(g.ask("/people/a", f"Authorization: Basic {BOB}"))
    wrong = base64.b64encode(b"bob:a-wrong-password").decode()
    responses.append(g.ask("/people/a", f"Authorization: Basic {wrong}"))
    expect_same("statuses", [r.status for r in responses], [200, 401, 401, 403, 200, 401, 200, 401, 200, 401])
    shown = [part for token in tokens for part in token.split(".") if len(part) > 20] + [API_KEY, "another-key-that-was-shown", BOB, wrong, "battery", "a-wrong-password", SECRET]
    log = g.folder / "access.log"
    check(eventually(lambda: log.exists() and log.read_text().count("\n") == 10), "the access log lacks lines")
    places = {"log": g.process.log, "access log": log.read_text(), "records": g.records(), "responses": repr([(r.raw, r.body) for r in responses])}
    for place, text in places.items():
        for secret in shown:
            check(secret not in text, f"{secret!r} is in the {place}")


# Keys by URL


def serving(answers) -> object:
    """A script that answers each path by what `answers` says at that time: (status, fields, body)."""

    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            status, fields, body = answers(request)
            head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *fields]
            connection.send(("\r\n".join(head) + "\r\n\r\n").encode() + body)

    return script


@case("RFC 7517: keys are fetched once for all requests; an unknown kid fetches them again; a withdrawn key is refused", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t, workers=2)
    one, two = Issuer(g.folder, "one"), Issuer(g.folder, "two")
    keys = [one.jwk()]

    def answers(_: Message):
        pause(0.2, Why.SLOW)
        return 200, [], json.dumps({"keys": keys}).encode()

    second = t.origin(serving(answers), "second")
    token, statuses = one.token(), []
    threads = [threading.Thread(target=lambda: statuses.append(g.bearer("/fetched/a", token).status)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    expect_same("statuses", statuses, [200] * 20)
    expect_same("fetches", len(second.requests), 1)
    keys[:] = [two.jwk()]
    expect_status(g.bearer("/fetched/a", two.token()), 200)
    expect_same("fetches", len(second.requests), 2)
    expect_status(g.bearer("/fetched/a", token), 401)
    expect_status(g.bearer("/fetched/a", Issuer(g.folder, "three").token()), 401)
    expect_same("fetches", len(second.requests), 2)
    expect_status(g.bearer("/fetched/a", two.token()), 200)


@case("a key set of 10 MB, or behind a redirect to a private address, is not used", nginx=NO)
def _(t: Trial) -> None:
    bodies = [
        (200, [], b'{"keys":[' + b" " * (10 << 20) + b"]}"),
        (302, ["Location: http://10.0.0.1/keys"], b""),
        (302, [f"Location: http://127.0.0.1:{t.setup.ports['main']}/keys"], b""),
        (200, [], b"<html>"),
        (500, [], b""),
    ]
    folder = t.setup.place.subfolder("issuer")
    issuer = Issuer(folder)
    for answer in bodies:
        g = Gateway(t)
        t.origin(serving(lambda _: answer), "second")
        response = g.bearer("/fetched/a", issuer.token())
        check(response.status == 503, f"{answer[0]} of {len(answer[2])} bytes: {response!r}")
        check(response.has("Retry-After"), response)
        expect_status(g.ask("/open/a"), 200)
        check(len(t.main.requests) == 1 and all(r.target != "/keys" for r in t.main.requests), t.main.requests)
        check(eventually(lambda: "no keys from" in g.process.log), g.process.log)
        t.main.requests.clear()
        g.process.stop()


@case("OpenID Connect Discovery: the keys are found through the issuer's metadata", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    issuer = Issuer(g.folder)
    base = f"http://127.0.0.1:{t.setup.ports['second']}"

    def answers(request: Message):
        if request.target == "/.well-known/openid-configuration":
            return 200, [], json.dumps({"issuer": base, "jwks_uri": f"{base}/k"}).encode()
        return (200, [], json.dumps({"keys": [issuer.jwk()]}).encode()) if request.target == "/k" else (404, [], b"")

    t.origin(serving(answers), "second")
    expect_status(g.bearer("/discovered/a", issuer.token(iss=base)), 200)
    expect_status(g.bearer("/discovered/a", issuer.token(iss="http://evil.test")), 401)
    expect_status(g.bearer("/discovered/a", issuer.token()), 401)


# Introspection


@case("RFC 7662: the server is asked once, and its answer decides", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)

    def answers(request: Message):
        active = b"token=good" in request.body
        return 200, ["Content-Type: application/json"], json.dumps({"active": active, "sub": "ada"}).encode()

    second = t.origin(serving(answers), "second")
    for _ in range(3):
        expect_status(g.bearer("/opaque/a", "good"), 200)
    for _ in range(3):
        refused = g.bearer("/opaque/a", "bad")
        expect_status(refused, 401)
        check('error="invalid_token"' in challenge(refused), challenge(refused))
    expect_same("questions", [r.body for r in second.requests], [b"token=good&token_type_hint=access_token", b"token=bad&token_type_hint=access_token"])
    expect_same("who asks", second.requests[0].get("Authorization"), "Basic " + base64.b64encode(b"gateway:introspection-secret").decode())
    check("introspection-secret" not in g.process.log + g.records(), "the secret is in the log")
    t.origin(serving(lambda _: (200, [], b"{}")), "second")
    expect_status(g.bearer("/opaque/a", "other"), 503)


# Keys and passwords


@case("apiKey: the file is read again on reload; an invalid file is refused with its place and changes nothing", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_status(g.ask("/keyed/a", f"X-API-Key: {API_KEY}"), 200)
    check(not t.main.requests[0].has("X-API-Key"), t.main.requests[0])
    file = g.folder / "keys"

    def reload(text: str) -> str:
        start = len(g.process.log)
        file.write_text(text)
        g.process.signal(signal.SIGHUP)
        check(eventually(lambda: "reloaded: " in g.process.log[start:], 5), g.process.log[start:])
        return g.process.log[start:]

    said = reload("# x\nclient:12\n")
    check("not reloaded" in said and "keys:2:8: error: apiKey.keysFile: " in said, said)
    expect_status(g.ask("/keyed/a", f"X-API-Key: {API_KEY}"), 200)
    reload(f"other:{hashlib.sha256(b'other').hexdigest()}\n")
    expect_status(g.ask("/keyed/a", f"X-API-Key: {API_KEY}"), 401)
    expect_status(g.ask("/keyed/a", "X-API-Key: other"), 200)


@case("apiKey: a key in the query is removed, the other bytes are unchanged", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_status(g.ask(f"/asked/a%2f?x=%2F+&zuga%6eg={API_KEY}&y"), 200)
    expect_same("target", t.main.requests[0].target, "/asked/a%2f?x=%2F+&y")


@case("basicAuth: a slow hash delays no other request", nginx=NO, alone=True)
def _(t: Trial) -> None:
    g = Gateway(t)
    expect_status(g.ask("/open/a"), 200)
    slow, done = g.client(timeout=20), threading.Event()
    slow.send(f"GET /people/a HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {ADA}\r\n\r\n".encode())
    worst, asked = 0.0, 0

    def read() -> None:
        expect_status(slow.read_response("GET"), 200)
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    client = g.client()
    while not done.is_set() and asked < 5000:
        begin = time.monotonic()
        expect_status(g.ask("/open/a", client=client), 200)
        worst, asked = max(worst, time.monotonic() - begin), asked + 1
    reader.join(20)
    check(done.is_set() and asked > 20, f"{asked} requests meanwhile")
    check(worst < 0.2, f"a request took {worst:.3f} s meanwhile")
    begin = time.monotonic()
    expect_status(g.ask("/people/a", f"Authorization: Basic {ADA}"), 200)
    check(time.monotonic() - begin < 0.2, "what was found right was checked again")


@case("basicAuth: a request beyond the queue is 503, and the gateway keeps serving", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    clients = [g.client(timeout=30) for _ in range(100)]
    for index, client in enumerate(clients):
        pair = base64.b64encode(f"eve{index}:x".encode()).decode()
        client.send(f"GET /people/a HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {pair}\r\n\r\n".encode())
    refused = clients[-1].read_response("GET")
    expect_status(refused, 503)
    check(refused.has("Retry-After"), refused)
    expect_status(g.ask("/open/a"), 200)
    for client in clients:
        client.reset()


@case("RFC 9110 §11.7: a forward proxy asks for credentials with 407, for CONNECT too, and does not pass them on", nginx=NO)
def _(t: Trial) -> None:
    g = Gateway(t)
    target = f"http://127.0.0.1:{t.setup.ports['main']}/"
    for fields in ([], [f"Authorization: Basic {BOB}"], ["Proxy-Authorization: Basic Ym9iOng="]):
        response = g.ask(target, *fields, port=g.proxy)
        expect_status(response, 407)
        expect_same("challenge", response.get("Proxy-Authenticate"), 'Basic realm="httpware", charset="UTF-8"')
        check(not response.has("WWW-Authenticate"), response)
    twice = [f"Proxy-Authorization: Basic {BOB}"] * 2
    expect_status(g.ask(target, *twice, port=g.proxy), 407)
    expect_status(g.ask(target, f"Proxy-Authorization: Basic {BOB}", "Authorization: for the origin", port=g.proxy), 200)
    expect_same("Authorization", t.main.requests[0].get("Authorization"), "for the origin")
    check(not t.main.requests[0].has("Proxy-Authorization"), t.main.requests[0])
    for fields, status in (("", 407), (f"Proxy-Authorization: Basic {BOB}\r\n", 200)):
        client = g.client(g.proxy)
        authority = f"127.0.0.1:{t.setup.ports['main']}"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n".encode())
        expect_status(client.read_response("CONNECT"), status)
