"""The admin listener: its answers, its access rules, and the masking of secrets."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from Rig.origins import OriginConnection
from Rig.processes import Process, free_port
from Rig.wire import Message, Wire
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

NO = "the admin listener of httpware"
TOKEN = "dG9wLXNlY3JldC10b2tlbg=="
FILED = "filed-secret-5f2c81"

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services:
  origin: {{ baseUrl: "http://127.0.0.1:{main}", headers: {{ X-Key: "${{file:secret}}" }} }}
chains:
  keyed: {{ middlewares: [{{ requestHeaders: {{ set: {{ X-Secret: "${{file:secret}}" }} }}, as: setsTheKey }}] }}
routes:
  - {{ name: hooks, match: {{ path: "/hooks/${{file:secret}}" }}, service: origin }}
  - {{ name: everything, match: {{ path: "/**", method: [GET, POST, HEAD] }}, service: origin, chain: keyed }}
admin: {{ bind: "{bind}"{more} }}
"""


class Gateway:
    """A gateway of the case's own, with an admin listener."""

    def __init__(self, t: Trial, more: str = "", bind: str = "", workers: int = 1):
        place = t.setup.place
        self.t, self.web, self.admin = t, free_port(), free_port()
        self.bind = bind or f"127.0.0.1:{self.admin}"
        self.folder = place.subfolder("admin")
        self.main = t.setup.ports["main"]
        self.more = more if "token:" in more or bind.startswith("unix:") else ", token: none" + more
        (self.folder / "secret").write_text(FILED + "\n")
        self.write()
        ports = [self.web] + ([] if bind.startswith("unix:") else [self.admin])
        self.process: Process = place.command(
            [t.setup.binary, "run", "-c", str(self.folder / "httpware.yaml"), "--workers", str(workers)], ports)
        t.at_end(self.process.stop)

    def write(self, **replaced: str) -> None:
        text = CONFIG.format(web=self.web, main=self.main, bind=self.bind, more=self.more)
        for old, new in replaced.items():
            check(old in text, f"{old} is not in the configuration")
            text = text.replace(old, new)
        (self.folder / "httpware.yaml").write_text(text)

    def client(self, address=None) -> Wire:
        client = connect(address or ("127.0.0.1", self.admin), 10.0)
        self.t.clients.append(client)
        return client

    def ask(self, path: str, *fields: str, method: str = "GET", host: str | None = None, address=None) -> Message:
        host = f"127.0.0.1:{self.admin}" if host is None else host
        client = self.client(address)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *fields]
        client.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        return client.read_response(method)

    def known(self, path: str, *fields: str, **more) -> Message:
        return self.ask(path, f"Authorization: Bearer {TOKEN}", *fields, **more)

    def json(self, path: str, **more):
        response = self.known(path, **more)
        expect_status(response, 200)
        expect_same("type", response.get("Content-Type"), "application/json")
        return json.loads(response.body)

    def pass_one(self, path: str = "/") -> Message:
        client = connect(("127.0.0.1", self.web))
        self.t.clients.append(client)
        client.send(f"GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode())
        return client.read_response("GET")


def secured(t: Trial, **more) -> Gateway:
    return Gateway(t, f', token: "{TOKEN}"', **more)


# Probes


@case("admin: /healthz and /readyz answer every client", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    # It listens before it is ready.
    check(eventually(lambda: gateway.ask("/readyz").status == 200, 10), "not ready after 10 s")
    for path, body in (("/healthz", b"ok\n"), ("/readyz", b"ready\n")):
        for host in (f"127.0.0.1:{gateway.admin}", "gateway.internal"):
            response = gateway.ask(path, host=host)
            expect_status(response, 200)
            expect_same("body", response.body, body)
    client = gateway.client()
    client.send(b"GET /readyz HTTP/1.0\r\n\r\n")
    expect_status(client.read_response("GET"), 200)


@case("admin: /readyz is 503 while the gateway drains, /healthz stays 200", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    held, release = [], threading.Event()

    def hold(connection: OriginConnection) -> None:
        connection.serve()
        held.append(connection)
        release.wait(10)
        connection.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    t.origin(hold)
    client = connect(("127.0.0.1", gateway.web), 10)
    t.clients.append(client)
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    check(eventually(lambda: held), "the request did not arrive")
    expect_status(gateway.ask("/readyz"), 200)
    gateway.process.signal(signal.SIGTERM)
    check(eventually(lambda: gateway.ask("/readyz").status == 503), "/readyz stays 200")
    expect_same("body", gateway.ask("/readyz").body, b"draining\n")
    expect_status(gateway.ask("/healthz"), 200)
    release.set()
    expect_status(client.read_response("GET"), 204)


# Guards


@case("admin: without an admin section no admin listener is opened", nginx=NO)
def _(t: Trial) -> None:
    with socket.socket() as probe:
        check(probe.connect_ex(("127.0.0.1", 9900)) != 0 or not _listens(t.gateway.pid, 9900), "9900 is open")


def _listens(pid: int, port: int) -> bool:
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    with open("/proc/net/tcp") as table:
        return any(f":{port:04X} " in line and f"socket:[{line.split()[9]}]" in inodes for line in table)


@case("admin: if a token is set, each path with information requires it", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    wrong = ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", f"Bearer x{TOKEN}", "Bearer ="]
    for path, method in (("/v1/config", "GET"), ("/v1/routes", "HEAD"), ("/v1/reload", "POST")):
        for value in wrong:
            response = gateway.ask(path, *([f"Authorization: {value}"] if value else []), method=method)
            expect_status(response, 401)
            check("Bearer" in (response.get("WWW-Authenticate") or ""), response)
        expect_status(gateway.known(path, method=method), 200)
    expect_status(gateway.ask("/v1/config", f"Authorization: bearer {TOKEN}"), 200)
    expect_same("reloads", gateway.json("/v1/config")["lastReload"]["reloads"], 1)


@case("admin: without a token only this host has access", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    expect_status(gateway.ask("/v1/config"), 200)
    expect_status(gateway.ask("/v1/reload", method="POST"), 200)


@case("admin: DNS rebinding: another Host is 403 on each path", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    ours = [f"127.0.0.1:{gateway.admin}", f"localhost:{gateway.admin}", "localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:99", "127.9.9.9"]
    theirs = ["evil.example", f"evil.example:{gateway.admin}", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1", "0.0.0.0", "2130706433", "127.1", "[::2]"]
    for host in ours:
        expect_status(gateway.ask("/v1/config", host=host), 200)
    for host in theirs:
        expect_status(gateway.ask("/v1/config", host=host), 403)
        expect_status(gateway.ask("/v1/reload", host=host, method="POST"), 403)
        expect_status(gateway.ask("/metrics", host=host), 403)
        expect_status(gateway.ask("/", host=host), 403)
    expect_same("reloads", json.loads(gateway.ask("/v1/config").body)["lastReload"]["reloads"], 0)
    client = gateway.client()
    client.send(b"GET /v1/config HTTP/1.0\r\n\r\n")
    expect_status(client.read_response("GET"), 403)


@case("admin: a page of another origin is 403, even with the token", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    for origin in ("http://evil.example", "null", f"http://localhost:{gateway.admin}", "http://127.0.0.1", f"ftp://127.0.0.1:{gateway.admin}", ""):
        response = gateway.known("/v1/config", f"Origin: {origin}")
        expect_status(response, 403)
        check(not response.has("Access-Control-Allow-Origin"), "CORS")
    expect_status(gateway.known("/v1/config", f"Origin: http://127.0.0.1:{gateway.admin}"), 200)
    expect_status(gateway.known("/v1/reload", "Origin: http://evil.example", method="POST"), 403)
    expect_status(gateway.ask("/v1/reload", "Origin: http://evil.example", "Access-Control-Request-Method: POST", method="OPTIONS"), 403)
    expect_same("reloads", gateway.json("/v1/config")["lastReload"]["reloads"], 0)


@case("admin: a client with the token may use any Host", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    expect_status(gateway.known("/v1/config", host="gateway.internal:9900"), 200)
    expect_status(gateway.ask("/v1/config", host="gateway.internal:9900"), 403)


@case("admin: a Unix socket is accessible to its owner only", nginx=NO)
def _(t: Trial) -> None:
    path = str(t.setup.place.subfolder("socket") / "admin.sock")
    gateway = Gateway(t, bind=f"unix:{path}")
    check(eventually(lambda: os.path.exists(path)), "there is no socket")
    expect_same("mode", oct(os.stat(path).st_mode & 0o777), oct(0o600))
    expect_status(gateway.ask("/v1/config", host="whatever", address=path), 200)
    gateway.process.stop()
    check(not os.path.exists(path), "the socket is left behind")


@case("admin: every response has the security fields for browsers", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    bad = gateway.client()
    bad.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    for response in (gateway.ask("/healthz"), gateway.known("/v1/config"), gateway.ask("/v1/config"), gateway.ask("/nothing"), bad.read_response("GET")):
        expect_same("nosniff", response.get("X-Content-Type-Options"), "nosniff")
        expect_same("no-store", response.get("Cache-Control"), "no-store")
        check("default-src 'none'" in (response.get("Content-Security-Policy") or ""), response)
        check(not response.has("Server") and not response.has("Access-Control-Allow-Origin"), response)


# Answers


@case("admin: HEAD is GET without content; other methods are 405 with Allow; other paths 404", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    head, get = gateway.known("/v1/routes", method="HEAD"), gateway.known("/v1/routes")
    expect_status(head, 200)
    expect_same("length", head.get("Content-Length"), get.get("Content-Length"))
    expect_same("content", head.body, b"")
    for path, method, allow in (("/v1/config", "POST", "GET, HEAD"), ("/v1/reload", "GET", "POST"), ("/healthz", "DELETE", "GET, HEAD")):
        response = gateway.known(path, method=method)
        expect_status(response, 405)
        expect_same("Allow", response.get("Allow"), allow)
    for path in ("/nothing", "/v1", "/v1/", "/healthz/", "/v1/config/x", "//healthz", "/v1/requests/a/b"):
        response = gateway.known(path)
        expect_status(response, 404)
        expect_same("type", response.get("Content-Type"), "application/problem+json")


@case("admin: /v1/config has every value with its place, secrets masked", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    config = gateway.json("/v1/config")
    values = {value["path"]: value for value in config["values"]}
    file = str(gateway.folder / "httpware.yaml")
    expect_same("files", config["files"], [file])
    expect_same("bind", values["listeners.web.bind"], {"path": "listeners.web.bind", "value": f"127.0.0.1:{gateway.web}", "secret": False, "at": f"{file}:2:27"})
    expect_same("list", values["routes[1].match.method[2]"]["value"], "HEAD")
    for path in ("admin.token", "services.origin.headers.X-Key", "routes[0].match.path", "chains.keyed.middlewares[0].requestHeaders.set.X-Secret"):
        expect_same(path, (values[path]["value"], values[path]["secret"]), ("***", True))
    check(config["lastReload"]["success"], config["lastReload"])


@case("admin: /v1/routes has each listener's routes with their places and chains", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    [listener] = gateway.json("/v1/routes")["listeners"]
    expect_same("listener", (listener["name"], listener["mode"], listener["address"]), ("web", "reverse", f"127.0.0.1:{gateway.web}"))
    hooks, everything = listener["routes"]
    expect_same("match", hooks["match"][0]["value"], "***")
    expect_same("names", (hooks["name"], everything["name"], everything["service"]), ("hooks", "everything", "origin"))
    expect_same("ware", everything["chain"]["middlewares"][0]["label"], "setsTheKey")
    check(everything["at"].endswith("httpware.yaml:9:5"), everything["at"])


@case("admin: secrets are neither in an answer nor in the log", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    expect_status(gateway.pass_one(), 200)
    client = events(gateway)
    expect_status(gateway.pass_one("/seen"), 200)
    seen = read_event(client, b"data: ")
    gateway.write(**{"method: [GET, POST, HEAD]": "method: 7 7"})
    paths = ["/", "/healthz", "/readyz", "/metrics", "/v1/config", "/v1/config/text", "/v1/routes", "/v1/services", "/v1/requests", "/v1/requests/1", "/nothing"]
    for path in paths:
        response = gateway.known(path)
        seen += response.raw + response.body
    for method in ("POST", "GET"):
        response = gateway.known("/v1/reload", method=method)
        seen += response.raw + response.body
    seen += gateway.process.log.encode()
    for secret in (TOKEN, FILED):
        check(secret.encode() not in seen, f"{secret} is shown")


@case("admin: the text of the file has its lines with masked secrets: in force, not yet in force, and in a broken file", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)

    def text() -> str:
        return "\n".join("\n".join(file["lines"]) for file in gateway.json("/v1/config/text")["files"])

    check("name: hooks" in text() and TOKEN not in text() and FILED not in text(), text())
    file = gateway.folder / "httpware.yaml"
    file.write_text(file.read_text() + 'credentials:\n  late: { grant: static, value: "late-secret-\\x41" }\n  block:\n    grant: static\n    value: |\n      block-secret\n')
    check("late" in text() and "late-secret" not in text() and "block-secret" not in text(), text())
    file.write_text(file.read_text() + "nonsense: broken-secret\n")
    check("nonsense: …" in text() and "secret" not in text().replace("X-Secret", "").replace("file:secret", ""), text())


# Reload


@case("admin: POST /v1/reload accepts a valid file, and lists the changes", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    gateway.write(everything="all")
    response = gateway.known("/v1/reload", method="POST")
    expect_status(response, 200)
    check(json.loads(response.body)["changes"] > 0, response.body)
    expect_same("route", gateway.json("/v1/routes")["listeners"][0]["routes"][1]["name"], "all")


@case("admin: POST /v1/reload refuses a broken file with its errors, and the running configuration stays", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    gateway.write(**{"method: [GET, POST, HEAD]": "mthod: GET"})
    response = gateway.known("/v1/reload", method="POST")
    expect_status(response, 422)
    expect_same("type", response.get("Content-Type"), "application/problem+json")
    [error] = json.loads(response.body)["errors"]
    check("httpware.yaml:9:" in error and "mthod" in error, error)
    config = gateway.json("/v1/config")
    expect_same("last", (config["lastReload"]["success"], config["lastReload"]["failed"]), (False, 1))
    expect_same("route", gateway.json("/v1/routes")["listeners"][0]["routes"][1]["name"], "everything")
    expect_status(gateway.pass_one(), 200)


@case("admin: a reload changes token, address and presence of the admin listener", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    other = "b3RoZXItc2VjcmV0LXRva2Vu"
    gateway.write(**{TOKEN: other})
    expect_status(gateway.known("/v1/reload", method="POST"), 200)
    expect_status(gateway.known("/v1/config"), 401)
    expect_status(gateway.ask("/v1/config", f"Authorization: Bearer {other}"), 200)

    moved = free_port()
    gateway.write(**{f"127.0.0.1:{gateway.admin}": f"127.0.0.1:{moved}"})
    expect_status(gateway.ask("/v1/reload", f"Authorization: Bearer {other}", method="POST"), 200)
    expect_status(gateway.known("/v1/config", address=("127.0.0.1", moved), host="localhost"), 200)
    check(eventually(lambda: not _listens(gateway.process.pid, gateway.admin), 5), "the former address stays open")

    gateway.write(**{"admin:": "log: {}\n#"})
    gateway.process.signal(signal.SIGHUP)
    check(eventually(lambda: not _listens(gateway.process.pid, moved), 5), "the admin listener stays")
    expect_status(gateway.pass_one(), 200)


@case("admin: a reload to an address in use changes nothing", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway.write(**{f"127.0.0.1:{gateway.admin}": f"127.0.0.1:{taken.getsockname()[1]}", "everything": "all"})
        response = gateway.known("/v1/reload", method="POST")
        expect_status(response, 409)
        check("httpware.yaml:10:" in json.loads(response.body)["detail"], response.body)
    expect_same("route", gateway.json("/v1/routes")["listeners"][0]["routes"][1]["name"], "everything")


# Limits


@case("admin: large heads and large content are refused", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    expect_status(gateway.ask("/healthz", "X-Large: " + "a" * 20_000), 431)
    expect_status(gateway.ask("/" + "a" * 5000), 414)
    expect_status(gateway.known("/v1/reload", "Content-Length: 70000", method="POST"), 413)
    expect_status(gateway.known("/healthz", "Content-Length: 99999999999"), 413)


@case("admin: a head that does not arrive is 408 after five seconds", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    client = gateway.client()
    client.send(b"GET /healthz HTTP/1.1\r\n")
    began = time.monotonic()
    expect_status(client.read_response("GET"), 408)
    check(4 < time.monotonic() - began < 8, time.monotonic() - began)


@case("admin: an address beyond this host without a token is refused", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("open")
    (folder / "httpware.yaml").write_text(
        'version: 1\nlisteners: { web: { bind: "127.0.0.1:8080" } }\nservices: { a: { baseUrl: "http://127.0.0.1:1" } }\n'
        'routes: [{ service: a }]\nadmin: { bind: "0.0.0.0:9900" }\n')
    result = subprocess.run([t.setup.binary, "check", "-c", str(folder / "httpware.yaml")], capture_output=True, text=True, timeout=10)
    expect_same("exit", result.returncode, 1)
    check("httpware.yaml:5:16: error: admin.bind" in result.stderr, result.stderr)


# Requests, events, metrics, services


def events(gateway: Gateway, *fields: str) -> Wire:
    client = gateway.client()
    lines = ["GET /v1/events HTTP/1.1", f"Host: 127.0.0.1:{gateway.admin}", f"Authorization: Bearer {TOKEN}", *fields]
    client.send(("\r\n".join(lines) + "\r\n\r\n").encode())
    check(b" 200 " in client.read_until(b"\r\n"), bytes(client.received))
    head = client.read_until(b"\r\n\r\n")
    check(b"Content-Type: text/event-stream" in head and b"chunked" in head, head)
    return client


def read_event(client: Wire, mark: bytes) -> bytes:
    """The bytes until the mark and the end of its event."""
    client.read_until(mark)
    return client.read_until(b"\n\n")


@case("admin: /v1/requests lists the exchanges that ended, the newest first", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t, workers=2)
    for number in range(5):
        expect_status(gateway.pass_one(f"/r{number}?token=hidden"), 200)
    check(eventually(lambda: len(gateway.json("/v1/requests")) == 5), gateway.json("/v1/requests"))
    requests = gateway.json("/v1/requests?limit=3")
    expect_same("targets", [one["target"] for one in requests], [f"/r{number}?token=…" for number in (4, 3, 2)])
    one = requests[0]
    expect_same("route", (one["listener"], one["route"], one["service"], one["status"]), ("web", "everything", "origin", 200))
    expect_same("ware", (one["wares"][0]["ware"], one["wares"][0]["decision"], one["wares"][0]["added"]), ("setsTheKey", "passed", ["X-Secret"]))
    expect_same("the one", gateway.json(f"/v1/requests/{one['id']}"), one)
    expect_status(gateway.known("/v1/requests/999999"), 404)
    for limit in ("0", "-1", "2001", "x", ""):
        expect_status(gateway.known(f"/v1/requests?limit={limit}"), 400)
    expect_status(gateway.ask("/v1/requests"), 401)


@case("admin: /v1/events sends each exchange when it ends", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    first, second = events(gateway), events(gateway)
    for client in (first, second):
        client.read_until(b": exchanges as they end\n\n")
    for number in range(3):
        expect_status(gateway.pass_one(f"/e{number}"), 200)
        for client in (first, second):
            event = read_event(client, b"data: ")
            expect_same("target", json.loads(event)["target"], f"/e{number}")
    second.close()
    expect_status(gateway.pass_one("/last"), 200)
    expect_same("target", json.loads(read_event(first, b"data: "))["target"], "/last")
    expect_status(gateway.ask("/v1/events"), 401)


@case("admin: at most sixteen streams of events are open, and an ended stream frees its place", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    clients = [events(gateway) for _ in range(16)]
    expect_status(gateway.known("/v1/events"), 503)
    expect_status(gateway.ask("/healthz"), 200)
    clients[3].close()
    check(eventually(lambda: gateway.known("/v1/events", method="HEAD").status == 200), "no place came back")


@case("admin: a reader of events that pauses misses some, and receives their number; memory stays bounded", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    slow = events(gateway)
    client = connect(("127.0.0.1", gateway.web), 10)
    t.clients.append(client)
    request = b"GET /" + b"a" * 1900 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    sent = 0
    for _ in range(60):
        client.send(request * 100)
        for _ in range(100):
            expect_status(client.read_response("GET"), 200)
        sent += 100
    check(gateway.process.status("VmRSS") < 150_000, gateway.process.status("VmRSS"), "KiB")
    seen, dropped = 0, 0
    slow.sock.settimeout(3)
    while seen + dropped < sent:
        line = slow.read_until(b"\n")
        if line.startswith(b'data: {"dropped"'):
            dropped += json.loads(line[6:])["dropped"]
        elif line.startswith(b"data: "):
            seen += 1
    check(dropped > 0, "none was dropped")
    expect_same("all", seen + dropped, sent)


@case("admin: /metrics counts by listener, route and class, and never by path", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t, workers=2)
    for number in range(4):
        expect_status(gateway.pass_one(f"/path-{number}"), 200)

    def samples() -> dict[str, float]:
        text = gateway.ask("/metrics").body.decode()
        check("path-" not in text, "a path is a label")
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}

    labels = 'listener="web",route="everything",service="origin"'
    check(eventually(lambda: samples().get(f'httpware_requests_total{{{labels},code="2xx"}}') == 4), samples())
    found = samples()
    expect_same("durations", found[f"httpware_request_duration_seconds_count{{{labels}}}"], 4)
    expect_same("+Inf", found[f'httpware_request_duration_seconds_bucket{{{labels},le="+Inf"}}'], 4)
    expect_same("ready", found["httpware_ready"], 1)
    expect_same("reload", found["httpware_config_last_reload_success"], 1)
    check(found["process_resident_memory_bytes"] > 1e6 and found["process_open_fds"] > 5 and found["process_cpu_seconds_total"] > 0, found)
    check(abs(found["process_start_time_seconds"] - time.time()) < 60, found["process_start_time_seconds"])
    check(found['httpware_connections_accepted_total{listener="web"}'] >= 4, found)
    gateway.write(**{"method: [GET, POST, HEAD]": "mthod: GET"})
    expect_status(gateway.known("/v1/reload", method="POST"), 422)
    found = samples()
    expect_same("failed", (found["httpware_config_last_reload_success"], found["httpware_config_reload_failures_total"]), (0, 1))
    gateway.write()
    expect_status(gateway.known("/v1/reload", method="POST"), 200)
    found = samples()
    expect_same("mended", (found["httpware_config_last_reload_success"], found["httpware_config_reloads_total"]), (1, 2))
    expect_same("kept", found[f'httpware_requests_total{{{labels},code="2xx"}}'], 4)


@case("admin: /metrics counts failures by their fault", nginx=NO)
def _(t: Trial) -> None:
    gateway = Gateway(t)
    gateway.write(**{f"127.0.0.1:{gateway.main}": f"127.0.0.1:{t.setup.ports['closed']}"})
    expect_status(gateway.ask("/v1/reload", method="POST"), 200)
    expect_status(gateway.pass_one(), 502)
    expected = 'httpware_failures_total{listener="web",route="everything",service="origin",fault="connection_refused"} 1'
    check(eventually(lambda: expected in gateway.ask("/metrics").body.decode()), gateway.ask("/metrics").body)
    check("httpware_upstream_connect_failures_total 1" in gateway.ask("/metrics").body.decode(), "the connect is not counted")


@case("admin: promtool accepts /metrics", nginx=NO)
def _(t: Trial) -> None:
    promtool = shutil.which("promtool") or os.environ.get("PROMTOOL")
    if not promtool:
        raise Skip("promtool is not here; it comes with Debian's package prometheus")
    gateway = secured(t)
    expect_status(gateway.pass_one(), 200)
    check(eventually(lambda: b"httpware_requests_total{" in gateway.ask("/metrics").body), "nothing is counted")
    result = subprocess.run([promtool, "check", "metrics"], input=gateway.ask("/metrics").body, capture_output=True, timeout=20)
    expect_same("promtool", (result.returncode, result.stdout + result.stderr), (0, b""))


@case("admin: /v1/services has endpoints and their connections", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    expect_status(gateway.pass_one(), 200)
    [service] = gateway.json("/v1/services")["services"]
    [endpoint] = service["endpoints"]
    expect_same("service", (service["name"], endpoint["url"], endpoint["weight"]), ("origin", f"http://127.0.0.1:{gateway.main}", 1))
    check(eventually(lambda: gateway.json("/v1/services")["services"][0]["endpoints"][0]["connections"] == {"open": 1, "idle": 1, "requestsWaiting": 0}),
          gateway.json("/v1/services"))


# The page


@case("admin: the inspector page loads nothing from other hosts, and writes no markup", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    page, script, style = gateway.ask("/"), gateway.ask("/main.js"), gateway.ask("/style.css")
    for response, kind in ((page, "text/html"), (script, "text/javascript"), (style, "text/css")):
        expect_status(response, 200)
        check((response.get("Content-Type") or "").startswith(kind), response)
    names = re.findall(rb'from "./(\w+\.js)"', script.body)
    check(len(names) > 5, names)
    bodies = [page.body, script.body, style.body] + [gateway.ask("/" + name.decode()).body for name in names]
    for text in bodies:
        check(not re.search(rb"""(?:src|href)\s*=\s*"(?:https?:)?//|\burl\(|@import|(?:fetch|ask|get|post)\(["'`]https?:""", text), "another resource is named")
        for word in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b'" style="', b"onclick="):
            check(word not in text, word)
    known = gateway.ask("/main.js", f"If-None-Match: {script.get('ETag')}")
    expect_status(known, 304)
    coded = gateway.ask("/main.js", "Accept-Encoding: gzip")
    expect_same("compressed", gzip.decompress(coded.body), script.body)
    expect_status(Gateway(t, ", ui: false").ask("/"), 404)


# The command


@case("health: the exit status is 0 if ready, 1 if draining, 3 without an answer", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)

    def health(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([t.setup.binary, "health", *arguments], capture_output=True, text=True, timeout=15)

    check(eventually(lambda: health("--admin", f"127.0.0.1:{gateway.admin}").returncode == 0, 20), "it is never ready")
    for arguments in (("--admin", f"127.0.0.1:{gateway.admin}"), ("--admin", f"http://localhost:{gateway.admin}/"), ("-c", str(gateway.folder / "httpware.yaml"))):
        result = health(*arguments)
        expect_same("ready", (result.returncode, result.stdout), (0, "ready\n"))
    release = threading.Event()

    def hold(connection: OriginConnection) -> None:
        connection.serve()
        release.wait(10)
        connection.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    t.origin(hold)
    client = connect(("127.0.0.1", gateway.web), 10)
    t.clients.append(client)
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    check(eventually(lambda: t.main.requests), "the request did not arrive")
    gateway.process.signal(signal.SIGTERM)
    check(eventually(lambda: health("--admin", f"127.0.0.1:{gateway.admin}").returncode == 1, 5), "draining is not 1")
    release.set()
    expect_status(client.read_response("GET"), 204)
    check(eventually(lambda: not gateway.process.is_running, 5), "it still runs")
    result = health("-c", str(gateway.folder / "httpware.yaml"))
    expect_same("gone", result.returncode, 3)
    check(str(gateway.admin) in result.stderr, result.stderr)
    expect_same("no address", health("--admin", "nonsense").returncode, 64)


@case("admin: an unreadable request line has no method, target and protocol, in records and in logs", nginx=NO)
def _(t: Trial) -> None:
    gateway = secured(t)
    log = gateway.folder / "access.log"
    bound = f'{{ bind: "127.0.0.1:{gateway.web}"'
    logs = f'postwares: [{{ accessLog: {{ output: "file:{log}" }} }}, {{ accessLog: {{ format: combined, output: "file:{log}.combined" }} }}]'
    gateway.write(**{bound: bound + ", chain: logged", "chains:\n": f"chains:\n  logged: {{ {logs} }}\n"})
    expect_status(gateway.known("/v1/reload", method="POST"), 200)
    lines = ((b"(&%$", ("-", "-", "-")), (b"BREW /pot HTCPCP/1.0", ("BREW", "-", "-")), (b"GET /a b HTTP/1.1", ("GET", "-", "-")),
             (b"GET /%00 HTTP/1.1", ("GET", "/%00", "HTTP/1.1")))
    for count, (line, known) in enumerate(lines, 1):
        client = connect(("127.0.0.1", gateway.web))
        t.clients.append(client)
        client.send(line + b"\r\nHost: a\r\n\r\n")
        expect_status(client.read_response("GET"), 400)
        check(eventually(lambda: len(gateway.json("/v1/requests")) == count), "no record")
        record = gateway.json("/v1/requests?limit=1")[0]
        expect_same(f"record of {line}", (record["method"], record["target"], record["protocol"]), known)
        check(eventually(lambda: log.exists() and len(log.read_text().splitlines()) == count), "no line")
        told = json.loads(log.read_text().splitlines()[-1])
        expect_same("line", (told["method"], told["target"], told["protocol"]), (record["method"], record["target"], record["protocol"]))
        combined = (gateway.folder / "access.log.combined").read_text().splitlines()[-1]
        check(f'"{told["method"]} {told["target"]} {told["protocol"]}" 400' in combined, combined)


@case("admin: without a token in the file a token is made, kept for its user, and found by the commands", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("made")
    home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": "", "STATE_DIRECTORY": ""}
    web, admin = free_port(), free_port()
    file = folder / "httpware.yaml"
    file.write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{t.setup.ports["main"]}" }} }}
routes: [{{ service: origin }}]
admin: {{ bind: "127.0.0.1:{admin}" }}
""")
    kept = folder / "state/httpware/admin-token"

    def asked(path: str, *fields: str, method: str = "GET") -> Message:
        client = connect(("127.0.0.1", admin), 10.0)
        t.clients.append(client)
        client.send("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{admin}", "Content-Length: 0", *fields, "", ""]).encode())
        return client.read_response(method)

    def typed(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([t.setup.binary, *words], capture_output=True, text=True, timeout=20, env={**os.environ, **home})

    tokens = []
    for _ in range(2):
        process = t.setup.place.command([t.setup.binary, "run", "-c", str(file)], [web, admin], environment=home)
        t.at_end(process.stop)
        check(eventually(lambda: asked("/readyz").status == 200, 10), "not ready after 10 s")
        expect_status(asked("/"), 200)
        for path in ("/v1/config", "/v1/requests"):
            expect_status(asked(path), 401)
        expect_status(asked("/v1/reload", method="POST"), 401)
        token = kept.read_text()
        tokens.append(token)
        expect_same("rights", (oct(kept.stat().st_mode & 0o777), oct(kept.parent.stat().st_mode & 0o777)), ("0o600", "0o700"))
        expect_status(asked("/v1/config", f"Authorization: Bearer {token}"), 200)
        check(token not in process.log, process.log)
        for words in (("services", "--admin", f"127.0.0.1:{admin}"), ("services", "-c", str(file))):
            result = typed(*words)
            check(result.returncode == 0, result)
        result = typed("page", "-c", str(file))
        check(token not in result.stdout, result)
        code = re.fullmatch(rf"http://127\.0\.0\.1:{admin}/#open=(\w+)\n", result.stdout)[1]
        session = json.loads(asked("/v1/session", f"Authorization: Bearer {code}", method="POST").body)["session"]
        expect_status(asked("/v1/requests", f"Authorization: Bearer {session}"), 200)
        process.stop()
    expect_same("kept", tokens[0], tokens[1])
