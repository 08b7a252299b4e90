#!/usr/bin/env python3
"""Robustness under load: one JSON line per result (name, goal, measured, pass). Python 3.11, standard library only.

    Tests/Load/run.py --binary .build/release/httpware [--only NAME] [--seconds N]

Needs some 23,000 file descriptors (`ulimit -Hn`). Everything is on the loopback and ends by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.certificates import certificates  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402
from Rig.stand import Stand, Traffic  # noqa: E402
from Rig.trials import Trials  # noqa: E402
from Rig.waits import Why, eventually, pause  # noqa: E402
from Rig.wire import WireClosed, WireTimeout  # noqa: E402

CONFIG = """
version: 1
listeners:
  web:
    bind: "127.0.0.1:{web}"
    limits: {{ headTimeout: 300s, idleTimeout: 300s }}
services:
  origin:
    endpoints: [{endpoints}]
    timeouts: {{ connect: 2s, response: 30s, idle: 120s }}
chains:
  mock: {{ middlewares: [{{ mock: {{ status: 200, body: "mocked" }} }}] }}
routes:
  - {{ name: mock, match: {{ path: /mock }}, chain: mock }}
  - {{ service: origin }}
"""
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
MOCK = b"GET /mock HTTP/1.1\r\nHost: a.test\r\n\r\n"


class LoadStand(Stand):
    """A gateway with one route that answers, and one to the origin servers."""

    def __init__(self, binary: str, origins: int = 1, *, delay: float = 0, workers: int = 2, preexec=None, admin: str = ""):
        super().__init__("load", origins=origins, delay=delay)
        endpoints = ", ".join(f'{{ url: "http://127.0.0.1:{port}" }}' for port in self.ports)
        self.gateway = self.place.gateway(binary, CONFIG.format(web=self.web, endpoints=endpoints) + admin, [self.web], workers, preexec=preexec)


RESULTS = Trials()
result = RESULTS.add


@result("idle")
def idle(options: argparse.Namespace) -> list[dict]:
    """10,000 idle connections and 1,000 dribbled heads beside normal traffic: nothing fails."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 12_000:
        return [line("idle", "12,000 descriptors", {"ulimit -Hn": hard}, False)]
    stand = LoadStand(options.binary)
    try:
        traffic = Traffic(stand, readers=8)
        pause(1, Why.MEASURED)
        base = stand.gateway.status("VmRSS")
        quiet: list[socket.socket] = []
        dribbling: list[tuple[socket.socket, list[int]]] = []
        refused = 0
        for index in range(11_000):
            sock = socket.socket()
            sock.settimeout(10)
            try:
                sock.bind((f"127.0.1.{1 + index % 4}", 0))
                sock.connect(("127.0.0.1", stand.web))
            except OSError:
                refused += 1
                continue
            if index < 10_000:
                if index % 2:  # every second one was used before
                    sock.sendall(MOCK)
                quiet.append(sock)
            else:
                dribbling.append((sock, [0]))
        for index, sock in enumerate(quiet):
            sock.settimeout(10)
            if b"mocked" not in (sock.recv(4096) if index % 2 else b"mocked"):
                refused += 1
        head = b"GET /mock HTTP/1.1\r\nHost: a.test\r\nX-A: " + b"a" * 60 + b"\r\n\r\n"
        deadline = time.monotonic() + options.seconds
        between = max(0.05, options.seconds / len(head))
        before = traffic.succeeded
        while time.monotonic() < deadline or any(at[0] < len(head) for _, at in dribbling):
            for sock, at in dribbling:
                if at[0] < len(head):
                    try:
                        sock.send(head[at[0] : at[0] + 1])
                        at[0] += 1
                    except OSError:
                        refused += 1
                        at[0] = len(head)
            pause(between / 2, Why.SLOW)
        rss = stand.gateway.status("VmRSS")
        served = traffic.succeeded - before
        answered = 0
        for sock, _ in dribbling:
            sock.settimeout(10)
            try:
                answered += b"mocked" in sock.recv(4096)
            except OSError:
                pass
        closed = sum(1 for sock in quiet if select.select([sock], [], [], 0)[0]) if len(quiet) < 1000 else _readable(quiet)
        traffic.end()
        for sock in quiet:
            sock.close()
        for sock, _ in dribbling:
            sock.close()
        return [
            line("10,000 idle connections and 1,000 dribbled heads beside traffic", "no request fails, no connection is lost",
                 {"requests": served, "failed": len(traffic.failures), "example": traffic.failures[:1], "idle connections lost": closed, "not accepted": refused,
                  "dribbled heads answered": answered, "slowest ms": round(traffic.slowest * 1000)},
                 not traffic.failures and served > 100 and not closed and not refused and answered == 1000),
            line("memory of 10,000 idle and 1,000 dribbling connections", "under 2 KiB each", {"KiB each": round((rss - base) / 11_000, 2)}, rss - base < 22_000),
        ]
    finally:
        stand.close()


