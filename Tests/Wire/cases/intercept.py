"""The forward proxy reads the tunnels of its clients: TLS with certificates of its own authority, HTTP in clear, and what is neither."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from Rig import http2 as h
from Rig.certificates import certificates
from Rig.origins import OriginConnection, Script, answering
from Rig.processes import Process, free_port
from Rig.waits import Why, accepts, pause
from Rig.wire import Message, Wire
from suite import Skip, Trial, case, check, connect, eventually, expect_same, expect_status

from .command import NO, checked
from .refused_requests import head
from .tls import secure

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Proxy:
    """A gateway with a forward listener that reads tunnels, an authority of its own, and an origin server that it trusts."""

    def __init__(self, t: Trial, script: Script = answering(OK), *, intercept: str = 'hosts: ["*"]', listener: str = "", chain: str = "",
                 routes: str = "[{ service: passthrough }]", tls: bool = True, deny: str = "false", workers: int = 1,
                 services: str = "", roots: str = "ca.pem"):
        self.t, self.port, self.origin = t, free_port(), t.main.port
        t.origin(secure(script) if tls else script)
        self.folder = t.setup.place.subfolder("intercept")
        self.ca = self.folder / "ca" / "ca.pem"
        made = subprocess.run([t.setup.binary, "ca", "init", "--dir", str(self.folder / "ca")], capture_output=True, text=True, timeout=20)
        expect_same("ca init", made.returncode, 0)
        self.log = self.folder / "access.log"
        self.text = f"""version: 1
listeners:
  dev:
    mode: forward
    bind: "127.0.0.1:{self.port}"
    forward: {{ connectPorts: [{self.origin}, {t.setup.ports['closed']}], denyPrivate: {deny} }}
    intercept: {{ {intercept}, ca: ca }}
    chain: dev
    {listener}
chains: {{ dev: {{ middlewares: [{chain}], postwares: [{{ accessLog: {{ output: "file:{self.log}" }} }}] }} }}
services: {{ other: {{ baseUrl: "http://127.0.0.1:{t.setup.ports['second']}" }}{services} }}
routes: {routes}
"""
        self.file = self.folder / "httpware.yaml"
        self.file.write_text(self.text)
        self.process: Process = t.setup.place.command(
            [t.setup.binary, "run", "-c", str(self.file), "--workers", str(workers)], [self.port],
            environment={"SSL_CERT_FILE": str(certificates() / roots)})
        t.at_end(self.process.stop)

    def connect(self, host: str = "localhost", port: int | None = None, *lines: bytes) -> tuple[Wire, Message]:
        """The answer to a CONNECT, and the client that sent it."""
        client = connect(("127.0.0.1", self.port), 10)
        self.t.clients.append(client)
        target = f"{host}:{port or self.origin}".encode()
        client.send(head(*lines, start=b"CONNECT " + target + b" HTTP/1.1", host=b"Host: " + target + b"\r\n"))
        return client, client.read_response("CONNECT")

    def secured(self, host: str = "localhost", *lines: bytes, name: str | None = None, alpn: list[str] | None = None,
                trust: str | None = None) -> Wire:
        """A client with TLS inside the tunnel. It verifies by the proxy's authority, unless it trusts another."""
        client, answer = self.connect(host, None, *lines)
        expect_status(answer, 200)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(trust or str(self.ca))
        if alpn:
            context.set_alpn_protocols(alpn)
        inner = Wire(context.wrap_socket(client.sock, server_hostname=name or host), 10)
        self.t.clients.append(inner)
        return inner

    def get(self, path: bytes = b"/a", *lines: bytes, host: str | None = None) -> bytes:
        authority = (host or f"localhost:{self.origin}").encode()
        return head(*lines, start=b"GET " + path + b" HTTP/1.1", host=b"Host: " + authority + b"\r\n")

    def lines(self, count: int) -> list[str]:
        check(eventually(lambda: self.log.exists() and len(self.log.read_text().splitlines()) >= count, 3),
              "log:", self.log.read_text() if self.log.exists() else "none", self.process.log)
        return self.log.read_text().splitlines()


