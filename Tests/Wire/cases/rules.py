"""Rules for a while, and the wares that make exchanges fail, wait, and come from an archive."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from Rig.origins import OriginConnection, Script, answering, echo, ok
from Rig.processes import Process, free_port
from Rig.waits import Why, pause
from Rig.wire import Message, Wire, WireClosed
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO
from .http2 import MISSING, http2
from .intercept import Proxy
from .refused_requests import head
from .upgrade import SWITCH, WEBSOCKET

if not MISSING:
    from Rig.http2 import Http2Wire

    from .http2 import h

TOKEN = "0123456789abcdef-token"
SECRET = "s3cret-t0ken-value"


class Ruled:
    """A gateway with an admin listener, and its rules."""

    def __init__(self, t: Trial, script: Script = ok, *, middlewares: str = "", postwares: str = "", workers: int = 2, token: str = TOKEN,
                 service: str = "", folder=None, capture: bool = True):
        self.t = t
        t.origin(script)
        self.port, self.admin, self.token = free_port(), free_port(), token
        self.folder = folder or t.setup.place.subfolder("rules")
        file = self.folder / "httpware.yaml"
        self.file = file
        guard = f'token: "{token}", ' if token else "token: none, "
        capture_text = ", capture: {}" if capture else ""
        file.write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{self.port}", chain: all }} }}
admin: {{ bind: "127.0.0.1:{self.admin}", {guard}rulesDir: "{self.folder}/state/rules"{capture_text} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{t.main.port}" {service} }} }}
chains: {{ all: {{ middlewares: [{middlewares}], postwares: [{postwares}] }} }}
routes: [{{ service: origin }}]
""")
        self.process: Process = t.setup.place.command([t.setup.binary, "run", "-c", str(file), "--workers", str(workers)], [self.port, self.admin])
        t.at_end(self.process.stop)

    def client(self, timeout: float = 10) -> Wire:
        client = connect(("127.0.0.1", self.port), timeout)
        self.t.clients.append(client)
        return client

    def ask(self, target: str = "/", *lines: bytes, method: str = "GET", content: bytes = b"") -> Message:
        client = self.client()
        if content:
            lines = (*lines, b"Content-Length: %d" % len(content))
        client.send(head(*lines, start=f"{method} {target} HTTP/1.1".encode()) + content)
        return client.read_response(method)

    def call(self, path: str, method: str = "GET", body=None, code: int = 200, token: str | None = None, fields: dict = {}) -> dict:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", method=method, data=data, headers=dict(fields))
        token = self.token if token is None else token
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
            expect_same("type of a problem", error.headers["Content-Type"], "application/problem+json")
        expect_same(f"{method} {path}: {text!r}", status, code)
        return json.loads(text) if text else {}

    def add(self, ware: str, options: dict | None = None, code: int = 201, **more) -> dict:
        body = {"filter": "~all", "ware": ware, "options": options or {}, "for": "10m", "reason": "a test"} | more
        return self.call("/v1/rules", "POST", {name: value for name, value in body.items() if value is not None}, code)

    def rules(self) -> list[dict]:
        return self.call("/v1/rules")["rules"]

    def breaks(self, count: int = 1) -> list[dict]:
        check(eventually(lambda: len(self.call("/v1/breaks")["breaks"]) >= count, 5), "nothing is held")
        return self.call("/v1/breaks")["breaks"]

    def command(self, *words: str, code: int = 0) -> str:
        done = subprocess.run([self.t.setup.binary, *words, "--admin", f"127.0.0.1:{self.admin}", "--token", self.token], capture_output=True, text=True, timeout=30)
        expect_same(f"{words}: {done.stderr}", done.returncode, code)
        return done.stdout + done.stderr


def later(run) -> list:
    """Runs something on a thread; the list gets its result or its error."""
    results: list = []

    def work() -> None:
        try:
            results.append(run())
        except Exception as error:  # noqa: BLE001
            results.append(error)

    threading.Thread(target=work, daemon=True).start()
    return results


