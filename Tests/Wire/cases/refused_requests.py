"""Bad requests: refused and the connection closed, never repaired; nothing reaches the origin server.

Every one is fed whole and one byte at a time. Where a careful peer may do one of two things both are accepted, and the
case says so.
"""

from __future__ import annotations

from suite import Trial, Wire, case, check, eventually, expect_closed, expect_same, expect_status

HOST = b"Host: a.test\r\n"


def head(*lines: bytes, start: bytes = b"GET / HTTP/1.1", host: bytes = HOST) -> bytes:
    return start + b"\r\n" + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def post(*lines: bytes, content: bytes = b"hello") -> bytes:
    return head(*lines, start=b"POST / HTTP/1.1") + content


def refused(name: str, request: bytes, *statuses: int, listener: str = "web", nginx: str | None = None) -> None:
    """The request gets one of the statuses, the connection ends, nothing reaches an origin server."""
    for how in ("whole", "bytewise"):

        @case(f"{name} is refused [{how}]", nginx=nginx)
        def run(t: Trial, how: str = how) -> None:
            client = t.client(listener)
            client.feed(request, how == "bytewise")
            response = client.read_response()
            expect_status(response, *statuses)
            expect_closed(client, response)
            for origin in t.setup.origins.values():
                check(not origin.received(), "the origin received", origin.received()[:200])


def passed_or_refused(name: str, request: bytes, *statuses: int, check_request=None, nginx: str | None = None) -> None:
    """Either of both is right: refused like above, or forwarded in a form that has only one reading."""
    for how in ("whole", "bytewise"):

        @case(f"{name} [{how}]", nginx=nginx)
        def run(t: Trial, how: str = how) -> None:
            client = t.client()
            client.feed(request, how == "bytewise")
            response = client.read_response()
            expect_status(response, 200, *statuses)
            if response.status == 200:
                check(len(t.main.requests) == 1, f"{len(t.main.requests)} requests reached the origin")
                if check_request:
                    check_request(t.main.requests[0])
            else:
                expect_closed(client, response)
                check(not t.main.received(), "the origin received", t.main.received()[:200])


LENIENT = "nginx repairs this"
OTHER = "nginx answers another way"

# --- RFC 9112 §2.2, §5: lines and fields

