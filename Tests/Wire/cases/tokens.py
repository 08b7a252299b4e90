"""Credentials of a running gateway: what is sent, what the admin listener and the command tell and do, and that no token is shown."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
import urllib.parse

from gateways import OwnGateway
from Rig.origins import answering
from Rig.processes import Process, free_port
from Rig.wire import Message, Wire
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

NO = "the tokens of httpware"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{main}" }} }}
credentials:
  orders:
    grant: refreshToken
    tokenUrl: "http://127.0.0.1:{token}/token"
    clientId: gateway
    clientSecret: s3cret-client
    refreshToken: s3cret-refresh
    file: orders.json
    retry: 0
chains:
  tokens: {{ middlewares: [{{ tokenRefresh: {{ credential: orders }} }}, {{ tokenInject: {{ credential: orders }} }}] }}
  gate: {{ middlewares: [{{ accumulate: {{ while: manual }}, as: gate }}] }}
routes:
  - {{ match: {{ path: /held }}, service: origin, chain: gate }}
  - {{ service: origin, chain: tokens }}
"""


class Endpoint:
    """A token endpoint: answers one token after the other, or the answer that a case sets."""

    def __init__(self, t: Trial):
        self.forms: list[dict] = []
        self.answer: tuple[int, str] | None = None
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.forms.append(dict(urllib.parse.parse_qsl(text)))
                number = len(endpoint.forms)
                status, body = endpoint.answer or (200, json.dumps({
                    "access_token": f"s3cret-token-{number}", "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": f"s3cret-rotated-{number}"}))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        t.at_end(self.server.shutdown)


class Gateway:
    def __init__(self, t: Trial):
        place = t.setup.place
        self.t, self.endpoint = t, Endpoint(t)
        self.web, self.admin = free_port(), free_port()
        self.folder = place.subfolder("tokens")
        self.file = self.folder / "httpware.yaml"
        self.file.write_text(CONFIG.format(
            web=self.web, admin=self.admin, main=t.setup.ports["main"], token=self.endpoint.server.server_address[1]))
        self.process: Process = place.command([t.setup.binary, "run", "-c", str(self.file)], [self.web, self.admin])
        t.at_end(self.process.stop)

    def ask(self, path: str, port: int | None = None, method: str = "GET") -> Message:
        client = self.send(path, port or self.web, method)
        return client.read_response(method)

    def send(self, path: str, port: int, method: str = "GET") -> Wire:
        client = connect(("127.0.0.1", port), 10.0)
        self.t.clients.append(client)
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        client.send(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{length}Connection: close\r\n\r\n".encode())
        return client

    def told(self, path: str, method: str = "GET") -> dict:
        response = self.ask(path, self.admin, method)
        expect_status(response, 200)
        check(b"s3cret" not in response.body, response.body)
        return json.loads(response.body)

    def command(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.t.setup.binary, "token", *arguments, "-c", str(self.file)], capture_output=True, text=True, timeout=30)