@case("rules: a rule acts at once, counts, is in records and captures, survives a reload, and ends", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t)
    expect_status(gateway.ask(), 200)
    expect_same("none", gateway.rules(), [])
    rule = gateway.add("mock", {"status": 418, "body": "tea"}, filter="~u /tea")
    check(isinstance(rule["id"], str) and rule["hits"] == 0 and rule["until"].endswith("Z"), rule)
    for _ in range(4):
        answer = gateway.ask("/tea")
        expect_same("mocked", (answer.status, answer.body), (418, b"tea"))
    expect_status(gateway.ask("/coffee"), 200)
    [shown] = gateway.rules()
    expect_same("shown", [shown[name] for name in ("id", "filter", "ware", "options", "reason", "hits")],
                [rule["id"], "~u /tea", "mock", {"status": 418, "body": "tea"}, "a test", 4])
    rows = {row["url"].rsplit("/", 1)[1]: row for row in gateway.call("/v1/captures")["captures"]}
    expect_same("captures", (rows["tea"]["rules"], rows["coffee"]["rules"]), ([rule["id"]], []))
    record = gateway.call(f"/v1/captures/{rows['tea']['id']}")["record"]
    expect_same("record", record["rules"], [rule["id"]])
    gateway.call("/v1/reload", "POST")
    expect_status(gateway.ask("/tea"), 418)
    gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    expect_status(gateway.ask("/tea"), 200)
    gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=404)


@case("rules: rules run in the order of creation, and end by time and by count", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, echo)
    gateway.add("requestHeaders", {"set": {"X-Order": "first"}})
    gateway.add("requestHeaders", {"set": {"X-Order": "second"}})
    gateway.ask()
    expect_same("order", t.main.requests[-1].get("X-Order"), "second")
    gateway.add("mock", {"status": 409}, count=2)
    statuses = [gateway.ask().status for _ in range(4)]
    expect_same("count", statuses, [409, 409, 200, 200])
    rule = gateway.add("mock", {"status": 410}, **{"for": "1s"})
    expect_status(gateway.ask(), 410)
    check(eventually(lambda: gateway.ask().status == 200, 4), "it does not end")
    check(all(shown["id"] != rule["id"] for shown in gateway.rules()), "it is still listed")


@case("rules: a missing or wrong value is a problem with its reason, and no rule is in force", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t)
    for change, code in (({"for": None}, 400), ({"for": "25h"}, 400), ({"for": "0s"}, 400), ({"for": "10"}, 400), ({"reason": None}, 400), ({"reason": ""}, 400),
                         ({"filter": None}, 400), ({"count": 0}, 400), ({"count": "1"}, 400), ({"count": 1.5}, 400), ({"options": []}, 400), ({"more": 1}, 400), ({"ware": "nothing"}, 400)):
        body = {"filter": "~all", "ware": "mock", "options": {}, "for": "10m", "reason": "a test"} | change
        detail = gateway.call("/v1/rules", "POST", {name: value for name, value in body.items() if value is not None}, code)["detail"]
        check(detail, "no detail")
    for ware in ("jwt", "basicAuth", "apiKey", "ipRule", "hostRule", "tokenInject", "tokenRefresh", "introspect", "httpCache", "accessLog", "rateLimit"):
        check("cannot be put in force" in gateway.add(ware, {}, 403)["detail"], ware)
    check("status" in gateway.add("fault", {"status": 99}, 400)["detail"])
    check("did you mean" in gateway.add("fault", {"statuss": 503}, 400)["detail"])
    for filter, column in (("~d (a", 4), ("~m GET & ~c 500", 10), ("~u a ~bs x", 6), ("~dur >1s", 1), ("~t json", 1)):
        expect_same(filter, gateway.add("fault", {"status": 503}, 400, filter=filter).get("column"), column)
    expect_same("a response", gateway.add("responseHeaders", {"set": {"X": "1"}}, 400, filter="~bs x")["column"], 1)
    expect_same("on", gateway.add("break", {"on": "request"}, 400, filter="~c 500")["column"], 1)
    gateway.add("break", {"on": "both"}, 400)
    gateway.add("break", {"on": ["request"]}, 201)
    for body in (b"", b"{", b"[]", b"null", b'{"filter": 1}', b"\xff\xfe", b'{"filter":"~all","filter":"~all"}', b"[" * 60000):
        gateway.call("/v1/rules", "POST", body, 400)
    gateway.call("/v1/rules", "POST", b"x" * 70000, 413)
    expect_same("in force", [rule["ware"] for rule in gateway.rules()], ["break"])
    gateway.call("/v1/rules/x", "DELETE", code=404)
    gateway.call("/v1/rules/99999999999999999999", "DELETE", code=404)


