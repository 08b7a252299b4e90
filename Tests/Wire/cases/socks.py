"""SOCKS5 on the port of a forward listener: RFC 1928, RFC 1929."""

from __future__ import annotations

import socket
import ssl
import subprocess

from Rig.certificates import certificates
from Rig.origins import answering
from Rig.wire import Wire
from suite import Trial, case, check, connect, expect_same, expect_status

from .command import NO, checked
from .intercept import OK, Proxy

OPEN, PASSWORD = b"\x05\x01\x00", b"\x05\x02\x00\x02"
PLAIN = 'hosts: ["*"], except: ["*.test", "*.invalid", localhost, 127.0.0.1, "[::1]"]'


def name(host: str, port: int, command: int = 1) -> bytes:
    return bytes([5, command, 0, 3, len(host)]) + host.encode() + port.to_bytes(2, "big")


def address(host: str, port: int) -> bytes:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return bytes([5, 1, 0, 4 if ":" in host else 1]) + socket.inet_pton(family, host) + port.to_bytes(2, "big")


def credentials(user: bytes, password: bytes) -> bytes:
    return bytes([1, len(user)]) + user + bytes([len(password)]) + password


class Client:
    def __init__(self, proxy: Proxy):
        self.wire = connect(("127.0.0.1", proxy.port), 10)
        proxy.t.clients.append(self.wire)

    def ask(self, message: bytes, count: int, bytewise: bool = False) -> bytes:
        self.wire.feed(message, bytewise)
        return self.wire.read_exactly(count)

    def reply(self, request: bytes, bytewise: bool = False) -> int:
        answer = self.ask(request, 10, bytewise)
        expect_same("reply", (answer[0], answer[2:]), (5, b"\0\1\0\0\0\0\0\0"))
        return answer[1]


def socks(t: Trial, script=answering(OK), **more) -> Proxy:
    return Proxy(t, script, listener="socks: true", **({"tls": False, "intercept": PLAIN} | more))


@case("RFC 1928: a name and an address lead to the host", nginx=NO)
def _(t: Trial) -> None:
    for bytewise in (False, True):
        proxy = socks(t)
        for request in (name("localhost", proxy.origin), address("127.0.0.1", proxy.origin), name("127.0.0.1", proxy.origin)):
            client = Client(proxy)
            expect_same("method", client.ask(OPEN, 2, bytewise), b"\x05\x00")
            expect_same("reply", client.reply(request, bytewise), 0)
            client.wire.send(proxy.get())
            expect_same("body", client.wire.read_response().body, b"ok")


@case("RFC 1928: all bytes of a client may arrive in one piece", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t)
    client = Client(proxy)
    expect_same("answers", client.ask(OPEN + name("localhost", proxy.origin) + proxy.get(), 12), b"\5\0\5\0\0\1\0\0\0\0\0\0")
    expect_same("body", client.wire.read_response().body, b"ok")


@case("RFC 1928: HTTP on the same port is still served", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t)
    client = connect(("127.0.0.1", proxy.port), 10)
    t.clients.append(client)
    client.send(proxy.get(f"http://localhost:{proxy.origin}/a".encode()))
    expect_status(client.read_response(), 200)


@case("RFC 1928: without socks: true the first byte is refused as an invalid request", nginx=NO)
def _(t: Trial) -> None:
    proxy = Proxy(t, tls=False)
    client = Client(proxy)
    client.wire.send(OPEN + b"\r\n\r\n")
    check(not client.wire.read_rest().startswith(b"\x05"))


@case("RFC 1928 §6: each refusal has its reply code", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t)
    closed = t.setup.ports["closed"]
    for request, reply in (
            (name("localhost", closed), 5), (name("localhost", 1), 2), (name("does-not-exist.invalid", proxy.origin), 4),
            (name("localhost", proxy.origin, 2), 7), (name("localhost", proxy.origin, 3), 7), (b"\5\1\0\2" + bytes(6), 8),
            (name("a b", proxy.origin), 1), (name("localhost", 0), 1)):
        client = Client(proxy)
        client.ask(OPEN, 2)
        expect_same(f"reply to {request!r}", client.reply(request), reply)
        check(client.wire.ends(), "stays open")