@case("tokens: a request carries a fetched token, and the next request carries the same", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    for _ in range(3):
        expect_status(gateway.ask("/a"), 200)
    expect_same("calls", len(gateway.endpoint.forms), 1)
    expect_same("form", gateway.endpoint.forms[0], {"grant_type": "refresh_token", "refresh_token": "s3cret-refresh"})
    sent = [request.get("Authorization") for request in t.main.requests]
    expect_same("sent", sent, ["Bearer s3cret-token-1"] * 3)
    check(eventually(lambda: (gateway.folder / "orders.json").exists()), "no file")
    expect_same("mode", (gateway.folder / "orders.json").stat().st_mode & 0o777, 0o600)
    check("s3cret" not in gateway.process.log, gateway.process.log)


@case("tokens: /v1/credentials shows the state without the token, and refresh and clear change it", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    [orders] = gateway.told("/v1/credentials")["credentials"]
    expect_same("before", (orders["name"], orders["grant"], orders["state"], orders["lastRefresh"]), ("orders", "refreshToken", "empty", None))
    orders = gateway.told("/v1/credentials/orders/refresh", "POST")
    expect_same("refreshed", (orders["state"], orders["lastRefresh"]["outcome"], orders["token"]), ("ready", "renewed", 1))
    gateway.told("/v1/credentials/orders/refresh", "POST")
    expect_same("rotation", gateway.endpoint.forms[1]["refresh_token"], "s3cret-rotated-1")
    orders = gateway.told("/v1/credentials/orders/clear", "POST")
    expect_same("cleared", (orders["state"], orders["token"]), ("empty", 0))
    check(not (gateway.folder / "orders.json").exists(), "the file is still there")
    gateway.endpoint.answer = (400, '{"error":"invalid_grant","error_description":"s3cret"}')
    response = gateway.ask("/v1/credentials/orders/refresh", gateway.admin, "POST")
    expect_status(response, 502)
    check(b"invalid_grant" in response.body and b"s3cret" not in response.body, response.body)
    refused = gateway.ask("/a")
    expect_status(refused, 503)
    check(refused.get("Retry-After") is not None, refused)
    expect_status(gateway.ask("/v1/credentials/nobody/clear", gateway.admin, "POST"), 404)
    expect_status(gateway.ask("/v1/credentials/orders/refresh", gateway.admin), 405)
    text = gateway.ask("/metrics", gateway.admin).body.decode()
    for line in ('httpware_credential_ready{credential="orders"} 0',
                 'httpware_credential_refreshes_total{credential="orders",outcome="renewed"} 2',
                 'httpware_credential_refreshes_total{credential="orders",outcome="refused"} 1'):
        check(line in text, line)
    check("s3cret" not in text + gateway.process.log, "a secret is shown")


REFUSED = b"HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\nContent-Length: 0\r\n\r\n"


@case("tokens: a refused request is answered 503 if the refresh fails temporarily, and 401 if it fails permanently", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_status(gateway.ask("/a"), 200)
    t.origin(answering(REFUSED))
    gateway.endpoint.answer = (503, "{}")
    for _ in range(2):
        response = gateway.ask("/a")
        expect_status(response, 503)
        check(int(response.get("Retry-After") or 0) >= 1, response)
        check(not response.has("WWW-Authenticate"), response)
    gateway.endpoint.answer = (400, '{"error":"invalid_grant"}')
    check(eventually(lambda: gateway.ask("/a").status == 401), "the refusal is not passed on")
    check(gateway.ask("/a").has("WWW-Authenticate"), "the challenge is gone")


ELSEWHERE = """version: 1
listeners: {{ proxy: {{ bind: "127.0.0.1:{web}", mode: forward, forward: {{ denyPrivate: false }} }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
chains:
  behind: {{ middlewares: [{{ tokenInject: {{ value: s3cret }} }}, {{ rewrite: {{ host: "127.0.0.1:{second}" }} }}] }}
  before: {{ middlewares: [{{ rewrite: {{ host: "127.0.0.1:{second}" }} }}, {{ tokenInject: {{ value: s3cret }} }}] }}
  header: {{ middlewares: [{{ tokenInject: {{ value: s3cret }} }}, {{ requestHeaders: {{ set: {{ Host: "127.0.0.1:{second}" }} }} }}] }}
  path: {{ middlewares: [{{ tokenInject: {{ value: s3cret }} }}, {{ rewrite: {{ path: {{ add: /x }} }} }}] }}
routes:
  - {{ match: {{ path: "/behind/**" }}, service: passthrough, chain: behind }}
  - {{ match: {{ path: "/before/**" }}, service: passthrough, chain: before }}
  - {{ match: {{ path: "/header/**" }}, service: passthrough, chain: header }}
  - {{ match: {{ path: "/path/**" }}, service: passthrough, chain: path }}
"""


@case("RFC 9209 §2.3.28: a token is sent only to the place that it was added for", nginx=NO)
def _(t: Trial) -> None:
    ports = t.setup.ports
    gateway = OwnGateway(t, "elsewhere", ELSEWHERE, second=ports["second"])
    second = t.origin(name="second")
    here = f"http://127.0.0.1:{ports['main']}"
    for path, names in (("behind", ("rewrite", "tokenInject")), ("header", ("requestHeaders", "tokenInject"))):
        response = gateway.ask(f"{here}/{path}/a")
        expect_status(response, 500)
        check("proxy_configuration_error" in (response.get("Proxy-Status") or ""), response)
        check(all(name.encode() in response.body for name in names), response.body)
    expect_same("sent", (t.main.requests, second.requests), ([], []))
    expect_status(gateway.ask(f"{here}/before/a"), 200)
    expect_same("rewritten first", second.requests[0].get("Authorization"), "Bearer s3cret")
    # A client's own credentials are its own matter.
    expect_status(gateway.ask(f"{here}/behind/a", "GET", "Authorization: Bearer own"), 200)
    expect_same("the client's own", second.requests[1].get("Authorization"), "Bearer own")
    expect_status(gateway.ask(f"{here}/path/a"), 200)
    expect_same("another path", t.main.requests[0].get("Authorization"), "Bearer s3cret")
    told = gateway.process.log
    check("put rewrite first" in told and "put requestHeaders first" in told, told)


@case("tokens: /v1/holds closes and opens the hold of waiting requests", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_status(gateway.ask("/held"), 200)
    expect_same("open", gateway.told("/v1/holds"), {"holds": [{"label": "gate", "closed": False, "held": 0}]})
    gateway.told("/v1/holds/gate/close", "POST")
    client = gateway.send("/held", gateway.web)
    check(eventually(lambda: gateway.told("/v1/holds")["holds"][0]["held"] == 1), "it is not held")
    gateway.told("/v1/holds/gate/open", "POST")
    expect_status(client.read_response("GET"), 200)
    expect_status(gateway.ask("/v1/holds/other/open", gateway.admin, "POST"), 404)


@case("token: ls, refresh and clear work; an unknown name or a refusal is exit 1", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    listed = gateway.command("ls")
    expect_same("ls", listed.returncode, 0)
    check("orders" in listed.stdout and "empty" in listed.stdout, listed.stdout)
    refreshed = gateway.command("refresh", "orders")
    expect_same("refresh", refreshed.returncode, 0)
    check("ready" in refreshed.stdout and "1 renewed" in refreshed.stdout, refreshed.stdout)
    expect_same("json", json.loads(gateway.command("ls", "--json").stdout)["credentials"][0]["state"], "ready")
    expect_same("clear", gateway.command("clear", "orders").returncode, 0)
    expect_same("unknown", gateway.command("refresh", "nobody").returncode, 1)
    gateway.endpoint.answer = (500, "{}")
    refused = gateway.command("refresh", "orders")
    expect_same("refused", refused.returncode, 1)
    check("status 500" in refused.stderr, refused.stderr)
    for result in (listed, refreshed, refused):
        check("s3cret" not in result.stdout + result.stderr, "a secret is shown")


@case("tokens: a reload keeps the tokens of unchanged definitions", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_status(gateway.ask("/a"), 200)
    gateway.file.write_text("# moved\n" + gateway.file.read_text())
    expect_status(gateway.ask("/v1/reload", gateway.admin, "POST"), 200)
    expect_status(gateway.ask("/a"), 200)
    expect_same("calls", len(gateway.endpoint.forms), 1)