@case("rules: each path requires the token, this host, and the same origin", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t)
    rule = gateway.add("break", {"on": "request"}, filter="~u /held")
    answer = later(lambda: gateway.ask("/held"))
    [held] = gateway.breaks()
    paths = [("GET", "/v1/rules"), ("POST", "/v1/rules"), ("GET", f"/v1/rules/{rule['id']}"), ("GET", f"/v1/rules/{rule['id']}/yaml"), ("DELETE", f"/v1/rules/{rule['id']}"),
             ("GET", "/v1/breaks"), ("POST", f"/v1/breaks/{held['id']}/resume"), ("POST", f"/v1/breaks/{held['id']}/abort")]
    for method, path in paths:
        gateway.call(path, method, code=401, token="")
        gateway.call(path, method, code=401, token="wrong-token-0123456")
        gateway.call(path, method, code=403, fields={"Origin": "http://evil.example"})
        gateway.call(path, method, code=403, fields={"Sec-Fetch-Site": "cross-site"})
        gateway.call(path, method, code=403, token="", fields={"Host": "evil.example"})
        gateway.call(path, "PUT", code=405)
    expect_same("still there", ([r["id"] for r in gateway.rules()], [b["id"] for b in gateway.breaks()]), ([rule["id"]], [held["id"]]))
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST")
    check(eventually(lambda: answer), "it is not resumed")


@case("rules: rules run behind access wares, and do not change a token", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, echo, middlewares=f'{{ tokenInject: {{ value: {SECRET}, overwrite: true }} }}')
    for ware, options in (("requestHeaders", {"set": {"Authorization": "mine"}}), ("requestHeaders", {"remove": ["authorization"]}),
                          ("requestHeaders", {"set": {"X-Copy": "{request.header.Authorization}"}}), ("mock", {"body": "{request.header.authorization}"}),
                          ("responseHeaders", {"set": {"X-Copy": "{request.header.Authorization}"}})):
        rule = gateway.add(ware, options, filter="~u /guarded")
        answer = gateway.ask("/guarded")
        expect_same(f"{ware} {options}", answer.status, 403)
        check(SECRET.encode() not in answer.raw + answer.body, "the token is in the response")
        gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    rule = gateway.add("rewrite", {"host": "evil.test"}, filter="~u /guarded")
    expect_status(gateway.ask("/guarded"), 403)
    check(all(b"/guarded" not in request.start or request.get("Host") != "evil.test" for request in t.main.requests), "it went elsewhere")
    gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    # A filter sees the token masked, too.
    rule = gateway.add("mock", {"status": 418}, filter=f"~hq {SECRET}")
    expect_status(gateway.ask(), 200)
    expect_same("sent", t.main.requests[-1].get("Authorization"), f"Bearer {SECRET}")


