"""Request targets, methods, Host policies, Max-Forwards: what reaches the origin server, and in which form."""

from __future__ import annotations

from Rig.origins import answering
from suite import Trial, case, check, expect_open, expect_same, expect_status

from .refused_requests import OTHER, head, passed_or_refused

TRACED = b"HTTP/1.1 200 OK\r\nContent-Type: message/http\r\nContent-Length: 2\r\n\r\nok"


def forwarded(name: str, start: bytes, target: str, *lines: bytes, host: bytes = b"Host: a.test\r\n", nginx: str | None = None,
              listener: str = "web") -> None:
    """The request reaches the origin with this target."""
    for how in ("whole", "bytewise"):

        @case(f"{name} [{how}]", nginx=nginx)
        def run(t: Trial, how: str = how) -> None:
            client = t.client(listener)
            client.feed(head(*lines, start=start, host=host), how == "bytewise")
            response = client.read_response(start.split(b" ")[0].decode())
            expect_status(response, 200)
            expect_open(client)
            expect_same("targets at the origin", [request.target for request in t.main.requests], [target])
            expect_same("method", t.main.requests[0].method, start.split(b" ")[0].decode())
            expect_same("version", t.main.requests[0].version, "HTTP/1.1")


forwarded("RFC 9112 §3.2.1: origin-form goes upstream unchanged", b"GET /a/b?c=d&e HTTP/1.1", "/a/b?c=d&e")
forwarded("RFC 9110 §7.7: the path goes upstream as received", b"GET /a%2Fb/%7Ec//d/%e4?x=%20&y=/../ HTTP/1.1", "/a%2Fb/%7Ec//d/%e4?x=%20&y=/../", nginx=OTHER)
forwarded("RFC 3986 §3.3: every character of a path goes upstream unchanged", b"GET /-._~!$&'()*+,;=:@a HTTP/1.1", "/-._~!$&'()*+,;=:@a")
forwarded("RFC 3986 §3.4: an empty query stays", b"GET /a? HTTP/1.1", "/a?")
forwarded("RFC 3986 §5.2.4: plain dot segments are removed", b"GET /a/./b/../c HTTP/1.1", "/a/c", nginx=OTHER)
forwarded("RFC 3986 §5.2.4: a trailing dot segment is removed", b"GET /a/b/.. HTTP/1.1", "/a/", nginx=OTHER)
forwarded("RFC 9112 §3.2.2: absolute-form on a reverse listener becomes origin-form", b"GET http://a.test/x?y HTTP/1.1", "/x?y", nginx=OTHER)
forwarded("RFC 9112 §3.2.2: absolute-form with an empty path becomes /", b"GET http://a.test HTTP/1.1", "/", nginx=OTHER)
forwarded("RFC 9112 §3.2.2: absolute-form with only a query becomes / with the query", b"GET http://a.test?x HTTP/1.1", "/?x", nginx=OTHER)
forwarded("RFC 9110 §4.2.3: the scheme in upper case is accepted", b"GET HTTP://a.test/x HTTP/1.1", "/x", nginx=OTHER)


@case("RFC 9110 §7.4: an https URI over a connection without TLS is 421", nginx=OTHER)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(start=b"GET https://a.test/x HTTP/1.1", host=b"Host: a.test\r\n"))
    expect_status(client.read_response(), 421)
    check(not t.main.received())


forwarded("RFC 9112 §3.2.4: OPTIONS * goes upstream unchanged", b"OPTIONS * HTTP/1.1", "*", nginx=OTHER)
forwarded("RFC 9110 §9.3.7: OPTIONS with a path goes upstream unchanged", b"OPTIONS /a HTTP/1.1", "/a")
for method in ("FOO", "M-SEARCH", "PROPFIND", "get", "DELETE", "PURGE", "QUERY", "A" * 20, "!#$%&'*+-.^_`|~09"):
    forwarded(f"RFC 9110 §9.1: method {method} is forwarded", f"{method} /a HTTP/1.1".encode(), "/a", nginx=OTHER)
forwarded("a request over a Unix socket goes upstream", b"GET /a HTTP/1.1", "/a", listener="local", nginx="no such listener")


