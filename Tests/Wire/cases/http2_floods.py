"""Floods of HTTP/2: each ends its own connection, and no other (RFC 9113 §10.5)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from Rig.origins import OriginConnection, answering
from Rig.waits import Why, pause
from Rig.wire import WireClosed, WireTimeout
from suite import Trial, check, expect_same

from .http2 import MISSING, http2, length, speak

if not MISSING:
    from Rig import flooder as flooding_client

    from .http2 import h


def flood(wire, frames, most: int) -> None:
    """Sends one frame after the other until the connection is closed, and reads the answers meanwhile."""
    try:
        for sent in range(most):
            if not wire.send(frames(sent)):
                return
            if sent % 50 == 49:
                wire.wire.sock.setblocking(False)
                try:
                    while True:
                        data = wire.wire.sock.recv(65536)
                        if not data:
                            return
                        wire.wire.buffer += data
                except BlockingIOError:
                    pass
                finally:
                    wire.wire.sock.setblocking(True)
                    wire.wire.sock.settimeout(5)
    except (OSError, WireClosed, WireTimeout):
        pass


def expect_calm(t: Trial, wire, *codes: int) -> None:
    """The connection was ended for a flood, or for too many concurrent streams; other connections continue."""
    code = None
    try:
        code = wire.end()
    except WireTimeout:
        check(False, "the connection stays open")
    check({frame.error_code for frame in wire.goaways} & set(codes or [h.CALM]), f"expected GOAWAY ENHANCE_YOUR_CALM, got {code}")
    other = speak(t)
    expect_same("another client", other.ask(1, h.head("GET", "/mock")).status, 200)


def flooding(name: str, frames, most: int = 20_000, *codes: int, before=None):
    @http2(f"{name}: the connection ends")
    def _(t: Trial) -> None:
        t.origin()
        wire = speak(t)
        check(wire.alive(), "no answer")
        if before:
            wire.send(before())
        flood(wire, frames, most)
        expect_calm(t, wire, *codes)


def stream(number: int) -> int:
    return 2 * number + 1


if not MISSING:
    flooding("RFC 9113 §10.5: requests that are reset at once, again and again", lambda n: h.headers(stream(n), h.head()) + h.reset(stream(n)), 5_000)
    flooding("RFC 9113 §10.5: requests that the gateway must reset, again and again", lambda n: h.headers(stream(n), h.head("GET", "/", ("X-A", "1"))), 5_000, h.CALM, h.PROTOCOL)
    flooding("RFC 9113 §10.5: streams that are made to be reset by a window of 0",
             lambda n: h.headers(stream(n), h.head("POST"), end=False) + h.window(stream(n), 0), 5_000, h.CALM, h.PROTOCOL)
    flooding("RFC 9113 §10.5: PING without end", lambda n: h.ping(n.to_bytes(8, "big")))
    flooding("RFC 9113 §10.5: SETTINGS without end", lambda n: h.settings(s4=65535 + n))
    flooding("RFC 9113 §10.5: empty DATA without end", lambda n: h.data(1), before=lambda: h.headers(1, h.head("POST"), end=False))
    flooding("RFC 9113 §10.5: PRIORITY without end", lambda n: h.raw(2, 0, stream(n % 1000) , bytes(4) + b"\x10"))
    flooding("RFC 9113 §10.5: frames of an unknown type without end", lambda n: h.raw(0xFA, 0, 0, b"x"))
    flooding("RFC 9113 §10.5: RST_STREAM of an ended stream, without end", lambda n: h.reset(1), before=lambda: h.headers(1, h.head("GET", "/mock")))
    flooding("RFC 9113 §10.5: WINDOW_UPDATE without end", lambda n: h.window(0, 1), 60_000)
    flooding("RFC 9113 §10.5: CONTINUATION without end", lambda n: h.raw(9, 0, 1, b""), before=lambda: h.headers(1, h.head(), done=False, end=False))
    flooding("RFC 9113 §10.5: CONTINUATION with fields without end", lambda n: h.raw(9, 0, 1, h.plain([("x-a", "b" * 1000)])),
             before=lambda: h.headers(1, h.head(), done=False, end=False))


@http2("RFC 9113 §10.5.1: each reference to a field counts towards the limit")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t)
    check(wire.alive(), "no answer")
    # One field of 4,000 bytes goes into the table; each byte behind it names it again.
    block = h.plain(h.head()) + b"\x40\x03x-a" + b"\x7f" + bytes([0x80 | (3900 - 127) & 0x7F, (3900 - 127) >> 7]) + b"v" * 3900
    wire.send(h.raw(1, 1, 1, block), h.raw(9, 4, 1, b"\xbe" * 16_000))
    expect_calm(t, wire)
    check(not t.main.received(), "it went upstream")


@http2("RFC 9113 §10.5: unknown frames do not keep a connection alive")
def _(t: Trial) -> None:
    wire = speak(t, "tight")
    began = time.monotonic()
    while wire.send(h.raw(0xFA, 0, 0, b"x") * 100) and time.monotonic() - began < 5:
        pause(0.02, Why.SLOW)
    check(0.5 < time.monotonic() - began < 4, f"closed after {time.monotonic() - began:.1f} s")


@http2("RFC 9113 §10.5: a head that does not end in time ends the connection")
def _(t: Trial) -> None:
    t.origin()
    wire = speak(t, "tight")
    check(wire.alive(), "no answer")
    began = time.monotonic()
    wire.send(h.headers(1, h.head(), done=False))
    wire.end()
    check(0.4 < time.monotonic() - began < 3, f"closed after {time.monotonic() - began:.1f} s")


@http2("RFC 9113 §10.5: a client whose window stays closed is disconnected, and its request is cancelled")
def _(t: Trial) -> None:
    t.origin(answering(length(100_000)))
    wire = speak(t, "tight", first=h.PREFACE + h.settings(s4=0), opens=False)
    wire.send(h.headers(1, h.head()))
    began = time.monotonic()
    answer = wire.read(1)
    check(answer.reset == h.CANCEL and time.monotonic() - began < 4, answer)


@http2("RFC 9113 §10.5: clients that request much and read nothing take little memory")
def _(t: Trial) -> None:
    def script(c: OriginConnection) -> None:
        while True:
            c.serve()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (8 << 20) + bytes(8 << 20))

    t.origin(script)
    wires = []
    for _ in range(4):
        wire = speak(t, first=h.PREFACE + h.settings(s4=0), opens=False)
        wire.send(*(h.headers(stream(number), h.head("GET", "/patient/")) for number in range(20)))
        wires.append(wire)
    pause(1.5, Why.NOTHING)
    check(t.gateway.status("VmRSS") < 150_000, f"{t.gateway.status('VmRSS')} KiB for 80 streams that nobody reads")
    other = speak(t)
    expect_same("another client", other.ask(1, h.head("GET", "/mock")).status, 200)


@http2("RFC 9113 §10.5: a request whose content does not arrive is 408")
def _(t: Trial) -> None:
    t.origin(lambda c: c.serve())
    wire = speak(t, "tight")
    wire.send(h.headers(1, h.head("POST", "/patient/"), end=False), h.data(1, b"x"))
    answer = wire.read(1)
    expect_same("status", answer.status, 408)


def slowest(t: Trial, beside: str, count: int = 500) -> float:
    """The 99th percentile of how long a client waits for its answers, in seconds, beside another one."""
    flooder = subprocess.Popen([sys.executable, str(Path(flooding_client.__file__)), str(t.setup.ports["web"]), beside],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        flooder.stdout.readline()
        took = []
        wire = speak(t)
        for number in range(count):
            began = time.monotonic()
            expect_same("status", wire.ask(stream(number), h.head("GET", "/mock")).status, 200)
            took.append(time.monotonic() - began)
        wire.wire.close()
        return statistics.quantiles(took, n=100)[98]
    finally:
        flooder.communicate()


if not MISSING:
    for kind in flooding_client.KINDS:
        if kind == "calm":
            continue

        @http2(f"RFC 9113 §10.5: other clients wait no longer beside a flood ({kind}) than beside the same amount of calm traffic", alone=True)
        def _(t: Trial, kind: str = kind) -> None:
            t.origin()
            # By turns, and the median of what the turns say: what else the machine does falls on either. Where it does
            # more than that, the same is asked again: a flood that others wait for makes them wait each time.
            told = []
            for _ in range(4):
                rounds = [(slowest(t, "calm"), slowest(t, kind)) for _ in range(7)]
                if statistics.median(flood / calm for calm, flood in rounds) < 1.5:
                    return
                told.append(", ".join(f"{calm * 1000:.2f} and {flood * 1000:.2f}" for calm, flood in rounds))
            check(False, f"p99 beside a calm client and beside a flood, ms: {'; '.join(told)}")
