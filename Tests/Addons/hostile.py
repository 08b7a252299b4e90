"""Bad input: broken messages, broken HTTP, slow and half requests, large messages, and connections that end."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

from suite import Gateway, Trial, case, expect, expect_in, request, response

ADDON = "def request(flow):\n    flow.request.headers['x'] = '1'\n\ndef response(flow):\n    flow.response.headers['x'] = '1'\n"


def without(message: dict, *path: str, value: object = None) -> dict:
    """The message with one member removed, or replaced by `value`."""
    copied = json.loads(json.dumps(message))
    part = copied
    for name in path[:-1]:
        part = part[name]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return copied


MESSAGES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"{} {}",
    b'{"version":1}',
    b'{"version":1,"half":"request","request":NaN}',
    b"\xff\xfe",
    b'{"a":' * 100_000,
    b"[" * 200_000 + b"]" * 200_000,
    b'{"version":1' + b"0" * 5000 + b"}",
    without(request(), "version"),
    without(request(), "version", value=2),
    without(request(), "version", value="1"),
    without(request(), "half"),
    without(request(), "half", value=[]),
    without(request(), "half", value="both"),
    without(request(), "request"),
    without(request(), "request", value=[]),
    without(request(), "request", "method"),
    without(request(), "request", "method", value=1),
    without(request(), "request", "url"),
    without(request(), "request", "fields"),
    without(request(), "request", "fields", value={"a": "b"}),
    without(request(), "request", "fields", value=[["a"]]),
    without(request(), "request", "fields", value=[["a", "b", "c"]]),
    without(request(), "request", "fields", value=[["a", 1]]),
    without(request(), "request", "fields", value=["ab"]),
    without(request(), "request", "fields", value=[{"a": 1, "b": 2}]),
    without(request(), "request", "content", value="text"),
    without(request(), "request", "content", value={"text": 1}),
    without(request(), "request", "content", value={"base64": "a"}),
    without(request(), "request", "content", value={"base64": "*"}),
    without(request(), "request", "content", value={"text": "a", "base64": "YQ=="}),
    without(request(), "exchange", value=1),
    without(request(), "client", value=[]),
    without(response(), "response"),
    without(response(), "response", "status"),
    without(response(), "response", "status", value="200"),
    without(response(), "response", "status", value=True),
    without(response(), "response", "fields"),
    {"version": 1, "half": "hello", "options": []},
]


@case("a broken message is status 400, and the connection stays")
def _(t: Trial) -> None:
    host = t.run(ADDON)
    for message in MESSAGES:
        status, answer = host.ask(message)
        expect(status, 400, f"{str(message)[:80]} {answer}")
        expect(list(answer), ["error"])
    expect(host.answer(request()), {"set": {"x": "1"}})


def heads(body: bytes = b"{}") -> list[tuple[bytes, int]]:
    """Requests that are refused, and the statuses."""
    end = b"\r\n\r\n" + body
    return [
        (b"GET / HTTP/1.1\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.0\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/2\r\nContent-Length: 2" + end, 400),
        (b"POST  / HTTP/1.1\r\nContent-Length: 2" + end, 400),
        (b"POST x HTTP/1.1\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length : 2" + end, 400),
        (b"POST / HTTP/1.1\r\n Content-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\r\nA: b\r\n c\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\r\nA: b\0\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: +2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 2, 2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length:" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2" + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 13 + end, 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 12 + end, 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 100000000" + end, 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked" + end, 501),
        (b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2" + end, 417),
        (b"POST / HTTP/1.1\r\nHost: a" + end, 411),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nA: " + b"b" * 17_000, 431),
    ]


@case("broken HTTP is refused, and the connection is closed")
def _(t: Trial) -> None:
    host = t.run(ADDON)
    for data, status in heads():
        wire = t.wire(host)
        wire.send(data)
        expect(wire.read()[0], status, repr(data[:80]))
        try:
            expect(wire.read(), (0, {}), repr(data[:80]))
        except ConnectionResetError:
            pass
    expect(host.answer(request()), {"set": {"x": "1"}})


@case("requests in one write, and a request in single bytes, are answered in order")
def _(t: Trial) -> None:
    host = t.run("def request(flow):\n    flow.request.headers['path'] = flow.request.path\n")
    posted = [host.posted(json.dumps(request(f"http://h/{number}")).encode(), b"X: y\r\n" * (number % 3)) for number in range(50)]
    host.send(b"".join(posted))
    expect([host.read()[1]["set"]["path"] for _ in posted], [f"/{number}" for number in range(50)])
    host.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    for byte in posted[7]:
        host.send(bytes([byte]))
    expect(host.read()[1]["set"]["path"], "/7")
    for cut in range(1, len(posted[1]), 7):
        host.send(posted[0] + posted[1][:cut])
        expect(host.read()[1]["set"]["path"], "/0")
        host.send(posted[1][cut:])
        expect(host.read()[1]["set"]["path"], "/1")


@case("many requests that come while an async hook runs are answered in order, in linear time")
def _(t: Trial) -> None:
    host = t.run("import asyncio\n\nasync def request(flow):\n    await asyncio.sleep(0)\n    flow.request.headers['path'] = flow.request.path\n")
    posted = [host.posted(json.dumps(request(f"http://h/{number}", body="x" * 10_000)).encode()) for number in range(2000)]
    sender = threading.Thread(target=host.send, args=(b"".join(posted),))
    began = time.monotonic()
    sender.start()
    expect([host.read()[1]["set"]["path"] for _ in posted], [f"/{number}" for number in range(2000)])
    sender.join()
    expect(time.monotonic() - began < 15, True, f"{time.monotonic() - began} seconds")


@case("a large message that comes while an async hook runs is read to its end")
def _(t: Trial) -> None:
    host = t.run("import asyncio\n\nasync def request(flow):\n    await asyncio.sleep(0.2)\n    flow.request.headers['size'] = str(len(flow.request.content))\n")
    large = json.dumps(request(body="x" * 1000)).encode()
    host.send(host.posted(json.dumps(request(body="y")).encode()) + host.posted(large + b" " * (9 * (1 << 20))))
    expect([host.read()[1]["set"]["size"] for _ in range(2)], ["1", "1000"])


@case("Connection: close ends the connection behind the answer")
def _(t: Trial) -> None:
    host = t.run(ADDON)
    host.send(host.posted(json.dumps(request()).encode(), b"Connection: close\r\n"))
    expect(host.read(), (200, {"set": {"x": "1"}}))
    expect(host.read(), (0, {}))


@case("a message of the largest size passes, and a larger one is status 413")
def _(t: Trial) -> None:
    host = t.run("def request(flow):\n    flow.request.headers['size'] = str(len(flow.request.content))\n")
    body = json.dumps(request(body="\1" * (1 << 20))).encode()
    expect(host.ask(body), (200, {"set": {"size": str(1 << 20)}}))
    expect(host.ask(body + b" " * (t.host.MESSAGE + 6 * t.host.CONTENT - len(body)))[0], 200)
    try:
        expect(host.ask(body + b" " * (t.host.MESSAGE + 6 * t.host.CONTENT + 1 - len(body)))[0], 413)
    except (BrokenPipeError, ConnectionResetError):
        pass
    expect(t.wire(host).answer(request())["set"], {"size": "0"})


@case("half a request is given up after its time, and an idle connection is not")
def _(t: Trial) -> None:
    class Clock:
        now = 0.0

        def time(self) -> float:
            return self.now

        def call_later(self, *_: object) -> None:
            pass

        def create_future(self) -> None:
            pass

    class Transport:
        def __init__(self) -> None:
            self.written, self.is_closed = b"", False

        def write(self, data: bytes) -> None:
            self.written += data

        def close(self) -> None:
            self.is_closed = True

        def abort(self) -> None:
            self.is_closed = True

    clock = Clock()
    service = t.host.Service(t.host.Host("addon.py"), clock)
    channels = [t.host.Channel(service) for _ in range(4)]
    for channel in channels:
        channel.connection_made(Transport())
    for channel, data in zip(channels, (b"POST / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}", b"")):
        channel.take(data)
    for now, closed in ((29.0, [False] * 4), (31.0, [True, True, False, False])):
        clock.now = now
        service.sweep()
        expect([channel.transport.is_closed for channel in channels], closed)
    expect_in(b"408 Request Timeout", channels[0].transport.written)


@case("connections over the limit are closed, and others are served")
def _(t: Trial) -> None:
    host = t.run(ADDON)
    wires = [t.wire(host) for _ in range(t.host.CONNECTIONS + 20)]
    closed = 0
    for wire in wires[-21:]:
        try:
            closed += wire.ask(request()) == (0, {})
        except OSError:
            closed += 1
    expect(closed, 21)
    expect(wires[0].answer(request()), {"set": {"x": "1"}})


@case("a client that does not read its answers is not read from")
def _(t: Trial) -> None:
    host = t.run("def response(flow):\n    flow.response.content = b'x' * 100_000\n")
    wire = t.wire(host)
    wire.socket.settimeout(1.0)
    posted = wire.posted(json.dumps(response(body="a")).encode())
    sent = 0
    try:
        while sent < 2000:
            wire.send(posted)
            sent += 1
    except TimeoutError:
        pass
    with open(f"/proc/{host.process.pid}/status") as status:
        resident = int(status.read().split("VmRSS:")[1].split()[0])
    expect(resident < 150_000, True, f"{resident} KiB resident")
    expect(host.answer(response(body="a"))["content"]["text"], "x" * 100_000)


@case("output that cannot be written fails no hook")
def _(t: Trial) -> None:
    text = "import sys\n\ndef request(flow):\n    print('out')\n    print('err', file=sys.stderr)\n    if flow.request.path == '/fault':\n        1 / 0\n"
    host = Gateway(t.folder, t.file(text), {}, ">/dev/full 2>&1")
    t.stack.callback(host.stop)
    host.hello()
    expect(host.answer(request()), {})
    expect(host.ask(request("http://h/fault")), (500, {"error": "addon.py:7: ZeroDivisionError: division by zero"}))
    expect(host.end(), 0)


@case("a connection that ends cancels its async hook, and the host goes on")
def _(t: Trial) -> None:
    host = t.run("""
