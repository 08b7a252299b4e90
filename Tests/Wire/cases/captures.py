"""Captures: both sides of each message, on the admin listener."""

from __future__ import annotations

import gzip
import hashlib
import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request

from Rig import http2
from Rig.certificates import certificates
from Rig.origins import OriginConnection, Script, answering
from Rig.processes import Process, free_port
from Rig.wire import Message
from suite import Trial, case, check, connect, eventually, expect_same, expect_status

from .broker import frame, read_frame
from .command import NO
from .refused_requests import head
from .tls import secure
from .upgrade import SWITCH, WEBSOCKET

SECRET = "s3cret-token-xyz"


class Captured:
    def __init__(self, t: Trial, script: Script, *, capture: str = "{}", middlewares: str = "", postwares: str = "",
                 service: str = 'baseUrl: "http://127.0.0.1:PORT"', more: str = "",
                 arguments: tuple[str, ...] = ()):
        self.t = t
        t.origin(script)
        self.port, self.admin = free_port(), free_port()
        file = t.setup.place.subfolder("captures") / "httpware.yaml"
        file.write_text(f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{self.port}", chain: all }} }}
admin: {{ bind: "127.0.0.1:{self.admin}", token: none, capture: {capture} }}
services: {{ origin: {{ {service.replace("PORT", str(t.main.port))} }} }}
chains: {{ all: {{ middlewares: [{middlewares}], postwares: [{postwares}] }} }}
routes: [{{ service: origin }}]
{more}
""")
        self.process: Process = t.setup.place.command([t.setup.binary, "run", "-c", str(file), "--workers", "1", *arguments], [self.port, self.admin])
        t.at_end(self.process.stop)

    def ask(self, *lines: bytes, target: bytes = b"/", method: bytes = b"GET", content: bytes = b"") -> Message:
        client = connect(("127.0.0.1", self.port), 10)
        self.t.clients.append(client)
        if content:
            lines = (*lines, b"Content-Length: %d" % len(content))
        client.send(head(*lines, start=method + b" " + target + b" HTTP/1.1") + content)
        return client.read_response(method.decode())

    def call(self, path: str, method: str = "GET", body: dict | None = None, code: int = 200) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", method=method, data=json.dumps(body).encode() if body is not None else None)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                expect_same(f"{method} {path}", answer.status, code)
                return answer.read()
        except urllib.error.HTTPError as error:
            expect_same(f"{method} {path}: {error.read()!r}", error.code, code)
            return b""

    def rows(self, query: str = "") -> list[dict]:
        return json.loads(self.call("/v1/captures" + query))["captures"]

    def last(self) -> dict:
        check(eventually(lambda: self.rows() and self.rows()[0]["state"] == "ended", 3), "no capture")
        return json.loads(self.call(f"/v1/captures/{self.rows()[0]['id']}"))


def values(message: dict, name: str) -> list[str]:
    return [field["value"] for field in message["headers"] if field["name"].lower() == name.lower()]


@case("captures: both sides of the request and of the response are kept, with content decoded and as on the wire", nginx=NO)
def _(t: Trial) -> None:
    body = json.dumps({"answer": "x" * 100}).encode()

    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            coded = gzip.compress(body)
            connection.send(b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: %d\r\n\r\n" % len(coded) + coded)

    gateway = Captured(t, script, middlewares="{ requestHeaders: { set: { X-Added: here } } }", postwares="{ responseHeaders: { set: { X-Late: now } } }")
    expect_status(gateway.ask(b"X-One: 1", target=b"/a?b=c&token=abc", method=b"POST", content=b"sent"), 201)
    capture = gateway.last()
    expect_same("row", (capture["method"], capture["status"], capture["kind"], capture["pinned"], capture["service"], capture["requestSize"]),
                ("POST", 201, "http", False, "origin", 4))
    check(capture["url"].startswith("http://") and "/a?b=c&token=" in capture["url"] and "abc" not in capture["url"], capture["url"])
    request, response = capture["request"], capture["response"]
    expect_same("client", (values(request["client"], "X-One"), values(request["client"], "X-Added")), (["1"], []))
    expect_same("origin", (values(request["origin"], "X-One"), values(request["origin"], "X-Added")), (["1"], ["here"]))
    expect_same("repeated", values(response["origin"], "X-Two"), ["a", "b"])
    expect_same("late", (values(response["client"], "X-Late"), values(response["origin"], "X-Late")), (["now"], []))
    expect_same("record", capture["record"]["status"], 201)
    path = f"/v1/captures/{capture['id']}"
    expect_same("sent", gateway.call(path + "/request/content"), b"sent")
    expect_same("sent to the origin", gateway.call(path + "/request/content?side=origin"), b"sent")
    expect_same("decoded", gateway.call(path + "/response/content"), body)
    expect_same("raw", gzip.decompress(gateway.call(path + "/response/content?raw=true")), body)
    gateway.call(path + "/response/content?side=other", code=400)
    gateway.call("/v1/captures/999999", code=404)


@case("captures: credentials are masked before anything is kept", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=" + SECRET.encode() + b"\r\nContent-Length: 2\r\n\r\nok"),
                       middlewares=f"{{ tokenInject: {{ value: {SECRET}-own, header: X-Custom, scheme: \"\" }} }}")
    gateway.ask(b"Authorization: Bearer " + SECRET.encode(), b"Cookie: a=" + SECRET.encode(), b"X-Api-Key: " + SECRET.encode(),
                target=b"/?access_token=" + SECRET.encode())
    capture = gateway.last()
    check(SECRET not in json.dumps(capture), capture)
    expect_same("scheme", values(capture["request"]["client"], "Authorization"), ["Bearer …"])
    check(values(capture["request"]["origin"], "X-Custom") == ["…"], "an injected token is shown")


@case("captures: secrets in parts of forms, in events and in messages of WebSockets are masked, on the disk too", nginx=NO)
def _(t: Trial) -> None:
    named = json.dumps({"password": SECRET, "user": "anna"}).encode()
    gate = threading.Event()

    def script(connection: OriginConnection) -> None:
        request = connection.serve()
        if request.target == "/events":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + named + b"\n\ndata: " + named[:20])
            gate.wait(20)
            connection.send(named[20:] + b"\n\n")
        elif request.target == "/socket":
            connection.send(SWITCH + frame(named))
            read_frame(connection)
        else:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    folder = t.setup.place.subfolder("masked") / "captures"
    gateway = Captured(t, script, capture=f'{{ disk: {{ path: "{folder}" }} }}')
    parts = b'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n' + SECRET.encode() + b'\r\n--b\r\nContent-Disposition: form-data; name="user"\r\n\r\nanna\r\n--b--\r\n'
    gateway.ask(b"Content-Type: multipart/form-data; boundary=b", method=b"POST", content=parts, target=b"/form")
    expect_same("parts", gateway.call(f"/v1/captures/{gateway.last()['id']}/request/content"), parts.replace(SECRET.encode(), "…".encode()))
    expect_same("at the origin", t.main.requests[-1].body, parts)
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    client.send(head(start=b"GET /events HTTP/1.1"))
    client.read_head()
    check(eventually(lambda: gateway.rows()[0]["kind"] == "sse", 3), gateway.rows())
    events = gateway.rows()[0]["id"]
    # While it runs, the first event is shown, and of the second nothing that is secret.
    check(eventually(lambda: b"anna" in gateway.call(f"/v1/captures/{events}/response/content"), 3), "no event is shown")
    check(SECRET[:5].encode() not in gateway.call(f"/v1/captures/{events}/response/content"))
    gate.set()
    check(eventually(lambda: gateway.rows()[0]["state"] == "ended", 3))
    check(client.read_until(b"\r\n0\r\n\r\n").count(b"anna") == 2, "the client got other events")
    expect_same("events", gateway.call(f"/v1/captures/{events}/response/content").count(b"data:"), 2)
    socket = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(socket)
    socket.send(head(*WEBSOCKET, start=b"GET /socket HTTP/1.1"))
    expect_status(socket.read_response(), 101)
    expect_same("the message to the client", read_frame(socket)[1], named)
    socket.send(frame(named, mask=b"abcd"))
    socket.close()
    check(eventually(lambda: gateway.rows()[0]["kind"] == "websocket" and gateway.rows()[0]["state"] == "ended", 3), gateway.rows())
    shown = json.loads(gateway.call(f"/v1/captures/{gateway.rows()[0]['id']}/messages"))["messages"]
    expect_same("messages", [(message["type"], json.loads(message["data"])["password"]) for message in shown], [("receive", "…"), ("send", "…")])
    for row in gateway.rows():
        for path in ("", "/request/content", "/response/content?raw=true", "/messages"):
            check(SECRET.encode() not in gateway.call(f"/v1/captures/{row['id']}{path}"), row["url"], path)
    gateway.process.stop()
    check(all(SECRET.encode() not in file.read_bytes() for file in folder.iterdir()), "a secret is on the disk")


@case("captures: the gateway's client certificate is shown if the origin server asked for it", nginx=NO)
def _(t: Trial) -> None:
    made = certificates()
    for asks in (False, True):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = made.server()
            context.maximum_version = version
            if asks:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(made / "ca.pem")
            tls = f'ca: "{made / "ca.pem"}", cert: "{made / "anna.pem"}", key: "{made / "anna.key"}"'
            gateway = Captured(t, secure(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), context=context), service=f'baseUrl: "https://localhost:PORT", tls: {{ {tls} }}')
            expect_status(gateway.ask(), 200)
            server = gateway.last()["tls"]["server"]
            shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert((made / "anna.pem").read_text())).hexdigest() if asks else None
            expect_same(f"{version.name}, asks: {asks}", (server.get("clientCertificate") or {}).get("sha256"), shown)


@case("captures: content beyond its limit is kept as a size and a digest, and memory stays within its limit", nginx=NO)
def _(t: Trial) -> None:
    content = bytes(range(256)) * 1024
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content), capture="{ memory: 1MiB, content: 64KiB }")
    for number in range(40):
        expect_same("content", gateway.ask(target=b"/%d" % number).body, content)
    capture = gateway.last()
    expect_same("content", capture["response"]["client"]["content"], {"size": len(content), "kept": 65536, "whole": False, "masked": False, "sha256": hashlib.sha256(content).hexdigest()})
    rows = gateway.rows()
    check(3 < len(rows) < 20, len(rows))
    check(rows[0]["url"].endswith("/39"), rows[0])


@case("captures: the list has pages, pins and comments, and can be cleared", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    for number in range(5):
        gateway.ask(target=b"/%d" % number)
    check(eventually(lambda: len(gateway.rows()) == 5, 3), gateway.rows())
    first = json.loads(gateway.call("/v1/captures?limit=2"))
    expect_same("first page", ([row["url"][-1] for row in first["captures"]], first["more"]), (["4", "3"], True))
    second = json.loads(gateway.call(f"/v1/captures?limit=10&before={first['captures'][-1]['id']}"))
    expect_same("second page", ([row["url"][-1] for row in second["captures"]], second["more"]), (["2", "1", "0"], False))
    pinned = second["captures"][0]["id"]
    gateway.call(f"/v1/captures/{pinned}/pin", "POST", {"pinned": True}, 204)
    gateway.call(f"/v1/captures/{pinned}/comment", "POST", {"comment": "look"}, 204)
    gateway.call(f"/v1/captures/{pinned}/comment", "POST", {"remark": 1}, 400)
    gateway.call("/v1/captures?limit=0", code=400)
    expect_same("deleted", json.loads(gateway.call("/v1/captures", "DELETE")), {"deleted": 4})
    rows = gateway.rows()
    expect_same("left", [(row["id"], row["pinned"], row["comment"]) for row in rows], [(pinned, True, "look")])


@case("captures: a running exchange is listed while it runs, and events report it", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
        connection.read_until(b"never")

    gateway = Captured(t, script)
    events = urllib.request.urlopen(f"http://127.0.0.1:{gateway.admin}/v1/captures/events", timeout=10)
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    client.send(head())
    client.read_until(b"data: one\n\n")
    check(eventually(lambda: gateway.rows() and gateway.rows()[0]["responseSize"] == 11, 3), gateway.rows())
    row = gateway.rows()[0]
    expect_same("open", (row["state"], row["kind"], row["status"]), ("open", "sse", 200))
    expect_same("content", gateway.call(f"/v1/captures/{row['id']}/response/content"), b"data: one\n\n")
    seen = b""
    while b"event: capture" not in seen or b"\n\n" not in seen.split(b"event: capture")[1]:
        seen += events.readline()
    shown = json.loads(seen.split(b"event: capture\ndata: ")[1].split(b"\n")[0])["captures"][-1]
    expect_same("event", (shown["id"], shown["state"]), (row["id"], "open"))
    client.close()
    check(eventually(lambda: gateway.rows()[0]["state"] == "ended", 3), gateway.rows())


@case("captures: without `capture` the path is 404", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), capture="{}")
    check("captures" in gateway.call("/v1/captures").decode())
    gateway.call("/v1/captures", "POST", {}, 405)


@case("captures: filters have mitmproxy's language, and mistakes have their column; an archive has the matches", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"))
    for target in (b"/users/1", b"/users/2", b"/health"):
        gateway.ask(target=target)
    gateway.ask(b"Content-Type: application/json", target=b"/graphql", method=b"POST", content=b'{"query":"query Orders { a }"}')
    check(eventually(lambda: len(gateway.rows()) == 4, 3), gateway.rows())

    def found(expression: str) -> list[str]:
        return [row["url"].rsplit("/", 1)[1] for row in gateway.rows("?filter=" + urllib.parse.quote(expression))]

    expect_same("URL", found("~u users"), ["2", "1"])
    expect_same("not", found("!~u users & ~m get"), ["health"])
    expect_same("GraphQL", found("~gql Orders"), ["graphql"])
    expect_same("body", found("~bq 'query Orders'"), ["graphql"])
    expect_same("text alone", found("HEALTH"), ["health"])
    answer = urllib.request.Request(f"http://127.0.0.1:{gateway.admin}/v1/captures?filter=" + urllib.parse.quote("~u ("))
    try:
        urllib.request.urlopen(answer, timeout=10)
        check(False, "a mistake was taken")
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read())
        expect_same("mistake", (error.code, problem["column"] > 0, bool(problem["detail"])), (400, True, True))
    archive = json.loads(gateway.call("/v1/har?filter=" + urllib.parse.quote("~u users")))
    expect_same("archive", ([entry["request"]["url"].rsplit("/", 1)[1] for entry in archive["log"]["entries"]], archive["log"]["version"]), (["1", "2"], "1.2"))
    expect_same("empty archive", json.loads(gateway.call("/v1/har?filter=nothing"))["log"]["entries"], [])


@case("captures: messages of a WebSocket and events are listed one by one", nginx=NO)
def _(t: Trial) -> None:
    def chat(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(SWITCH)
        read_frame(connection)
        connection.send(frame(b"hel", last=False) + frame(b"lo", 0))
        connection.read_until(b"never")

    gateway = Captured(t, chat)
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    client.send(head(*WEBSOCKET))
    expect_status(client.read_response(), 101)
    client.send(frame(b"hi", mask=b"abcd"))
    client.read_until(b"lo")
    check(eventually(lambda: gateway.rows() and gateway.rows()[0]["kind"] == "websocket", 3), gateway.rows())
    path = f"/v1/captures/{gateway.rows()[0]['id']}/messages"
    check(eventually(lambda: len(json.loads(gateway.call(path))["messages"]) == 2, 3), gateway.call(path))
    messages = json.loads(gateway.call(path))["messages"]
    expect_same("messages", [(message["type"], message["opcode"], message["data"]) for message in messages], [("send", 1, "hi"), ("receive", 1, "hello")])


@case("run --ui-dir: the page is read from the folder at each request", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("page")
    (folder / "index.html").write_text("<!doctype html>first")
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), arguments=("--ui-dir", str(folder)))
    expect_same("first", gateway.call("/"), b"<!doctype html>first")
    (folder / "index.html").write_text("<!doctype html>second")
    expect_same("second", gateway.call("/"), b"<!doctype html>second")
    gateway.call("/main.js", code=404)
    # No more than the files that the page has.
    (folder / "other.js").write_text("x")
    gateway.call("/other.js", code=404)
    gateway.call("/../httpware.yaml", code=400)


@case("captures: URL, fields and reason have the bytes that were sent, and a repetition sends the same", nginx=NO)
def _(t: Trial) -> None:
    seen: list[tuple[bytes, list[str]]] = []

    def script(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            seen.append((request.start, request.all("X-Name")))
            connection.send(b"HTTP/1.1 200 Caf\xe9\r\nContent-Disposition: attachment; filename=\"\xe9t\xe9.txt\"\r\nContent-Length: 2\r\n\r\nok")

    captured = Captured(t, script)
    for target in (b"/x/%7Ey", b"/q%2fR?x=%7e", b"/a;p=1/b//c?=/../d"):
        answer = captured.ask(b"X-Name: t\xe9", target=target)
        expect_status(answer, 200)
        check(answer.start.endswith(b" 200 Caf\xe9"), answer.start)
        capture = captured.last()
        expect_same("URL", urllib.parse.urlsplit(capture["url"]).path + ("?" + capture["url"].partition("?")[2] if "?" in capture["url"] else ""), target.decode())
        expect_same("request", values(capture["request"]["client"], "x-name"), ["t\u00e9"])
        expect_same("response", values(capture["response"]["client"], "content-disposition"), ["attachment; filename=\"\u00e9t\u00e9.txt\""])
        entry = json.loads(captured.call("/v1/har?filter=" + urllib.parse.quote(f"~id {capture['id']}")))["log"]["entries"][0]
        expect_same("HAR", (entry["request"]["url"], entry["response"]["statusText"]), (capture["url"], "Caf\u00e9"))
        again = json.loads(captured.call(f"/v1/captures/{capture['id']}/replay", "POST", {}))["id"]
        check(eventually(lambda: len(seen) % 2 == 0, 3), "no repetition")
        expect_same("repeated", seen[-1], seen[-2])
        check(eventually(lambda: captured.rows()[0]["id"] == again and captured.rows()[0]["state"] == "ended", 3), "no capture of it")
        shown = captured.last()["request"]["client"]["headers"]
        answer = json.loads(captured.call(f"/v1/captures/{capture['id']}/replay", "POST", {"headers": shown}))
        check(eventually(lambda: len(seen) % 3 == 0, 3), "no repetition with the fields as shown")
        expect_same("fields as shown", seen[-1], seen[0])
        check(eventually(lambda: captured.rows()[0]["id"] == answer["id"] and captured.rows()[0]["state"] == "ended", 3), "no capture")
        seen.clear()


@case("captures: an exchange has the same number in captures, records and breaks", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        while True:
            connection.serve()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    captured = Captured(t, script, middlewares="break: {}", more="", arguments=("--workers", "2"))
    threads = [threading.Thread(target=captured.ask, kwargs={"target": b"/%d" % number}) for number in range(6)]
    for thread in threads:
        thread.start()
    check(eventually(lambda: len(json.loads(captured.call("/v1/breaks"))["breaks"]) == 6, 5), "not held")
    for held in json.loads(captured.call("/v1/breaks"))["breaks"]:
        capture = json.loads(captured.call(f"/v1/captures/{held['capture']}"))
        expect_same("held", (capture["url"], capture["state"]), (held["url"], "open"))
    for held in json.loads(captured.call("/v1/breaks"))["breaks"]:
        captured.call(f"/v1/breaks/{held['id']}/resume", "POST", {})
    for thread in threads:
        thread.join(10)
    check(eventually(lambda: len(captured.rows()) == 6 and all(row["state"] == "ended" for row in captured.rows()), 3), "no captures")
    for row in captured.rows():
        record = json.loads(captured.call(f"/v1/requests/{row['id']}"))
        expect_same("record", (record["id"], record["target"]), (row["id"], urllib.parse.urlsplit(row["url"]).path))


@case("captures: memory full of pinned captures is reported in the list, in a metric and in the log", nginx=NO)
def _(t: Trial) -> None:
    captured = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20000), capture="{ memory: 1MiB }")
    for _ in range(90):
        captured.ask()
        page = json.loads(captured.call("/v1/captures?limit=1"))
        if page.get("lost"):
            break
        for row in captured.rows():
            if not row["pinned"]:
                captured.call(f"/v1/captures/{row['id']}/pin", "POST", {"pinned": True}, code=204)
    check(page.get("lost", 0) >= 1, f"{page}")
    check(b"httpware_captures_lost_total 1" in captured.call("/metrics"), "no metric")
    check(eventually(lambda: "pinned captures fill the memory" in captured.process.log, 3), "no log line")


def open_http2(t: Trial, gateway: Captured, **more):
    client = connect(("127.0.0.1", gateway.port), 10)
    t.clients.append(client)
    return http2.Http2Wire(client, **more)


@case("captures: refused requests of HTTP/2 are kept, whether their stream is reset, their connection ends, or they have no head", nginx=NO)
def _(t: Trial) -> None:
    gateway = Captured(t, answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    good = http2.head("GET", "/good")
    broken = [
        ("an upper-case name", http2.headers(1, [*good, ("X-Upper", "1")])),
        ("a field of the connection", http2.headers(1, [*good, ("connection", "close")])),
        ("no path", http2.headers(1, [field for field in good if field[0] != ":path"])),
        ("an unknown pseudo-field", http2.headers(1, [(":nothing", "1"), *good])),
        ("a path of no form", http2.headers(1, http2.head("GET", "bad"))),
        ("trailers that do not end", http2.headers(1, http2.head("POST", "/"), end=False) + http2.headers(1, [("x", "1")], end=False)),
        ("content beyond its length", http2.headers(1, http2.head("POST", "/", ("content-length", "1")), end=False) + http2.data(1, b"abc", end=True)),
        ("a broken compression", http2.raw(1, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("another frame within the head", http2.headers(1, good, done=False) + http2.ping()),
        ("an even stream", http2.headers(2, good)),
    ]
    for number, (name, frames) in enumerate(broken, 1):
        wire = open_http2(t, gateway)
        wire.send(frames)
        check(eventually(lambda number=number: len([row for row in gateway.rows() if row["state"] == "ended"]) == number, 3), name, gateway.rows())
        row = json.loads(gateway.call("/v1/captures/" + gateway.rows()[0]["id"]))
        check(row["status"] is None and row["version"] == "HTTP/2", name, row)
        check("request" in row["record"]["fault"].lower() and row["record"]["end"] != "completed", name, row["record"])
        wire.wire.close()
    wire = open_http2(t, gateway)
    wire.send(http2.headers(1, [*http2.head("PUT", "/seen"), ("X-Upper", "1")]), http2.headers(3, good))
    expect_same("the other stream", wire.read(3).status, 200)
    check(eventually(lambda: len(gateway.rows()) == len(broken) + 2, 3), gateway.rows())
    check("PUT" in [row["method"] for row in gateway.rows()], gateway.rows())


@case("captures: streams beyond the limit, and streams behind our GOAWAY, are kept with their reason", nginx=NO)
def _(t: Trial) -> None:
    held = threading.Event()
    t.at_end(held.set)

    def script(connection: OriginConnection) -> None:
        connection.serve()
        held.wait(20)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    gateway = Captured(t, script)
    wire = open_http2(t, gateway, acknowledges=False)
    wire.send(*(http2.headers(1 + 2 * number, http2.head("GET", f"/{number}")) for number in range(102)))
    expect_same("refused", wire.read(201).reset, 7)
    check(eventually(lambda: len(gateway.rows("?limit=200")) == 102, 3), len(gateway.rows("?limit=200")))
    refused = [row for row in gateway.rows("?limit=200") if row["state"] == "ended"]
    expect_same("refused", len(refused), 2)
    check("requests at once" in json.loads(gateway.call("/v1/captures/" + refused[0]["id"]))["record"]["reason"], refused)
