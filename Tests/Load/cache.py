#!/usr/bin/env python3
"""The cache under bad input and many clients: one JSON line per result. Python 3.11, standard library only.

    Tests/Load/cache.py --binary .build/release/httpware [--only NAME]

Everything is on the loopback and ends by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import run
from Rig.processes import Process, Workplace, free_port
from Rig.results import line
from Rig.trials import Trials
from Rig.waits import Why, eventually, pause
from Rig.wire import Message, Wire, connect

RESULTS = Trials()
result = RESULTS.add

CONFIG = """
version: 1
listeners:
  web: {{ bind: "127.0.0.1:{web}", limits: {{ head: 1MiB, requestTarget: 64KiB, headTimeout: 60s, idleTimeout: 60s }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none }}
stores: {{ disk: {{ disk: {{ path: "{folder}", maxSize: 64MiB }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", timeouts: {{ response: 30s, idle: 60s }} }} }}
chains:
  memory: {{ middlewares: [httpCache] }}
  disk: {{ middlewares: [{{ httpCache: {{ store: disk, maxObject: 1GiB }} }}] }}
routes:
  - {{ name: disk, match: {{ path: "/disk/**" }}, service: origin, chain: disk }}
  - {{ name: memory, service: origin, chain: memory }}
"""
FRESH = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 3\r\n"


class Origin:
    """Answers each request with what `answer` makes of its target, on a thread for each connection."""

    def __init__(self, answer: Callable[[str], bytes]):
        self.answer, self.asked, self.lock = answer, 0, threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.socket.accept()[0],), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        waiting = b""
        with sock, contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in waiting:
                    piece = sock.recv(1 << 20)
                    if not piece:
                        return
                    waiting += piece
                head, _, waiting = waiting.partition(b"\r\n\r\n")
                with self.lock:
                    self.asked += 1
                sock.sendall(self.answer(head.split(b" ", 2)[1].decode()))

    def close(self) -> None:
        self.socket.close()


class CacheStand:
    """A gateway that caches in memory and on disk, and its origin server."""

    def __init__(self, binary: str, answer: Callable[[str], bytes]):
        self.binary, self.place, self.origin = binary, Workplace("cache"), Origin(answer)
        self.folder = self.place.folder / "store"
        self.web, self.admin = free_port(), free_port()

    def start(self, preexec: Callable[[], None] | None = None) -> Process:
        config = CONFIG.format(web=self.web, admin=self.admin, folder=self.folder, origin=self.origin.port)
        self.gateway = self.place.gateway(self.binary, config, [self.web, self.admin], 2, preexec=preexec)
        return self.gateway

    def client(self, timeout: float = 30) -> Wire:
        return connect(("127.0.0.1", self.web), timeout)

    def ask(self, target: str, *lines: bytes, client: Wire | None = None) -> Message:
        own = client or self.client()
        own.send(b"\r\n".join([f"GET {target} HTTP/1.1".encode(), b"Host: a.test", *lines]) + b"\r\n\r\n")
        response = own.read_response("GET")
        if client is None:
            own.close()
        return response

    def is_hit(self, target: str, *lines: bytes) -> bool:
        return "; hit" in (self.ask(target, *lines).get("Cache-Status") or "")

    def becomes_hit(self, target: str, patience: float = 5) -> bool:
        return eventually(lambda: self.is_hit(target), patience, every=0.02)

    def says(self, text: str, patience: float = 5) -> int:
        """How often the log says that; it is written once a second."""
        eventually(lambda: text in self.gateway.log, patience, every=0.05)
        return self.gateway.log.count(text)

    def store(self, name: str) -> dict:
        admin = connect(("127.0.0.1", self.admin), 10)
        admin.send(b"GET /v1/cache HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        stores = json.loads(admin.read_response("GET").body)["stores"]
        admin.close()
        return next(store for store in stores if store["name"] == name)

    def close(self) -> None:
        self.place.close()
        self.origin.close()


@contextlib.contextmanager
def stand(options: argparse.Namespace, answer: Callable[[str], bytes], *, starts: bool = True) -> Iterator[CacheStand]:
    made = CacheStand(options.binary, answer)
    try:
        if starts:
            made.start()
        yield made
    finally:
        made.close()


@result("collapse")
def collapse(options: argparse.Namespace) -> list[dict]:
    """1,000 clients ask at once for one slow object: one request upstream, and each has all of it."""
    body, goes_on = os.urandom(100_000), threading.Event()

    def answer(target: str) -> bytes:
        goes_on.wait(20)
        return b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 100000\r\n\r\n" + body

    lines = []
    for kind in ("memory", "disk"):
        with stand(options, answer) as made:
            goes_on.clear()
            clients = [made.client() for _ in range(1000)]
            for client in clients:
                client.send(f"GET /{kind}/slow HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
            pause(1.5, Why.BEFORE)  # all are there
            goes_on.set()
            whole = sum(client.read_response("GET").body == body for client in clients)
            lines.append(line(f"1,000 clients at once for one slow object, kept in {kind}", "1 request upstream, all clients receive the whole response",
                              {"upstream": made.origin.asked, "whole": whole}, made.origin.asked == 1 and whole == 1000))
    return lines


@result("variants")
def variants(options: argparse.Namespace) -> list[dict]:
    """100,000 variants of one key: a bounded number is kept, and requests cost no more at the end than at the beginning."""
    with stand(options, lambda target: FRESH + b"Vary: X-A\r\n\r\none") as made:
        client = made.client()
        made.ask("/one", b"X-A: warm", client=client)
        costs, before = [], 0
        for part in range(10):
            began = made.gateway.cpu_seconds()
            for number in range(10_000):
                response = made.ask("/one", b"X-A: %d" % (part * 10_000 + number), client=client)
            costs.append((made.gateway.cpu_seconds() - began) * 100)
            before = before or made.gateway.status("VmRSS")
        grown, kept = made.gateway.status("VmRSS") - before, made.store("memory")["responses"]
        lines = [line("100,000 variants of one key", "at most 128 kept; the last 10,000 requests cost at most 1.5 times the first, 4 MiB more memory",
                      {"kept": kept, "upstream": made.origin.asked, "µs of CPU each, of the first": round(costs[0]), "of the last": round(costs[-1]),
                       "grown KiB": grown, "served": response.status},
                      kept <= 128 and costs[-1] <= costs[0] * 1.5 and grown < 4096 and made.origin.asked == 100_001)]
        long = b"a, b;q=0.5, " * 4000
        for number in range(128):
            made.ask("/long", b"X-A: %s%d" % (long, number), client=client)
        began = made.gateway.cpu_seconds()
        for number in range(200, 300):
            made.ask("/long", b"X-A: %s%d" % (long, number), client=client)
        each = (made.gateway.cpu_seconds() - began) * 10
        return [*lines, line("a request that is compared with 128 variants by a field of 48 KiB", "under 10 ms of CPU", {"ms": round(each, 2)}, each < 10)]


@result("large")
def large(options: argparse.Namespace) -> list[dict]:
    """Much in one message: names in Vary, tags, a key. The gateway serves on, and keeps what it can compare."""
    names = b",".join(b"f%d" % number for number in range(10_000))
    tags = b" ".join(b"tag%d" % number for number in range(100_000))
    some = b",".join(b"t%d" % number for number in range(5000))

    def answer(target: str) -> bytes:
        extra = {"/vary": b"Vary: " + names, "/tags": b"Cache-Tag: " + tags[:1_000_000], "/some": b"Cache-Tag: " + some}
        return FRESH + extra.get(target, b"X: y") + b"\r\n\r\none"

    with stand(options, answer) as made:
        found = {}
        for target in ("/vary", "/tags", "/some"):
            began = made.gateway.cpu_seconds()
            statuses = {made.ask(target).status for _ in range(20)}
            found[target] = (statuses, (made.gateway.cpu_seconds() - began) * 50)
        fits, longer = "/" + "k" * 16_000, "/" + "k" * 17_000
        made.ask(fits), made.ask(longer)
        keys = (made.is_hit(fits), made.is_hit(longer), made.ask(longer).status)
        worst = max(cost for _, cost in found.values())
        return [line("10,000 names in Vary, tags of 1 MB and of 30 KB", "each is served, or refused as too long (502); under 50 ms of CPU each",
                     {target: [*statuses, round(cost, 1)] for target, (statuses, cost) in found.items()},
                     worst < 50 and all(statuses <= {200, 502} for statuses, _ in found.values()) and found["/some"][0] == {200}),
                line("keys of 16 and 17 KiB", "the first response is stored, the other is passed on", {"hits": keys[:2], "status": keys[2]}, keys == (True, False, 200))]


@result("endless")
def endless(options: argparse.Namespace) -> list[dict]:
    """A response without end, on its way into a store that has no room for it: passed on, given up, and no memory held."""
    lines, over = [], threading.Event()

    def serve(listener: socket.socket) -> None:
        piece = b"40000\r\n" + bytes(0x40000) + b"\r\n"
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                sock.recv(65536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n")
                with contextlib.suppress(OSError):
                    while not over.is_set():
                        sock.sendall(piece)

    with stand(options, lambda target: b"", starts=False) as made:
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        made.origin.port = listener.getsockname()[1]
        made.start()
        for kind in ("memory", "disk"):
            client, taken, peak = made.client(), 0, 0
            base = made.gateway.status("RssAnon")
            client.send(f"GET /{kind}/endless HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
            while taken < 512 << 20:
                piece = client.sock.recv(1 << 20)
                if not piece:
                    break
                taken += len(piece)
                peak = max(peak, made.gateway.status("RssAnon") - base)
            client.close()
            held = made.store(kind)["responses"]
            lines.append(line(f"512 MiB of an endless response, {kind}", "the response is passed on, not stored, and takes at most 80 MiB of memory",
                              {"MiB": taken >> 20, "stored": held, "MiB more": peak >> 10}, taken >= 512 << 20 and held == 0 and peak < 80 << 10))
        over.set()
        listener.close()
    return lines


@result("disk-full")
def disk_full(options: argparse.Namespace) -> list[dict]:
    """A file that cannot grow: requests are served, what does not fit is not stored, and that is said and counted."""

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))

    body = os.urandom(200_000)
    with stand(options, lambda target: b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 200000\r\n\r\n" + body, starts=False) as made:
        made.start(small)
        client = made.client()
        wrong = sum(made.ask(f"/disk/{number}", client=client).body != body for number in range(300))
        pause(1, Why.BEFORE)  # what waits is written, or not
        store = made.store("disk")
        hits = sum(made.is_hit(f"/disk/{number}") for number in range(300))
        said = made.says("not stored: ")
        return [line("300 responses of 200 KB into a file that cannot grow beyond 8 MiB", "all are served; the failure is logged once a minute, and counted; some are stored",
                     {"wrong": wrong, "unwritten": store["unwritten"], "stored": store["responses"], "hits": hits, "said": said},
                     wrong == 0 and store["unwritten"] > 0 and said == 1 and made.gateway.is_running)]


@result("corrupt")
def corrupt(options: argparse.Namespace) -> list[dict]:
    """The gateway is killed, its file is damaged, and it starts again: it serves, logs how it repaired the file, and stores again."""
    body = os.urandom(50_000)
    aside = said = served = again = wrong = 0
    with stand(options, lambda target: b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 50000\r\n\r\n" + body, starts=False) as made:
        for turn in range(12):
            made.start()
            for number in range(30):
                wrong += made.ask(f"/disk/{turn}-{number}").body != body
            made.becomes_hit(f"/disk/{turn}-29")
            made.gateway.signal(signal.SIGKILL)
            made.gateway.wait(5)
            data, damaged = made.folder / "data.mdb", made.folder / "data.mdb.damaged"
            damaged.unlink(missing_ok=True)
            file = bytearray(data.read_bytes())
            if turn % 3 == 0:
                file = file[: len(file) // 3]
            elif turn % 3 == 1:
                file = bytearray(random.randbytes(len(file)))
            else:
                for _ in range(40):
                    place = random.randrange(0, len(file) - 64)
                    file[place : place + 64] = random.randbytes(64)
            data.write_bytes(file)
            process = made.start()
            served += made.ask(f"/disk/{turn}-0").body == body
            again += made.becomes_hit(f"/disk/{turn}-0")
            aside += damaged.exists()
            said += made.says("and the store begins empty")
            process.stop()
    return [line("12 times killed, and the file damaged", "requests are served at once each time, and stored again; a damaged file is moved aside, with a line in the log",
                 {"served": served, "stored anew": again, "moved aside": aside, "said": said, "wrong": wrong},
                 served == again == 12 and wrong == 0 and aside == said >= 8)]


@result("no-folder")
def no_folder(options: argparse.Namespace) -> list[dict]:
    """The folder cannot be made: the gateway serves without it, and says so once."""
    with stand(options, lambda target: FRESH + b"\r\none", starts=False) as made:
        made.folder = Path("/proc/none")
        made.start()
        served = sum(made.ask("/disk/x").status == 200 for _ in range(50))
        said = made.says("nothing is stored there until this is fixed")
        return [line("a store whose folder cannot be made", "50 requests are served, the failure is logged once", {"served": served, "said": said}, served == 50 and said == 1)]


if __name__ == "__main__":
    sys.exit(run.main(RESULTS, __doc__))
