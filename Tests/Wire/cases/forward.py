"""The forward proxy: absolute-form, CONNECT, ports and private addresses (RFC 9112 §3.2.2, RFC 9110 §9.3.6)."""

from __future__ import annotations

import os
import threading

from Rig.origins import OK, OriginConnection, answering
from Rig.waits import Why, pause
from suite import Trial, case, check, eventually, expect_closed, expect_same, expect_status, proxy_error

from .refused_requests import head

NO = "nginx is no forward proxy"


def authority(t: Trial, name: str = "main", host: str = "127.0.0.1") -> bytes:
    return f"{host}:{t.setup.ports[name]}".encode()


def get(t: Trial, path: bytes = b"/a", *lines: bytes, host: bytes = b"", method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    target = b"http://" + authority(t) + path
    return head(*lines, start=method + b" " + target + b" HTTP/" + version, host=b"Host: " + (host or authority(t)) + b"\r\n")


def connect_to(target: bytes, *lines: bytes, host: bytes | None = None) -> bytes:
    return head(*lines, start=b"CONNECT " + target + b" HTTP/1.1", host=b"Host: " + (target if host is None else host) + b"\r\n")


# --- absolute-form


@case("RFC 9112 §3.2.2: absolute-form goes to its origin in origin-form", nginx=NO)
def _(t: Trial) -> None:
    for bytewise in (False, True):
        client = t.client("proxy")
        client.feed(get(t, b"/a/b?c=d"), bytewise)
        expect_same("body", client.read_response().body, b"ok")
        request = t.main.requests[-1]
        expect_same("upstream", (request.target, request.all("Host")), ("/a/b?c=d", [authority(t).decode()]))


@case("RFC 9112 §3.2.2: the authority of the target replaces the Host received", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, host=b"evil.test"), listener="proxy"), 200)
    expect_same("Host", t.main.requests[0].all("Host"), [authority(t).decode()])


@case("RFC 9112 §3.2.1: an empty path becomes /", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b""), listener="proxy"), 200)
    expect_status(t.ask(get(t, b"?x=y"), listener="proxy"), 200)
    expect_same("targets", [request.target for request in t.main.requests], ["/", "/?x=y"])


@case("RFC 9112 §3.2.4: OPTIONS with an empty path becomes OPTIONS *", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b"", method=b"OPTIONS"), listener="proxy"), 200)
    expect_same("target", t.main.requests[0].target, "*")


@case("RFC 9112 §3.2.4: OPTIONS with / is unchanged", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b"/", method=b"OPTIONS"), listener="proxy"), 200)
    expect_same("target", t.main.requests[0].target, "/")


for label, start in [("origin-form", b"GET /a HTTP/1.1"), ("asterisk-form", b"OPTIONS * HTTP/1.1"), ("origin-form, HTTP/1.0", b"GET /a HTTP/1.0")]:

    @case(f"RFC 9112 §3.2: {label} on a forward listener is 400", nginx=NO)
    def _(t: Trial, start: bytes = start) -> None:
        # RFC 9110 §3.7: OPTIONS * has no authority to forward to; as the final recipient we may answer it.
        response = t.ask(head(start=start), listener="proxy")
        expect_status(response, 400, *((200, 204) if b"*" in start else ()))
        check(not t.main.received())


@case("RFC 9110 §4.2.2: https in absolute-form does not go to an origin server that speaks no TLS", nginx=NO)
def _(t: Trial) -> None:
    t.origin(lambda connection: connection.fill() and connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    response = t.ask(head(start=b"GET https://" + authority(t) + b"/ HTTP/1.1"), listener="proxy")
    expect_status(response, 502)
    expect_same("fault", proxy_error(response), "tls_protocol_error")
    check(b"GET" not in t.main.received(), "it went upstream in clear text")


@case("RFC 9110 §4.2.4: userinfo in the target is refused, or dropped", nginx=NO)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET http://user:pw@" + authority(t) + b"/ HTTP/1.1"), listener="proxy")
    expect_status(response, 400, 200)
    check(b"pw" not in t.main.received(), "userinfo went upstream")


@case("RFC 9110 §11.7.2: Proxy-Authorization and Proxy-Connection are not sent upstream", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b"/", b"Proxy-Authorization: Basic eDp5", b"Proxy-Connection: keep-alive", b"Proxy-Foo: bar"), listener="proxy"), 200)
    request = t.main.requests[0]
    check(not request.has("Proxy-Authorization") and not request.has("Proxy-Connection"), request)
    expect_same("Proxy-Foo", request.get("Proxy-Foo"), "bar")