import asyncio

async def request(flow):
    if flow.request.path == "/wait":
        try:
            print("waits", flush=True)
            await asyncio.sleep(1000)
        finally:
            print("cancelled", flush=True)
""")
    wire = t.wire(host)
    wire.send(wire.posted(json.dumps(request("http://h/wait")).encode()))
    host.await_line(host.out, "waits")
    wire.close()
    host.await_line(host.out, "cancelled")
    expect(host.answer(request()), {})


@case("hostile addresses and fields of a client do not break an addon's reading")
def _(t: Trial) -> None:
    host = t.run("""
def request(flow):
    r = flow.request
    flow.comment = repr((r.url, r.host, r.port, r.path, r.pretty_url, r.pretty_host, r.path_components, list(r.query.items()), list(r.cookies.items())))
""")
    for url in ("*", "", "/", "http://", "http://h", "http://h:99999/", "http://[::1", "http://[v1.x]/", "http://h:/", "http://a@b/", "http://h/\ud800", "http://h/%ff?%ff=%ff&&=", "x", "h:443"):
        for value in ("", ":", "h:x", "[", "[]", "a=\"b", ";;==;", "é", "\ud800", "a" * 20_000, '"' * 5000, "\\" * 5000, "=;" * 5000):
            began = time.monotonic()
            status, answer = host.ask(request(url, fields=[["Host", value], ["Cookie", value]]))
            expect((status, list(answer)), (200, ["notes"]), f"{url!r} {value[:20]!r} {answer}")
            expect(time.monotonic() - began < 2, True, f"the time for {url!r} {value[:20]!r}")


@case("hostile content does not break an addon's reading")
def _(t: Trial) -> None:
    host = t.run("""