@case("rules: the content of requests and of responses is edited on the chosen side", nginx=NO)
def _(t: Trial) -> None:
    document = b'{"user": {"name": "anna", "secret": 1}, "price": 1.50}'

    def script(connection: OriginConnection) -> None:
        while request := connection.serve():
            kind, content = (b"application/json", document) if request.target == "/json" else (b"text/plain", b"before, and before")
            # In pieces, so that it must be collected.
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (kind, len(content), content[:7]))
            connection.send(content[7:])

    gateway = Ruled(t, script)
    edit = gateway.add("jsonTransform", {"on": "response", "remove": ["/user/secret"], "set": {"/seen": True, "/none": None}}, filter="~u /json")
    gateway.add("rewriteBody", {"rules": [{"find": "before", "replace": "behind", "max": 1}]}, filter="~u /text & ~c 200")
    gateway.add("rewriteRequestBody", {"rules": [{"regex": "a+", "replace": "b"}]}, filter="~m POST & ~u /text")
    answer = gateway.ask("/json", b"Content-Type: application/json", method="POST", content=document)
    expect_same("sent", t.main.requests[-1].body, document)
    expect_same("answer", json.loads(answer.body), {"user": {"name": "anna"}, "price": 1.5, "seen": True, "none": None})
    check(b"1.50" in answer.body and int(answer.get("Content-Length")) == len(answer.body), answer.raw)
    answer = gateway.ask("/text", b"Content-Type: text/plain", method="POST", content=b"caab")
    expect_same("both", (t.main.requests[-1].body, answer.body), (b"cbb", b"behind, and before"))
    expect_same("hits", [rule["hits"] for rule in gateway.rules()], [1, 1, 1])
    expect_same("another", gateway.ask("/other").body, b"before, and before")
    saved = gateway.command("rule", "save", str(edit["id"]), code=1)
    check("column 1" in saved, saved)
    check("find" in gateway.add("rewriteBody", {"rules": [{"replace": "x"}]}, 400)["detail"])
    gateway.add("rewriteBody", {"rules": [{"find": "a", "replace": "b"}]}, 400, filter="~dur >1s")


@case("rules: access wares decide first", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, middlewares='{ ipRule: { allow: ["192.0.2.1"] } }')
    gateway.add("mock", {"status": 200, "body": "open"})
    gateway.add("break", {"on": "request"})
    expect_status(gateway.ask(), 403)
    expect_same("hits", [rule["hits"] for rule in gateway.rules()], [0, 0])


