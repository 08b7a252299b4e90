#!/usr/bin/env python3
"""The cost of a fail-over of Redis for two gateways that share a limit, a cache and the lock of a rotating token: one JSON line per result.

    Tests/Load/redis_failover.py --binary .build/release/httpware [--rounds 3] [--only sentinel|cluster] [--timeout 40ms] [--tls]

With sentinels: a master, two replicas and three sentinels. As a cluster: three masters with a replica each. Clients ask both
gateways all the while. The master that has the lock and the tokens is killed, by its own process id, while a call to the
token endpoint is under way: the worst moment. Told are, for each kind of request, how many failed, from when to when, and for the
token how often a refresh token was redeemed twice, how often two calls were under way together – a lock that was lost –, and
whether the credential works at the end. With --tls all servers speak TLS only, and require certificates of their clients. Needs redis-server. Exits 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402
from Rig.waits import Why, eventually, pause  # noqa: E402

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
stores: {{ shared: {{ redis: {{ {redis}, timeout: {timeout} }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
credentials:
  rotating: {{ grant: refreshToken, tokenUrl: "http://127.0.0.1:{token}/token", clientId: gateway, refreshToken: "0", refreshBefore: 0s, retry: 0, window: {{ max: 1000, per: 30s }}, lock: shared }}
chains:
  limit: {{ middlewares: [{{ rateLimit: {{ rate: 1000000/s, key: route, store: shared, onError: refuse }} }}] }}
  cache: {{ middlewares: [{{ httpCache: {{ store: shared }} }}] }}
  token: {{ middlewares: [{{ tokenRefresh: {{ credential: rotating }} }}, {{ tokenInject: {{ credential: rotating }} }}] }}
routes:
  - {{ match: {{ path: /limit }}, service: origin, chain: limit }}
  - {{ match: {{ path: "/cache/**" }}, service: origin, chain: cache }}
  - {{ service: origin, chain: token }}
log: {{ level: warning }}
"""
KINDS = ("limit", "cache", "token")
failed = 0


def report(name: str, goal: str, measured: str, passed: bool) -> None:
    global failed
    failed += not passed
    print(json.dumps({"name": name, "goal": goal, "measured": measured, "pass": passed}), flush=True)


def serve(port: int, answer) -> socket.socket:
    """Answers each request by `answer(head, content)`, on a thread per connection; until the listener is closed."""
    listener = socket.create_server(("127.0.0.1", port))

    def talk(client: socket.socket) -> None:
        with client, client.makefile("rb") as reader:
            try:
                while line := reader.readline():
                    length = 0
                    while field := reader.readline().strip():
                        if field.lower().startswith(b"content-length:"):
                            length = int(field.split(b":")[1])
                    status, kind, body = answer(line, reader.read(length))
                    client.sendall(b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nCache-Control: max-age=60\r\nContent-Length: %d\r\n\r\n%s"
                                   % (status, kind, len(body), body))
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


class Endpoint:
    """A token endpoint with tokens of two seconds. Each refresh token is good once; one that was redeemed is refused."""

    def __init__(self, call_time: float = 0.1):
        self.call_time, self.lock = call_time, threading.Lock()
        self.current, self.calls, self.doubled, self.unknown, self.under_way, self.overlaps = 0, 0, 0, 0, 0, 0
        self.when_called = None

    def answer(self, _: bytes, content: bytes) -> tuple[int, bytes, bytes]:
        token = int(urllib.parse.parse_qs(content.decode())["refresh_token"][0])
        with self.lock:
            self.calls += 1
            self.overlaps += self.under_way > 0
            self.under_way += 1
            called, self.when_called = self.when_called, None
        if called:
            called()
        pause(self.call_time, Why.SLOW)
        with self.lock:
            self.under_way -= 1
            if token != self.current:
                self.doubled += token < self.current
                self.unknown += token > self.current
                return 400, b"application/json", b'{"error":"invalid_grant"}'
            self.current += 1
            return 200, b"application/json", (
                b'{"access_token":"a%d","token_type":"Bearer","expires_in":2,"refresh_token":"%d"}' % (self.current, self.current))


