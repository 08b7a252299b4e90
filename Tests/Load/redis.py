#!/usr/bin/env python3
"""What a Redis server that is slow, stopped, gone or no Redis at all adds to requests: one JSON line per result.

    Tests/Load/redis.py --binary .build/release/httpware [--requests 300]

One gateway with a store in Redis, an origin server, a client that asks for one target after the other, none twice: each is looked for
in the store. The goal is the promise: 50 ms beside what the same request takes without trouble, and 15 ms for a machine that is busy.
Needs redis-server. Exits 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from Rig.processes import Workplace, free_port  # noqa: E402

MOST = 0.065
CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
stores: {{ shared: {{ redis: {{ url: "redis://127.0.0.1:{redis}" }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains: {{ cached: {{ middlewares: [{{ httpCache: {{ store: shared }} }}] }} }}
routes: [{{ service: origin, chain: cached }}]
log: {{ level: error }}
"""
ANSWER = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024
failed = 0


def report(name: str, goal: str, measured: str, passed: bool) -> None:
    global failed
    failed += not passed
    print(json.dumps({"name": name, "goal": goal, "measured": measured, "pass": passed}), flush=True)


def serve(port: int, talk) -> socket.socket:
    """Accepts on the port; `talk` has each connection on a thread of its own."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def origin(client: socket.socket) -> None:
    buffer = b""
    while data := client.recv(65536):
        buffer += data
        while b"\r\n\r\n" in buffer:
            _, _, buffer = buffer.partition(b"\r\n\r\n")
            client.sendall(ANSWER)


def nonsense(client: socket.socket) -> None:
    """Greets like Redis, then says what is none of its words."""
    try:
        client.recv(65536)
        client.sendall(b"+PONG\r\n")
        while client.recv(65536):
            client.sendall(b"*2147483647\r\n+OK\r\n" * 100)
    except OSError:
        pass


def slow(target: int, delay: float):
    """Between client and server, with all answers late."""

    def talk(client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", target))

        def forward() -> None:
            try:
                while data := client.recv(65536):
                    server.sendall(data)
            except OSError:
                pass

        threading.Thread(target=forward, daemon=True).start()
        try:
            while data := server.recv(65536):
                time.sleep(delay)
                client.sendall(data)
        except OSError:
            pass

    return talk


class Trial:
    def __init__(self, binary: str, requests: int):
        self.binary, self.requests, self.number = binary, requests, 0
        self.place = Workplace("redis")
        self.origin = free_port()
        serve(self.origin, origin)

    def gateway(self, redis: int) -> socket.socket:
        web = free_port()
        self.place.gateway(self.binary, CONFIG.format(web=web, redis=redis, origin=self.origin), [web])
        return socket.create_connection(("127.0.0.1", web), 10)

    def redis(self):
        port = free_port()
        return port, self.place.command(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"], [port])

    def times(self, client: socket.socket, while_asking=lambda number: None) -> list[float]:
        taken = []
        for number in range(self.requests):
            while_asking(number)
            self.number += 1
            began = time.perf_counter()
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: site.test\r\n\r\n" % self.number)
            answer = b""
            while not answer.endswith(b"x" * 1024):
                data = client.recv(65536)
                if not data:
                    raise SystemExit("the gateway closed the connection")
                answer += data
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"not answered: {answer[:100]!r}")
            taken.append(time.perf_counter() - began)
            time.sleep(0.005)
        return sorted(taken)

    def measure(self, name: str, client: socket.socket, usual: float, while_asking=lambda number: None) -> None:
        taken = self.times(client, while_asking)
        late = sum(time > usual + 0.04 for time in taken)
        most = taken[-1] - usual
        report(name, f"{self.requests} answered, none later than by {MOST * 1000:.0f} ms",
               f"{len(taken)} answered, median {taken[len(taken) // 2] * 1000:.1f} ms, most added {most * 1000:.1f} ms, "
               f"{late} waited", most <= MOST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--requests", type=int, default=300)
    arguments = parser.parse_args()
    trial = Trial(arguments.binary, arguments.requests)
    try:
        port, redis = trial.redis()
        client = trial.gateway(port)
        trial.times(client)
        usual = trial.times(client)[trial.requests // 2]
        report("usual", "told", f"median {usual * 1000:.2f} ms with a look into Redis", True)
        trial.measure("stopped in between", client, usual,
                      lambda number: redis.signal(signal.SIGSTOP) if number == trial.requests // 4 else None)
        redis.signal(signal.SIGCONT)
        trial.times(client)
        trial.measure("killed in between", client, usual,
                      lambda number: redis.signal(signal.SIGKILL) if number == trial.requests // 4 else None)
        false = free_port()
        serve(false, nonsense)
        trial.measure("answers nonsense", trial.gateway(false), usual)
        port, _ = trial.redis()
        late = free_port()
        serve(late, slow(port, 0.2))
        trial.measure("answers after 200 ms", trial.gateway(late), usual)
        trial.measure("is not there", trial.gateway(free_port()), usual)
    finally:
        trial.place.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