def _readable(socks: list[socket.socket]) -> int:
    poll = select.poll()
    for sock in socks:
        poll.register(sock, select.POLLIN)
    return len(poll.poll(0))


@result("paused-readers")
def paused_readers(options: argparse.Namespace) -> list[dict]:
    """100 readers pause in a 1 GiB download; memory must not follow."""
    stand = LoadStand(options.binary)
    try:
        for _ in range(20):
            client = stand.client()
            client.send(GET)
            client.read_response()
            client.close()
        base = stand.gateway.status("VmRSS")
        clients = []
        for _ in range(100):
            client = stand.client()
            client.send(b"GET /big HTTP/1.1\r\nHost: a.test\r\n\r\n")
            clients.append(client)
        for client in clients:
            client.read_until(b"\r\n\r\n")
            client.read_exactly(100_000)
        pause(min(5, options.seconds), Why.MEASURED)
        peak = stand.gateway.status("VmHWM")
        rss = stand.gateway.status("VmRSS")
        cpu = stand.gateway.cpu_seconds()
        pause(2, Why.MEASURED)
        idle_cpu = stand.gateway.cpu_seconds() - cpu
        # One goes on: it must get all of what it asked for, and others be served meanwhile.
        total, began = 0, time.monotonic()
        first = clients[0]
        first.buffer.clear()
        while total < 200_000_000 and time.monotonic() - began < 20:
            first.received.clear()
            if not first.fill():
                break
            total += len(first.buffer)
            first.buffer.clear()
        other = stand.client()
        other.send(GET)
        served = other.read_response().status == 200
        for client in [*clients, other]:
            client.close()
        each = (rss - base) / 100
        return [
            line("100 readers pause in a 1 GiB download: memory", "growth under 1 MiB each", {"KiB each": round(each), "peak KiB each": round((peak - base) / 100)}, each < 1024 and peak - base < 102_400),
            line("100 readers pause in a 1 GiB download: no busy loop", "under 5 % of a CPU", {"CPU %": round(idle_cpu / 2 * 100, 1)}, idle_cpu < 0.1),
            line("a reader continues after a pause, others are served", "200 MB more arrive", {"MB": total // 1_000_000, "other served": served}, total >= 200_000_000 and served),
        ]
    finally:
        stand.close()


@result("paused-origin")
def paused_origin(options: argparse.Namespace) -> list[dict]:
    """100 uploads to an origin that reads nothing; memory must not follow."""
    stand = LoadStand(options.binary)
    try:
        client = stand.client()
        client.send(GET)
        client.read_response()
        client.close()
        base = stand.gateway.status("VmRSS")
        clients, sent = [], 0
        for _ in range(100):
            client = stand.client(timeout=0.05)
            client.send(b"POST /sink HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000000\r\n\r\n")
            clients.append(client)
        piece = b"x" * 262144
        for client in clients:
            client.sock.setblocking(False)
            try:
                while True:
                    sent += client.sock.send(piece)
            except OSError:
                pass
        pause(min(3, options.seconds), Why.MEASURED)
        rss = stand.gateway.status("VmRSS")
        for client in clients:
            client.close()
        each = (rss - base) / 100
        return [line("100 uploads to an origin that does not read: memory", "growth under 1 MiB each", {"KiB each": round(each), "MB sent in all": sent // 1_000_000}, each < 1024)]
    finally:
        stand.close()


@result("descriptors")
def descriptors(options: argparse.Namespace) -> list[dict]:
    """`ulimit -n 256` with 1,000 clients: accepting must not become a busy loop, and end with them."""
    stand = LoadStand(options.binary, workers=2, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    try:
        clients = []
        for _ in range(1000):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", stand.web))
            clients.append(sock)
        pause(0.5, Why.BEFORE)
        for sock in clients:
            try:
                sock.send(MOCK)
            except OSError:
                pass
        pause(1, Why.BEFORE)
        before, began = stand.gateway.cpu_seconds(), time.monotonic()
        pause(3, Why.MEASURED)
        share = (stand.gateway.cpu_seconds() - before) / (time.monotonic() - began)
        answered = 0
        for sock in clients:
            try:
                answered += b"mocked" in sock.recv(4096)
            except OSError:
                pass
        alive = stand.gateway.is_running
        for sock in clients:
            sock.close()
        began, recovered = time.monotonic(), None
        while time.monotonic() - began < 10:
            try:
                client = stand.client(timeout=1)
                client.send(GET)
                status = client.read_response().status
                client.close()
                if status == 200:
                    recovered = time.monotonic() - began
                    break
            except (OSError, WireClosed, WireTimeout):
                pass
            pause(0.02, Why.SLOW)
        return [
            line("ulimit -n 256 with 1,000 clients: no busy loop on accept", "under 10 % of a CPU", {"CPU %": round(share * 100, 1), "clients answered": answered}, share < 0.10 and answered > 100 and alive),
            line("ulimit -n 256 with 1,000 clients: recovery", "within 1 s of their leaving", {"s": recovered and round(recovered, 3)}, recovered is not None and recovered < 1),
        ]
    finally:
        stand.close()


@result("flapping")
def flapping(options: argparse.Namespace) -> list[dict]:
    """One of two origins is killed and restarted every 2 s under load."""
    stand = LoadStand(options.binary, origins=2)
    try:
        traffic = Traffic(stand, readers=12, writers=4, reconnect=50)
        kills, deadline = 0, time.monotonic() + max(10, options.seconds)
        while time.monotonic() < deadline:
            port = stand.ports[kills % 2]
            victim = stand.origins[port]
            victim.signal(signal.SIGKILL)
            victim.wait(5)
            kills += 1
            pause(1, Why.PASSES)
            stand.start_origin(port)
            pause(1, Why.MEASURED)
        traffic.end()
        arrivals = stand.arrivals()
        twice = [identifier for identifier, count in arrivals.items() if identifier.startswith("p") and count > 1]
        gets = [failure for failure in traffic.failures if failure[0] == "GET" and not failure[2].startswith("cut off")]
        cut = [failure for failure in traffic.failures if failure[2].startswith("cut off")]
        posts = [failure for failure in traffic.failures if failure[0] == "POST"]
        return [
            line("an origin of two killed and restarted every 2 s: idempotent requests", "no request fails before its response has begun",
                 {"kills": kills, "succeeded": traffic.succeeded, "failed": len(gets), "example": gets[:2], "cut off": len(cut), "slowest ms": round(traffic.slowest * 1000)},
                 not gets and traffic.succeeded > 500),
            line("an origin of two killed and restarted every 2 s: POST", "no request reaches an origin twice", {"twice": len(twice), "failed (may)": len(posts)}, not twice),
        ]
    finally:
        stand.close()


@result("drain")
def drain(options: argparse.Namespace) -> list[dict]:
    """SIGTERM under load: what is in flight is finished."""
    lost, raced, served, refused_late, exits, slow = [], 0, 0, 0, [], 0.0
    for _ in range(3):
        stand = LoadStand(options.binary, delay=0.05)
        try:
            traffic = Traffic(stand, readers=24, writers=8, think=0.02)
            per_request = Traffic(stand, readers=8, reconnect=1)
            pause(1.5, Why.MEASURED)
            stand.gateway.signal()
            began = time.monotonic()
            exits.append(stand.gateway.wait(10))
            slow = max(slow, time.monotonic() - began)
            traffic.stop.set()
            per_request.stop.set()
            traffic.end()
            per_request.end()
            arrivals = stand.arrivals()
            served += traffic.succeeded + per_request.succeeded
            for method, identifier, problem in traffic.failures + per_request.failures:
                if problem.startswith("refused"):
                    refused_late += 1
                elif identifier in arrivals and problem.startswith("no response") or not problem.startswith("no response"):
                    lost.append((method, identifier, problem))
                else:
                    raced += 1  # it met a connection that was being closed while idle, and reached no origin
        finally:
            stand.close()
    return [line("SIGTERM under load, three times", "no request in flight fails, exit 0", {"served": served, "lost": len(lost), "example": lost[:2],
                 "met a closing idle connection": raced, "refused after SIGTERM": refused_late, "exit": exits, "slowest drain s": round(slow, 2)}, not lost and exits == [0, 0, 0])]


class Reloads:
    """A gateway whose file changes, with traffic of all kinds beside it."""

    def __init__(self, binary: str):
        self.stand = LoadStand(binary)
        self.gateway = self.stand.gateway
        self.file = self.gateway.folder / "httpware.yaml"
        self.extra = [free_port() for _ in range(4)]
        self.runs: list[subprocess.Popen] = []
        # The metric is asked for where this version has an admin listener.
        self.admin = free_port()
        self.has_admin = False
        probe = self.gateway.folder / "probe.yaml"
        probe.write_text(self.text(0) + f'admin: {{ bind: "127.0.0.1:{self.admin}", token: none }}\n')
        self.has_admin = subprocess.run([binary, "check", "-c", str(probe)], capture_output=True).returncode == 0

    def text(self, turn: int) -> str:
        """A valid configuration, another in each turn: everything changes at some time, and comes again."""
        ports = " ".join(f'extra{index}: {{ bind: "127.0.0.1:{port}" }},' for index, port in enumerate(self.extra) if turn >> index & 1)
        mocks = ", ".join(f'{{ body: "{turn % 3} {index}" }}' for index in range(3))
        routes = [f'  - {{ name: r{index}, match: {{ path: "/r{(index + turn) % 20}" }}, service: origin, chain: edited }}' for index in range(20)]
        random.Random(turn).shuffle(routes)
        return f"""version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{self.stand.web}", chain: logged, limits: {{ idleTimeout: {300 + turn % 2}s, head: {32 + turn % 4}KiB }} }}, {ports} }}
services:
  origin: {{ baseUrl: "http://127.0.0.1:{self.stand.ports[0]}", pool: {{ maxIdle: {100 + turn % 3} }}, timeouts: {{ response: {20 + turn % 5}s }} }}
  unused{turn % 7}: {{ baseUrl: "http://127.0.0.1:{self.stand.ports[0]}" }}
chains:
  mock: {{ middlewares: [{{ mock: {{ status: 200, body: "mocked" }} }}, {{ mock: {{ sequence: [{mocks}] }} }}] }}
  edited: {{ middlewares: [{{ requestHeaders: {{ set: {{ X-Turn: "{turn}" }} }} }}, {{ rewrite: {{ path: {{ regex: "^/r(\\\\d+)$", to: "/$1" }} }} }}] }}
  logged: {{ postwares: [{{ accessLog: {{ sample: 0.01, output: "file:{self.gateway.folder}/access{turn % 5}.log" }} }}] }}
routes:
  - {{ name: mock, match: {{ path: /mock, headers: {{ Host: "~^a\\\\.test|127" }} }}, chain: mock }}
{chr(10).join(routes)}
  - {{ service: origin, with: {{ timeLog: false }}, chain: timed }}
log: {{ output: "file:{self.gateway.folder}/own{turn % 2}.log" }}
{f'admin: {{ bind: "127.0.0.1:{self.admin}", token: none }}' if self.has_admin else ""}
""".replace("routes:", "  timed: { postwares: [timeLog] }\nroutes:", 1)

    def log(self) -> str:
        return "".join(path.read_text() for path in [self.gateway.folder / "output.log", *sorted(self.gateway.folder.glob("own*.log"))])

    def reload(self, text: str | None) -> bool:
        """Whether the file, or its absence, was taken; waits for the word."""
        before = self.log().count("reloaded: ")
        refused = self.log().count("not reloaded: ")
        if text is None:
            self.file.unlink()
        else:
            self.file.write_text(text)
        self.gateway.signal(signal.SIGHUP)
        if not eventually(lambda: self.log().count("reloaded: ") != before, 10):
            raise TimeoutError("no word of a reload: " + self.log()[-500:])
        return self.log().count("not reloaded: ") == refused

    def success(self) -> str | None:
        """The metric httpware_config_last_reload_success, where there is one."""
        if not self.has_admin:
            return None
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=5) as response:
            found = re.search(r"^httpware_config_last_reload_success (\S+)$", response.read().decode(), re.MULTILINE)
        return found[1] if found else "absent"

    def wrk(self, path: str, seconds: float, *more: str) -> None:
        if shutil.which("wrk"):
            command = ["wrk", "-t1", "-c16", f"-d{max(1, round(seconds))}s", "--timeout", "20s", *more, f"http://127.0.0.1:{self.stand.web}{path}"]
            self.runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def ended(self) -> tuple[int, list[str]]:
        """How many requests the runs of wrk made, and what failed of them."""
        requests, failed = 0, []
        for run in self.runs:
            output = run.communicate(timeout=60)[0]
            found = re.search(r"(\d+) requests in", output)
            requests += int(found[1]) if found else 0
            failed += [found[0]] if (found := re.search(r"Socket errors:.*|Non-2xx.*", output)) else []
            failed += [] if "requests in" in output else [output]
        self.runs = []
        return requests, failed

    def load(self, seconds: float, turn) -> tuple[int, list]:
        """Traffic for a duration; `turn` is called once a second."""
        traffic = [Traffic(self.stand, readers=4, writers=2, think=0.01), Traffic(self.stand, readers=2, reconnect=1, think=0.01)]
        self.wrk("/r5", seconds)
        self.wrk("/mock", seconds, "-H", "Connection: close")
        began = time.monotonic()
        for number in range(round(seconds)):
            turn(number)
            pause(began + number + 1 - time.monotonic(), Why.MEASURED)
        requests, failed = self.ended()
        for each in traffic:
            each.end()
        return requests + sum(each.succeeded for each in traffic), failed + [each for one in traffic for each in one.failures]

    def at_rest(self) -> tuple[int, int]:
        """Memory in KiB and descriptors, with the first configuration and no client."""
        # Another pool, and back: connections upstream that wait for work are closed.
        self.reload(self.text(1))
        self.reload(self.text(0))
        seen = [-1]
        eventually(lambda: seen.append(self.gateway.descriptors()) or seen[-1] == seen[-2], 10, every=1)
        return self.gateway.status("VmRSS"), self.gateway.descriptors()


@result("reload")
def reload(options: argparse.Namespace) -> list[dict]:
    """A new valid configuration every second for a minute under load; nothing fails, nothing grows."""
    reloads = Reloads(options.binary)
    try:
        # The memory that the first load and each configuration take once is not growth.
        reloads.load(max(3, options.seconds), lambda turn: reloads.reload(reloads.text(turn)))
        memory, descriptors = reloads.at_rest()
        taken: list[bool] = []
        seconds = round(options.seconds * 6)
        requests, failed = reloads.load(seconds, lambda turn: taken.append(reloads.reload(reloads.text(turn))))
        memory_after, descriptors_after = reloads.at_rest()
        return [
            line("a new configuration every second under load", "0 requests fail, all configurations are taken",
                 {"requests": requests, "failed": len(failed), "example": failed[:2], "reloads": len(taken), "refused": taken.count(False), "wrk": bool(shutil.which("wrk"))},
                 not failed and all(taken) and len(taken) == seconds and (requests >= 100_000 or seconds < 60)),
            line("a new configuration every second under load: memory and descriptors", "as before, ± 5 %",
                 {"KiB before": memory, "KiB after": memory_after, "descriptors before": descriptors, "descriptors after": descriptors_after},
                 abs(memory_after - memory) <= memory / 20 and abs(descriptors_after - descriptors) <= max(1, descriptors / 20)),
        ]
    finally:
        reloads.stand.close()


# The mistakes that are made in the first configuration: a text, its replacement, and the line that the error names.
BROKEN = {
    "not YAML": ("services:\n", "services: [\n", 0),
    "a tab": ("  origin:", "\torigin:", 4),
    "no version": ("version: 1\n", "\n", 2),
    "another version": ("version: 1", "version: 2", 1),
    "an unknown noun": ("services:\n", "servises:\n", 3),
    "an unknown key of a listener": ("bind:", "bindd:", 2),
    "no address": ("127.0.0.1:{web}", "127.0.0.1", 2),
    "a port that is taken": ("127.0.0.1:{web}", "127.0.0.1:{taken}", 2),
    "an unknown key of a service": ("baseUrl:", "baseURL:", 4),
    "no URL": ("http://127.0.0.1:{origin}", "127.0.0.1:{origin}", 4),
    "a size without its unit": ("maxIdle: 100", "maxIdle: 100KiB", 4),
    "a duration without its unit": ("response: 20s", "response: 20", 4),
    "an unknown ware": ("{{ rewrite:", "{{ rewrit:", 8),
    "an unknown option": ("regex:", "regexp:", 8),
    "a regular expression that is none": ("(\\\\d+)$", "(\\\\d+$", 8),
    "a postware among the middlewares": ("middlewares: [{{ requestHeaders", "middlewares: [timeLog, {{ requestHeaders", 8),
    "an unknown chain": ("chain: timed", "chain: tamed", 0),
    "an unknown service": ("- {{ service: origin,", "- {{ service: orygin,", 0),
    "chains in a circle": ("mock: {{ middlewares: [", "mock: {{ middlewares: [{{ use: mock }}, ", 7),
    "an include that is not there": ("version: 1\n", "version: 1\ninclude: [missing.yaml]\n", 2),
    "a variable that is not set": ("http://127.0.0.1:{origin}", "${{HTTPWARE_LOAD_UNSET}}", 4),
    "a secret that is not there": ("http://127.0.0.1:{origin}", "${{file:/nonexistent/secret}}", 4),
    "an output that cannot be": ("/access0.log", "/nonexistent/access0.log", 9),
    "an empty file": (None, "", 1),
    "no file": (None, None, 0),
}


@result("reload-broken")
def reload_broken(options: argparse.Namespace) -> list[dict]:
    """Broken configurations, one after the other, beside traffic: what runs goes on, and the log says where the mistake is."""
    reloads = Reloads(options.binary)
    traffic = None
    try:
        assert reloads.reload(reloads.text(0)), reloads.log()
        traffic = Traffic(reloads.stand, readers=4, think=0.01)
        names = {"web": reloads.stand.web, "origin": reloads.stand.ports[0], "taken": reloads.stand.ports[0]}
        wrong = []
        for name, (old, new, number) in BROKEN.items():
            before, succeeded = len(reloads.log()), traffic.succeeded
            text = reloads.text(0)
            if old is not None:
                assert old.format(**names) in text, f"{name}: {old.format(**names)!r} is not in the configuration"
                text = text.replace(old.format(**names), new.format(**names), 1)
            was_taken = reloads.reload(new if old is None else text)
            said = reloads.log()[before:]
            place = f"httpware.yaml:{number}:" if number else "httpware.yaml"
            eventually(lambda: traffic.succeeded >= succeeded + 10, 5)
            if was_taken or place not in said or reloads.success() not in (None, "0") or traffic.succeeded < succeeded + 10:
                wrong.append((name, said[-300:]))
        mended = reloads.reload(reloads.text(1)) and reloads.success() in (None, "1")
        traffic.end()
        return [line(f"{len(BROKEN)} kinds of broken configuration under load", "each is refused with its place, the running configuration stays, the metric is 0",
                     {"wrong": wrong[:3], "metric": reloads.has_admin, "good again": mended, "requests": traffic.succeeded, "failed": len(traffic.failures), "example": traffic.failures[:1]},
                     not wrong and mended and not traffic.failures)]
    finally:
        if traffic:
            traffic.stop.set()
        reloads.stand.close()
@result("admin")
def admin(options: argparse.Namespace) -> list[dict]:
    """The admin listener is attacked: requests do not notice more than that the machine is busy.

    The control is the same attack on another gateway: it takes the same share of the cores.
    """
    seconds = max(3.0, options.seconds / 3)
    ports = [free_port(), free_port()]
    token = "token: dG9wLXNlY3JldC10b2tlbg=="
    stands = [LoadStand(options.binary, admin=f'admin: {{ bind: "127.0.0.1:{port}", {token} }}\n') for port in ports]
    stand = stands[0]
    program = str(Path(__file__).parent / "attack.py")

    def measured(attacked: int | None) -> tuple[float, int, list, dict]:
        attack = None
        if attacked is not None:
            attack = subprocess.Popen([sys.executable, program, "--port", str(ports[attacked]), "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True)
            pause(0.5, Why.BEFORE)
        traffic = Traffic(stand, readers=4, writers=2, think=0.01, reconnect=50)
        pause(seconds, Why.MEASURED)
        traffic.stop.set()
        traffic.end()
        statuses = json.loads(attack.communicate(timeout=30)[0]) if attack else {}
        durations = sorted(traffic.durations)
        return durations[int(len(durations) * 0.99)] * 1000, traffic.succeeded, traffic.failures, statuses

    try:
        measured(None)  # warm
        before = stand.gateway.status("VmRSS")
        alone = measured(None)
        rounds = [(measured(1), measured(0)) for _ in range(3)]
        control = sorted(one[0] for one, _ in rounds)[1]
        attacked = sorted(one[0] for _, one in rounds)[1]
        failures = [failure for _, one in rounds for failure in one[2]]
        statuses: dict[str, int] = {}
        for _, one in rounds:
            for status, count in one[3].items():
                statuses[status] = statuses.get(status, 0) + count
        grown = stand.gateway.status("VmRSS") - before
        answered = sum(statuses.values())
        with socket.create_connection(("127.0.0.1", ports[0]), 5) as sock:
            sock.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            ready = sock.recv(100)
        refused = not {status for status in statuses if status[0] == "2"} - {"200"} and statuses.get("401", 0) > 0
        return [
            line("requests while the admin listener is attacked", "0 fail; p99 at most 1.5 times that of an attack on another process, and 5 ms",
                 {"p99 ms": round(attacked, 2), "p99 ms, another process attacked": round(control, 2), "p99 ms, nothing attacked": round(alone[0], 2),
                  "requests": sum(one[1] for _, one in rounds), "failed": len(failures), "example": failures[:2]},
                 not failures and attacked <= control * 1.5 + 5),
            line("the attacked admin listener", "it answers, refuses, grows by at most 16 MiB, and is ready afterwards",
                 {"answers": statuses, "grown KiB": grown, "afterwards": ready[:15].decode()}, refused and answered > 1000 and grown < 16 * 1024 and b" 200 " in ready),
        ]
    finally:
        for each in stands:
            each.close()


TLS_CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", tls: {{ cert: {folder}/a.pem, key: {folder}/a.key }}, limits: {{ idleTimeout: 300s }} }} }}
chains: {{ mock: {{ middlewares: [{{ mock: {{ status: 200, body: "mocked" }} }}] }} }}
routes: [{{ chain: mock }}]
"""
TLS_NGINX = """
daemon off; worker_processes 1; pid @FOLDER@/nginx.pid; error_log @FOLDER@/error.log;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_timeout 300s; client_header_timeout 300s;
  server {{ listen 127.0.0.1:{port} ssl backlog=4096; ssl_certificate {folder}/a.pem; ssl_certificate_key {folder}/a.key; return 200 "mocked"; }}
}}
"""


def kibibytes_per_tls_connection(process: Process, port: int, count: int) -> tuple[float, int]:
    """Opens `count` TLS connections, uses every second of them, and leaves them idle: the cost of each, and how many failed."""
    context, failed, kept = certificates().client(), 0, []

    def opened(index: int) -> socket.socket:
        raw = socket.create_connection(("127.0.0.1", port), 10, source_address=(f"127.0.1.{1 + index % 4}", 0))
        with context.wrap_socket(raw, server_hostname="a.test") as secure:
            if index % 2:
                secure.sendall(MOCK)
                assert b"mocked" in secure.recv(4096)
            return socket.socket(fileno=secure.detach())  # the client's own memory is not wanted

    for index in range(200):  # what the process takes once
        opened(index).close()
    pause(0.5, Why.BEFORE)
    before = process.status("VmRSS")
    for index in range(count):
        try:
            kept.append(opened(index))
        except (OSError, AssertionError):
            failed += 1
    pause(1, Why.BEFORE)
    cost = (process.status("VmRSS") - before) / max(1, count - failed)
    for sock in kept:
        sock.close()
    return round(cost, 2), failed


@result("tls-idle")
def tls_idle(options: argparse.Namespace) -> list[dict]:
    """10,000 idle TLS connections: 18 KiB each at the most, and no more than nginx's where it is installed."""
    count, folder, costs = 10_000, certificates().folder, {}
    for name in ("httpware", "nginx") if shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") else ("httpware",):
        place, port = Workplace("load"), free_port()
        try:
            if name == "nginx":
                process = place.nginx(TLS_NGINX.format(port=port, folder=folder), [port])
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
                process.pid = int(eventually(lambda: children.read_text().split(), 10)[0])  # nginx listens before it has a worker
            else:
                process = place.gateway(options.binary, TLS_CONFIG.format(port=port, folder=folder), [port])
            cost, failed = kibibytes_per_tls_connection(process, port, count)
            costs[name] = cost
            if failed:
                return [line("tls-idle", f"{name}: no connection fails", failed, False)]
        finally:
            place.close()
    lines = [line("tls-idle", "KiB for each of 10,000 idle TLS connections <= 18", costs["httpware"], costs["httpware"] <= 18)]
    if "nginx" in costs:
        lines.append(line("tls-idle", f"no more than nginx's {costs['nginx']}", costs["httpware"], costs["httpware"] <= costs["nginx"]))
    return lines


TLS_SWAPPED = """
version: 1
listeners:
  web:
    bind: "127.0.0.1:{port}"
    tls: {{ certificates: [{{ cert: {folder}/a.pem, key: {folder}/a.key, ocsp: {folder}/a.ocsp }}], clientCa: {folder}/ca.pem }}
chains: {{ mock: {{ middlewares: [{{ mock: {{ status: 200, body: "mocked" }} }}] }} }}
routes: [{{ chain: mock }}]
"""


@result("tls-reload")
def tls_reload(options: argparse.Namespace) -> list[dict]:
    """Certificate, key, clients' authorities and OCSP response are swapped again and again under load; nothing fails."""
    made, place, port = certificates(), Workplace("load"), free_port()
    folder = place.subfolder("certificates")

    def swap(turn: int) -> None:
        name = ("a", "a2")[turn % 2]
        (folder / "a.pem").write_bytes((made / f"{name}.pem").read_bytes())
        (folder / "a.key").write_bytes((made / f"{name}.key").read_bytes())
        (folder / "a.ocsp").write_bytes((made / "a.ocsp").read_bytes())
        (folder / "ca.pem").write_bytes((made / "ca.pem").read_bytes() + (made / "other.pem").read_bytes() * (turn % 2))

    swap(0)
    try:
        process = place.gateway(options.binary, TLS_SWAPPED.format(port=port, folder=folder), [port], workers=2)
        is_over, problems, counts, shown = threading.Event(), [], [0, 0], set()

        def opened() -> ssl.SSLSocket:
            return contexts.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname="a.test")

        def ask(secure: ssl.SSLSocket) -> None:
            secure.sendall(MOCK)
            if b"mocked" not in secure.recv(4096):
                raise OSError("no answer")

        def load(isNew: bool) -> None:
            kept = None
            while not is_over.is_set():
                try:
                    kept = opened() if kept is None or isNew else kept
                    ask(kept)
                    counts[isNew] += 1
                    if isNew:
                        shown.add(kept.getpeercert(True))
                        kept.close()
                except (OSError, ssl.SSLError) as problem:
                    problems.append(str(problem))
                    kept = None

        contexts = made.client(identity="anna")
        threads = [threading.Thread(target=load, args=(index % 2 == 0,)) for index in range(6)]
        for thread in threads:
            thread.start()
        end, turn, taken = time.monotonic() + options.seconds, 0, 0
        while time.monotonic() < end:
            turn += 1
            before = process.log.count("reloaded: ")
            swap(turn)
            process.signal(signal.SIGHUP)
            eventually(lambda: process.log.count("reloaded: ") != before, 5)
            taken += process.log.count("listeners.web changed") == turn
        is_over.set()
        for thread in threads:
            thread.join(20)
        return [line("tls-reload", "certificates, client authorities and staples swapped under load: 0 requests fail, each is taken, both are shown",
                     {"kept": counts[0], "new": counts[1], "failed": len(problems), "example": problems[:2], "swaps": turn, "taken": taken,
                      "refused": process.log.count("not reloaded"), "shown": len(shown)},
                     not problems and taken == turn > 3 and counts[0] > 100 and counts[1] > 100 and len(shown) == 2)]
    finally:
        place.close()


@result("tls-failures")
def tls_failures(options: argparse.Namespace) -> list[dict]:
    """10,000 handshakes that fail in every way leave no memory and no descriptor behind."""
    made, place, port = certificates(), Workplace("load"), free_port()
    folder, wrong = made.folder, made.client(authority="other")
    stranger, spdy, silent = made.client(identity="stranger"), made.client(alpn=["spdy/3"]), made.client()
    old = made.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA:@SECLEVEL=0")
    try:
        config = TLS_CONFIG.replace("key: {folder}/a.key", "key: {folder}/a.key, clientCa: {folder}/ca.pem")
        process = place.gateway(options.binary, config.format(port=port, folder=folder), [port])

        def fail(index: int) -> None:
            raw = socket.create_connection(("127.0.0.1", port), 10)
            kind = index % 8
            try:
                if kind < 5:
                    with (wrong, stranger, spdy, silent, old)[kind].wrap_socket(raw, server_hostname="a.test") as secure:
                        secure.sendall(MOCK)
                        secure.recv(100)
                else:
                    raw.sendall((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", os.urandom(300))[kind - 5])
                    raw.recv(1000) if kind != 6 else None
            except OSError:
                pass
            finally:
                raw.close()

        for index in range(2000):  # what it takes once
            fail(index)
        pause(1.5, Why.BEFORE)
        memory, descriptors = process.status("VmRSS"), process.descriptors()
        for index in range(10_000):
            fail(index)
        pause(1.5, Why.BEFORE)
        after, descriptors_after = process.status("VmRSS"), process.descriptors()
        with made.client(identity="anna").wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname="a.test") as secure:
            secure.sendall(MOCK)
            is_well = b"mocked" in secure.recv(4096)
        return [line("tls-failures", "10,000 handshakes that fail: at most 1 MiB more, no descriptor, and it serves",
                     {"KiB before": memory, "KiB after": after, "descriptors before": descriptors, "descriptors after": descriptors_after, "serves": is_well},
                     after - memory <= 1024 and descriptors_after <= descriptors and is_well)]
    finally:
        place.close()


def main(trials: Trials = RESULTS, doc: str | None = __doc__) -> int:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--only", default="", help="|".join(trials.names))
    parser.add_argument("--seconds", type=float, default=10, help="how long each takes, roughly")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if not shutil.which(options.binary):
        print(f"load: {options.binary} is not there; build it first", file=sys.stderr)
        return 1
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return tell(each for name in trials.names if options.only in name for each in trials.lines(name, options))


if __name__ == "__main__":
    sys.exit(main())
