"""A forward proxy that reaches origin servers by another proxy: CONNECT, absolute-form, credentials, exceptions."""

from __future__ import annotations

import base64
import ssl
import subprocess
import threading

from Rig.certificates import certificates
from Rig.origins import OriginConnection, answering
from Rig.processes import free_port
from Rig.wire import Wire
from suite import Trial, case, check, connect, expect_same, expect_status

from .command import NO, checked
from .intercept import OK
from .refused_requests import head
from .tls import secure


class Chained:
    """A gateway whose other proxy is scripted: `t.main` is that proxy."""

    def __init__(self, t: Trial, script, options: str = "", *, deny: str = "false", intercept: str = "", environment: dict[str, str] | None = None,
                 proxy: str | None = None):
        self.t, self.port = t, free_port()
        t.origin(script)
        folder = t.setup.place.subfolder("chained")
        proxy = proxy or f"url: 'http://anna:p%40ss@127.0.0.1:{t.main.port}'"
        if intercept:
            subprocess.run([t.setup.binary, "ca", "init", "--dir", str(folder / "ca")], capture_output=True, timeout=20, check=True)
        self.ca = folder / "ca" / "ca.pem"
        (folder / "httpware.yaml").write_text(f"""version: 1
listeners:
  dev:
    mode: forward
    bind: "127.0.0.1:{self.port}"
    {intercept}
    forward: {{ connectPorts: [443, 25, {t.setup.ports['second']}], denyPrivate: {deny}, upstreamProxy: {{ {proxy} {options} }} }}
routes: [{{ service: passthrough }}]
""")
        self.process = t.setup.place.command([t.setup.binary, "run", "-c", str(folder / "httpware.yaml"), "--workers", "1"], [self.port],
                                             environment={"SSL_CERT_FILE": str(certificates() / "ca.pem"), **(environment or {})})
        t.at_end(self.process.stop)

    def client(self) -> Wire:
        client = connect(("127.0.0.1", self.port), 10)
        self.t.clients.append(client)
        return client

    def tunnel(self, target: str = "a.test:443") -> tuple[Wire, object]:
        client = self.client()
        client.send(head(start=f"CONNECT {target} HTTP/1.1".encode(), host=f"Host: {target}\r\n".encode()))
        return client, client.read_response("CONNECT")

    def ask(self, url: str):
        client = self.client()
        authority = url.split("/")[2]
        client.send(head(start=f"GET {url} HTTP/1.1".encode(), host=f"Host: {authority}\r\n".encode()))
        return client.read_response()


RIGHT = "Basic " + base64.b64encode(b"anna:p@ss").decode()


