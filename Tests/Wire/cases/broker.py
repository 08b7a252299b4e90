"""The credential broker: programs get placeholders, hosts get tokens."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import ssl
import struct
import subprocess
import time
import zlib

from Rig.certificates import certificates
from Rig.origins import OriginConnection, Script, answering
from Rig.processes import Process
from Rig.waits import Why, pause
from Rig.wire import Message, Wire, WireClosed
from suite import Trial, case, check, connect, eventually, expect_closed, expect_same, expect_status

from .command import NO, own_home, run, with_command
from .intercept import OK
from .refused_requests import head
from .tls import secure
from .tokens import Endpoint
from .upgrade import SWITCH, WEBSOCKET

TOKEN = "s3cr3t+token/of.the~app-1"
FORM = re.compile(r"hwp_[A-Za-z0-9]{32}")


class Broker:
    """`httpware with -c FILE` around a program that only says what it was given; the case speaks in its place."""

    def __init__(self, t: Trial, script: Script = answering(OK), *, places: str = "headers", scrub: bool = False, tls: bool = False,
                 intercept: str = 'hosts: ["*"]', credentials: str = "", routes: str = "", middlewares: str = ""):
        self.t, self.origin = t, t.main.port
        t.origin(secure(script) if tls else script)
        self.folder = t.setup.place.subfolder("broker")
        self.audit, self.log, self.said = self.folder / "audit.log", self.folder / "access.log", self.folder / "said"
        (self.folder / "token").write_text(TOKEN + "\n")
        subprocess.run([t.setup.binary, "ca", "init", "--dir", str(self.folder / "ca")], capture_output=True, check=True, timeout=20)
        self.file = self.folder / "agent.yaml"
        inject = f"placeholder: {{ in: [{places}] }}, scrub: {str(scrub).lower()}, audit: {{ output: \"file:{self.audit}\" }}"
        self.file.write_text(f"""version: 1
listeners:
  dev:
    mode: forward
    bind: "127.0.0.1:1"
    forward: {{ connectPorts: [{self.origin}], denyPrivate: false }}
    intercept: {{ {intercept}, ca: ca }}
    chain: log
credentials:
  app: {{ grant: static, value: "${{file:token}}", env: APP_TOKEN }}
  {credentials}
chains:
  log: {{ postwares: [{{ accessLog: {{ output: "file:{self.log}" }} }}] }}
  app: {{ middlewares: [{middlewares}{{ tokenInject: {{ credential: app, {inject} }} }}] }}
routes:
  {routes}
  - {{ match: {{ host: localhost }}, chain: app, service: passthrough }}
  - {{ service: passthrough }}