class Tls:
    """The certificate that all servers and clients have."""

    def __init__(self):
        made = certificates()
        if not (made.folder / "local.pem").exists():
            made.leaf("local", "DNS:localhost,IP:127.0.0.1")
        self.ca, self.cert, self.key = (made.folder / name for name in ("ca.pem", "local.pem", "local.key"))
        self.context = ssl.create_default_context(cafile=str(self.ca))
        self.context.load_cert_chain(self.cert, self.key)

    def options(self, port: int) -> dict[str, object]:
        return {"port": 0, "tls-port": port, "tls-cert-file": self.cert, "tls-key-file": self.key, "tls-ca-cert-file": self.ca,
                "tls-replication": "yes", "tls-cluster": "yes"}


tls: Tls | None = None


def options(port: int) -> dict[str, object]:
    """The options of a server that listens on a port, in clear text or by TLS."""
    return tls.options(port) if tls else {"port": port}


def command(port: int, *words: str):
    """Asks a Redis server; strings as text."""
    plain = socket.create_connection(("127.0.0.1", port), 5)
    with (tls.context.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain) as client, client.makefile("rb") as reader:
        client.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words))

        def reply():
            line = reader.readline().rstrip(b"\r\n")
            kind, rest = line[:1], line[1:]
            if kind == b"$":
                return None if rest == b"-1" else reader.read(int(rest) + 2)[:-2].decode("latin-1")
            if kind == b"*":
                return [reply() for _ in range(int(rest))]
            return int(rest) if kind == b":" else rest.decode()

        return reply()


def until(is_so, patience: float = 60) -> None:
    if not eventually(is_so, patience, every=0.05):
        raise SystemExit("the servers of Redis do not come together")


class Servers:
    def __init__(self, place: Workplace):
        self.place, self.processes = place, {}

    def start(self, *words: str) -> int:
        port = free_port()
        folder = self.place.subfolder("redis")
        self.processes[port] = self.place.command(
            ["redis-server", *(word for name, value in options(port).items() for word in (f"--{name}", str(value))), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly", "no",
             "--repl-diskless-sync-delay", "0", *words], [port])
        return port

    def sentinels(self) -> str:
        master = self.start()
        for _ in range(2):
            self.start("--replicaof", "127.0.0.1", str(master))
        until(lambda: len(command(master, "ROLE")[2]) == 2)
        ports = []
        for _ in range(3):
            port, folder = free_port(), self.place.subfolder("sentinel")
            file = folder / "sentinel.conf"
            file.write_text("".join(f"{name} {value}\n" for name, value in options(port).items() if name != "tls-cluster") + f"bind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {master} 2\n"
                            "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n")
            self.processes[port] = self.place.command(["redis-server", str(file), "--sentinel"], [port])
            ports.append(port)
        until(lambda: all(len(command(port, "SENTINEL", "sentinels", "main")) == 2
                          and len(command(port, "SENTINEL", "replicas", "main")) == 2 for port in ports))
        return "sentinels: [" + ", ".join(f'"127.0.0.1:{port}"' for port in ports) + "], master: main"

    def cluster(self) -> str:
        words = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"]
        nodes = [(self.start(*words, "--cluster-port", str(bus)), bus) for bus in (free_port() for _ in range(6))]
        for index, (port, _) in enumerate(nodes[:3]):
            command(port, "CLUSTER", "ADDSLOTSRANGE", str(index * 5461), str(16383 if index == 2 else index * 5461 + 5460))
        for port, bus in nodes[1:]:
            command(nodes[0][0], "CLUSTER", "MEET", "127.0.0.1", str(port), str(bus))
        until(lambda: all("cluster_known_nodes:6" in command(port, "CLUSTER", "INFO") for port, _ in nodes))
        for index, (port, _) in enumerate(nodes[3:]):
            master = command(nodes[index][0], "CLUSTER", "MYID")
            until(lambda: command(port, "CLUSTER", "REPLICATE", master) == "OK")
        until(lambda: all("cluster_state:ok" in command(port, "CLUSTER", "INFO") for port, _ in nodes)
              and all(len(part) == 4 for part in command(nodes[0][0], "CLUSTER", "SLOTS")))
        return "nodes: [" + ", ".join(f'"127.0.0.1:{port}"' for port, _ in nodes[:3]) + "]"

    def holder(self) -> Process:
        """The master that has the tokens."""
        for port, process in self.processes.items():
            if process.is_running and command(port, "ROLE")[0] == "master" and command(port, "KEYS", "httpware:t:*"):
                return process
        raise SystemExit("no master has the tokens")