@case("rules: files are plain names in their folder, and only with a token", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"))
    for name in ("../x.har", "/etc/passwd", "a/b", ".hidden", "", "..", "~/x"):
        gateway.add("record", {"file": name}, 403)
        gateway.add("replay", {"file": name}, 403)
    gateway.add("mock", {"file": "/etc/passwd"}, 403)
    gateway.add("mock", {"sequence": [{"file": "/etc/passwd"}]}, 403)
    gateway.add("errorPage", {"file": "/etc/passwd"}, 403)
    check("cannot be read" in gateway.add("replay", {"file": "none.har"}, 400)["detail"])
    rule = gateway.add("record", {"file": "a.har"}, filter="~u /a")
    expect_status(gateway.ask("/a?x=1"), 200)
    expect_status(gateway.ask("/b"), 200)
    archive = gateway.folder / "state" / "rules" / "a.har"
    began = time.monotonic()
    check(eventually(lambda: archive.exists(), 3) and time.monotonic() - began < 2.5, "it is not on disk within 2 s")
    entries = json.loads(archive.read_text())["log"]["entries"]
    expect_same("entries", [entry["request"]["url"].rsplit("/", 1)[1] for entry in entries], ["a?x=1"])
    gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    t.origin(answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
    gateway.add("replay", {"file": "a.har", "missing": "fail"}, filter="~u /a")
    answer = gateway.ask("/a?x=1")
    expect_same("replayed", (answer.status, answer.body), (200, b"first"))
    expect_status(gateway.ask("/a?x=2"), 502)
    open_gateway = Ruled(t, token="", folder=t.setup.place.subfolder("open"))
    check("token" in open_gateway.add("record", {"file": "a.har"}, 403)["detail"])
    open_gateway.add("mock", {"status": 418})
    expect_status(open_gateway.ask(), 418)


@case("rules: the commands add, list, save and end rules", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t)
    text = gateway.command("rule", "add", "mock", "--filter", '~d ^127\\.0\\.0\\.1$ & ~m "^(GET|HEAD)$"', "--for", "10m", "--count", "7", "--reason", "a reason", "--options", '{"status": 418, "body": "tea\\n"}', "--json")
    rule = json.loads(text)
    check("a reason" in gateway.command("rule", "ls") and "0 of 7" in gateway.command("rule", "ls"))
    expect_same("ls", [r["id"] for r in json.loads(gateway.command("rule", "ls", "--json"))["rules"]], [rule["id"]])
    saved = gateway.command("rule", "save", str(rule["id"]))
    check("middlewares:" in saved and "host:" in saved and "method:" in saved, saved)
    # A saved rule is read again, with the same meaning.
    lines = [line for line in saved.splitlines() if line.startswith(("  ", "middlewares"))]
    other = gateway.folder / "saved.yaml"
    other.write_text("version: 1\nlisteners: { web: { bind: \"127.0.0.1:8080\", chain: saved } }\nchains:\n  saved:\n" + "\n".join("    " + line for line in lines) + "\n")
    done = subprocess.run([t.setup.binary, "check", "-c", str(other)], capture_output=True, text=True, timeout=30)
    expect_same(f"check: {done.stdout}{done.stderr}{saved}", done.returncode, 0)
    inexact = json.loads(gateway.command("rule", "add", "mock", "--filter", "~m ^GET$ & ~u /a", "--for", "10m", "--reason", "b", "--json"))
    check("column 12" in gateway.command("rule", "save", str(inexact["id"]), code=1), "no column")
    both = json.loads(gateway.command("rule", "add", "break", "--filter", "~u /none", "--for", "1h", "--reason", "c", "--json"))
    saved = gateway.command("rule", "save", str(both["id"]))
    check("middlewares:" in saved and "postwares:" in saved and saved.count('filter: "~u /none"') == 2, saved)
    gateway.command("rule", "rm", str(both["id"]))
    gateway.command("rule", "rm", "999", code=1)
    check("column" in gateway.command("rule", "add", "fault", "--filter", "~c 500", "--for", "1m", "--reason", "x", "--options", '{"abort": true}', code=1))
    gateway.command("rule", "add", "fault", "--filter", "~all", "--for", "1m", "--reason", "x", "--options", "status", code=64)


@case("break: a request and a response are held, edited and aborted by the commands", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, echo)
    gateway.add("break", {}, filter="~u /held")
    answer = later(lambda: gateway.ask("/held?a=1", b"X-Old: 1", b"Authorization: Bearer " + SECRET.encode(), method="POST", content=b"before"))
    [held] = gateway.breaks()
    expect_same("held", (held["side"], held["method"], held["status"]), ("request", "POST", None))
    check(SECRET not in json.dumps(held), held)
    check(eventually(lambda: [row["state"] for row in gateway.call("/v1/captures")["captures"] if row["id"] == held["capture"]] == ["open"], 3), "its capture is not there")
    check("/held?a=1" in gateway.command("break", "ls"))
    for edit in ({"status": 200}, {"method": "A B"}, {"url": "ftp://x/"}, {"headers": [{"name": "a b", "value": ""}]}, {"headers": [{"name": "a", "value": "b\r\nc: d"}]}, {"other": 1}, [], "x"):
        gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", edit, 400)
    kept = [field for field in held["headers"] if field["name"].lower() not in ("x-old", "content-length")]
    gateway.command("break", "resume", held["id"], "--edit", json.dumps({"method": "PUT", "url": "/changed", "headers": kept + [{"name": "X-New", "value": "2"}], "body": "after"}))
    check(eventually(lambda: len(t.main.requests) == 1, 5), "it does not go on")
    sent = t.main.requests[0]
    expect_same("sent", (sent.start, sent.get("X-Old"), sent.get("X-New"), sent.body, sent.get("Authorization")), (b"PUT /changed HTTP/1.1", None, "2", b"after", f"Bearer {SECRET}"))
    [held] = gateway.breaks()
    expect_same("side", (held["side"], held["status"], held["bodyEditable"]), ("response", 200, True))
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", {"method": "GET"}, 400)
    gateway.command("break", "resume", held["id"], "--edit", json.dumps({"status": 203, "body": "edited"}), "--json")
    check(eventually(lambda: answer, 5), "no response")
    expect_same("answer", (answer[0].status, answer[0].body), (203, b"edited"))
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", code=404)
    answer = later(lambda: gateway.ask("/held"))
    [held] = gateway.breaks()
    gateway.command("break", "abort", held["id"])
    check(eventually(lambda: answer, 5) and isinstance(answer[0], (WireClosed, ConnectionError, OSError)), answer)
    gateway.command("break", "abort", "99999", code=1)


@case("break: large content waits by backpressure and arrives whole, and a client that leaves ends the hold", nginx=NO)
def _(t: Trial) -> None:
    sent = [0]

    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n")
            for _ in range(300):
                if not connection.send(b"x" * 100000):
                    return
                sent[0] += 100000

    gateway = Ruled(t, script)
    gateway.add("break", {"on": "response"}, filter="~u /large")
    answer = later(lambda: gateway.ask("/large"))
    [held] = gateway.breaks()
    expect_same("editable", held["bodyEditable"], False)
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", {"body": "x"}, 409)
    pause(0.3, Why.NOTHING)
    check(sent[0] < 20_000_000, f"{sent[0]} bytes were read ahead")
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST")
    check(eventually(lambda: answer, 10) and len(answer[0].body) == 30_000_000, "not whole")
    client = gateway.client()
    client.send(head(start=b"GET /large HTTP/1.1"))
    gateway.breaks()
    client.close()
    check(eventually(lambda: not gateway.call("/v1/breaks")["breaks"], 5), "it is still held")


@case("break: at most max exchanges are held, and each continues after its timeout", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t)
    gateway.add("break", {"on": "request", "max": 2, "timeout": "1s"}, filter="~u /held")
    answers = [later(lambda: gateway.ask("/held")) for _ in range(2)]
    gateway.breaks(2)
    expect_status(gateway.ask("/held"), 200)
    check(eventually(lambda: all(answers), 5) and all(answer[0].status == 200 for answer in answers), answers)


@case("fault: status, reset and a cut response work as a rule and in the file", nginx=NO)
def _(t: Trial) -> None:
    content = b"0123456789" * 10000
    gateway = Ruled(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content),
                    middlewares='{ fault: { status: 503 }, filter: "~u /file" }')
    expect_status(gateway.ask("/file"), 503)
    expect_same("upstream", len(t.main.requests), 0)
    gateway.add("fault", {"abort": True}, filter="~u /reset")
    gateway.add("fault", {"truncate": "10KiB"}, filter="~u /cut")
    try:
        gateway.ask("/reset")
        check(False, "there is a response")
    except (WireClosed, ConnectionError, OSError):
        pass
    answer = gateway.ask("/cut")
    check(not answer.whole and len(answer.body) == 10240, len(answer.body))
    expect_same("others", gateway.ask("/whole").body, content)


@http2("fault: over HTTP/2 only the stream is reset or cut")
def _(t: Trial) -> None:
    content = b"0123456789" * 2000
    gateway = Ruled(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content))
    gateway.add("fault", {"abort": True}, filter="~u /reset")
    gateway.add("fault", {"truncate": "1KiB"}, filter="~u /cut")
    client = Http2Wire(gateway.client())
    first = client.ask(1, h.head(path="/reset"))
    check(first.reset is not None and not first.finals, first)
    second = client.ask(3, h.head(path="/cut"))
    check(second.reset is not None and len(second.body) == 1024, second)
    third = client.ask(5, h.head(path="/whole"))
    expect_same("whole", (third.status, third.body), (200, content))