@case("RFC 1928: a private address is denied with 02", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t, deny="true")
    for request in (address("127.0.0.1", proxy.origin), name("localhost", proxy.origin), address("::1", proxy.origin),
                    address("::ffff:127.0.0.1", proxy.origin)):
        client = Client(proxy)
        client.ask(OPEN, 2)
        expect_same("reply", client.reply(request), 2)


@case("RFC 1928 §3: broken greetings end the connection", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t)
    for greeting, answer in ((b"\5\1\1", b"\5\xff"), (b"\5\0", b"\5\xff"), (b"\5\1\0\4\1\0\1" + bytes(6), b"\5\0")):
        client = Client(proxy)
        client.wire.send(greeting)
        expect_same("answer", client.wire.read_rest(), answer)


@case("RFC 1929: user and password count as the Basic credentials of a CONNECT", nginx=NO)
def _(t: Trial) -> None:
    users = t.setup.place.subfolder("users") / "users.htpasswd"
    users.write_text("anna:$2b$04$qpyjXKh/tlE2Rv3eJLOywufhgQtvPPmQrfpnSdDI0WyoxM0HeYVry\n")
    proxy = socks(t, chain=f"{{ basicAuth: {{ usersFile: '{users}' }} }}")
    expect_same("no password", Client(proxy).ask(OPEN, 2), b"\5\xff")
    for user, password, reply in ((b"anna", b"myPassword", 0), (b"anna", b"wrong", 2), (b"eve", b"", 2)):
        client = Client(proxy)
        expect_same("method", client.ask(PASSWORD, 2), b"\5\2")
        expect_same("password", client.ask(credentials(user, password), 2), b"\1\0")
        expect_same("reply", client.reply(name("localhost", proxy.origin)), reply)


@case("intercept: a tunnel by SOCKS is intercepted", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t, tls=True, intercept='hosts: ["*"]', chain="{ requestHeaders: { set: { X-Ware: request } } }")
    # An address and a name in the hello: the name is the host, the address is where it goes.
    for request, host in ((name("localhost", proxy.origin), "localhost"), (address("127.0.0.1", proxy.origin), "a.test")):
        client = Client(proxy)
        client.ask(OPEN, 2)
        expect_same("reply", client.reply(request), 0)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(str(proxy.ca))
        inner = Wire(context.wrap_socket(client.wire.sock, server_hostname=host), 10)
        t.clients.append(inner)
        inner.send(proxy.get(host=f"{host}:{proxy.origin}"))
        expect_status(inner.read_response(), 200)
        expect_same("upstream", (t.main.requests[-1].get("X-Ware"), t.main.requests[-1].get("Host")), ("request", f"{host}:{proxy.origin}"))


@case("intercept: an address whose hello names a host of except passes unread, to that address", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t, tls=True, intercept='hosts: ["*"], except: [a.test]')
    client = Client(proxy)
    client.ask(OPEN, 2)
    expect_same("reply", client.reply(address("127.0.0.1", proxy.origin)), 0)
    inner = Wire(certificates().client().wrap_socket(client.wire.sock, server_hostname="a.test"), 10)
    t.clients.append(inner)
    inner.send(proxy.get(host=f"a.test:{proxy.origin}"))
    expect_status(inner.read_response(), 200)


@case("RFC 1928: curl works with its own and with the gateway's name resolution", nginx=NO)
def _(t: Trial) -> None:
    proxy = socks(t)
    for option in ("--socks5", "--socks5-hostname"):
        got = subprocess.run(["curl", "-s", "-m", "5", "--noproxy", "", option, f"127.0.0.1:{proxy.port}", f"http://localhost:{proxy.origin}/"],
                             capture_output=True, timeout=20)
        expect_same(option, got.stdout, b"ok")


@case("check: jwt with socks is an error", nginx=NO)
def _(t: Trial) -> None:
    result = checked(t, """version: 1
listeners: { dev: { mode: forward, bind: "127.0.0.1:8888", socks: true, chain: c } }
chains: { c: { middlewares: [{ jwt: { key: "secretsecretsecretsecretsecretse", algorithms: [HS256] } }] } }
routes: [{ service: passthrough }]
""")
    expect_same("exit", result.returncode, 1)
    check("socks" in result.stderr and "basicAuth" in result.stderr, result.stderr)