@case("intercept: a request under TLS in a tunnel passes the chain, and goes to the host", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, chain="{ requestHeaders: { set: { X-Ware: request } } }")
    client = proxy.secured()
    for _ in range(2):
        client.send(proxy.get(b"/a?b", b"User-Agent: x"))
        expect_same("body", client.read_response().body, b"ok")
    request = t.main.requests[-1]
    expect_same("upstream", (request.target, request.get("X-Ware"), request.get("Host")), ("/a?b", "request", f"localhost:{proxy.origin}"))
    check(not request.has("Proxy-Authorization"))
    lines = proxy.lines(3)
    check('"responder":"intercepted"' in lines[0] and '"method":"CONNECT"' in lines[0], lines[0])
    check('"responder":"upstream"' in lines[1] and '"method":"GET"' in lines[1], lines[1])


@case("intercept: the certificate is for the host or the address that the client requested", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for host, kind in (("localhost", "DNS"), ("127.0.0.1", "IP Address")):
        shown = proxy.secured(host).sock.getpeercert()
        expect_same("names", shown["subjectAltName"], ((kind, host),))
        days = (ssl.cert_time_to_seconds(shown["notAfter"]) - ssl.cert_time_to_seconds(shown["notBefore"])) / 86400
        check(390 < days <= 397, "days:", days)
        check(ssl.cert_time_to_seconds(shown["notBefore"]) < time.time() - 80_000, "not backdated:", shown["notBefore"])


@case("intercept: the client gets HTTP/2 by ALPN, whichever version the host has", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    inner = proxy.secured(alpn=["h2", "http/1.1"])
    expect_same("ALPN", inner.sock.selected_alpn_protocol(), "h2")
    client = h.Http2Wire(inner)
    answers = [client.ask(stream, h.head("GET", "/a", scheme="https", authority=f"localhost:{proxy.origin}")) for stream in (1, 3)]
    expect_same("answers", [(answer.status, answer.body) for answer in answers], [(200, b"ok")] * 2)
    expect_same("HTTP/1.1", proxy.secured(alpn=["http/1.1"]).sock.selected_alpn_protocol(), "http/1.1")


@case("intercept: a request without TLS in a tunnel passes the chain", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False, chain="{ requestHeaders: { set: { X-Ware: request } } }")
    client, answer = proxy.connect()
    expect_status(answer, 200)
    client.feed(proxy.get(), True)
    expect_same("body", client.read_response().body, b"ok")
    expect_same("X-Ware", t.main.requests[-1].get("X-Ware"), "request")


@case("intercept: bytes in one piece with the CONNECT belong to the tunnel", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    client = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(client)
    target = f"localhost:{proxy.origin}".encode()
    client.send(head(start=b"CONNECT " + target + b" HTTP/1.1", host=b"Host: " + target + b"\r\n") + proxy.get(b"/early"))
    expect_status(client.read_response("CONNECT"), 200)
    expect_same("body", client.read_response().body, b"ok")
    expect_same("target", t.main.requests[-1].target, "/early")


@case("RFC 9110 §15.5.20: a request for another host than the tunnel's is 421", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for host in ("other.test", "localhost", "localhost:1", f"localhost.evil.test:{proxy.origin}"):
        client = proxy.secured()
        client.send(proxy.get(host=host))
        expect_status(client.read_response(), 421)
    client = proxy.secured()
    client.send(head(start=f"GET http://localhost:{proxy.origin}/ HTTP/1.1".encode(), host=f"Host: localhost:{proxy.origin}\r\n".encode()))
    expect_status(client.read_response(), 421)
    check(not t.main.requests, "upstream:", t.main.requests)


@case("intercept: another case or a trailing dot is still the same host", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    client = proxy.secured("LocalHost.", name="localhost")
    for host in ("LOCALHOST", "localhost."):
        client.send(proxy.get(host=f"{host}:{proxy.origin}"))
        expect_status(client.read_response(), 200)


@case("intercept: a CONNECT inside a tunnel is refused", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    client = proxy.secured()
    client.send(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n")
    expect_status(client.read_response(), 405)


@case("intercept: hosts of except, and unlisted hosts, pass unread", nginx=NO)
def _(t: Trial) -> None:
    for rules in ('hosts: ["*"], except: [localhost]', "hosts: [other.test]"):
        proxy = Proxy(t, intercept=rules)
        client = proxy.secured(trust=str(certificates() / "ca.pem"))
        client.send(proxy.get())
        expect_status(client.read_response(), 200)


@case("intercept: a client that refuses the certificate twice is tunnelled afterwards", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for _ in range(2):
        try:
            proxy.secured(trust=str(certificates() / "ca.pem"))
            check(False, "the client trusts a certificate of the proxy")
        except ssl.SSLCertVerificationError:
            pass
    check(eventually(lambda: "pass unread from now on" in proxy.process.log, 3), proxy.process.log)
    client = proxy.secured(trust=str(certificates() / "ca.pem"))
    client.send(proxy.get())
    expect_status(client.read_response(), 200)


@case("intercept: after closed and malformed handshakes, and refusals behind an accepted one, no byte passes unread", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    hello = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + b"\7" * 32 + b"\0\0\2\x13\x01\1\0"
    for junk in (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", b"\x16\x03\x01\x00\x05hello", hello, hello + b"\x15\x03\x03\x00\x02\x02\x30") * 3:
        client, _ = proxy.connect()
        client.send(junk)
        client.close()
    proxy.secured().send(proxy.get())
    for _ in range(3):
        try:
            proxy.secured(trust=str(certificates() / "ca.pem"))
            check(False, "the tunnel is not read")
        except ssl.SSLCertVerificationError:
            pass
    check("pass unread from now on" not in proxy.process.log, proxy.process.log)
    client = proxy.secured()
    client.send(proxy.get())
    expect_status(client.read_response(), 200)


def hello_of(name: str = "localhost", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The first message of a good client."""
    context = ssl.create_default_context()
    context.minimum_version = context.maximum_version = version
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


@case("intercept: an alert together with the hello does not pin", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        hello = hello_of(version=version)
        for alert in (42, 46, 48):
            record = b"\x15\x03\x03\x00\x02\x02" + bytes([alert])
            for parts in ([hello + record], [hello[:50], hello[50:] + record]) * 2:
                client, _ = proxy.connect()
                for part in parts:
                    client.send(part)
                    pause(0.02, Why.SLOW)
                while client.sock.recv(65536):
                    pass
                client.close()
    check("pass unread from now on" not in proxy.process.log and "refused the certificate" not in proxy.process.log, proxy.process.log)
    client = proxy.secured()
    client.send(proxy.get())
    expect_status(client.read_response(), 200)


@case("RFC 9110 §7.7: the path in a tunnel goes upstream as received", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    client = proxy.secured()
    for path in (b"/a/../b", b"/a%2Fb/%7Ec/./x", b"/a;p=1/../b", b"/a/%2e%2e/b", b"/../../etc/passwd", b"/100%", b"/a%zz", b"/a%00b"):
        client.send(proxy.get(path))
        expect_status(client.read_response(), 200)
        expect_same("target", t.main.requests[-1].target.encode(), path)


@case("intercept: a wildcard, or a number in place of a name, gets no certificate", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for host in ("*.test", "*", "-a.test", "0x7f.1", "127.1", "2130706433"):
        expect_status(proxy.connect(host)[1], 400)


@case("intercept: with passPinned 0s a pinned client is never tunnelled", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, intercept='hosts: ["*"], passPinned: 0s')
    for _ in range(4):
        try:
            proxy.secured(trust=str(certificates() / "ca.pem"))
            check(False, "the tunnel is not read")
        except ssl.SSLCertVerificationError:
            pass


@case("intercept: another protocol than TLS and HTTP passes unread, or is closed", nginx=NO)
def _(t: Trial) -> None:
    said = []

    def script(connection: OriginConnection) -> None:
        connection.fill()
        said.append(bytes(connection.buffer))
        connection.send(b"SSH-2.0-server\r\n")
        connection.fill()

    proxy = Proxy(t, script, tls=False)
    client, answer = proxy.connect()
    expect_status(answer, 200)
    client.send(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    expect_same("the host says", client.read_until(b"\r\n"), b"SSH-2.0-server\r\n")
    expect_same("the client said", said, [b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"])
    proxy = Proxy(t, script, tls=False, intercept='hosts: ["*"], opaque: refuse')
    client, answer = proxy.connect()
    expect_status(answer, 200)
    client.send(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    check(client.ends(), "the tunnel is open")
    expect_same("the client said", len(said), 1)
    check("neither TLS nor HTTP" in "".join(proxy.lines(2)) or '"status":403' in proxy.lines(2)[1], proxy.lines(2))


@case("intercept: bytes of a host that sends first reach a silent client", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.send(b"220 mail\r\n")
        connection.fill()
        connection.send(b"250 " + bytes(connection.buffer))

    proxy = Proxy(t, script, tls=False)
    client, _ = proxy.connect()
    expect_same("greeting", client.read_until(b"\r\n"), b"220 mail\r\n")
    client.send(b"EHLO x\r\n")
    expect_same("answer", client.read_until(b"\r\n"), b"250 EHLO x\r\n")


@case("intercept: a client that is slow to begin TLS is still intercepted", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    client, _ = proxy.connect()
    pause(0.6, Why.SLOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(proxy.ca))
    inner = Wire(context.wrap_socket(client.sock, server_hostname="localhost"), 10)
    inner.send(proxy.get())
    expect_status(inner.read_response(), 200)


@case("intercept: without a route for the host CONNECT is 403", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, routes="[{ match: { host: other.test }, service: passthrough }]")
    expect_status(proxy.connect()[1], 403)
    proxy = Proxy(t, routes='[{ match: { host: localhost, path: "/api/**" }, service: passthrough }]')
    client = proxy.secured()
    client.send(proxy.get(b"/api/a") + proxy.get(b"/b"))
    expect_status(client.read_response(), 200)
    expect_status(client.read_response(), 404)


@case("intercept: ports and private addresses are checked at the CONNECT", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    expect_status(proxy.connect(port=1)[1], 403)
    proxy = Proxy(t, deny="true")
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1"):
        expect_status(proxy.connect(host)[1], 403)


@case("intercept: a name that resolves to a private address is refused before the tunnel opens", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, deny="true")
    name = socket.gethostname()
    try:
        if not socket.gethostbyname(name).startswith(("127.", "10.", "192.168.", "172.")):
            return
    except OSError:
        return
    _, answer = proxy.connect(name, proxy.origin)
    expect_status(answer, 403)


@case("intercept: the host's certificate is verified; a fault is 502 with its name", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    t.origin(secure(answering(OK), "stranger"))
    client = proxy.secured()
    client.send(proxy.get())
    answer = client.read_response()
    expect_status(answer, 502)
    check(b"tls_certificate_error" in answer.body and b"certificate" in answer.body.split(b"detail")[-1], answer.body)


@case("intercept: the credentials of the CONNECT apply inside the tunnel, and do not go upstream", nginx=NO)
def _(t: Trial) -> None:
    users = t.setup.place.subfolder("users") / "users.htpasswd"
    users.write_text("anna:$2b$04$qpyjXKh/tlE2Rv3eJLOywufhgQtvPPmQrfpnSdDI0WyoxM0HeYVry\n")  # myPassword
    proxy = Proxy(t, chain=f"{{ basicAuth: {{ usersFile: '{users}' }} }}, {{ requestHeaders: {{ set: {{ X-User: '{{principal}}' }} }} }}")
    expect_status(proxy.connect()[1], 407)
    right = b"Proxy-Authorization: Basic " + base64.b64encode(b"anna:myPassword")
    client = proxy.secured("localhost", right)
    client.send(proxy.get(b"/a", b"Proxy-Authorization: Basic " + base64.b64encode(b"eve:no")))
    expect_status(client.read_response(), 200)
    request = t.main.requests[-1]
    expect_same("upstream", (request.get("X-User"), request.has("Proxy-Authorization")), ("anna", False))
    check(base64.b64encode(b"anna:myPassword").decode() not in "".join(proxy.lines(3)) + proxy.process.log)


@case("intercept: the record of a request inside a tunnel names the tunnel and its user", nginx=NO)
def _(t: Trial) -> None:
    users, admin = t.setup.place.subfolder("users") / "users.htpasswd", free_port()
    users.write_text("anna:$2b$04$qpyjXKh/tlE2Rv3eJLOywufhgQtvPPmQrfpnSdDI0WyoxM0HeYVry\n")  # myPassword
    proxy = Proxy(t, intercept="hosts: [a.test, localhost]", chain=f"{{ basicAuth: {{ usersFile: '{users}' }} }}",
                  routes=f"[{{ service: passthrough }}]\nadmin: {{ bind: '127.0.0.1:{admin}', token: none }}")
    right = b"Proxy-Authorization: Basic " + base64.b64encode(b"anna:myPassword")
    inside = proxy.secured("localhost", right)
    client, _ = proxy.connect("127.0.0.1", None, right)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(proxy.ca))
    named = Wire(context.wrap_socket(client.sock, server_hostname="a.test"), 10)
    for wire, host in ((inside, "localhost"), (named, "a.test")):
        wire.send(proxy.get(f"/of/{host}".encode(), host=f"{host}:{proxy.origin}"))
        expect_status(wire.read_response(), 200)
    plain = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(plain)
    plain.send(proxy.get(b"http://localhost:%d/plain" % t.setup.ports["second"], right, host=f"localhost:{t.setup.ports['second']}"))
    plain.read_response()

    def told(*arguments: str) -> str:
        return subprocess.run([t.setup.binary, "trace", *arguments, "--admin", f"127.0.0.1:{admin}"], capture_output=True, text=True, timeout=10).stdout

    check(eventually(lambda: len(told("--json").splitlines()) == 5, 5), told())
    records = {each["target"]: each for each in map(json.loads, told("--json").splitlines())}
    tunnel = {"host": "localhost", "port": proxy.origin, "principal": "anna"}
    expect_same("tunnel", records["/of/localhost"]["tunnel"], tunnel)
    expect_same("tunnel", records["/of/a.test"]["tunnel"], {**tunnel, "host": "a.test", "address": "127.0.0.1"})
    check(all("tunnel" not in each for target, each in records.items() if not target.startswith("/of/")), records)
    shown = told(records["/of/a.test"]["id"])
    check(f"in a tunnel to a.test:{proxy.origin} at 127.0.0.1, opened by anna" in shown, shown)


@case("intercept: /metrics shows when the authority expires", nginx=NO)
def _(t: Trial) -> None:
    admin = free_port()
    proxy = Proxy(t, routes=f"[{{ service: passthrough }}]\nadmin: {{ bind: '127.0.0.1:{admin}', token: none }}")
    check(eventually(lambda: accepts(admin), 5), "the admin listener does not serve")
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith("httpware_certificate_expiry_timestamp_seconds{")]
    check(len(lines) == 1 and 'kind="authority"' in lines[0], lines)
    end = subprocess.run(["openssl", "x509", "-in", str(proxy.ca), "-noout", "-enddate"], capture_output=True, text=True, timeout=10).stdout
    expect_same("expiry", int(lines[0].split()[-1]), int(ssl.cert_time_to_seconds(end.strip().partition("=")[2])))


@case("intercept: a capture has TLS and the certificates of both connections, once for each connection", nginx=NO)
def _(t: Trial) -> None:
    admin = free_port()
    proxy = Proxy(t, routes=f"[{{ service: passthrough }}]\nadmin: {{ bind: '127.0.0.1:{admin}', token: none, capture: {{}} }}")

    def captures() -> list[dict]:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/v1/captures", timeout=5) as answer:
            rows = [row for row in json.loads(answer.read())["captures"] if row["method"] == "GET" and row["state"] == "ended"]
        shown = []
        for row in rows:
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/v1/captures/{row['id']}", timeout=5) as answer:
                shown.append(json.loads(answer.read()))
        return shown

    client = proxy.secured()
    for _ in range(2):
        client.send(proxy.get())
        expect_status(client.read_response(), 200)
    inner = proxy.secured(alpn=["h2", "http/1.1"])
    expect_same("HTTP/2", h.Http2Wire(inner).ask(1, h.head("GET", "/a", scheme="https", authority=f"localhost:{proxy.origin}")).status, 200)
    check(eventually(lambda: len(captures()) == 3, 3), captures())
    third, second, first = (capture["tls"] for capture in captures())
    expect_same("of one connection", first, second)
    expect_same("client", [first["client"].get(name) for name in ("version", "name", "alpn", "names", "resumed")], ["TLSv1.3", "localhost", None, ["DNS:localhost"], False])
    served = hashlib.sha256(client.sock.getpeercert(binary_form=True)).hexdigest()
    expect_same("what was served", first["client"]["sha256"], served)
    expect_same("ALPN", third["client"]["alpn"], "h2")
    origin = ssl.PEM_cert_to_DER_cert((certificates() / "a.pem").read_text())
    expect_same("origin", (first["server"]["sha256"], first["server"]["version"], first["server"]["name"]), (hashlib.sha256(origin).hexdigest(), "TLSv1.3", "localhost"))
    check(first["server"]["issuer"] == "CN=ca" and first["server"]["notAfter"].endswith("Z") and "clientCertificate" not in first["server"], first)
    expect_status(proxy.connect("localhost")[1], 200)


@case("intercept: a refusal inside a tunnel is 403, never 407", nginx=NO)
def _(t: Trial) -> None:
    keys = t.setup.place.subfolder("keys") / "keys.txt"
    keys.write_text("a:" + "0" * 64 + "\n")
    proxy = Proxy(t, chain=f"{{ apiKey: {{ keysFile: '{keys}' }}, if: {{ path: '/kept/**' }} }}")
    client = proxy.secured()
    client.send(proxy.get(b"/kept/a"))
    answer = client.read_response()
    expect_status(answer, 403)
    expect_same("fields", (answer.has("Proxy-Authenticate"), answer.has("WWW-Authenticate"), answer.get("Content-Type")),
                (False, False, "application/problem+json"))


@case("intercept: a CONNECT counts as one request, and an answering ware does not answer it", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, chain="{ rateLimit: { rate: 3/m, burst: 3, key: ip } }, { mock: { body: mocked } }")
    client = proxy.secured()
    for expected in (200, 200, 429):
        client.send(proxy.get())
        expect_status(client.read_response(), expected)
    check(not t.main.requests)


@case("intercept: Alt-Svc is removed, HSTS reaches the client", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, answering(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nAlt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=1\r\n\r\n"))
    client = proxy.secured()
    client.send(proxy.get())
    answer = client.read_response()
    expect_same("fields", (answer.has("Alt-Svc"), answer.has("Strict-Transport-Security")), (False, True))


@case("intercept: a WebSocket in a tunnel is relayed", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
        while connection.fill():
            connection.send(bytes(connection.take(len(connection.buffer))))

    proxy = Proxy(t, script)
    client = proxy.secured()
    client.send(proxy.get(b"/ws", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
                          b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
    expect_status(client.read_response(), 101)
    client.send(b"\x81\x02hi")
    expect_same("echo", client.read_exactly(4), b"\x81\x02hi")


@case("intercept: uploads with 100 (Continue), chunks and trailers pass", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.serve()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n")

    proxy = Proxy(t, script)
    client = proxy.secured()
    body = b"x" * 200_000
    client.send(head(b"Transfer-Encoding: chunked", b"TE: trailers", start=b"POST /up HTTP/1.1",
                     host=f"Host: localhost:{proxy.origin}\r\n".encode()) + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    answer = client.read_response()
    expect_same("answer", (answer.status, answer.body), (200, b"ok"))
    expect_same("upstream", len(t.main.requests[-1].body), len(body))


@case("intercept: broken hellos end their tunnel only", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    for bytes_ in (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x16\x03\x01\x00\x00", b"\x16\x03\x01\x40\x01" + b"\x01" * 20_000,
                   b"\x16\x03\x01\x00\x01\x01" * 5000, b"\x16\x03\x03\x00\x04\x02\x00\x00\x00"):
        client, _ = proxy.connect()
        client.send(bytes_)
        client.end_sending()
        check(client.ends(5), "open after", bytes_[:20])
    client = proxy.secured()
    client.send(proxy.get())
    expect_status(client.read_response(), 200)


@case("check: intercept without an authority names the command that makes one", nginx=NO)
def _(t: Trial) -> None:
    text = """version: 1
listeners: { dev: { mode: forward, bind: "127.0.0.1:8888", intercept: { hosts: ["*"], ca: none } } }
routes: [{ service: passthrough }]
"""
    result = checked(t, text)
    expect_same("exit", result.returncode, 1)
    check("httpware ca init" in result.stderr and "file.yaml:2:" in result.stderr, result.stderr)


@case("check: intercept on an address beyond this host requires authentication", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    text = proxy.text.replace(f"127.0.0.1:{proxy.port}", f"0.0.0.0:{proxy.port}").replace("ca: ca", f"ca: {proxy.folder / 'ca'}")
    result = checked(t, text)
    expect_same("exit", result.returncode, 1)
    guarded = text.replace("middlewares: []", "middlewares: [{ ipRule: { allow: [10.0.0.0/8] } }]")
    result = checked(t, guarded)
    expect_same("exit", result.returncode, 1)
    check("intercept" in result.stderr, result.stderr)


@case("intercept: for an unreachable host, and to a slow client, the answer is sent under TLS", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, routes="[{ match: { path: '/api/**' }, service: passthrough }]")
    for port, path, status in ((t.setup.ports["closed"], b"/api/a", 502), (None, b"/b", 404)):
        client, answer = proxy.connect(port=port)
        expect_status(answer, 200)
        pause(0.6, Why.SLOW)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(str(proxy.ca))
        inner = Wire(context.wrap_socket(client.sock, server_hostname="localhost"), 10)
        inner.send(proxy.get(path, host=f"localhost:{port or proxy.origin}"))
        expect_status(inner.read_response(), status)
    # The look at a host that was silent, too, was no request.
    expect_same("lines", len([line for line in proxy.lines(4) if '"method":"CONNECT"' in line]), 2)


@case("intercept: a client that ends its side, with or without bytes before, receives the host's bytes", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        got = connection.read_rest()
        connection.send(b"got " + str(len(got)).encode())

    proxy = Proxy(t, script, tls=False)
    for said, heard in ((b"\x00binary", b"got 7"), (b"", b"got 0")):
        client, _ = proxy.connect()
        if said:
            client.send(said)
        client.end_sending()
        expect_same("heard", client.read_rest(), heard)


@case("intercept: if the CONNECT names an unlisted address, the name in the handshake decides", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, intercept="hosts: [a.test]")
    client, answer = proxy.connect("127.0.0.1")
    expect_status(answer, 200)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(proxy.ca))
    inner = Wire(context.wrap_socket(client.sock, server_hostname="a.test"), 10)
    inner.send(proxy.get(host=f"a.test:{proxy.origin}"))
    expect_status(inner.read_response(), 200)
    # Another name, or none, passes unread.
    for name in ("localhost", "127.0.0.1"):
        client, answer = proxy.connect("127.0.0.1")
        inner = Wire(certificates().client().wrap_socket(client.sock, server_hostname=name), 10)
        inner.send(proxy.get(host=f"{name}:{proxy.origin}"))
        expect_status(inner.read_response(), 200)


@case("intercept: opaque: refuse still passes hosts of except and pinned hosts", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, intercept='hosts: ["*"], except: [a.test], opaque: refuse')
    client, _ = proxy.connect("127.0.0.1")
    inner = Wire(certificates().client().wrap_socket(client.sock, server_hostname="a.test"), 10)
    inner.send(proxy.get(host=f"a.test:{proxy.origin}"))
    expect_status(inner.read_response(), 200)


@case("intercept: tunnels on streams of one connection do not use up limits.connections", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False, listener="limits: { connections: 4 }")
    wire = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(wire)
    client, streams = h.Http2Wire(wire), range(1, 17, 2)
    for stream in streams:
        client.send(h.headers(stream, [(":method", "CONNECT"), (":authority", f"localhost:{proxy.origin}")], end=False))
        client.until(lambda w: w.answer(stream).heads)
        expect_same("CONNECT", client.answer(stream).status, 200)
        client.send(h.data(stream, proxy.get()))
        client.until(lambda w: w.answer(stream).body.endswith(b"ok"))
    others = [connect(("127.0.0.1", proxy.port), 10) for _ in range(3)]
    t.clients.extend(others)
    for other in others:
        other.send(proxy.get(b"http://localhost:%d/" % proxy.origin))
        expect_status(other.read_response(), 200)
    # More than one connection may have streams: the tunnels of ended connections leave room.
    for stream in streams:
        client.send(h.data(stream, end=True))
        client.read(stream)
    for stream in range(17, 17 + 2 * 120, 2):
        client.send(h.headers(stream, [(":method", "CONNECT"), (":authority", f"localhost:{proxy.origin}")], end=False))
        client.until(lambda w: w.answer(stream).heads)
        client.send(h.data(stream, proxy.get()), h.data(stream, end=True))
        check(client.read(stream).body.endswith(b"ok"), stream, client.answer(stream))


@case("intercept: a tunnel in its handshake does not delay a drain", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t)
    client, answer = proxy.connect()
    expect_status(answer, 200)
    hello = ssl.MemoryBIO()
    context = ssl.create_default_context()
    try:
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    client.send(hello.read())
    expect_same("the answer to the hello", client.read_exactly(1), b"\x16")
    began = time.monotonic()
    proxy.process.signal(signal.SIGTERM)
    expect_same("exit", proxy.process.wait(8), 0)
    check(time.monotonic() - began < 4, "the drain took", time.monotonic() - began)


@case("intercept: the authority's key is in no core file, also after a reload that reads it again", nginx=NO)
def _(t: Trial) -> None:
    if not shutil.which("gcore"):
        raise Skip("gdb is not installed")
    proxy = Proxy(t)
    text = subprocess.run(["openssl", "pkey", "-in", str(proxy.ca.parent / "ca.key"), "-noout", "-text"], capture_output=True, text=True, check=True).stdout
    number = bytes.fromhex("".join(text.split("priv:")[1].split("pub:")[0].split()).replace(":", ""))[-32:]
    proxy.secured().close()
    for _ in range(3):
        (proxy.ca.parent / "ca.key").touch()
        before = proxy.process.log.count("reloaded: ")
        proxy.process.signal(signal.SIGHUP)
        check(eventually(lambda: proxy.process.log.count("reloaded: ") > before, 5), proxy.process.log)
    proxy.secured().close()
    core = proxy.folder / "core"
    made = subprocess.run(["gcore", "-o", str(core), str(proxy.process.pid)], capture_output=True, text=True, timeout=60)
    if made.returncode:
        raise Skip(f"no core file can be made here: {made.stderr[-200:]}")
    content = (proxy.folder / f"core.{proxy.process.pid}").read_bytes()
    check(number not in content and number[::-1] not in content, "the key is in the core file")
    check(number[16:] not in content, "half of the key is in the core file")


@case("ca: a folder or a key of another user is refused, except of root", nginx=NO)
def _(t: Trial) -> None:
    if os.geteuid():
        raise Skip("needs root, to give files to other users")
    place = Path(tempfile.mkdtemp(prefix="httpware-owner."))
    t.at_end(lambda: shutil.rmtree(place, ignore_errors=True))
    place.chmod(0o755)
    folder, own, other = place / "ca", 65534, 65533
    subprocess.run([t.setup.binary, "ca", "init", "--dir", str(folder)], capture_output=True, timeout=20, check=True)

    def owned(by_folder: int, by_key: int, mode: int = 0o700) -> subprocess.CompletedProcess:
        os.chown(folder, by_folder, by_folder)
        folder.chmod(mode)
        for name in ("ca.key", "ca.pem"):
            os.chown(folder / name, by_key, by_key)
        return subprocess.run([t.setup.binary, "ca", "show", "--dir", str(folder)], user=own, group=own, extra_groups=[], cwd="/", capture_output=True,
                              text=True, timeout=20, env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]})

    shown = owned(own, own)
    if "ermission denied" in shown.stderr and not shown.stdout:
        raise Skip(f"another user cannot run the binary: {shown.stderr}")
    expect_same(f"own: {shown.stderr}", shown.returncode, 0)
    shown = owned(other, own, 0o755)
    check(shown.returncode and f"{folder}: belongs to another user; run chown {own} {folder}" in shown.stderr, shown)
    # A folder of root's is trusted: only the key, which root alone reads, is out of reach.
    shown = owned(0, 0, 0o755)
    check(shown.returncode and "ca.key: permission denied" in shown.stderr, shown)
    expect_same("root's folder", owned(0, own, 0o755).returncode, 0)
    # The key of another user cannot be opened, unless this user is root, who may use every authority.
    check("ca.key: permission denied" in owned(own, other).stderr)
    for mode in (0o770, 0o722):
        shown = owned(own, own, mode)
        check(shown.returncode and f"others than its owner can write to the folder; run chmod 700 {folder}" in shown.stderr, shown)


@case("ca init: two concurrent runs, and an interrupted run, lead to one authority", nginx=NO)
def _(t: Trial) -> None:
    for _ in range(5):
        folder = str(t.setup.place.subfolder("authority") / "ca")
        both = [subprocess.Popen([t.setup.binary, "ca", "init", "--dir", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        expect_same("exits", [one.wait(20) for one in both], [0, 0])
        for one in both:
            one.stdout.close(), one.stderr.close()
        shown = subprocess.run([t.setup.binary, "ca", "show", "--dir", folder], capture_output=True, text=True, timeout=20)
        expect_same("show", shown.returncode, 0)
    (Path(folder) / "ca.pem").unlink()
    expect_same("init", subprocess.run([t.setup.binary, "ca", "init", "--dir", folder], capture_output=True, timeout=20).returncode, 0)