@case("RFC 9112 §2.2: empty lines before the request line are ignored")
def _(t: Trial) -> None:
    client = t.client()
    client.send(b"\r\n" + head(start=b"GET /a HTTP/1.1"))
    expect_status(client.read_response(), 200)
    client.send(b"\r\n\r\n" + head(start=b"GET /b HTTP/1.1"))
    expect_status(client.read_response(), 200)
    expect_same("targets", [request.target for request in t.main.requests], ["/a", "/b"])


@case("RFC 9112 §2.2: endless empty lines are refused, or the head times out", nginx=OTHER)
def _(t: Trial) -> None:
    client = t.client("tight")
    sent = 0
    while sent < 8_000_000 and client.is_silent(0):
        if not client.send(b"\r\n" * 8192):
            break
        sent += 16384
    check(client.ends(3), "endless empty lines keep a connection open")
    check(not t.main.received())


@case("RFC 9110 §2.5: HTTP/1.2 is understood as HTTP/1.1, or refused as 505", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET /a HTTP/1.2"))
    expect_status(response, 200, 505)
    if response.status == 200:
        expect_same("version upstream", t.main.requests[0].version, "HTTP/1.1")


# --- Host: RFC 9112 §3.2, by the `host` policy of the service


def host_upstream(name: str, request: bytes, expected, nginx: str | None = None, listener: str = "web") -> None:
    @case(name, nginx=nginx)
    def run(t: Trial) -> None:
        expect_status(t.ask(request, listener=listener), 200)
        expect_same("Host", t.main.requests[0].all("Host"), [expected(t) if callable(expected) else expected])


host_upstream("Host policy upstream: Host is the authority of the service", head(), lambda t: f"127.0.0.1:{t.main.port}", nginx=OTHER)
host_upstream("Host policy preserve keeps the name", head(start=b"GET /preserving/ HTTP/1.1"), "a.test")
host_upstream("Host policy preserve keeps the port", head(start=b"GET /preserving/ HTTP/1.1", host=b"Host: a.test:8000\r\n"), "a.test:8000")
host_upstream("Host policy with a value: Host is that value", head(start=b"GET /renaming/ HTTP/1.1"), "renamed.test")
host_upstream("RFC 9112 §3.2.2: preserve takes the authority of an absolute-form, not the Host field",
              head(start=b"GET http://b.test/preserving/ HTTP/1.1"), "b.test", nginx=OTHER)
host_upstream("RFC 9112 §3.2: a request of HTTP/1.0 without Host has a Host upstream", b"GET / HTTP/1.0\r\n\r\n",
              lambda t: f"127.0.0.1:{t.main.port}", nginx=OTHER)


@case("RFC 9112 §3.2: with preserve, a request of HTTP/1.0 without Host has one valid Host upstream", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(b"GET /preserving/ HTTP/1.0\r\n\r\n")
    expect_status(response, 200, 400)
    if response.status == 200:
        check(len(t.main.requests[0].all("Host")) == 1, t.main.requests[0])


@case("RFC 9110 §7.2: Host comes first upstream", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(b"GET /preserving/ HTTP/1.1\r\nX-A: b\r\nHost: a.test\r\n\r\n"), 200)
    # SHOULD: accepted elsewhere, but exactly once
    check(t.main.requests[0].all("Host") == ["a.test"], t.main.requests[0])


for label, value in [("name", b"a.test"), ("upper case", b"A.Test"), ("port", b"a.test:8080"), ("empty port", b"a.test:"), ("trailing dot", b"a.test."),
                     ("IPv4", b"127.0.0.1"), ("IPv6", b"[::1]"), ("IPv6 and port", b"[::1]:8080"), ("underscore", b"a_b.test"), ("single label", b"localhost")]:

    @case(f"RFC 9112 §3.2: a valid Host ({label}) is accepted")
    def _(t: Trial, value: bytes = value) -> None:
        expect_status(t.ask(head(host=b"Host: " + value + b"\r\n")), 200)


# --- TRACE, OPTIONS and Max-Forwards: RFC 9110 §7.6.2, §9.3.7, §9.3.8


@case("RFC 9110 §7.6.2: Max-Forwards is decremented for TRACE", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(TRACED))
    expect_status(t.ask(head(b"Max-Forwards: 5", start=b"TRACE /a HTTP/1.1")), 200)
    expect_same("Max-Forwards", t.main.requests[0].all("Max-Forwards"), ["4"])


@case("RFC 9110 §7.6.2: Max-Forwards is decremented for OPTIONS", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Max-Forwards: 1", start=b"OPTIONS /a HTTP/1.1")), 200)
    expect_same("Max-Forwards", t.main.requests[0].all("Max-Forwards"), ["0"])


@case("RFC 9110 §9.3.8: TRACE without Max-Forwards is forwarded", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(TRACED))
    response = t.ask(head(start=b"TRACE /a HTTP/1.1"))
    expect_status(response, 200)
    expect_same("requests", len(t.main.requests), 1)


@case("RFC 9110 §7.6.2: TRACE with Max-Forwards: 0 is answered here, without credentials", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(head(b"Max-Forwards: 0", b"Authorization: Bearer secret-1", b"Cookie: a=secret-2", b"X-A: b", start=b"TRACE /a HTTP/1.1"))
    expect_status(response, 200, 405, 501)  # the final recipient may switch TRACE off
    check(not t.main.received(), "it was forwarded")
    check(b"secret" not in response.body, "credentials reflected (RFC 9110 §9.3.8):", response)
    if response.status == 200:
        expect_same("Content-Type", response.get("Content-Type"), "message/http")
        check(response.body.startswith(b"TRACE /a HTTP/1.1\r\n"), "no message/http:", response)


@case("RFC 9110 §7.6.2: OPTIONS with Max-Forwards: 0 is answered here", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(head(b"Max-Forwards: 0", start=b"OPTIONS * HTTP/1.1"))
    expect_status(response, 200, 204)
    check(not t.main.received(), "it was forwarded")


@case("RFC 9110 §7.6.2: Max-Forwards is ignored for GET", nginx=OTHER)
def _(t: Trial) -> None:
    # MAY be ignored for other methods
    expect_status(t.ask(head(b"Max-Forwards: 0")), 200)
    expect_same("requests", len(t.main.requests), 1)


passed_or_refused("RFC 9110 §7.6.2: a Max-Forwards that is not a number is refused, or ignored", head(b"Max-Forwards: x", start=b"OPTIONS /a HTTP/1.1"), 400, nginx=OTHER)


@case("RFC 9110 §9.3.8: TRACE with content is refused, or forwarded whole", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(TRACED))
    response = t.ask(head(b"Content-Length: 5", start=b"TRACE /a HTTP/1.1") + b"hello")
    expect_status(response, 200, 400, 405, 501)
    if response.status == 200:
        check(t.main.requests[0].body in (b"hello", b""), t.main.requests[0])


# --- Routes


@case("a request without a matching route is 404, and nothing goes upstream", nginx="no such route")
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET /a/b HTTP/1.1"), listener="doubting")
    expect_status(response, 404)
    check(not t.main.received())


@case("a request without a matching route leaves the connection open", nginx="no such route")
def _(t: Trial) -> None:
    client = t.client("doubting")
    for _ in range(2):
        client.send(head(start=b"GET /a/b HTTP/1.1"))
        expect_status(client.read_response(), 404)
    client.send(head(b"Content-Length: 5", start=b"POST /a/b HTTP/1.1") + b"hello")
    response = client.read_response()
    expect_status(response, 404)
    if "close" in response.options():  # instead of reading unneeded content
        return check(client.ends(), "stays open")
    client.send(head(start=b"GET /a HTTP/1.1"))
    expect_status(client.read_response(), 200)


@case("a route matches the normalised path", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET /%6dock HTTP/1.1"))
    expect_same("body", response.body, b"mocked")
    check(not t.main.received())


@case("an encoded slash is not a slash for routes", nginx=OTHER)
def _(t: Trial) -> None:
    response = t.ask(head(start=b"GET /dead%2Fa HTTP/1.1"))
    expect_status(response, 200)
    expect_same("target", t.main.requests[0].target, "/dead%2Fa")
