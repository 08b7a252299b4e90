#!/usr/bin/env python3
"""How much later events and first bytes come when they are captured. Standard library.

    Tests/Bench/delays.py --binary .build/release/httpware [--rounds 5] [--seconds 4] [--streams 4]

Three gateways with one worker each take turns: without capture, with capture in memory, and with capture in memory and on a disk. An origin
server in a process of its own sends the time of its clock, in an event with JSON that is masked or at the beginning of a long content; the
client compares it with the time when that arrives. The figure is the median, over the rounds, of a round's percentile.
On a machine that does other work at the same time, put `chrt -r 5` before the command.
"""

from __future__ import annotations

import argparse
import http.server
import json
import multiprocessing
import socket
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

GATEWAY = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
routes: [{{ service: origin }}]
log: {{ level: error }}
{admin}
"""
PAUSE = 0.005
WAYS = ("without capture", "capture", "capture, disk")


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        kind, seconds = self.path.strip("/").split("/")
        self.send_response(200)
        self.send_header("Connection", "close")
        self.send_header("Content-Type", "text/event-stream" if kind == "events" else "application/octet-stream")
        self.end_headers()
        until = time.monotonic() + float(seconds)
        try:
            if kind == "events":
                while time.monotonic() < until:
                    text = json.dumps({"password": "x", "text": "y" * 200, "time": time.monotonic_ns()})
                    self.wfile.write(f"data: {text}\n\n".encode())
                    pause(PAUSE, Why.SLOW)
            else:
                self.wfile.write(b"%020d" % time.monotonic_ns() + b"z" * 4096)
                pause(PAUSE, Why.SLOW)
                self.wfile.write(b"z" * 65536)
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


def serve(port: int) -> None:
    Server(("127.0.0.1", port), Origin).serve_forever()


def events(port: int, seconds: float) -> list[int]:
    """The delays of the events of one stream, in nanoseconds."""
    wire = connect(port)
    wire.sendall(b"GET /events/%.1f HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" % seconds)
    delays, rest = [], b""
    while piece := wire.recv(65536):
        now = time.monotonic_ns()
        rest += piece
        while (end := rest.find(b"}\n\n")) >= 0:
            delays.append(now - int(rest[:end].rsplit(b": ", 1)[1]))
            rest = rest[end + 3:]
    wire.close()
    return delays


def first_bytes(port: int, seconds: float) -> list[int]:
    """The delays of the first bytes of contents, one after the other."""
    delays, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        wire = connect(port)
        wire.sendall(b"GET /first/1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        got = b""
        while len(got.partition(b"\r\n\r\n")[2]) < 32 and (piece := wire.recv(65536)):
            got += piece
        now = time.monotonic_ns()
        # Behind the head, and the size of the first chunk.
        content = got.partition(b"\r\n\r\n")[2]
        delays.append(now - int(content[content.index(b"000"):][:20]))
        while wire.recv(65536):
            pass
        wire.close()
    return delays


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 20)


def measure(body, port: int, seconds: float, streams: int) -> list[int]:
    """The delays of all streams that run at the same time."""
    delays: list[int] = []
    threads = [threading.Thread(target=lambda: delays.extend(body(port, seconds))) for _ in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(delays)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--streams", type=int, default=4)
    options = parser.parse_args()
    place, origin = Workplace("delays"), free_port()
    process = multiprocessing.get_context("fork").Process(target=serve, args=(origin,), daemon=True)
    process.start()
    try:
        ports = {}
        for way in WAYS:
            port, admin = free_port(), free_port()
            disk = f'disk: {{ path: "{place.subfolder("disk")}/captures", maxSize: 256MiB }}' if "disk" in way else ""
            text = f'admin: {{ bind: "127.0.0.1:{admin}", token: none' + (f", capture: {{ {disk} }} }}" if "capture" in way and "without" not in way else " }")
            place.gateway(options.binary, GATEWAY.format(port=port, origin=origin, admin=text), [port, admin], 1)
            ports[way] = port
        late = False
        for name, body in (("events", events), ("first bytes", first_bytes)):
            found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
            for _ in range(options.rounds):
                for way in WAYS:
                    delays = measure(body, ports[way], options.seconds, options.streams)
                    found[way].append(tuple(delays[int(len(delays) * part)] / 1e6 for part in (0.5, 0.99, 0.999)))
            print(f"{name:<14}{'p50':>10}{'p99':>10}{'p99.9':>10}   ms")
            medians = {way: [statistics.median(column) for column in zip(*found[way])] for way in WAYS}
            for way in WAYS:
                print(f"  {way:<16}" + "".join(f"{each:>8.3f}  " for each in medians[way]))
                late = late or medians[way][1] > medians[WAYS[0]][1] + 1
        print("p99 with capture is " + ("more than" if late else "within") + " 1 ms of p99 without")
        return 1 if late else 0
    finally:
        process.terminate()
        place.close()


if __name__ == "__main__":
    sys.exit(main())