class Client:
    """Asks a gateway for one kind of target all the while, on a thread of its own; `seen` has when, which status, and how long it took."""

    def __init__(self, web: int, kind: str, stop: threading.Event):
        self.web, self.kind, self.stop, self.seen = web, kind, stop, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        number = 0
        with socket.create_connection(("127.0.0.1", self.web), 10) as client, client.makefile("rb") as reader:
            while not self.stop.is_set():
                number += 1
                target = f"/cache/{number % 20}" if self.kind == "cache" else f"/{self.kind}"
                began = time.monotonic()
                client.sendall(f"GET {target} HTTP/1.1\r\nHost: site.test\r\n\r\n".encode())
                status, length = int(reader.readline()[9:12]), 0
                while field := reader.readline().strip():
                    if field.lower().startswith(b"content-length:"):
                        length = int(field.split(b":")[1])
                reader.read(length)
                self.seen.append((began, status, time.monotonic() - began))
                pause(0.01, Why.SLOW)


def trial(binary: str, form: str, number: int, timeout: str, seconds: float) -> None:
    place = Workplace("failover")
    listeners = []
    try:
        servers, endpoint = Servers(place), Endpoint()
        redis = servers.sentinels() if form == "sentinel" else servers.cluster()
        if tls:
            redis += f", tls: {{ ca: {tls.ca}, cert: {tls.cert}, key: {tls.key} }}"
            form += " over TLS"
        origin, token = free_port(), free_port()
        listeners = [serve(origin, lambda line, content: (200, b"text/plain", b"x" * 100)), serve(token, endpoint.answer)]
        webs = [free_port() for _ in range(2)]
        gateways = [place.gateway(binary, CONFIG.format(web=web, redis=redis, timeout=timeout, origin=origin, token=token), [web])
                    for web in webs]
        stop = threading.Event()
        clients = [Client(web, kind, stop) for web in webs for kind in KINDS]
        pause(5, Why.MEASURED)
        victim, killed = servers.holder(), []

        def kill() -> None:
            victim.signal(signal.SIGKILL)
            killed.append(time.monotonic())

        endpoint.when_called = kill
        pause(seconds, Why.MEASURED)
        stop.set()
        for client in clients:
            client.thread.join()
        if not killed:
            raise SystemExit("no token was refreshed")
        for kind in KINDS:
            seen = sorted(one for client in clients if client.kind == kind for one in client.seen)
            before = sum(status != 200 for began, status, took in seen if 2 < began - seen[0][0] and began + took < killed[0])
            after = [began for began, status, took in seen if status != 200 and began + took >= killed[0]]
            slow = max(took for _, _, took in seen)
            last = [status for began, status, _ in seen if began > seen[-1][0] - 2]
            when = f"from {after[0] - killed[0]:.2f} to {after[-1] - killed[0]:.2f} s after the kill" if after else "none"
            works = all(status == 200 for status in last)
            report(f"{form} {number}: {kind}", "answered again at the end" if kind != "cache" else "none fails",
                   f"{len(after)} of {len(seen)} failed ({when}), {before} before it; the slowest took {slow * 1000:.0f} ms",
                   works and (kind != "cache" or not after))
        if "--show-logs" in sys.argv:
            for gateway in gateways:
                print(gateway.log, file=sys.stderr)
        lost = sum("without the lock" in gateway.log for gateway in gateways)
        report(f"{form} {number}: refreshes", "at most one is doubled", f"{endpoint.calls} calls, {endpoint.doubled} with a token that was "
               f"redeemed before, {endpoint.unknown} with one that was never given, {endpoint.overlaps} while another one was under way, "
               f"{lost} gateways without the lock", endpoint.doubled <= 1 and endpoint.unknown == 0 and endpoint.overlaps <= 1)
    finally:
        for listener in listeners:
            listener.close()
        place.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--timeout", default="40ms")
    parser.add_argument("--show-logs", action="store_true", help="print the logs of the gateways")
    parser.add_argument("--only", choices=["sentinel", "cluster"])
    parser.add_argument("--tls", action="store_true", help="all servers of Redis speak TLS only")
    arguments = parser.parse_args()
    global tls
    tls = Tls() if arguments.tls else None
    for form in ("sentinel", "cluster"):
        if arguments.only in (None, form):
            for number in range(1, arguments.rounds + 1):
                trial(arguments.binary, form, number, arguments.timeout, arguments.seconds)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