@http2("break: over HTTP/2 other streams continue while one is held, and a reset ends the hold")
def _(t: Trial) -> None:
    gateway = Ruled(t, echo)
    gateway.add("break", {"on": "request"}, filter="~u /held")
    client = Http2Wire(gateway.client())
    client.send(h.headers(1, h.head("POST", "/held"), end=False), h.data(1, b"before", end=True))
    [held] = gateway.breaks()
    expect_same("another", client.ask(3, h.head(path="/free")).status, 200)
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", {"body": "after"})
    first = client.read(1)
    expect_same("edited", (first.status, first.body), (200, b"after"))
    client.send(h.headers(5, h.head(path="/held")))
    gateway.breaks()
    client.send(h.reset(5))
    check(eventually(lambda: not gateway.call("/v1/breaks")["breaks"], 5), "it is still held")
    client.send(h.headers(7, h.head(path="/held")))
    [held] = gateway.breaks()
    gateway.call(f"/v1/breaks/{held['id']}/abort", "POST")
    last = client.read(7)
    check(last.reset is not None and not last.finals and client.alive(), last)


@case("break: events and upgrades are held at their head, without a lost byte", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            if b"/socket" in request.start:
                connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
                connection.send(connection.read_exactly(4))
                return
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(3):
                event = b"data: %d\n\n" % number
                connection.send(b"%x\r\n%s\r\n" % (len(event), event))
                pause(0.1, Why.SLOW)
            connection.send(b"0\r\n\r\n")

    gateway = Ruled(t, script)
    gateway.add("break", {"on": "response"}, filter="~c 200 | ~c 101")
    answer = later(lambda: gateway.ask("/events"))
    [held] = gateway.breaks()
    expect_same("events", held["bodyEditable"], False)
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", {"headers": held["headers"] + [{"name": "X-Edited", "value": "1"}]})
    check(eventually(lambda: answer, 5), "no response")
    expect_same("events", (answer[0].body.count(b"data:"), answer[0].get("X-Edited")), (3, "1"))
    client = gateway.client()
    client.send(head(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", start=b"GET /socket HTTP/1.1"))
    [held] = gateway.breaks()
    expect_same("upgrade", (held["status"], held["bodyEditable"]), (101, False))
    check(client.is_silent(), "the 101 is not held")
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST", {"status": 200}, 409)
    gateway.call(f"/v1/breaks/{held['id']}/resume", "POST")
    check(b" 101 " in client.read_head().start, "no 101")
    expect_same("first", client.read_exactly(5), b"hello")
    client.send(b"ping")
    expect_same("echo", client.read_exactly(4), b"ping")


@case("throttle: bytes of a WebSocket are delayed in both directions, and the end follows them", nginx=NO, alone=True)
def _(t: Trial) -> None:
    took: list[float] = []

    def script(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(SWITCH)
        began = time.monotonic()
        connection.send(b"d" * 100_000)
        connection.read_exactly(50_000)
        took.append(time.monotonic() - began)
        # The end of both directions comes behind what was sent.
        connection.sock.shutdown(socket.SHUT_WR)
        connection.read_rest()

    gateway = Ruled(t, script)
    gateway.add("throttle", {"down": "200KiB/s", "up": "100KiB/s"}, filter="~u /socket")
    for target, slow in (("/socket", True), ("/fast", False)):
        client = gateway.client()
        client.send(head(*WEBSOCKET, start=f"GET {target} HTTP/1.1".encode()))
        expect_same("head", b" 101 " in client.read_head().start, True)
        began = time.monotonic()
        client.send(b"u" * 50_000)
        client.sock.shutdown(socket.SHUT_WR)
        expect_same("bytes", len(client.read_rest()), 100_000)
        down = time.monotonic() - began
        check(eventually(lambda: took, 5), "the origin server did not get all")
        up = took.pop()
        if slow:
            check(0.35 < down < 3 and 0.35 < up < 3, down, up)
        else:
            check(down < 0.3 and up < 0.3, down, up)


@case("throttle: bytes of an opaque tunnel are delayed in both directions", nginx=NO, alone=True)
def _(t: Trial) -> None:
    took: list[float] = []

    def script(connection: OriginConnection) -> None:
        began = time.monotonic()
        connection.send(b"d" * 100_000)
        connection.read_exactly(50_000)
        took.append(time.monotonic() - began)
        connection.send(b"end")

    proxy = Proxy(t, script, tls=False, intercept="hosts: [none.test]", chain="{ throttle: { down: 200KiB/s, up: 100KiB/s } }")
    client, answer = proxy.connect()
    expect_status(answer, 200)
    began = time.monotonic()
    client.send(b"u" * 50_000)
    expect_same("bytes", client.read_rest(), b"d" * 100_000 + b"end")
    down = time.monotonic() - began
    check(0.35 < down < 3 and took and 0.35 < took[0] < 3, down, took)


@case("throttle: content is delayed in both directions, and not read ahead", nginx=NO, alone=True)
def _(t: Trial) -> None:
    sent = [0]

    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                if not connection.send(b"186a0\r\n" + b"x" * 100000 + b"\r\n"):
                    return
                sent[0] += 100000
            connection.send(b"0\r\n\r\n")

    gateway = Ruled(t, script, capture=False)
    rule = gateway.add("throttle", {"down": "200KiB/s", "latency": "200ms"}, filter="~u /slow")
    client = gateway.client()
    began = time.monotonic()
    client.send(head(start=b"GET /slow HTTP/1.1"))
    client.read_head()
    check(0.19 < time.monotonic() - began < 1.5, "latency")
    client.read_exactly(200 * 1024)
    took = time.monotonic() - began - 0.2
    check(0.6 < took < 1.6, f"200 KiB took {took:.2f} s")
    check(sent[0] < 9_000_000, f"{sent[0]} bytes were read ahead")
    client.close()
    gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    t.origin(ok)
    gateway.add("throttle", {"up": "100KiB/s"}, filter="~u /up")
    began = time.monotonic()
    expect_status(gateway.ask("/up", method="POST", content=b"y" * 100 * 1024), 200)
    took = time.monotonic() - began
    check(0.6 < took < 2, f"100 KiB took {took:.2f} s")
    expect_same("sent", t.main.requests[-1].body, b"y" * 100 * 1024)


@case("record and replay: an archive of the file answers when the origin has ended, with events at their times", nginx=NO, alone=True)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            if b"/events" in request.start:
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                for number in range(3):
                    event = b"data: %d\n\n" % number
                    connection.send(b"%x\r\n%s\r\n" % (len(event), event))
                    pause(0.3, Why.SLOW)
                connection.send(b"0\r\n\r\n")
            else:
                connection.send(b"HTTP/1.1 201 Created\r\nSet-Cookie: a=" + SECRET.encode() + b"\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody")

    folder = t.setup.place.subfolder("recording")
    gateway = Ruled(t, script, middlewares=f'{{ record: {{ file: "{folder}/all.har" }} }}', folder=folder)
    expect_status(gateway.ask(f"/login?token={SECRET}", b"Authorization: Bearer " + SECRET.encode(), method="POST", content=b"name=x"), 201)
    expect_status(gateway.ask("/events"), 200)
    check(eventually(lambda: (folder / "all.har").exists() and len(json.loads((folder / "all.har").read_text())["log"]["entries"]) == 2, 4), "not recorded")
    check(SECRET not in (folder / "all.har").read_text(), "a secret is in the archive")
    gateway.process.stop()
    t.origin(answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
    other = Ruled(t, answering(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), middlewares=f'{{ replay: {{ file: "{folder}/all.har", timing: true, missing: 404 }} }}', folder=t.setup.place.subfolder("replaying"))
    answer = other.ask(f"/login?token={SECRET}", method="POST", content=b"name=x")
    expect_same("login", (answer.status, answer.body, answer.get("X-A"), answer.get("Set-Cookie")), (201, b"body", "1", None))
    expect_status(other.ask(f"/login?token={SECRET}", method="POST", content=b"name=y"), 404)
    began = time.monotonic()
    answer = other.ask("/events")
    took = time.monotonic() - began
    check(answer.body.count(b"data:") == 3 and 0.8 < took < 3, f"{took:.2f} s")


@case("rules: without a rule no content is read, and at most a thousand rules are accepted", nginx=NO)
def _(t: Trial) -> None:
    gateway = Ruled(t, workers=1, capture=False)
    for number in range(1000):
        gateway.add("fault", {"status": 503}, filter=f"~u ^nothing{number}$")
    expect_same("too many", gateway.add("mock", {"status": 418}, 409)["status"], 409)
    expect_status(gateway.ask(), 200)
    for rule in gateway.rules()[:3]:
        gateway.call(f"/v1/rules/{rule['id']}", "DELETE", code=204)
    gateway.add("mock", {"status": 418})
    expect_status(gateway.ask(), 418)
