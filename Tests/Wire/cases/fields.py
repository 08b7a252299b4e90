"""Fields: hop-by-hop ones are removed both ways, the others arrive as they were; Via; Forwarded."""

from __future__ import annotations

from Rig.origins import OK, answering
from suite import Trial, case, check, expect_closed, expect_same, expect_status

from .refused_requests import OTHER, head

NO_WARE = "no such ware"


def answer(*lines: bytes, status: bytes = b"200 OK", content: bytes = b"ok") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: %d\r\n\r\n" % len(content) + content


# --- Requests


@case("RFC 9110 §7.6.1: fields that Connection names are removed from the request", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Connection: X-Foo, x-bar", b"X-Foo: 1", b"X-BAR: 2", b"X-Bar: 3", b"X-Food: 4")), 200)
    request = t.main.requests[0]
    for name in ("X-Foo", "X-Bar"):
        check(not request.has(name), f"{name} went upstream:", request)
    expect_same("X-Food", request.all("X-Food"), ["4"])
    check(not request.options() & {"x-foo", "x-bar"}, "Connection went upstream:", request)


@case("RFC 9110 §7.6.1: fields are removed for several Connection lines, empty members, and if they precede Connection", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"X-A: 1", b"Connection: ,X-A,, ,X-B", b"X-B: 2", b"Connection: X-C", b"X-C: 3", b"X-D: 4")), 200)
    request = t.main.requests[0]
    check(not any(request.has(name) for name in ("X-A", "X-B", "X-C")), request)
    check(request.has("X-D"), request)


@case("RFC 9110 §7.6.1: known hop-by-hop fields are removed even if Connection does not name them", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Keep-Alive: timeout=5", b"Proxy-Connection: keep-alive", b"TE: gzip", b"Upgrade: websocket", b"Connection: keep-alive")), 200)
    request = t.main.requests[0]
    for name in ("Keep-Alive", "Proxy-Connection", "Upgrade"):
        check(not request.has(name), f"{name} went upstream:", request)
    check(request.get("TE") in (None, "trailers"), "TE went upstream:", request)


@case("RFC 9110 §11.7.2: Proxy-Authorization is removed by a gateway", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Proxy-Authorization: Basic c2VjcmV0", b"Authorization: Basic dXNlcg==")), 200)
    check(not t.main.requests[0].has("Proxy-Authorization"), t.main.requests[0])
    expect_same("Authorization", t.main.requests[0].all("Authorization"), ["Basic dXNlcg=="])


@case("RFC 9112 §11.2: spellings of the framing fields with _ do not go upstream, other names with _ do", nginx=OTHER)
def _(t: Trial) -> None:
    twins = (b"Content_Length: 3", b"transfer_encoding: chunked", b"CONTENT_LENGTH: 4")
    expect_status(t.ask(head(*twins, b"X_User: a", b"Content_Lengths: 1")), 200)
    expect_status(t.ask(head(*twins, b"Content-Length: 5", start=b"POST / HTTP/1.1") + b"hello"), 200)
    chunks = b"5\r\nhello\r\n0\r\nContent_Length: 9\r\nX_Sum: 1\r\nX_Forwarded_For: 1.2.3.4\r\n\r\n"
    expect_status(t.ask(head(*twins, b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + chunks), 200)
    for request in t.main.requests:
        for name in ("Content_Length", "Transfer_Encoding"):
            check(not request.has(name), f"{name} went upstream:", request)
    expect_same("other fields", [t.main.requests[0].get(name) for name in ("X_User", "Content_Lengths")], ["a", "1"])
    expect_same("content", [request.body for request in t.main.requests], [b"", b"hello", b"hello"])
    expect_same("trailers", t.main.requests[2].trailers, [("X_Sum", "1")])


for victim, fields, content in [
    ("Content-Length", (b"Content-Length: 5",), b"hello"), ("Transfer-Encoding", (b"Transfer-Encoding: chunked",), b"5\r\nhello\r\n0\r\n\r\n"),
]:

    @case(f"RFC 9112 §6: Connection: {victim} cannot remove the framing", nginx=None)
    def _(t: Trial, victim: str = victim, fields=fields, content: bytes = content) -> None:
        # RFC 9110 §7.6.1: a sender must not name these; refusing is right, so is ignoring the option.
        client = t.client()
        client.send(head(b"Connection: " + victim.encode(), *fields, start=b"POST / HTTP/1.1") + content)
        response = client.read_response()
        expect_status(response, 200, 400)
        if response.status == 200:
            expect_same("content", [request.body for request in t.main.requests], [b"hello"])


@case("RFC 9110 §7.6.1: Connection: Host does not remove Host")
def _(t: Trial) -> None:
    response = t.ask(head(b"Connection: Host", start=b"GET /preserving/ HTTP/1.1"))
    expect_status(response, 200, 400)
    if response.status == 200:
        expect_same("Host", t.main.requests[0].all("Host"), ["a.test"])


@case("RFC 9110 §5.3: the order of field lines with one name stays, repeated lines stay")
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"X-A: 1", b"X-B: x", b"x-a: 2", b"X-A:", b"X-A: 3, 4")), 200)
    expect_same("X-A", t.main.requests[0].all("X-A"), ["1", "2", "", "3, 4"])