""")
        say = f'echo "$APP_TOKEN $http_proxy $CURL_CA_BUNDLE $OTHER_TOKEN" > {self.said}.new && mv {self.said}.new {self.said}; exec sleep 60'
        self.process: Process = t.setup.place.command(
            [t.setup.binary, "with", "-c", str(self.file), "--", "sh", "-c", say], [],
            environment={**own_home(t), "SSL_CERT_FILE": str(certificates() / "ca.pem"), "no_proxy": "", "NO_PROXY": ""})
        t.at_end(self.process.stop)
        check(eventually(self.said.exists, 10), self.process.log)
        self.placeholder, proxy, self.ca, *others = self.said.read_text().split()
        self.other = others[0] if others else ""
        self.port = int(proxy.rsplit(":", 1)[1].strip("/"))

    def wire(self) -> Wire:
        client = connect(("127.0.0.1", self.port), 10)
        self.t.clients.append(client)
        return client

    def tunnel(self, host: str = "localhost", *lines: bytes) -> tuple[Wire, Message]:
        client, target = self.wire(), f"{host}:{self.origin}".encode()
        client.send(head(*lines, start=b"CONNECT " + target + b" HTTP/1.1", host=b"Host: " + target + b"\r\n"))
        return client, client.read_response("CONNECT")

    def secured(self) -> Wire:
        client, answer = self.tunnel()
        expect_status(answer, 200)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.ca)
        inner = Wire(context.wrap_socket(client.sock, server_hostname="localhost"), 10)
        self.t.clients.append(inner)
        return inner

    def ask(self, *lines: bytes, target: bytes = b"/", method: bytes = b"GET", content: bytes = b"", host: str | None = None) -> Message:
        authority = (host or f"localhost:{self.origin}").encode()
        client = self.wire()
        if content:
            lines = (*lines, b"Content-Length: %d" % len(content))
        client.send(head(*lines, start=method + b" http://" + authority + target + b" HTTP/1.1", host=b"Host: " + authority + b"\r\n") + content)
        return client.read_response(method.decode())

    def expect_cut_off(self, content: bytes) -> None:
        """Content that streams already ends before the placeholder in it, and so does the request to the host."""
        client, authority = self.wire(), b"localhost:%d" % self.origin
        client.send(head(b"Content-Length: %d" % len(content), start=b"PUT http://" + authority + b"/ HTTP/1.1", host=b"Host: " + authority + b"\r\n"))
        try:
            client.send(content)
            expect_status(client.read_response("PUT"), 403)
        except WireClosed:
            pass
        check(eventually(lambda: self.t.main.cut_off, 5), "the request was not cut off")

    def bearer(self) -> bytes:
        return b"Authorization: Bearer " + self.placeholder.encode()

    def audited(self, count: int) -> list[dict]:
        check(eventually(lambda: self.audit.exists() and len(self.audit.read_text().splitlines()) >= count, 3),
              "audit:", self.audit.read_text() if self.audit.exists() else "none", self.process.log)
        return [json.loads(line) for line in self.audit.read_text().splitlines()]

    def expect_no_token(self) -> None:
        """Nothing that the gateway wrote holds the token."""
        pause(0.3, Why.NOTHING)
        for file in (self.audit, self.log):
            check(not file.exists() or TOKEN not in file.read_text(), f"{file.name} holds the token")
        check(TOKEN not in self.process.log, "the token is in the log")


def token_of(request: Message) -> str:
    return (request.get("Authorization") or "").removeprefix("Bearer ")


@case("broker: the program receives a placeholder, the host receives the token, with and without TLS", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, tls=True)
    check(FORM.fullmatch(broker.placeholder), broker.placeholder)
    client = broker.secured()
    for _ in range(2):
        client.send(head(broker.bearer(), start=b"GET /a?b=c HTTP/1.1", host=b"Host: localhost:%d\r\n" % broker.origin))
        expect_same("body", client.read_response().body, b"ok")
        expect_same("token", token_of(t.main.requests[-1]), TOKEN)
    client.send(head(start=b"GET /none HTTP/1.1", host=b"Host: localhost:%d\r\n" % broker.origin))
    expect_same("body", client.read_response().body, b"ok")
    check(not t.main.requests[-1].has("Authorization"), "a request without the placeholder got a token")
    lines = broker.audited(2)
    expect_same("audit", [(line["credential"], line["action"], line["host"], line["method"], line["path"], line["status"], line["reason"]) for line in lines],
                [("app", "used", "localhost", "GET", "/a", 200, None)] * 2)
    check(lines[0]["run"] and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", lines[0]["time"]), lines[0])
    broker.expect_no_token()


@case("broker: each run has placeholders of its own", nginx=NO)
def _(t: Trial) -> None:
    first, second = Broker(t).placeholder, Broker(t).placeholder
    check(first != second, first)


@case("broker: the placeholder is replaced in fields, in Basic, in the query, in forms and in JSON", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="headers, query, form, json")
    hold = broker.placeholder
    broker.ask(b"X-Api-Key: a" + hold.encode() + b"b", b"Cookie: t=" + hold.encode())
    expect_same("fields", (t.main.requests[-1].get("X-Api-Key"), t.main.requests[-1].get("Cookie")), (f"a{TOKEN}b", f"t={TOKEN}"))
    broker.ask(b"Authorization: basic " + base64.b64encode(f"user:{hold}".encode()))
    expect_same("Basic", base64.b64decode(t.main.requests[-1].get("Authorization").split()[1]).decode(), f"user:{TOKEN}")
    encoded = TOKEN.replace("+", "%2B").replace("/", "%2F")
    broker.ask(target=f"/q?a=b&key={hold}&c".encode())
    expect_same("query", t.main.requests[-1].target, f"/q?a=b&key={encoded}&c")
    broker.ask(target=f"/q?key={hold.replace('_', '%5F')}".encode())
    expect_same("query, encoded", t.main.requests[-1].target, f"/q?key={encoded}")
    form = b"Content-Type: application/x-www-form-urlencoded"
    broker.ask(form, method=b"POST", content=f"a=b&token={hold}&token={hold}".encode())
    expect_same("form", t.main.requests[-1].body.decode(), f"a=b&token={encoded}&token={encoded}")
    expect_same("length", int(t.main.requests[-1].get("Content-Length")), len(t.main.requests[-1].body))
    body = json.dumps({"a": [1, {"key": hold, "b": None}], "c": f"x {hold} y"})
    broker.ask(b"Content-Type: application/json; charset=utf-8", method=b"POST", content=body.encode())
    expect_same("JSON", json.loads(t.main.requests[-1].body), {"a": [1, {"key": TOKEN, "b": None}], "c": f"x {TOKEN} y"})
    broker.ask(b"Content-Type: application/problem+json", b"Content-Encoding: gzip", method=b"POST", content=gzip.compress(body.encode()))
    request = t.main.requests[-1]
    expect_same("coded JSON", (json.loads(request.body)["c"], request.has("Content-Encoding")), (f"x {TOKEN} y", False))
    expect_same("actions", {line["action"] for line in broker.audited(7)}, {"used"})
    broker.expect_no_token()


@case("broker: a placeholder in a place that `in` does not name is 403, and nothing goes upstream", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)
    hold = broker.placeholder.encode()
    asks = [
        dict(target=b"/?key=" + hold), dict(target=b"/" + hold), dict(target=b"/?" + hold + b"=1"), dict(target=b"/%68wp_" + hold[4:]),
        dict(method=b"POST", content=b"token=" + hold, lines=[b"Content-Type: application/x-www-form-urlencoded"]),
        dict(method=b"POST", content=b'{"a":"' + hold + b'"}', lines=[b"Content-Type: application/json"]),
        dict(method=b"PUT", content=b"x" * 100_000 + hold, lines=[]),
        dict(method=b"PUT", content=gzip.compress(b"abc" + hold), lines=[b"Content-Encoding: gzip"]),
        dict(method=b"PUT", content=gzip.compress(b"abc" + hold[:7]) + gzip.compress(hold[7:]), lines=[b"Content-Encoding: gzip"]),
        dict(method=b"PUT", content=zlib.compress(hold), lines=[b"Content-Encoding: deflate"]),
    ]
    for ask in asks:
        answer = broker.ask(*ask.pop("lines", []), **ask)
        expect_status(answer, 403)
        check(b"placeholder" in answer.body and hold not in answer.body, answer.body)
    expect_same("requests upstream", len(t.main.requests), 0)
    expect_same("connections", [bytes(each.received) for each in t.main.used], [])
    check({line["action"] for line in broker.audited(len(asks))} == {"refused"}, broker.audited(0))
    check("not replaced there" in broker.audited(1)[0]["reason"], broker.audited(1)[0])
    lines = broker.log.read_text()
    check(lines.count('"status":403') == len(asks), lines)


@case("broker: an escaped placeholder is replaced where escapes are decoded, and refused elsewhere", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="headers, query, form, json")
    hold = broker.placeholder
    percent, unicode = hold.replace("_", "%5f"), "\\u0068" + hold[1:20] + f"\\u{ord(hold[20]):04X}" + hold[21:]
    every = "".join(f"%{ord(character):02X}" for character in hold)
    form, json_type = b"Content-Type: application/x-www-form-urlencoded", b"Content-Type: application/json"
    encoded = TOKEN.replace("+", "%2B").replace("/", "%2F")
    for text in (percent, every):
        broker.ask(form, method=b"POST", content=f"a=b&token={text}&c".encode())
        expect_same("form", t.main.requests[-1].body.decode(), f"a=b&token={encoded}&c")
    broker.ask(json_type, method=b"POST", content=f'{{"a":"x {unicode} y"}}'.encode())
    expect_same("JSON", json.loads(t.main.requests[-1].body), {"a": f"x {TOKEN} y"})
    t.main.requests.clear()
    asks = [
        dict(method=b"POST", content=f"{percent}=1".encode(), lines=[form]), dict(method=b"POST", content=f"a={unicode}".encode(), lines=[form]),
        dict(method=b"POST", content=f'{{"a":"{percent}"}}'.encode(), lines=[json_type]), dict(method=b"POST", content=f'{{"{unicode}":1}}'.encode(), lines=[json_type]),
        dict(method=b"PUT", content=f"{percent}".encode()), dict(method=b"PUT", content=f"see http://a.test/?t={every}".encode()),
        dict(method=b"PUT", content=gzip.compress(f"{unicode}".encode()), lines=[b"Content-Encoding: gzip"]),
        dict(target=f"/?t={percent.replace('%', '%25')}".encode()), dict(target=f"/{percent.replace('%', '%25')}".encode()),
        dict(lines=[f"Referer: http://a.test/?t={percent}".encode()]), dict(lines=[f'X-Json: {{"a":"{unicode}"}}'.encode()]),
    ]
    for ask in asks:
        expect_status(broker.ask(*ask.pop("lines", []), **ask), 403)
    expect_same("requests upstream", len(t.main.requests), 0)
    broker.expect_cut_off(b"x" * 2_000_000 + every.encode())  # more than is at hand when the head goes
    check(b"%68" not in t.main.received(), "some of the placeholder went upstream")


@case("broker: names of JSON members and of forms are not replaced", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="form, json")
    hold = broker.placeholder.encode()
    expect_status(broker.ask(b"Content-Type: application/json", method=b"POST", content=b'{"' + hold + b'":1}'), 403)
    expect_status(broker.ask(b"Content-Type: application/json", method=b"POST", content=b'{"a":1} ' + hold), 403)
    expect_status(broker.ask(b"Content-Type: application/x-www-form-urlencoded", method=b"POST", content=hold + b"=1"), 403)
    expect_status(broker.ask(b"Content-Type: text/plain", method=b"POST", content=hold), 403)
    expect_status(broker.ask(broker.bearer()), 403)
    expect_same("requests upstream", len(t.main.requests), 0)


@case("broker: a placeholder for another host, or of another run, is 403", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)
    answer = broker.ask(broker.bearer(), host=f"127.0.0.1:{broker.origin}")
    expect_status(answer, 403)
    check(b"is not for 127.0.0.1" in answer.body, answer.body)
    expect_status(broker.ask(b"X-A: " + base64.b64encode(b"u:" + broker.placeholder.encode()), host=f"127.0.0.1:{broker.origin}"), 200)
    t.main.requests.clear()
    expect_status(broker.ask(b"Authorization: Basic " + base64.b64encode(b"u:" + broker.placeholder.encode()), host=f"127.0.0.1:{broker.origin}"), 403)
    answer = broker.ask(b"Authorization: Bearer hwp_" + b"A" * 32)
    expect_status(answer, 403)
    check(b"not in force here" in answer.body, answer.body)
    expect_same("requests upstream", len(t.main.requests), 0)
    line = broker.audited(1)[0]
    expect_same("audit", (line["action"], line["host"], line["status"]), ("refused", "127.0.0.1", 403))
    check("not in force here" in broker.process.log, "another run's placeholder is not in the log:", broker.process.log)


@case("broker: a token is never sent over a network without TLS", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, routes="- { match: { host: 192.0.2.1 }, chain: app, service: passthrough }")
    answer = broker.ask(broker.bearer(), host="192.0.2.1")
    expect_status(answer, 403)
    check(b"without TLS" in answer.body, answer.body)
    expect_same("audit", [line["action"] for line in broker.audited(1)], ["refused"])


@case("broker: an unsupported coding is 415, broken coded content is 400", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)
    expect_status(broker.ask(b"Content-Encoding: compress", method=b"POST", content=b"abc"), 415)
    expect_status(broker.ask(b"Content-Encoding: gzip", method=b"POST", content=b"abc"), 400)
    expect_status(broker.ask(b"Content-Encoding: gzip", method=b"POST", content=gzip.compress(b"abc")[:-3]), 400)
    expect_same("requests upstream", len(t.main.requests), 0)
    content = gzip.compress(b"abc" * 1000)
    expect_status(broker.ask(b"Content-Encoding: gzip", method=b"POST", content=content), 200)
    expect_same("content", t.main.requests[-1].body, content)
    twice = gzip.compress(gzip.compress(b"\0" * 900_000))
    expect_status(broker.ask(b"Content-Encoding: gzip, gzip", method=b"POST", content=twice), 200)
    for count in (8_000_000, 80_000_000):
        bomb = gzip.compress(gzip.compress(b"\0" * count))
        expect_status(broker.ask(b"Content-Encoding: gzip, gzip", method=b"POST", content=bomb), 400)
    expect_status(broker.ask(b"Content-Encoding: gzip", method=b"POST", content=gzip.compress(b"\0" * 8_000_000)), 200)
    expect_status(broker.ask(b"Content-Encoding: gzip", method=b"POST", content=gzip.compress(b"\0" * 80_000_000)), 413)


@case("broker: a placeholder in multipart content is refused for its place, not for the host", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="form")
    content = f'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n{broker.placeholder}\r\n--b--\r\n'.encode()
    answer = broker.ask(b"Content-Type: multipart/form-data; boundary=b", method=b"POST", content=content)
    expect_status(answer, 403)
    check(b"which is not replaced there" in answer.body and b"not for localhost" not in answer.body, answer.body)


@case("broker: content in aws-chunked is searched without its framing, and passes unchanged", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)

    def framed(*parts: bytes, trailer: bytes = b"x-amz-checksum-crc32:AAAAAA==\r\n") -> bytes:
        return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailer + b"\r\n"

    lines = [b"X-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", b"Content-Encoding: aws-chunked"]
    content = framed(b"abc" * 100_000, b"def")
    expect_status(broker.ask(*lines, method=b"PUT", content=content), 200)
    expect_same("content", (t.main.requests[-1].body, t.main.requests[-1].get("Content-Encoding")), (content, "aws-chunked"))
    zipped = gzip.compress(b"abc" * 1000)
    content = framed(zipped[:7], zipped[7:])
    expect_status(broker.ask(lines[0], b"Content-Encoding: aws-chunked,gzip", method=b"PUT", content=content), 200)
    expect_same("coded content", t.main.requests[-1].body, content)
    hold, count = broker.placeholder.encode(), len(t.main.requests)
    for content in (framed(b"a" + hold[:9], hold[9:]), framed(b"a", trailer=b"x-amz-meta:" + hold + b"\r\n")):
        expect_status(broker.ask(*lines, method=b"PUT", content=content), 403)
    for content in (b"3\r\nabcd\r\n0\r\n\r\n", b"3;" + hold + b"\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n"):
        expect_status(broker.ask(*lines, method=b"PUT", content=content), 400)
    expect_same("requests", len(t.main.requests), count)


@case("broker: content beyond 1 MiB is streamed, and cut off before a placeholder", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)
    hold = broker.placeholder.encode()
    clean = os.urandom(3_000_000)
    expect_status(broker.ask(method=b"PUT", content=clean), 200)
    expect_same("content", t.main.requests[-1].body, clean)
    broker.expect_cut_off(b"x" * 2_000_000 + hold + b"y" * 10)
    check(b"hwp_" not in t.main.received() and TOKEN.encode() not in t.main.received(), "some of the placeholder went upstream")


@case("broker: content of a client that pauses is forwarded meanwhile, for all pieces of the placeholder", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="json")
    client, authority = broker.wire(), b"localhost:%d" % broker.origin
    client.send(head(b"Transfer-Encoding: chunked", b"Content-Type: application/json", start=b"POST http://" + authority + b"/ HTTP/1.1",
                     host=b"Host: " + authority + b"\r\n"))

    def chunk(data: bytes) -> None:
        client.send(b"%x\r\n%s\r\n" % (len(data), data))

    chunk(b'{"first":1,"key":"hw')
    check(eventually(lambda: b'"first"' in t.main.received(), 20), "nothing was forwarded while the client pauses")
    check(b'"hw' not in t.main.received(), "bytes that may begin a placeholder were sent")
    for byte in broker.placeholder[2:]:
        chunk(byte.encode())
    chunk(b'","b":"h"}')
    client.send(b"0\r\n\r\n")
    expect_status(client.read_response("POST"), 200)
    expect_same("JSON", json.loads(t.main.requests[-1].body), {"first": 1, "key": TOKEN, "b": "h"})
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST http://" + authority + b"/ HTTP/1.1", host=b"Host: " + authority + b"\r\n"))
    chunk(b"abc")
    client.send(b"0\r\nX-Trailer: " + broker.placeholder.encode() + b"\r\n\r\n")
    expect_status(client.read_response("POST"), 403)


def echoing(connection: OriginConnection) -> None:
    """Answers what the query asks for, with the token that came."""
    while True:
        request = connection.serve()
        token = token_of(request)
        kind = request.target.partition("?")[2]
        form = {
            "plain": token, "percent": "".join(f"%{ord(c):02x}" for c in token), "json": json.dumps({"t": token}).replace("/", "\\/"),
            "unicode": "".join(f"\\u{ord(c):04x}" for c in token),
            **{f"base64{n}": base64.b64encode(b"u" * n + token.encode() + b":after").decode() for n in range(3)},
            "mime": base64.encodebytes(b"x" * 45 + token.encode() + b"y" * 40).decode(),
            "github": json.dumps({"content": base64.encodebytes(b"x" * 30 + token.encode() + b"y" * 40).decode()}),
        }
        fields = [b"ETag: \"abc\"", b"X-Token: " + token.encode(), b"Location: /?t=" + form["percent"].encode(), b"Digest: sha-256=x", b"Accept-Ranges: bytes"]
        if kind in form:
            body = f"<{form[kind]}>".encode()
        elif kind.startswith("gzip"):
            body = f"<{token}>".encode()
            half = len(body) // 2
            body = gzip.compress(body) if kind == "gzip" else gzip.compress(body[:half]) + gzip.compress(body[half:])
            fields.append(b"Content-Encoding: gzip")
        elif kind == "chunks":
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for byte in f"<{token}>":
                connection.send(b"1\r\n" + byte.encode() + b"\r\n")
                pause(0.002, Why.SLOW)
            connection.send(b"0\r\nX-Trailer: " + token.encode() + b"\r\n\r\n")
            continue
        elif kind == "part":
            connection.send(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/2\r\nContent-Length: 2\r\n\r\nok")
            continue
        elif kind == "odd":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: compress\r\nContent-Length: 2\r\n\r\nok")
            continue
        elif kind == "hints":
            connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: <" + token.encode() + b">\r\n\r\nHTTP/1.1 100 Continue\r\nX-T: " + token.encode() + b"\r\n\r\n" + OK)
            continue
        else:
            body = b"ok"
        connection.send(b"HTTP/1.1 200 Token " + token.encode() + b"\r\n" + b"\r\n".join(fields) + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@case("broker: scrub replaces the token by its placeholder in the host's answers", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, echoing, scrub=True)
    hold = broker.placeholder
    expected = {"plain": hold, "percent": hold, "json": json.dumps({"t": hold}), "unicode": hold, "gzip": hold, "gzip members": hold, "chunks": hold}
    for kind, text in expected.items():
        answer = broker.ask(broker.bearer(), b"Accept-Encoding: gzip;q=1, br, foo", b"Range: bytes=0-1", target=f"/?{kind.replace(' ', '-')}".encode())
        expect_same(kind, answer.body.decode(), f"<{text}>")
        check(TOKEN.encode() not in answer.raw, "the token is in the head")
        request = t.main.requests[-1]
        expect_same("request", (token_of(request), request.get("Accept-Encoding"), request.has("Range")), (TOKEN, "gzip;q=1, br", False))
        if kind != "chunks":
            expect_same("fields", (answer.get("X-Token"), answer.get("Location"), answer.get("ETag"), answer.has("Digest"), answer.has("Content-Encoding")),
                        (hold, f"/?t={hold}", 'W/"abc"', False, False))
        else:
            expect_same("trailer", answer.trailers, [("X-Trailer", hold)])
    for kind in ("mime", "github"):
        body = broker.ask(broker.bearer(), target=f"/?{kind}".encode()).body.decode()[1:-1]
        body = json.loads(body)["content"] if kind == "github" else body
        decoded = base64.b64decode("".join(body.split()) + "===", validate=False)
        check(TOKEN.encode()[2:-2] not in decoded, kind, decoded)
    for count in range(3):
        body = broker.ask(broker.bearer(), target=f"/?base64{count}".encode()).body.decode()
        expect_same(f"base64 behind {count}", base64.b64decode(body[1:-1]).decode(), "u" * count + hold + ":after")
    expect_same("actions", {line["action"] for line in broker.audited(10)}, {"scrubbed"})
    broker.expect_no_token()


@case("broker: with scrub, unsearchable parts and codings are 502, and interim responses are dropped", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, echoing, scrub=True)
    for kind in (b"part", b"odd"):
        expect_status(broker.ask(broker.bearer(), target=b"/?" + kind), 502)
    client, authority = broker.wire(), b"localhost:%d" % broker.origin
    client.send(head(broker.bearer(), start=b"GET http://" + authority + b"/?hints HTTP/1.1", host=b"Host: " + authority + b"\r\n"))
    seen = client.read_until(b"0\r\n\r\n")
    check(b" 200 " in seen and TOKEN.encode() not in seen and b"Early" not in seen, seen)
    answer = broker.ask(target=b"/?odd")
    expect_same("without a token", (answer.status, answer.get("Content-Encoding")), (200, "compress"))
    answer = broker.ask(broker.bearer(), target=b"/?plain", method=b"HEAD")
    expect_same("HEAD", (answer.status, answer.get("X-Token"), answer.has("Content-Length")), (200, broker.placeholder, True))


def frame(payload: bytes, opcode: int = 1, mask: bytes = b"", last: bool = True) -> bytes:
    length = len(payload)
    size = bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length)
    size = bytes([size[0] | (0x80 if mask else 0)]) + size[1:]
    return bytes([opcode | (0x80 if last else 0)]) + size + mask + (bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload)


def read_frame(wire: Wire) -> tuple[int, bytes, bool]:
    first, second = wire.read_exactly(2)
    length = second & 0x7f
    if length == 126:
        length = struct.unpack(">H", wire.read_exactly(2))[0]
    mask = wire.read_exactly(4) if second & 0x80 else b""
    payload = wire.read_exactly(length)
    return first, bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload, bool(mask)


@case("broker: messages of a WebSocket are searched in both directions", nginx=NO)
def _(t: Trial) -> None:
    def chat(connection: OriginConnection) -> None:
        request = connection.serve()
        token = token_of(request).encode()
        connection.send(SWITCH)
        kind, payload, masked = read_frame(connection)
        check(masked, "a client's frame is not masked")
        half = len(token) // 2
        connection.send(frame(b"you said " + payload + b" with " + token))
        connection.send(frame(b"in two: " + token[:half], last=False) + frame(b"", 9) + frame(token[half:] + b"!", 0))
        read_frame(connection)
        connection.send(frame(token, 0xa))
        try:
            connection.read_exactly(1)
        except WireClosed:
            pass

    broker = Broker(t, chat, scrub=True)
    client, authority = broker.wire(), b"localhost:%d" % broker.origin
    client.send(head(*WEBSOCKET, b"Sec-WebSocket-Extensions: permessage-deflate", broker.bearer(), start=b"GET http://" + authority + b"/chat HTTP/1.1",
                     host=b"Host: " + authority + b"\r\n"))
    expect_status(client.read_response(), 101)
    check(not t.main.requests[-1].has("Sec-WebSocket-Extensions"), "an extension was offered")
    expect_same("token", token_of(t.main.requests[-1]), TOKEN)
    client.send(frame(b"hello", mask=b"abcd"))
    expect_same("message", read_frame(client), (0x81, b"you said hello with " + broker.placeholder.encode(), False))
    parts, ping = b"", False
    while True:
        kind, payload, _ = read_frame(client)
        if kind == 0x89:
            ping = True
            continue
        parts += payload
        if kind & 0x80:
            break
    expect_same("fragments", (parts, ping), (b"in two: " + broker.placeholder.encode() + b"!", True))
    client.send(frame(b"close", mask=b"abcd"))
    kind, payload, _ = read_frame(client)
    check(TOKEN.encode()[2:] not in payload, kind, payload)
    hold = broker.placeholder.encode()
    client.send(frame(b"my token: " + hold[:20], mask=b"efgh", last=False) + frame(hold[20:], 0, mask=b"ijkl"))
    expect_closed(client)
    check(eventually(lambda: any(line["action"] == "refused" for line in broker.audited(1)), 3), broker.audited(1))
    broker.expect_no_token()


@case("broker: tunnels that cannot be read are 403, unless allowOpaque names the host", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, intercept='hosts: ["*"], except: [localhost, "127.0.0.2"], allowOpaque: ["127.0.0.2"]')
    _, answer = broker.tunnel()
    expect_status(answer, 403)
    check(b"allowOpaque" in answer.body, answer.body)
    client, answer = broker.tunnel("127.0.0.1")
    expect_status(answer, 200)
    client.send(b"\x00neither TLS nor HTTP\r\n\r\n")
    expect_closed(client)
    expect_same("connections upstream", len(t.main.used), 0)


@case("broker: an admin listener without a token is an error, and so are options that do not fit", nginx=NO)
def _(t: Trial) -> None:
    base = """version: 1
