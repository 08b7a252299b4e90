#!/usr/bin/env python3
"""A stranger at an admin listener: slow heads, huge requests, floods without a token. Ends by itself.

    attack.py --port PORT --seconds N     prints how many answers came, by status
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, pause  # noqa: E402

ASKED = [b"GET /v1/config", b"GET /metrics", b"GET /v1/requests?limit=2000", b"GET /v1/events", b"POST /v1/reload", b"GET /nothing", b"GET /healthz"]


class Attack:
    def __init__(self, port: int, seconds: float):
        self.port, self.end = port, time.monotonic() + seconds
        self.lock, self.statuses = threading.Lock(), {}

    def count(self, data: bytes) -> None:
        for piece in data.split(b"HTTP/1.1 ")[1:]:
            with self.lock:
                self.statuses[piece[:3].decode("latin-1")] = self.statuses.get(piece[:3].decode("latin-1"), 0) + 1

    def connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), 2)
        sock.settimeout(2)
        return sock

    def again(self, once) -> None:
        while time.monotonic() < self.end:
            try:
                with self.connect() as sock:
                    once(sock)
            except OSError:
                pause(0.01, Why.SLOW)

    def slow_head(self, sock: socket.socket) -> None:
        for byte in b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1000:
            if time.monotonic() > self.end:
                return
            sock.send(bytes([byte]))
            pause(0.2, Why.SLOW)

    def huge(self, sock: socket.socket) -> None:
        kind = random.randrange(3)
        if kind == 0:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20))
        elif kind == 1:
            sock.sendall(b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n" + b"a" * (1 << 20))
        else:
            sock.sendall(b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b"a" * 65535)
        self.count(sock.recv(65536))
        pause(0.02, Why.SLOW)

    def flood(self, sock: socket.socket) -> None:
        fields = b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %x\r\n\r\n"
        while time.monotonic() < self.end:
            sock.sendall(b"".join(random.choice(ASKED) + fields % random.getrandbits(128) for _ in range(20)))
            data = sock.recv(1 << 20)
            if not data:
                return
            self.count(data)
            pause(0.005, Why.SLOW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    attack = Attack(options.port, options.seconds)
    work = [attack.slow_head] * 20 + [attack.huge] * 6 + [attack.flood] * 6
    threads = [threading.Thread(target=attack.again, args=(once,)) for once in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(attack.statuses))


if __name__ == "__main__":
    main()
