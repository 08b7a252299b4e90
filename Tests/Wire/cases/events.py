"""Server-sent events, and all else that comes in small pieces: none waits for another (WHATWG HTML §9.2)."""

from __future__ import annotations

import statistics
import threading
import time

from Rig.origins import OriginConnection
from suite import Trial, check

from .http2 import MISSING, http2, speak
from .http2_upstream import serving
from .refused_requests import head

if not MISSING:
    from .http2 import h


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


for client_version in ("HTTP/1.1", "HTTP/2"):
    for origin_version in ("HTTP/1.1", "HTTP/2"):

        @http2(f"server-sent events: a byte that arrives over {origin_version} is sent over {client_version} within a millisecond", alone=True)
        def _(t: Trial, client_version: str = client_version, origin_version: str = origin_version) -> None:
            begun, over = threading.Event(), threading.Event()
            sending: list = []

            def script(c: OriginConnection) -> None:
                c.serve()
                c.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                sending.append(lambda content: c.send(chunk(content)))
                begun.set()
                over.wait(10)
                c.send(b"0\r\n\r\n")

            def answer(o, stream, fields, body) -> None:
                o.c.send(h.headers(stream, [(":status", "200"), ("content-type", "text/event-stream")], end=False))
                sending.append(lambda content: o.c.send(h.data(stream, content)))
                begun.set()

            path = "/patient/" if origin_version == "HTTP/1.1" else "/h2/"
            t.origin(script if origin_version == "HTTP/1.1" else serving(answer))
            if client_version == "HTTP/1.1":
                sock = (client := t.client()).sock
                client.send(head(start=f"GET {path} HTTP/1.1".encode()))
                client.read_until(b"\r\n\r\n")
            else:
                sock = (wire := speak(t)).wire.sock
                wire.send(h.headers(1, h.head("GET", path)))
                wire.until(lambda w: w.answer(1).heads)
            check(begun.wait(3), "no request arrived")
            took = []
            # One thread sends and receives: nothing in between but the gateway.
            for number in range(300):
                content = b"data: %06d\n\n" % number
                for piece in (content[:1], content[1:]):
                    began, got = time.perf_counter(), b""
                    sending[0](piece)
                    while piece not in got:
                        got += sock.recv(65536)
                    took.append(time.perf_counter() - began)
            over.set()
            # The machine may do something else in between; the gateway does not.
            median, most = statistics.median(took), statistics.quantiles(took, n=10)[8]
            check(median < 0.001 and most < 0.002, f"{median * 1000:.3f} ms, one in ten more than {most * 1000:.3f} ms")