@case("RFC 9110 §5.5: HTAB and obs-text in values are kept, surrounding whitespace is removed")
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"X-A: a\tb  c", b"X-B:\t v \t ", b"X-C: \xe4\xff", b"X-D:v")), 200)
    request = t.main.requests[0]
    expect_same("values", [request.get(name) for name in ("X-A", "X-B", "X-C", "X-D")], ["a\tb  c", "v", "\xe4\xff", "v"])


@case("RFC 9110 §5.6.2: every token character is accepted in a field name")
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"!#$%&'*+-.^_`|~09Az: v")), 200)
    expect_same("value", t.main.requests[0].get("!#$%&'*+-.^_`|~09Az"), "v")


@case("RFC 9110 §7.6.3: Via goes upstream, with the version received and a name", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(head()), 200)
    via = t.main.requests[0].all("Via")
    check(len(via) == 1 and via[0].split(" ")[0] in ("1.1", "HTTP/1.1") and len(via[0].split(" ")) >= 2, "Via:", via)


@case("RFC 9110 §7.6.3: Via is appended to the one received", nginx=OTHER)
def _(t: Trial) -> None:
    expect_status(t.ask(b"GET / HTTP/1.0\r\nHost: a.test\r\nVia: 1.0 fred, 1.1 p.example.com\r\n\r\n"), 200)
    members = [member.strip() for member in t.main.requests[0].get("Via").split(",")]
    expect_same("members before", members[:2], ["1.0 fred", "1.1 p.example.com"])
    check(len(members) == 3 and members[2].startswith("1.0 "), members)


@case("RFC 9110 §7.6.3: Via on responses, if present, is well-formed and appended", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Via: 1.1 cache")))
    response = t.ask(head())
    members = [member.strip() for member in (response.get("Via") or "1.1 cache").split(",")]
    check(members[0] == "1.1 cache" and len(members) <= 2, members)


@case("default fields of a service are added if absent", nginx=NO_WARE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Accept: text/html", start=b"GET /defaulting/ HTTP/1.1")), 200)
    request = t.main.requests[0]
    expect_same("fields", (request.all("X-Default"), request.all("Accept")), (["service"], ["text/html"]))


# --- Responses


@case("RFC 9110 §7.6.1: fields that Connection names are removed from the response", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Connection: X-Foo", b"X-Foo: 1", b"Keep-Alive: timeout=5", b"Proxy-Connection: keep-alive", b"X-Kept: 2")))
    response = t.ask(head())
    for name in ("X-Foo", "Keep-Alive", "Proxy-Connection"):
        check(not response.has(name), f"{name} went downstream:", response)
    expect_same("X-Kept", response.get("X-Kept"), "2")
    check("x-foo" not in response.options(), response)


@case("RFC 9112 §9.6: Connection: close of the origin does not close the client's connection")
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Connection: close"), close=True))
    client = t.client()
    for _ in range(3):
        client.send(head())
        response = client.read_response()
        expect_status(response, 200)
        check("close" not in response.options(), "the origin's close went downstream:", response)
    expect_same("connections", len(t.main.used), 3)


@case("RFC 6265 §3: Set-Cookie lines stay separate and in order")
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Set-Cookie: a=1; Path=/", b"X-B: c", b"Set-Cookie: b=2")))
    expect_same("Set-Cookie", t.ask(head()).all("Set-Cookie"), ["a=1; Path=/", "b=2"])


@case("RFC 9110 §5.5: obs-text in response values stays")
def _(t: Trial) -> None:
    t.origin(answering(answer(b"X-A: \xe4\tb")))
    expect_same("X-A", t.ask(head()).get("X-A"), "\xe4\tb")


@case("RFC 9110 §6.6.1: the Date of the origin stays, and occurs once", nginx=OTHER)
def _(t: Trial) -> None:
    t.origin(answering(answer(b"Date: Sun, 06 Nov 1994 08:49:37 GMT"), OK))
    expect_same("Date", t.ask(head()).all("Date"), ["Sun, 06 Nov 1994 08:49:37 GMT"])
    # a recipient that forwards a response without one MUST append it if it is cached, else may; at most one
    check(len(t.ask(head()).all("Date")) <= 1)


for status in (200, 201, 203, 206, 226, 299, 300, 301, 307, 308, 400, 402, 418, 421, 451, 499, 500, 511, 599):

    @case(f"RFC 9110 §15: status {status} is forwarded with its content")
    def _(t: Trial, status: int = status) -> None:
        t.origin(answering(answer(b"Location: /x", status=b"%d Some Reason" % status, content=b"content")))
        client = t.client()
        for _ in range(2):
            client.send(head())
            response = client.read_response()
            expect_same("response", (response.status, response.body), (status, b"content"))


# --- Forwarded and X-Forwarded-*: RFC 7239


@case("RFC 7239 §4: forwarded names the client", nginx=NO_WARE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(start=b"GET /a HTTP/1.1"), listener="doubting"), 200)
    request = t.main.requests[0]
    expect_same("X-Forwarded-For", request.all("X-Forwarded-For"), ["127.0.0.1"])
    expect_same("X-Forwarded-Proto", request.all("X-Forwarded-Proto"), ["http"])
    expect_same("X-Forwarded-Host", request.all("X-Forwarded-Host"), ["a.test"])
    check("for=127.0.0.1" in (request.get("Forwarded") or "").replace('"', "").lower(), "Forwarded:", request)


@case("RFC 7239 §8.1: forwarded ignores values of clients outside trustedProxies", nginx=NO_WARE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"X-Forwarded-For: 1.2.3.4", b"X-Forwarded-Proto: https", b"X-Forwarded-Host: evil.test", b"Forwarded: for=1.2.3.4",
                             start=b"GET /a HTTP/1.1"), listener="doubting"), 200)
    request = t.main.requests[0]
    expect_same("X-Forwarded-For", request.all("X-Forwarded-For"), ["127.0.0.1"])
    expect_same("X-Forwarded-Proto", request.all("X-Forwarded-Proto"), ["http"])
    expect_same("X-Forwarded-Host", request.all("X-Forwarded-Host"), ["a.test"])
    check("1.2.3.4" not in (request.get("Forwarded") or ""), request)