def proxying(answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n", then=None, bytewise: bool = False):
    """A proxy that opens tunnels with these bytes, and is the host behind them."""

    def script(connection: OriginConnection) -> None:
        connection.requests.append(connection.read_request_head())
        connection.origin.requests.append(connection.requests[-1])
        connection.feed(answer, bytewise)
        if then:
            then(connection)

    return script


@case("upstreamProxy: a request without TLS goes to the proxy in absolute form, with its credentials", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, answering(OK))
    for path in ("/x?y=z", "/"):
        expect_same("body", chained.ask(f"http://a.test{path}").body, b"ok")
        request = t.main.requests[-1]
        expect_same("upstream", (request.target, request.get("Host"), request.get("Proxy-Authorization")),
                    (f"http://a.test{path}", "a.test", RIGHT))
    expect_same("connections", len(t.main.used), 1)


@case("upstreamProxy: a tunnel is a tunnel of the proxy's, and not a byte is lost", nginx=NO)
def _(t: Trial) -> None:
    def mail(connection: OriginConnection) -> None:
        connection.fill()
        connection.send(b"250 " + bytes(connection.buffer))

    for bytewise in (False, True):
        for answer in (b"HTTP/1.1 200 OK\r\n\r\n220 mail\r\n", b"HTTP/1.0 200\r\nX-A: b\r\n\r\n220 mail\r\n", b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n220 mail\r\n"):
            if answer.startswith(b"HTTP/1.0 200\r"):
                answer = answer.replace(b"200\r", b"200 OK\r")
            chained = Chained(t, proxying(answer, mail, bytewise))
            client, response = chained.tunnel("mail.test:25")
            expect_status(response, 200)
            expect_same("greeting", client.read_until(b"\r\n"), b"220 mail\r\n")
            client.send(b"EHLO")
            expect_same("answer", client.read_exactly(8), b"250 EHLO")
            request = t.main.requests[-1]
            expect_same("CONNECT", (request.start, request.get("Host"), request.get("Proxy-Authorization")),
                        (b"CONNECT mail.test:25 HTTP/1.1", "mail.test:25", RIGHT))


@case("upstreamProxy: TLS inside a tunnel of the proxy's is verified by the host", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, proxying(then=secure(answering(OK))), intercept='intercept: { hosts: ["*"], ca: ca }')
    client, response = chained.tunnel()
    expect_status(response, 200)
    check(not t.main.requests, "the proxy was asked before the client has")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(chained.ca))
    inner = Wire(context.wrap_socket(client.sock, server_hostname="a.test"), 10)
    t.clients.append(inner)
    for _ in range(2):
        inner.send(head(host=b"Host: a.test\r\n"))
        expect_status(inner.read_response(), 200)
    expect_same("CONNECT", t.main.requests[0].start, b"CONNECT a.test:443 HTTP/1.1")
    expect_same("connections", len(t.main.used), 1)


@case("upstreamProxy: what the proxy refuses is 502 for the client", nginx=NO)
def _(t: Trial) -> None:
    for answer in (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n", b"nonsense\r\n\r\n",
                   b"", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"):
        chained = Chained(t, proxying(answer))
        expect_status(chained.tunnel()[1], 502)



@case("upstreamProxy: except, no_proxy and the environment", nginx=NO)
def _(t: Trial) -> None:
    second = t.origin(answering(OK), "second")
    direct = f"http://127.0.0.1:{second.port}/"
    Chained(t, answering(OK), ", except: [127.0.0.1]").ask(direct)
    expect_same("at the host", (len(second.requests), len(t.main.requests)), (1, 0))
    for value in ("*", "x.test,127.0.0.0/8", "127.0.0.1", f"127.0.0.1:{second.port}"):
        before = len(second.requests)
        chained = Chained(t, answering(OK), proxy="fromEnvironment: true",
                          environment={"http_proxy": f"127.0.0.1:{t.main.port}", "no_proxy": value})
        chained.process  # the environment is read when the configuration is
        expect_status(chained.ask(direct), 200)
        expect_same(f"no_proxy={value}", len(second.requests), before + 1)
    chained = Chained(t, answering(OK), proxy="fromEnvironment: true",
                      environment={"http_proxy": f"http://127.0.0.1:{t.main.port}", "no_proxy": ".b.test"})
    expect_status(chained.ask("http://a.test/"), 200)
    expect_same("target", t.main.requests[-1].target, "http://a.test/")


@case("upstreamProxy: denyPrivate judges addresses and known names; the proxy's own address is exempt", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, answering(OK), deny="true")
    expect_status(chained.ask("http://a.test/"), 200)
    for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1"):
        expect_status(chained.ask(f"http://{host}/"), 403)
        expect_status(chained.tunnel(f"{host}:443")[1], 403)
    expect_same("requests at the proxy", len(t.main.requests), 1)


@case("check: the password of upstreamProxy is not shown, and its mistakes are named", nginx=NO)
def _(t: Trial) -> None:
    text = """version: 1
listeners: { dev: { mode: forward, bind: "127.0.0.1:8888", forward: { upstreamProxy: { url: "URL" } } } }
routes: [{ service: passthrough }]
"""
    for url in ("https://a:hunter@proxy.test:1", "http://a:hunter%zz@proxy.test", "http://proxy.test/path", "ftp://x"):
        result = checked(t, text.replace("URL", url))
        expect_same("exit", result.returncode, 1)
        check("http://proxy.corp:3128" in result.stderr and "hunter" not in result.stderr, result.stderr)
    result = checked(t, text.replace('url: "URL"', 'url: "http://p.test", fromEnvironment: true'))
    check("remove one of them" in result.stderr, result.stderr)


@case("upstreamProxy: a proxy that sends interim responses without end holds up nobody", nginx=NO)
def _(t: Trial) -> None:
    def script(connection: OriginConnection) -> None:
        connection.read_request_head()
        while connection.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100):
            pass

    chained = Chained(t, script, ", except: [127.0.0.1]")
    second = t.origin(answering(OK), "second")
    expect_status(chained.tunnel()[1], 502)
    expect_status(chained.ask(f"http://127.0.0.1:{second.port}/"), 200)


@case("upstreamProxy: a slow proxy opens a tunnel that passes unread, and its client's bytes wait in the kernel", nginx=NO)
def _(t: Trial) -> None:
    go = threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.requests.append(connection.read_request_head())
        go.wait(10)
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.read_rest()
        connection.origin.count = len(connection.received)
        connection.send(b"done")

    chained = Chained(t, script, intercept='intercept: { hosts: ["*"], ca: ca }')
    client, response = chained.tunnel()
    expect_status(response, 200)
    client.send(b"SSH-2.0-x\r\n")
    before = chained.process.status("VmRSS")
    client.sock.settimeout(0.7)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += client.sock.send(b"x" * 65536)
    except TimeoutError:
        pass
    check(chained.process.status("VmRSS") - before < 16 << 10, "grew to", chained.process.status("VmRSS"))
    go.set()
    client.sock.settimeout(10)
    client.end_sending()
    expect_same("answer", client.read_rest(), b"done")
    expect_same("bytes", t.main.count - len(b"SSH-2.0-x\r\n") >= sent, True)


@case("upstreamProxy: a tunnel to an address is one to that address for the other proxy, whatever the handshake names", nginx=NO)
def _(t: Trial) -> None:
    chained = Chained(t, proxying(then=secure(answering(OK))), intercept='intercept: { hosts: ["*"], ca: ca }', deny="true")
    client, response = chained.tunnel("93.184.216.34:443")
    expect_status(response, 200)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(chained.ca))
    inner = Wire(context.wrap_socket(client.sock, server_hostname="a.test"), 10)
    t.clients.append(inner)
    inner.send(head(host=b"Host: a.test\r\n"))
    expect_status(inner.read_response(), 200)
    expect_same("CONNECT", t.main.requests[0].start, b"CONNECT 93.184.216.34:443 HTTP/1.1")
    for host in ("127.1", "2130706433", "0x7f000001", "0177.0.0.1"):
        expect_status(chained.ask(f"http://{host}/"), 403)