def request(flow):
    r = flow.request
    flow.comment = repr((list(r.urlencoded_form.items()), len(r.multipart_form), r.get_text(strict=False)))[:20]
""")
    kinds = ("application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="', "multipart/form-data; boundary=a", "text/html; charset=\0", "text/html; charset=nope",
             "text/html; charset=base64", "text/html; charset=idna", "text/html", "text/xml", "text/css", ";", "")
    for kind in kinds:
        for body in (b"", b"&", b"=", b"%", b"%zz=%zz", b"\xff\xfe\x00", b"--a", b"--a\r\n\r\n--a--", b"--a\r\nContent-Disposition: form-data; name=\"\\\"", b"<meta " * 2000, b"<?xml " * 500, b'@charset "', b"\x00" * 1000):
            status, answer = host.ask(request(fields=[["Content-Type", kind]], body=body))
            expect(status, 200, f"{kind!r} {body[:30]!r} {answer}")


@case("values that an addon sets badly never reach the gateway as they are")
def _(t: Trial) -> None:
    host = t.run("""
from mitmproxy import http

def request(flow):
    path = flow.request.path
    if path == "/1":
        flow.request.headers["x"] = "\\udcff"
    if path == "/2":
        flow.metadata["a"] = "\\ud800"
    if path == "/3":
        flow.request.text = "\\udcff"
    if path == "/4":
        flow.response = http.Response.make(200, "\\udce9", {"a": b"\\xe9"})
    if path == "/5":
        flow.response = http.Response.make(200, b"x", {"a\\r\\nb": "c"})
    if path == "/6":
        flow.request.headers = {"a": "b\\r\\nc: d"}
    if path == "/7":
        flow.request.host = "a/b"
    if path == "/8":
        flow.response = object()
    if path == "/9":
        flow.request = None