@case("RFC 7239 §5.2: forwarded appends to the value of a trusted proxy", nginx=NO_WARE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"X-Forwarded-For: 1.2.3.4", b"X-Forwarded-Proto: https", b"Forwarded: for=1.2.3.4;proto=https",
                             start=b"GET /a HTTP/1.1"), listener="trusting"), 200)
    request = t.main.requests[0]
    expect_same("X-Forwarded-For", request.get("X-Forwarded-For").replace(" ", ""), "1.2.3.4,127.0.0.1")
    expect_same("X-Forwarded-Proto", request.all("X-Forwarded-Proto"), ["https"])
    members = [member.strip().replace('"', "").lower() for member in request.get("Forwarded").split(",")]
    check(members[0].startswith("for=1.2.3.4") and "for=127.0.0.1" in members[1], members)


@case("RFC 3875 §4.1.18: a client cannot forge a field of the forwarded ware by _ in place of -", nginx=NO_WARE)
def _(t: Trial) -> None:
    for listener in ("doubting", "trusting"):
        expect_status(t.ask(head(b"X_Forwarded_For: 1.2.3.4", b"X-Forwarded_Proto: https", b"x_real_ip: 1.2.3.4", b"X_Other: a",
                                 start=b"GET /a HTTP/1.1"), listener=listener), 200)
    for request in t.main.requests:
        check(not any(request.has(name) for name in ("X_Forwarded_For", "X-Forwarded_Proto", "X_Real_IP")), request)
        expect_same("X-Forwarded-For", request.all("X-Forwarded-For"), ["127.0.0.1"])
        expect_same("X_Other", request.all("X_Other"), ["a"])


@case("RFC 9110 §7.6.1: a client cannot remove fields that the forwarded ware adds", nginx=NO_WARE)
def _(t: Trial) -> None:
    expect_status(t.ask(head(b"Connection: X-Forwarded-For, Forwarded, X-Forwarded-Proto", start=b"GET /a HTTP/1.1"), listener="doubting"), 200)
    expect_same("X-Forwarded-For", t.main.requests[0].all("X-Forwarded-For"), ["127.0.0.1"])
    check(t.main.requests[0].has("Forwarded"), t.main.requests[0])


@case("RFC 9110 §7.6.1: Connection: close from the client does not reach the origin", nginx=OTHER)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Connection: close"))
    response = client.read_response()
    expect_closed(client, response)
    check("close" not in t.main.requests[0].options(), t.main.requests[0])
