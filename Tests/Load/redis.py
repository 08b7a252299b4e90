#!/usr/bin/env python3
"""The cost of a Redis server that is slow, stopped, gone or not Redis at all, how well two gateways obey one limit, and the memory that a
response of 1 GiB takes on its way into Redis and out again: one JSON line per result.

    Tests/Load/redis.py --binary .build/release/httpware [--requests 300] [--only store|limit|lock|one-limit|large]

One gateway with a store in Redis, an origin server, a client that asks for one target after the other, none twice: each is looked for
in the store, or counted there. With the lock of a rotating refresh token, requests whose token has expired: each is told at once that there
is none. The goal is the promise: 50 ms beside what the same request takes without trouble. The servers are
processes of their own, so that the client measures nothing of theirs. Then two gateways before one Redis with more requests than a limit allows: what passes is within 2 % of what it says.
Needs redis-server. Exits 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from Rig.processes import Process, Workplace, free_port  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

MOST = 0.05
CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
stores: {{ shared: {{ redis: {{ url: "redis://127.0.0.1:{redis}" }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains: {{ asked: {{ middlewares: [{ware}] }} }}
routes: [{{ match: {{ path: /first }}, service: origin }}, {{ service: origin, chain: asked }}]
log: {{ level: error }}
"""
TOKENS = """credentials:
  rotating: {{ grant: refreshToken, tokenUrl: "http://127.0.0.1:{token}/token", clientId: gateway, refreshToken: first, refreshBefore: 0s, retry: 0, lock: shared }}
"""
TOKEN = "{ tokenRefresh: { credential: rotating } }, { tokenInject: { credential: rotating } }"
CACHE = "{ httpCache: { store: shared } }"
COUNT = "{ rateLimit: { rate: 1000000/s, store: shared, onError: allow } }"
LARGE = "{ httpCache: { store: shared, maxObject: 2GiB } }"
LIMIT = "{ rateLimit: { rate: 200/s, burst: 50, key: route, store: shared, onError: refuse } }"
MIB = random.Random(6).randbytes(1 << 20)
ANSWER = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024
failed = 0


def report(name: str, goal: str, measured: str, passed: bool) -> None:
    global failed
    failed += not passed
    print(json.dumps({"name": name, "goal": goal, "measured": measured, "pass": passed}), flush=True)


def serve(port: int, talk) -> None:
    """Accepts on the port, in a process that ends with this one; `talk` has each connection on a thread of its own."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=talk, args=(client,), daemon=True).start()

    with listener:
        multiprocessing.get_context("fork").Process(target=accept, daemon=True).start()


def origin(client: socket.socket) -> None:
    buffer = b""
    while data := client.recv(65536):
        buffer += data
        while b"\r\n\r\n" in buffer:
            _, _, buffer = buffer.partition(b"\r\n\r\n")
            client.sendall(ANSWER)


def vast(size: int, rest: float):
    """Answers with that many bytes, a MiB at a time, with a rest behind each; the MiB is `MIB`."""

    def talk(client: socket.socket) -> None:
        while client.recv(65536):
            client.sendall(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size >> 20):
                client.sendall(MIB)
                pause(rest, Why.SLOW)

    return talk


def nonsense(client: socket.socket) -> None:
    """Greets like Redis, then sends bytes that are not its protocol."""
    try:
        client.recv(65536)
        client.sendall(b"+PONG\r\n")
        while client.recv(65536):
            client.sendall(b"*2147483647\r\n+OK\r\n" * 100)
    except OSError:
        pass


def tokens(client: socket.socket) -> None:
    """A token endpoint: each token is good for a second."""
    while client.recv(65536):
        body = b'{"access_token":"a","token_type":"Bearer","expires_in":1,"refresh_token":"%d"}' % random.randrange(1 << 60)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


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
                pause(delay, Why.SLOW)
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

    def gateway(self, redis: int, ware: str) -> socket.socket:
        """A client of a new gateway, whose first request is behind it: that takes some ms more, and is not Redis's."""
        client = socket.create_connection(("127.0.0.1", self.start(redis, ware)), 10)
        self.ask(client, "/first")
        return client

    def start(self, redis: int, ware: str) -> int:
        return self.process(redis, ware, self.origin)[0]

    def process(self, redis: int, ware: str, origin: int) -> tuple[int, Process]:
        web = free_port()
        text = CONFIG.format(web=web, redis=redis, origin=origin, ware=ware)
        if ware == TOKEN:
            endpoint = free_port()
            serve(endpoint, tokens)
            text += TOKENS.format(token=endpoint)
        return web, self.place.gateway(self.binary, text, [web])

    def redis(self):
        port = free_port()
        return port, self.place.command(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"], [port])

    def times(self, client: socket.socket, while_asking=lambda number: None) -> list[float]:
        taken = []
        for number in range(self.requests):
            while_asking(number)
            self.number += 1
            taken.append(self.ask(client, f"/{self.number}"))
            pause(0.005, Why.SLOW)
        return sorted(taken)

    def ask(self, client: socket.socket, target: str) -> float:
        began = time.perf_counter()
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: site.test\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"x" * 1024):
            data = client.recv(65536)
            if not data:
                raise SystemExit("the gateway closed the connection")
            answer += data
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"not answered: {answer[:100]!r}")
        return time.perf_counter() - began

    def measure(self, name: str, client: socket.socket, usual: float, while_asking=lambda number: None) -> None:
        taken = self.times(client, while_asking)
        late = sum(time > usual + 0.03 for time in taken)
        most = taken[-1] - usual
        report(name, f"{self.requests} answered, none later than by {MOST * 1000:.0f} ms",
               f"{len(taken)} answered, median {taken[len(taken) // 2] * 1000:.1f} ms, most added {most * 1000:.1f} ms, "
               f"{late} waited", most <= MOST)