""")
    statuses = []
    for number in range(1, 10):
        status, answer = host.ask(request(f"http://h/{number}"))
        json.dumps(answer, ensure_ascii=False).encode()
        statuses.append(status)
    expect(statuses, [200, 500, 200, 200, 500, 500, 500, 500, 500])


@case("a descriptor that is not a socket is an error at the start")
def _(t: Trial) -> None:
    host = Gateway(t.folder, t.file(ADDON), {"HTTPWARE_CALLOUT_FD": "77"})
    try:
        expect(host.ended(), 71)
        expect_in("descriptor 77 is not a listening socket", host.err[0])
    finally:
        host.stop()


@case("an addon named like a module of Python does not replace it")
def _(t: Trial) -> None:
    (t.folder / "json.py").write_text("def request(flow):\n    import json\n    flow.request.headers['x'] = str(hasattr(json, 'loads'))\n")
    host = Gateway(t.folder, t.folder / "json.py")
    t.stack.callback(host.stop)
    host.hello()
    expect(host.answer(request()), {"set": {"x": "True"}})


@case("flows of an addon that keeps nothing do not make the host grow")
def _(t: Trial) -> None:
    host = t.run(ADDON)

    def resident() -> int:
        return int(open(f"/proc/{host.process.pid}/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024

    posted = [host.posted(json.dumps(make(exchange="x")).encode()) for make in (request, response)]
    sizes = []
    for _ in range(3):
        for _ in range(60):
            host.send(b"".join(posted * 25))
            for _ in range(50):
                host.read()
        sizes.append(resident())
    expect(sizes[2] - sizes[1] < 1024, True, f"{sizes} KiB resident")