listeners: {{ dev: {{ bind: "127.0.0.1:8888", mode: forward, chain: dev }} }}
credentials: {{ app: {{ grant: static, value: secret-token{env} }} }}
chains: {{ dev: {{ middlewares: [{{ tokenInject: {{ credential: app{more} }} }}] }} }}
routes: [{{ service: passthrough }}]
{admin}
"""
    def expect(code: int, *words: str, env: str = "", more: str = "", admin: str = "") -> None:
        result = run(t, "check", "-c", "-", text=base.format(env=env, more=more, admin=admin))
        expect_same("exit", (result.returncode, all(word in result.stdout + result.stderr for word in words)), (code, True))

    admin = 'admin: { bind: "127.0.0.1:9901" }'
    expect(1, "admin.token", env=", env: APP_TOKEN", more=", placeholder: {}", admin=admin)
    expect(1, "admin.token", env=", env: APP_TOKEN", admin=admin)
    expect(0, env=", env: APP_TOKEN", more=", placeholder: {}", admin='admin: { bind: "127.0.0.1:9901", token: 0123456789abcdef }')
    expect(1, "write env: NAME", more=", placeholder: {}")
    expect(1, "no effect without placeholder", env=", env: APP_TOKEN", more=", scrub: true")
    expect(1, "no effect with placeholder", env=", env: APP_TOKEN", more=", placeholder: {}, header: X-A")
    expect(1, "is not the name of a variable", env=', env: "1 A"')
    expect(0, "nothing replaces", env=", env: APP_TOKEN")
    expect(0, "each CONNECT is answered 403", env=", env: APP_TOKEN", more=", placeholder: {}")


@case("broker: with keeps the command's own variables, and does not require a rotated static token", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, credentials="other: { grant: static, value: another-token, env: OTHER_TOKEN }",
                    routes="- { match: { path: /other }, chain: other, service: passthrough }".replace("chain: other, ", ""))
    check(FORM.fullmatch(broker.other) and broker.other != broker.placeholder, broker.other)
    answer = broker.ask(b"Authorization: Bearer " + broker.other.encode())
    expect_status(answer, 403)
    check(b"the placeholder of other" in answer.body, answer.body)


@case("broker: a refused token is refreshed, and the request is sent again with its content; both tokens are scrubbed", nginx=NO)
def _(t: Trial) -> None:
    def once(connection: OriginConnection) -> None:
        while True:
            request = connection.serve()
            if json.loads(request.body)["key"].endswith("-1"):
                connection.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            else:
                body = b"before s3cret-token-1, now s3cret-token-2"
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    endpoint = Endpoint(t)
    broker = Broker(t, once, places="json", scrub=True, middlewares="{ tokenRefresh: { credential: orders } }, "
                    "{ tokenInject: { credential: orders, placeholder: { in: [json] }, scrub: true } }, ",
                    credentials=f'orders: {{ grant: refreshToken, tokenUrl: "http://127.0.0.1:{endpoint.server.server_address[1]}/token", clientId: x, refreshToken: a, '
                    "file: orders.json, env: OTHER_TOKEN }")
    body = json.dumps({"key": broker.other}).encode()
    answer = broker.ask(b"Content-Type: application/json", method=b"POST", content=body)
    expect_same("answer", (answer.status, answer.body.decode()), (200, f"before {broker.other}, now {broker.other}"))
    expect_same("tokens", [json.loads(request.body)["key"] for request in t.main.requests], ["s3cret-token-1", "s3cret-token-2"])


@case("broker: content of other types, and JSON without placeholders, passes unchanged", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, places="form, json", scrub=True)
    content = gzip.compress(os.urandom(1_500_000))
    expect_status(broker.ask(b"Content-Type: application/octet-stream", b"Content-Encoding: gzip", b"Range: bytes=0-1", method=b"PUT", content=content), 200)
    request = t.main.requests[-1]
    expect_same("binary", (request.body == content, request.get("Content-Length"), request.get("Content-Encoding"), request.get("Range")),
                (True, str(len(content)), "gzip", "bytes=0-1"))
    text = gzip.compress(b"h" * 3_000_000, 0)
    expect_status(broker.ask(b"Content-Type: text/plain", b"Content-Encoding: gzip", method=b"PUT", content=text), 200)
    expect_same("text", t.main.requests[-1].body, text)
    body = json.dumps({"a": "h" * 1_200_000}).encode()
    expect_status(broker.ask(b"Content-Type: application/json", method=b"POST", content=body), 200)
    expect_same("JSON", t.main.requests[-1].body, body)
    check(not broker.audit.exists() or not broker.audit.read_text(), "an audit line without a use")


@case("broker: two credentials in one request are both replaced", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t, middlewares="{ tokenInject: { credential: other, placeholder: {} } }, ", credentials="other: { grant: static, value: another-token, env: OTHER_TOKEN }")
    for lines in ((broker.bearer(), b"X-Other: " + broker.other.encode()), (b"X-Other: " + broker.other.encode(), broker.bearer())):
        expect_status(broker.ask(*lines), 200)
        expect_same("tokens", (token_of(t.main.requests[-1]), t.main.requests[-1].get("X-Other")), (TOKEN, "another-token"))


@case("broker: steady content, and bytes that may begin a placeholder, are forwarded after a delay", nginx=NO)
def _(t: Trial) -> None:
    broker = Broker(t)
    client, authority = broker.wire(), b"localhost:%d" % broker.origin
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST http://" + authority + b"/ HTTP/1.1", host=b"Host: " + authority + b"\r\n"))
    started = time.monotonic()
    while time.monotonic() - started < 4 and not t.main.received():
        client.send(b"4\r\nabch\r\n")
        pause(0.02, Why.SLOW)
    check(t.main.received(), "nothing was forwarded in four seconds")
    client.send(b"3\r\nxyh\r\n")
    check(eventually(lambda: t.main.received().endswith(b"xy\r\n1\r\nh\r\n"), 3), "the last byte is held for ever:", t.main.received()[-40:])
    client.send(b"%x\r\n%s\r\n" % (35, broker.placeholder.encode()[1:]))
    expect_status(client.read_response("POST"), 403)
    check(broker.placeholder.encode()[4:20] not in t.main.received(), "the placeholder was sent")


@case("broker: the variable of a token's source is removed from the command's environment", nginx=NO)
def _(t: Trial) -> None:
    folder = t.setup.place.subfolder("variable")
    (folder / "a.yaml").write_text("""version: 1
listeners: { dev: { bind: "127.0.0.1:1", mode: forward, chain: dev } }
credentials: { app: { grant: static, value: "${REAL_TOKEN}", env: APP_TOKEN } }
chains: { dev: { middlewares: [{ tokenInject: { credential: app, placeholder: {} } }] } }
routes: [{ service: passthrough }]
""")
    result = with_command(t, "-c", str(folder / "a.yaml"), "--", "sh", "-c", "echo ${REAL_TOKEN-none} $APP_TOKEN", environment={"REAL_TOKEN": TOKEN})
    check(re.fullmatch(r"none hwp_[A-Za-z0-9]{32}\n", result.stdout) and TOKEN not in result.stderr and "REAL_TOKEN" in result.stderr, result)