refused("RFC 9112 §5.1: a space before the colon", head(b"X-A : b"), 400, nginx=LENIENT)
refused("RFC 9112 §5.1: a tab before the colon", head(b"X-A\t: b"), 400, nginx=LENIENT)
refused("RFC 9112 §5.1: a space before the colon of Host", head(host=b"Host : a.test\r\n"), 400, nginx=LENIENT)
refused("RFC 9112 §5.1: a space before the colon of Content-Length", post(b"Content-Length : 5"), 400, nginx=LENIENT)
refused("RFC 9112 §5.1: a space before the colon of Transfer-Encoding",
        post(b"Transfer-Encoding : chunked", content=b"0\r\n\r\n"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a leading space on the first field line", head(host=b" Host: a.test\r\n"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a leading tab on the first field line", head(host=b"\tX: y\r\nHost: a.test\r\n"), 400, nginx=LENIENT)
refused("RFC 9112 §5.2: an obs-fold with a space", head(b"X-A: b", b" c"), 400, nginx=LENIENT)
refused("RFC 9112 §5.2: an obs-fold with a tab", head(b"X-A: b", b"\tc"), 400, nginx=LENIENT)
refused("RFC 9112 §5.2: an obs-fold of an empty line", head(b"X-A: b", b" "), 400, nginx=LENIENT)
refused("RFC 9112 §5.2: an obs-fold that hides Transfer-Encoding", post(b"X-A: b", b" Transfer-Encoding: chunked", b"Content-Length: 5"),
        400, nginx=LENIENT)
refused("RFC 9110 §5.1: an empty field name", head(b": b"), 400, nginx=LENIENT)
for label, name in [("space", b"X A"), ("parenthesis", b"X(A)"), ("quote", b'X"A'), ("slash", b"X/A"), ("comma", b"X,A"),
                    ("at", b"X@A"), ("bracket", b"X[A]"), ("brace", b"X{A}"), ("equals", b"X=A"), ("octet 0x80", b"X\x80A"),
                    ("octet 0xFF", b"\xffA"), ("NUL", b"X\0A"), ("control", b"X\x01A"), ("DEL", b"X\x7fA"), ("backslash", b"X\\A")]:
    refused(f"RFC 9110 §5.6.2: a field name with {label}", head(name + b": b"), 400, nginx=LENIENT)
refused("RFC 9112 §5: a field line without a colon", head(b"X-A"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare CR in a field value", head(b"X-A: b\rc"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare CR before CRLF", head(b"X-A: b\r"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare CR that hides a field", head(b"X-A: b\rTransfer-Encoding: chunked"), 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare CR as line end", head().replace(b"\r\n", b"\r") + b"\r\n\r\n", 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare CR in the request line", head(start=b"GET /\r HTTP/1.1"), 400)
refused("RFC 9112 §2.2: a bare LF after the request line", b"GET / HTTP/1.1\n" + HOST + b"\r\n", 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare LF after a field line", b"GET / HTTP/1.1\r\nHost: a.test\n\r\n", 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare LF as the empty line", b"GET / HTTP/1.1\r\nHost: a.test\r\n\n", 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare LF everywhere", b"GET / HTTP/1.1\nHost: a.test\n\n", 400, nginx=LENIENT)
refused("RFC 9112 §2.2: a bare LF in a field value that hides a field", head(b"X-A: b\nX-B: c"), 400, nginx=LENIENT)
for label, octet in [("NUL", b"\0"), ("0x01", b"\1"), ("BS", b"\x08"), ("VT", b"\x0b"), ("FF", b"\x0c"), ("ESC", b"\x1b"), ("DEL", b"\x7f")]:
    refused(f"RFC 9110 §5.5: {label} in a field value", head(b"X-A: b" + octet + b"c"), 400, nginx=LENIENT)
    refused(f"RFC 9110 §5.5: {label} at the end of a field value", head(b"X-A: b" + octet), 400, nginx=LENIENT)
refused("RFC 9110 §5.5: VT before the value of Transfer-Encoding",
        post(b"Transfer-Encoding: \x0bchunked", content=b"0\r\n\r\n"), 400, nginx=OTHER)

# --- Host: RFC 9112 §3.2, RFC 9110 §7.2

refused("RFC 9112 §3.2: a head without Host", head(host=b""), 400)
refused("RFC 9112 §3.2: a head with other fields but without Host", head(b"X-A: b", host=b""), 400)
refused("RFC 9112 §3.2: a head with two different Hosts", head(b"Host: b.test"), 400)
refused("RFC 9112 §3.2: a head with the same Host twice", head(b"Host: a.test"), 400)
refused("RFC 9112 §3.2: an HTTP/1.0 head with two Hosts", head(b"Host: b.test", start=b"GET / HTTP/1.0"), 400)
for label, value in [("space inside", b"a b"), ("list", b"a.test, b.test"), ("slash", b"a.test/x"), ("userinfo", b"u@a.test"),
                     ("port that is not a number", b"a.test:x"), ("port over 65535", b"a.test:65536"), ("long port", b"a.test:4294967376"),
                     ("signed port", b"a.test:+80"), ("unclosed bracket", b"[::1"), ("junk after a bracket", b"[::1]x"),
                     ("IPv6 without brackets", b"::1"), ("two colons", b"a.test:80:80"), ("fragment", b"a.test#x"), ("query", b"a.test?x"),
                     ("scheme", b"http://a.test"), ("only a port", b":80"), ("backslash", b"a\\b"), ("caret", b"a^b"),
                     ("angle bracket", b"<a>"), ("quote", b'a"b'), ("bad percent", b"a%zz"), ("tab inside", b"a\tb")]:
    refused(f"RFC 9112 §3.2: an invalid Host ({label})", head(host=b"Host: " + value + b"\r\n"), 400, nginx=LENIENT)
# RFC 9110 §4.2.1: an "http" URI with an empty host is invalid, and must be rejected.
refused("RFC 9110 §4.2.1: an empty Host", head(host=b"Host:\r\n"), 400, nginx=LENIENT)
# A host outside ASCII is not a valid uri-host (RFC 3986 §3.2.2).
refused("RFC 9112 §3.2: an invalid Host (octet 0xFF)", head(host=b"Host: a\xff.test\r\n"), 400, nginx=LENIENT)

# --- Content-Length: RFC 9112 §6.3, RFC 9110 §8.6

for label, value in [("plus", b"+5"), ("minus", b"-5"), ("minus zero", b"-0"), ("hex", b"0x5"), ("hex digits", b"a"), ("empty", b""), ("space inside", b"5 5"),
                     ("fraction", b"5.0"), ("exponent", b"1e1"), ("semicolon", b"5;"), ("comma first", b",5 6"), ("quoted", b'"5"'), ("word", b"five"),
                     ("different list", b"5, 6"), ("different list without space", b"5,6"), ("2^63", b"9223372036854775808"),
                     ("2^64", b"18446744073709551616"), ("2^64 + 5", b"18446744073709551621"), ("40 digits", b"9" * 40),
                     ("underscore", b"1_0"), ("octet 0xB2", b"\xb2"), ("tab inside", b"5\t5")]:
    refused(f"RFC 9112 §6.3: an invalid Content-Length ({label})", post(b"Content-Length: " + value), 400, nginx=LENIENT if label == "2^63" else None)
refused("RFC 9112 §6.3: a Content-Length repeated with different values", post(b"Content-Length: 5", b"Content-Length: 6"), 400)
refused("RFC 9112 §6.3: a Content-Length repeated with an empty value", post(b"Content-Length: 5", b"Content-Length:"), 400)
refused("RFC 9112 §6.3: a Content-Length of 0 and of 5", post(b"Content-Length: 0", b"Content-Length: 5"), 400)
# RFC 9110 §8.6: the same value again may be made one valid field, or refused.
for label, lines in [("list", (b"Content-Length: 5, 5",)), ("lines", (b"Content-Length: 5", b"Content-Length: 5"))]:
    passed_or_refused(f"RFC 9110 §8.6: the same Content-Length twice ({label}) is refused, or sent on once", post(*lines), 400,
                      check_request=lambda request: (expect_same("Content-Length", request.all("Content-Length"), ["5"]),
                                                     expect_same("content", request.body, b"hello")))
passed_or_refused("RFC 9110 §8.6: a Content-Length with leading zeros is refused, or read as the number", post(b"Content-Length: 005"), 400,
                  check_request=lambda request: expect_same("content", request.body, b"hello"))

# --- Transfer-Encoding: RFC 9112 §6.1, §6.3, §7

CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"


def coded(*lines: bytes, start: bytes = b"POST / HTTP/1.1", content: bytes = CHUNKED) -> bytes:
    return head(*lines, start=start) + content


refused("RFC 9112 §6.1: Transfer-Encoding before Content-Length", coded(b"Transfer-Encoding: chunked", b"Content-Length: 5"), 400, nginx=OTHER)
refused("RFC 9112 §6.1: Content-Length before Transfer-Encoding", coded(b"Content-Length: 5", b"Transfer-Encoding: chunked"), 400, nginx=OTHER)
refused("RFC 9112 §6.1: Transfer-Encoding with Content-Length: 0", coded(b"Content-Length: 0", b"Transfer-Encoding: chunked"), 400)
refused("RFC 9112 §6.1: an unknown Transfer-Encoding with Content-Length", coded(b"Content-Length: 5", b"Transfer-Encoding: x"), 400, nginx=OTHER)
for label, value in [("identity", b"identity"), ("gzip", b"gzip"), ("unknown", b"xchunked"), ("chunk", b"chunk"), ("empty", b""), ("only commas", b",")]:
    refused(f"RFC 9112 §6.3: a Transfer-Encoding without chunked ({label})", coded(b"Transfer-Encoding: " + value), 400, nginx=OTHER)
refused("RFC 9112 §6.1: a list with chunked twice", coded(b"Transfer-Encoding: chunked, chunked"), 400, nginx=OTHER)
refused("RFC 9112 §6.1: chunked in two lines", coded(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 400)
refused("RFC 9112 §6.1: chunked repeated after another coding", coded(b"Transfer-Encoding: chunked, gzip, chunked"), 400, nginx=OTHER)
refused("RFC 9112 §6.3: chunked before another coding", coded(b"Transfer-Encoding: chunked, gzip"), 400, nginx=OTHER)
refused("RFC 9112 §6.3: chunked in a line before another coding", coded(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"), 400)
refused("RFC 9112 §6.1: another coding before a last chunked", coded(b"Transfer-Encoding: gzip, chunked"), 501)
refused("RFC 9112 §6.1: another coding in a line before chunked", coded(b"Transfer-Encoding: deflate", b"Transfer-Encoding: chunked"), 501, nginx=OTHER)
refused("RFC 9112 §6.1: an unknown coding before a last chunked", coded(b"Transfer-Encoding: x-secret, chunked"), 501)
# chunked has no parameters (RFC 9112 §7.1): a syntax error, or a coding we do not have.
refused("RFC 9112 §7.1: chunked with a parameter", coded(b"Transfer-Encoding: chunked;q=1"), 400, 501)
refused("RFC 9112 §7: chunked in quotes", coded(b'Transfer-Encoding: "chunked"'), 400, 501)
refused("RFC 9112 §7: chunked with a space inside", coded(b"Transfer-Encoding: chun ked"), 400, 501)
refused("RFC 9112 §6.1: Transfer-Encoding from an HTTP/1.0 client", coded(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.0"), 400, nginx=LENIENT)
passed_or_refused("RFC 9110 §5.6.1: empty list members around chunked are ignored, or refused", coded(b"Transfer-Encoding: , chunked ,"), 400,
                  check_request=lambda request: expect_same("content", request.body, b"hello"), nginx=OTHER)


# --- Chunks: RFC 9112 §7.1. The head may have gone upstream already; the request must then never be complete there.


def bad_chunks(name: str, content: bytes, *statuses: int, nginx: str | None = None) -> None:
    for how in ("whole", "bytewise"):

        @case(f"RFC 9112 §7.1: invalid chunked content ({name}) is refused [{how}]", nginx=nginx)
        def run(t: Trial, how: str = how) -> None:
            client = t.client()
            client.feed(head(b"Transfer-Encoding: chunked", start=b"POST /patient/x HTTP/1.1") + content, how == "bytewise")
            response = client.read_response()
            expect_status(response, *(statuses or (400,)))
            expect_closed(client, response)
            check(not t.main.requests, "a whole request reached the origin:", t.main.requests)
            check(eventually(lambda: all(connection.at_end for connection in t.main.used)),
                  "the connection with the broken request stays open upstream")


for label, chunks in [("signed size", b"+5\r\nhello\r\n0\r\n\r\n"), ("negative size", b"-5\r\nhello\r\n0\r\n\r\n"),
                      ("size with 0x", b"0x5\r\nhello\r\n0\r\n\r\n"), ("space before the size", b" 5\r\nhello\r\n0\r\n\r\n"),
                      ("no size", b"\r\nhello\r\n0\r\n\r\n"), ("size that is not a number", b"five\r\nhello\r\n0\r\n\r\n"),
                      ("only an extension", b";a=b\r\nhello\r\n0\r\n\r\n"),
                      ("size of 2^64", b"10000000000000000\r\nhello\r\n0\r\n\r\n"), ("size of 2^64 + 5", b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
                      ("size of 2^63", b"8000000000000000\r\nhello\r\n0\r\n\r\n"), ("size of 2^64 - 1", b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
                      ("space after the size", b"5 \r\nhello\r\n0\r\n\r\n"), ("word after the size", b"5 x\r\nhello\r\n0\r\n\r\n"),
                      ("comma after the size", b"5,\r\nhello\r\n0\r\n\r\n"), ("dot after the size", b"5.0\r\nhello\r\n0\r\n\r\n"),
                      ("bare LF after the size", b"5\nhello\r\n0\r\n\r\n"), ("bare CR after the size", b"5\rhello\r\n0\r\n\r\n"),
                      ("NUL in an extension", b"5;a=\0\r\nhello\r\n0\r\n\r\n"), ("bare LF in an extension", b"5;a\nhello\r\n0\r\n\r\n"),
                      ("bare CR in an extension", b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
                      ("data longer than the size", b"4\r\nhello\r\n0\r\n\r\n"), ("data shorter than the size", b"6\r\nhello\r\n0\r\n\r\n"),
                      ("no CRLF after the data", b"5\r\nhello0\r\n\r\n"), ("bare LF after the data", b"5\r\nhello\n0\r\n\r\n"),
                      ("bare CR after the data", b"5\r\nhello\r0\r\n\r\n\r\n"),
                      ("bare LF after the last chunk", b"5\r\nhello\r\n0\n\r\n\r\n"), ("bare LF at the end", b"5\r\nhello\r\n0\r\n\nX-A: b\r\n\r\n"),
                      ("trailer without a colon", b"5\r\nhello\r\n0\r\nX-A\r\n\r\n"), ("trailer with a space before the colon", b"5\r\nhello\r\n0\r\nX-A : b\r\n\r\n"),
                      ("trailer with obs-fold", b"5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n"), ("trailer with NUL", b"5\r\nhello\r\n0\r\nX-A: \0\r\n\r\n"),
                      ("empty trailer name", b"5\r\nhello\r\n0\r\n: b\r\n\r\n")]:
    bad_chunks(label, chunks, nginx=LENIENT)


@case("RFC 9112 §7.1.1: an endless chunk extension is refused", nginx=LENIENT)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Transfer-Encoding: chunked", start=b"POST /patient/x HTTP/1.1") + b"5;")
    sent = 0
    while sent < 4_000_000 and client.is_silent(0):
        if not client.send(b"a" * 16384):
            break
        sent += 16384
    check(sent < 4_000_000, "4 MB of one chunk extension were taken")
    if not client.was_reset and client.ends(2) and client.received:
        expect_status(client.read_response(), 400, 413, 431)
    check(not t.main.requests, "a whole request reached the origin")


# --- Request line: RFC 9112 §3

for label, start, statuses in [
    ("control in the target", b"GET /a\x01b HTTP/1.1", (400,)), ("NUL in the target", b"GET /a\0b HTTP/1.1", (400,)),
    ("DEL in the target", b"GET /a\x7fb HTTP/1.1", (400,)), ("tab in the target", b"GET /a\tb HTTP/1.1", (400,)),
    ("space in the target", b"GET /a b HTTP/1.1", (400,)), ("fragment in the target", b"GET /a#b HTTP/1.1", (400,)),
    ("only a fragment", b"GET # HTTP/1.1", (400,)), ("two spaces before the target", b"GET  / HTTP/1.1", (400,)),
    ("two spaces after the target", b"GET /  HTTP/1.1", (400,)), ("space after the version", b"GET / HTTP/1.1 ", (400,)),
    ("leading space", b" GET / HTTP/1.1", (400,)), ("tabs instead of spaces", b"GET\t/\tHTTP/1.1", (400,)),
    ("no target", b"GET HTTP/1.1", (400,)), ("empty target", b"GET  HTTP/1.1", (400,)), ("only a method", b"GET", (400,)),
    ("method that is not a token", b"G(T / HTTP/1.1", (400,)), ("method with a colon", b"GET: / HTTP/1.1", (400,)),
    ("method outside ASCII", b"G\xc3\x8bT / HTTP/1.1", (400,)), ("control in the method", b"G\x01T / HTTP/1.1", (400,)),
    ("lower-case version", b"GET / http/1.1", (400,)), ("other protocol", b"GET / HTTQ/1.1", (400,)), ("no protocol", b"GET / 1.1", (400,)),
    ("version without minor", b"GET / HTTP/1", (400,)), ("version with a dot only", b"GET / HTTP/1.", (400,)),
    ("two-digit minor", b"GET / HTTP/1.10", (400, 505)), ("two-digit major", b"GET / HTTP/11.1", (400, 505)),
    ("signed version", b"GET / HTTP/+1.1", (400,)), ("version with a comma", b"GET / HTTP/1,1", (400,)),
    ("relative target", b"GET a HTTP/1.1", (400,)), ("asterisk without OPTIONS", b"GET * HTTP/1.1", (400,)),
    ("authority without CONNECT", b"GET a.test:80 HTTP/1.1", (400,)), ("query without a path", b"GET ?x HTTP/1.1", (400,)),
    ("absolute-form without a host", b"GET http:///x HTTP/1.1", (400,)), ("absolute-form with one slash", b"GET http:/a.test/x HTTP/1.1", (400,)),
    ("unknown scheme", b"GET ftp://a.test/x HTTP/1.1", (400, 501)), ("bad port in absolute-form", b"GET http://a.test:x/ HTTP/1.1", (400,)),
]:
    refused(f"RFC 9112 §3: an invalid request line ({label})", head(start=start), *statuses, nginx=OTHER)
for label, start in [("2.0", b"GET / HTTP/2.0"), ("3.0", b"GET / HTTP/3.0"), ("9.9", b"GET / HTTP/9.9"), ("0.9", b"GET / HTTP/0.9")]:
    # HTTP/0.9 had no version in its line, so that one may as well be a syntax error.
    refused(f"RFC 9110 §15.6.6: version {label} in a request line", head(start=start), 505, *((400,) if label == "0.9" else ()), nginx=OTHER)
refused("RFC 9112 §3: a request of HTTP/0.9", b"GET /\r\n\r\n", 400, nginx=OTHER)
refused("a TLS hello on a listener without TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x07" * 40 + b"\r\n\r\n", 400)
# RFC 9112 §3: refused, or the octets go on as they are; never changed.
passed_or_refused("RFC 3986 §2: octets over 0x7F in the target are refused, or unchanged upstream", head(start=b"GET /\xc3\xa4 HTTP/1.1"), 400,
                  check_request=lambda request: check(request.target in ("/\xc3\xa4", "/%C3%A4"), request.target))
passed_or_refused("RFC 3986 §2.1: a broken percent-encoding is refused, or unchanged upstream", head(start=b"GET /%zz HTTP/1.1"), 400,
                  check_request=lambda request: expect_same("target", request.target, "/%zz"))

# --- Paths that two readers could resolve in different ways

for label, target in [("NUL", b"/a%00b"), ("above the root", b"/../a"), ("above the root, later", b"/a/../../b"),
                      ("hidden dots", b"/a/%2e%2e/b"), ("hidden dots in upper case", b"/a/%2E%2E/b"), ("half-hidden dots", b"/a/.%2e/b"),
                      ("hidden single dot", b"/a/%2e/b"), ("hidden dots at the end", b"/a/%2e%2e")]:
    refused(f"an ambiguous path ({label})", head(start=b"GET " + target + b" HTTP/1.1"), 400, nginx=OTHER)


# --- What comes behind a refused request is never read as a request


@case("RFC 9112 §11.2: bytes behind a refused request are not answered", nginx=LENIENT)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"X-A : b") + head(start=b"GET /second HTTP/1.1"))
    response = client.read_response()
    expect_status(response, 400)
    expect_closed(client, response)
    check(not t.main.received(), "the origin received", t.main.received())


@case("RFC 9112 §11.2: requests before a refused one are answered, in order", nginx=None)
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(start=b"GET /first HTTP/1.1") + head(b"Content-Length: x") + head(start=b"GET /third HTTP/1.1"))
    expect_status(client.read_response(), 200)
    response = client.read_response()
    expect_status(response, 400)
    expect_closed(client, response)
    expect_same("requests at the origin", [request.target for request in t.main.requests], ["/first"])


@case("RFC 9112 §11.2: a smuggled request in Content-Length with Transfer-Encoding stays unseen")
def _(t: Trial) -> None:
    client = t.client()
    client.send(head(b"Content-Length: 45", b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1") + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n")
    response = client.read_response()
    expect_status(response, 400)
    expect_closed(client, response)
    check(b"smuggled" not in t.main.received(), "smuggled")


@case("RFC 9112 §9.6: a refusal survives content that is still being sent", nginx=LENIENT)
def _(t: Trial) -> None:
    # The client sends much more than the gateway reads: its answer must not be lost to a reset.
    client = t.client()
    client.send(head(b"X-A : b", b"Content-Length: 300000", start=b"POST / HTTP/1.1"))
    client.send(b"x" * 300_000)
    expect_status(client.read_response(), 400)


@case("RFC 9110 §15.4: a refusal has a problem+json body with the reason", nginx=OTHER)
def _(t: Trial) -> None:
    import json

    client = t.client()
    client.send(head(b"X-A : b"))
    response = client.read_response()
    expect_same("Content-Type", response.get("Content-Type"), "application/problem+json")
    problem = json.loads(response.body)
    expect_same("status", problem.get("status"), 400)
    check(problem.get("title"), "no title", problem)


__all__ = ["head", "post", "refused", "passed_or_refused", "HOST", "Wire"]