def trouble(trial: Trial, what: str, ware: str) -> None:
    port, redis = trial.redis()
    client = trial.gateway(port, ware)
    trial.times(client)
    usual = trial.times(client)[trial.requests // 2]
    report(f"{what}: usual", "told", f"median {usual * 1000:.2f} ms with a look into Redis", True)
    trial.measure(f"{what}: stopped in between", client, usual,
                  lambda number: redis.signal(signal.SIGSTOP) if number == trial.requests // 4 else None)
    redis.signal(signal.SIGCONT)
    trial.times(client)
    trial.measure(f"{what}: killed in between", client, usual,
                  lambda number: redis.signal(signal.SIGKILL) if number == trial.requests // 4 else None)
    false = free_port()
    serve(false, nonsense)
    trial.measure(f"{what}: answers nonsense", trial.gateway(false, ware), usual)
    port, _ = trial.redis()
    late = free_port()
    serve(late, slow(port, 0.2))
    trial.measure(f"{what}: answers after 200 ms", trial.gateway(late, ware), usual)
    trial.measure(f"{what}: is not there", trial.gateway(free_port(), ware), usual)


def lock(trial: Trial) -> None:
    """Requests that need a new token: by the trouble they wait for no longer than 50 ms, all together."""

    def asked(client: socket.socket) -> tuple[int, float]:
        began = time.perf_counter()
        client.sendall(b"GET /token HTTP/1.1\r\nHost: site.test\r\n\r\n")
        reader = client.makefile("rb")
        status = int(reader.readline().split()[1])
        fields = dict(line.lower().strip().split(b": ", 1) for line in iter(reader.readline, b"\r\n"))
        reader.read(int(fields[b"content-length"]))
        return status, time.perf_counter() - began

    def told(what: str, client: socket.socket) -> None:
        """Each second again, behind the pause that follows a failure, or within it."""
        answers = []
        for _ in range(8):
            answers.append(asked(client))
            pause(1.05, Why.PASSES)
        most = max(took for _, took in answers)
        report(f"lock: {what}", f"8 requests are told, none after more than {MOST * 1000:.0f} ms",
               f"{[status for status, _ in answers]}, most {most * 1000:.1f} ms", all(status == 503 for status, _ in answers) and most <= MOST)

    for what, number in (("stopped", signal.SIGSTOP), ("killed", signal.SIGKILL)):
        port, redis = trial.redis()
        client = trial.gateway(port, TOKEN)
        status, took = asked(client)
        report(f"lock: usual, before it is {what}", "a token, 200", f"{status} in {took * 1000:.1f} ms", status == 200)
        pause(1.1, Why.PASSES)
        redis.signal(number)
        told(what, client)
    false = free_port()
    serve(false, nonsense)
    told("answers nonsense", trial.gateway(false, TOKEN))
    told("is not there", trial.gateway(free_port(), TOKEN))


def one_limit(trial: Trial, seconds: float = 10) -> None:
    """Four clients ask two gateways as fast as they can."""
    port, _ = trial.redis()
    webs = [trial.start(port, LIMIT) for _ in range(2)]
    counts: list[dict[bytes, int]] = []
    began = time.monotonic()

    def ask(web: int) -> None:
        statuses: dict[bytes, int] = {}
        with socket.create_connection(("127.0.0.1", web), 10) as client:
            reader = client.makefile("rb")
            while time.monotonic() < began + seconds:
                client.sendall(b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
                status = reader.readline()[9:12]
                length = 0
                while (line := reader.readline().strip()):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                reader.read(length)
                statuses[status] = statuses.get(status, 0) + 1
        counts.append(statuses)

    threads = [threading.Thread(target=ask, args=(web,)) for web in webs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    got, asked = (sum(sum(one.get(key, 0) for key in keys) for one in counts) for keys in ([b"200"], [b"200", b"429"]))
    most = 50 + 200 * took
    other = sum(sum(one.values()) for one in counts) - asked
    report("two gateways, one limit", "within 2 % of what it allows, and nothing else answered", f"{got} of {asked} passed, {most:.0f} "
           f"allowed in {took:.2f} s: {100 * (got / most - 1):+.2f} %, {other} answered otherwise",
           abs(got / most - 1) <= 0.02 and other == 0 and asked > 1.3 * most)


def large(trial: Trial, size: int = 1 << 30) -> None:
    """A response of 1 GiB: from an origin server that gives 100 MiB a second at most, and from one that gives all it can."""
    port, _ = trial.redis()
    for pace, rest in (("in at up to 100 MiB/s", 0.01), ("in as fast as can be", 0)):
        origin = free_port()
        serve(origin, vast(size, rest))
        web, gateway = trial.process(port, LARGE, origin)
        peak, seen = 0, []
        base = gateway.status("RssAnon")
        for turn in ("in", "out"):
            whole, began = True, time.monotonic()
            with socket.create_connection(("127.0.0.1", web), 60) as client:
                client.sendall(b"GET /vast%d HTTP/1.1\r\nHost: site.test\r\n\r\n" % bool(rest))
                reader = client.makefile("rb")
                head = b"".join(iter(reader.readline, b"\r\n"))
                for _ in range(size >> 20):
                    whole = whole and reader.read(1 << 20) == MIB
                    peak = max(peak, gateway.status("RssAnon") - base)
            seen.append(f"{turn}: {'hit' if b'; hit' in head else 'asked'}, {'whole' if whole else 'cut off'}, {time.monotonic() - began:.1f} s")
            pause(1, Why.BEFORE)  # the last pieces are written
        report(f"a response of 1 GiB, {pace}", "under 200 MiB of memory, whole each time" + (", a hit out" if rest else ""),
               f"{'; '.join(seen)}; {peak >> 10} MiB", peak < 200 << 10 and all("whole" in one for one in seen) and (not rest or "hit" in seen[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--only", choices=["store", "limit", "lock", "one-limit", "large"])
    arguments = parser.parse_args()
    trial = Trial(arguments.binary, arguments.requests)
    try:
        for what, body in (("store", lambda: trouble(trial, "store", CACHE)), ("limit", lambda: trouble(trial, "limit", COUNT)),
                           ("lock", lambda: lock(trial)), ("one-limit", lambda: one_limit(trial)), ("large", lambda: large(trial))):
            if arguments.only in (None, what):
                body()
    finally:
        trial.place.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