@case("a forward connection is kept for several origins", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    second = t.origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"), "second")
    for _ in range(3):
        client.send(get(t))
        expect_same("body", client.read_response().body, b"ok")
        client.send(head(start=b"GET http://" + authority(t, "second") + b"/ HTTP/1.1"))
        expect_same("body", client.read_response().body, b"second")
    expect_same("connections", (len(t.main.used), len(second.used)), (1, 1))


@case("RFC 9110 §7.6.3: Via goes upstream through the forward proxy", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t), listener="proxy"), 200)
    check((t.main.requests[0].get("Via") or "").startswith("1.1 "), t.main.requests[0])


@case("RFC 9112 §9.3: a proxy does not keep the connection of an HTTP/1.0 client", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(get(t, b"/", b"Connection: keep-alive", b"Proxy-Connection: keep-alive", version=b"1.0"))
    response = client.read_response()
    expect_same("body", response.body, b"ok")
    # MUST NOT for a proxy; peers do keep it for Proxy-Connection: accepted when announced
    check("keep-alive" in response.options() or client.ends(), "open, without saying so")


@case("names are resolved by the hosts file: localhost", nginx=NO)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET http://localhost:%d/ HTTP/1.1" % t.main.port, host=b"Host: x\r\n"), listener="proxy")
    expect_status(response, 200)
    expect_same("Host", t.main.requests[0].all("Host"), [f"localhost:{t.main.port}"])


@case("a service named by a host name is resolved", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(head(start=b"GET /named/ HTTP/1.1")), 200)
    expect_same("requests", len(t.main.requests), 1)


@case("a name without an address is 502 with dns_error", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy", timeout=12)
    client.send(head(start=b"GET http://does-not-exist.invalid/ HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 502, 503, 504)
    check(proxy_error(response) in ("dns_error", "dns_timeout"), response)


@case("RFC 9112 §3.2.2: pipelined absolute-form requests are answered in order", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(get(t, b"/1") + get(t, b"/2") + get(t, b"/3"))
    for _ in range(3):
        expect_same("body", client.read_response().body, b"ok")
    expect_same("targets", [request.target for request in t.main.requests], ["/1", "/2", "/3"])


@case("a POST with content in absolute-form goes to its origin", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b"/", b"Content-Length: 5", method=b"POST") + b"hello", listener="proxy"), 200)
    expect_same("content", t.main.requests[0].body, b"hello")


@case("dot segments pass a forward proxy resolved, or unchanged", nginx=NO)
def _(t: Trial) -> None:
    expect_status(t.ask(get(t, b"/a/../b"), listener="proxy"), 200, 400)
    check(all(request.target in ("/b", "/a/../b") for request in t.main.requests), t.main.requests)


# --- private addresses, judged after resolution

PRIVATE = ["127.0.0.1", "localhost", "127.1.2.3", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "10.0.0.1", "172.16.0.1", "172.31.255.255",
           "192.168.1.1", "169.254.169.254", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "100.64.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
           "[fd00:ec2::254]", "192.0.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "LOCALHOST", "localhost."]
SLOW = ("2130706433", "0x7f000001", "0177.0.0.1", "127.1")  # names to us, not addresses

for host in PRIVATE:

    @case(f"a private or special address is refused: {host}", nginx=NO)
    def _(t: Trial, host: str = host) -> None:
        client = t.client("guarded", timeout=12)
        client.send(head(start=f"GET http://{host}:{t.setup.origins['second'].port}/ HTTP/1.1".encode()))
        response = client.read_response()
        expect_status(response, 403, *((400, 502, 504) if host in SLOW else ()))
        check(not t.setup.origins["second"].connections, "the origin was reached")

    @case(f"a tunnel to a private or special address is refused: {host}", nginx=NO)
    def _(t: Trial, host: str = host) -> None:
        client = t.client("guardedPorts", timeout=12)
        client.send(connect_to(f"{host}:{t.setup.origins['second'].port}".encode()))
        response = client.read_response("CONNECT")
        expect_status(response, 403, *((400, 502, 504) if host in SLOW else ()))
        check(not t.setup.origins["second"].connections, "the origin was reached")


@case("RFC 9209 §2.3: a refused address is destination_ip_prohibited", nginx=NO)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET http://" + authority(t) + b"/ HTTP/1.1"), listener="guarded")
    expect_status(response, 403)
    check(proxy_error(response) in ("", "destination_ip_prohibited", "http_request_denied"), response)


# --- CONNECT


def tunnel(t: Trial, script, listener: str = "proxy", timeout: float = 5.0):
    t.origin(script)
    client = t.client(listener, timeout)
    client.send(connect_to(authority(t)))
    response = client.read_response("CONNECT")
    expect_status(response, 200)
    return client, response


def echo_bytes(c: OriginConnection) -> None:
    while c.fill():
        c.sock.sendall(c.take(len(c.buffer)))


@case("RFC 9110 §9.3.6: CONNECT is 200 without framing, then bytes go both ways", nginx=NO)
def _(t: Trial) -> None:
    client, response = tunnel(t, echo_bytes)
    check(not response.has("Content-Length") and not response.has("Transfer-Encoding"), response)
    for size in (1, 1000, 300_000, 2_000_000):
        data = os.urandom(size)
        threading.Thread(target=client.send, args=(data,)).start()
        check(client.read_exactly(size) == data, "bytes differ")
    check(b"CONNECT 127" not in t.main.received() and b"Via: 1.1" not in t.main.received(), "something of ours went into the tunnel")


@case("RFC 9110 §9.3.6: CONNECT is parsed one byte at a time", nginx=NO)
def _(t: Trial) -> None:
    t.origin(echo_bytes)
    client = t.client("proxy")
    client.dribble(connect_to(authority(t)))
    expect_status(client.read_response("CONNECT"), 200)
    client.send(b"hello")
    expect_same("bytes", client.read_exactly(5), b"hello")


@case("RFC 9110 §9.3.6: bytes directly behind CONNECT wait for the tunnel", nginx=NO)
def _(t: Trial) -> None:
    t.origin(echo_bytes)
    client = t.client("proxy")
    client.send(connect_to(authority(t)) + b"GET /early HTTP/1.1\r\n\r\n")
    expect_status(client.read_response("CONNECT"), 200)
    expect_same("bytes", client.read_exactly(23), b"GET /early HTTP/1.1\r\n\r\n")


@case("RFC 9110 §9.3.6: bytes that the origin sends first arrive", nginx=NO)
def _(t: Trial) -> None:
    client, _ = tunnel(t, lambda c: (c.send(b"220 hello\r\n"), echo_bytes(c)))
    expect_same("bytes", client.read_exactly(11), b"220 hello\r\n")


@case("RFC 9110 §9.3.6: the client's half-close is passed on, and the answer still arrives", nginx=NO)
def _(t: Trial) -> None:
    client, _ = tunnel(t, lambda c: c.send(b"got " + c.read_rest()))
    client.send(b"all of it")
    client.end_sending()
    expect_same("bytes", client.read_rest(), b"got all of it")


@case("RFC 9110 §9.3.6: the origin's half-close is passed on, and the client can still send", nginx=NO)
def _(t: Trial) -> None:
    seen: list[bytes] = []

    def script(c: OriginConnection) -> None:
        c.send(b"bye")
        c.end_sending()
        seen.append(c.read_rest())

    client, _ = tunnel(t, script)
    expect_same("bytes", client.read_exactly(3), b"bye")
    check(client.ends(), "the end does not arrive")
    client.send(b"late words")
    client.end_sending()
    check(eventually(lambda: seen == [b"late words"]), "bytes after the origin's end were lost:", seen)


@case("RFC 9110 §9.3.6: outstanding bytes arrive before the end", nginx=NO)
def _(t: Trial) -> None:
    size = 3_000_000
    client, _ = tunnel(t, lambda c: c.send(b"x" * size), timeout=10)
    pause(0.3, Why.SLOW)
    expect_same("bytes", len(client.read_rest()), size)


@case("RFC 9110 §9.3.6: a reset on one side ends the other", nginx=NO)
def _(t: Trial) -> None:
    client, _ = tunnel(t, echo_bytes)
    client.send(b"x")
    client.read_exactly(1)
    client.reset()
    check(eventually(lambda: t.main.used[0].at_end), "stays open upstream")


@case("connectPorts: CONNECT to a port that is not allowed is 403", nginx=NO)
def _(t: Trial) -> None:
    for target in (b"127.0.0.1:25", b"127.0.0.1:80", b"example.com:22"):
        client = t.client("proxy")
        client.send(connect_to(target))
        expect_status(client.read_response("CONNECT"), 403)


@case("connectPorts: by default only port 443 is allowed", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("guarded")
    client.send(connect_to(authority(t)))
    expect_status(client.read_response("CONNECT"), 403)
    check(not t.main.used)


@case("RFC 9110 §15.5.6: CONNECT on a reverse listener is 405", nginx="nginx answers 400 or 405")
def _(t: Trial) -> None:
    client = t.client()
    client.send(connect_to(authority(t)))
    response = client.read_response()
    expect_status(response, 405)
    check(not t.main.used, "the origin was reached")


@case("RFC 9110 §15.5.6: bytes behind a refused CONNECT are not sent anywhere as a tunnel", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("guarded")
    client.send(connect_to(authority(t)) + b"\x16\x03\x01garbage\r\n\r\n")
    expect_status(client.read_response(), 403)
    check(client.ends(3), "stays open")
    check(not t.main.used)


for label, target in [("no port", b"127.0.0.1"), ("path", b"/a"), ("absolute-form", b"http://127.0.0.1:443/"), ("empty port", b"127.0.0.1:"), ("port 0", b"127.0.0.1:0"),
                      ("port over 65535", b"127.0.0.1:65979"), ("userinfo", b"u@127.0.0.1:443"), ("no host", b":443"), ("asterisk", b"*"), ("IPv6 without brackets", b"::1:443"),
                      ("fragment", b"127.0.0.1:443#a"), ("query", b"127.0.0.1:443?a")]:

    @case(f"RFC 9112 §3.2.3: CONNECT without a proper authority is 400: {label}", nginx=NO)
    def _(t: Trial, target: bytes = target) -> None:
        client = t.client("proxy")
        client.send(connect_to(target, host=b"a.test"))
        response = client.read_response()
        expect_status(response, 400, *((403,) if label_is_port(target) else ()))
        check(not t.main.used)


def label_is_port(target: bytes) -> bool:
    return target.endswith(b":0")


@case("RFC 9110 §9.3.6: CONNECT to a closed port is 502 with connection_refused", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(connect_to(authority(t, "closed")))
    response = client.read_response()
    expect_status(response, 502)
    expect_same("error", proxy_error(response), "connection_refused")


@case("RFC 9110 §9.3.6: CONNECT to a name that does not resolve is 502", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy", timeout=12)
    client.send(connect_to(b"does-not-exist.invalid:443"))
    expect_status(client.read_response(), 502, 503, 504)


@case("the chain runs for CONNECT: a ware can refuse it", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(connect_to(authority(t, host="localhost"), b"X-Picky: 1"))
    expect_status(client.read_response(), 403)
    check(not t.main.used)
    client = t.client("proxy")
    client.send(connect_to(authority(t, host="localhost")))
    expect_status(client.read_response("CONNECT"), 200)


@case("the chain runs for absolute-form: a ware can refuse it", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(head(b"X-Picky: 1", start=b"GET http://localhost:%d/ HTTP/1.1" % t.main.port))
    expect_status(client.read_response(), 403)
    check(not t.main.used)


@case("RFC 9110 §9.3.6: after a refused CONNECT the connection serves other requests, or closes", nginx=NO)
def _(t: Trial) -> None:
    client = t.client("proxy")
    client.send(connect_to(b"127.0.0.1:25"))
    response = client.read_response()
    if "close" in response.options():
        expect_closed(client)
    else:
        client.send(get(t))
        expect_status(client.read_response(), 200)


@case("HTTP/1.0 CONNECT opens a tunnel", nginx=NO)
def _(t: Trial) -> None:
    t.origin(echo_bytes)
    client = t.client("proxy")
    client.send(b"CONNECT " + authority(t) + b" HTTP/1.0\r\n\r\n")
    expect_status(client.read_response("CONNECT"), 200)
    client.send(b"hello")
    expect_same("bytes", client.read_exactly(5), b"hello")


@case("a request with invalid framing is refused on the forward listener", nginx=NO)
def _(t: Trial) -> None:
    for raw in (get(t, b"/", b"X-A : b"), get(t, b"/", b"Content-Length: x"), get(t).replace(b"Host:", b"Host :"), connect_to(authority(t), b"X-A : b")):
        client = t.client("proxy")
        client.send(raw)
        response = client.read_response()
        expect_status(response, 400)
        expect_closed(client, response)
    check(not t.main.used)


@case("RFC 9110 §7.8: an Upgrade passes the forward proxy in absolute-form", nginx=NO)
def _(t: Trial) -> None:
    from .upgrade import WEBSOCKET, switching

    t.origin(switching(echo_bytes))
    client = t.client("proxy")
    client.send(get(t, b"/chat", *WEBSOCKET))
    expect_status(client.read_response(), 101)
    client.send(b"hello")
    expect_same("bytes", client.read_exactly(5), b"hello")


__all__ = ["OK"]
