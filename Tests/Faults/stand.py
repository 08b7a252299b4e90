"""The stand that every fault is tried on: a gateway – httpware, or nginx in its place – between clients and origin servers that can be harmed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from Rig.processes import free_port
from Rig.results import line
from Rig.stand import Stand
from Rig.waits import Why, eventually, pause
from Rig.wire import Malformed, WireClosed, WireTimeout

HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}", limits: {{ headTimeout: 300s, idleTimeout: 300s }} }} }}
services:
  api: {{ endpoints: [{endpoints}],{balance} timeouts: {{ connect: 1s, response: {patience}, idle: 60s }}, pool: {{ maxPerEndpoint: 8192 }} }}
  other: {{ baseUrl: "http://127.0.0.1:{other}" }}
chains:
  again: {{ middlewares: [{{ retry: {{ attempts: 3, retryOn: [connect, reset, timeout, 502, 503, 504], backoff: 10ms..50ms, budget: 1.0 }} }}] }}
  said: {{ middlewares: [{{ mock: {{ status: 200, body: "said" }} }}] }}
  logged: {{ postwares: [{logs}] }}
routes:
  - {{ match: {{ path: /said }}, chain: said }}
  - {{ match: {{ path: /other }}, service: other, chain: logged }}
  - {{ service: api, chain: again }}
"""

# As in conf/balancing.yaml.
BALANCE = """ balance: leastRequests, ejection: { failures: 5, for: 10s, maxOut: 50% },
         healthCheck: { path: /healthz, interval: 2s, fails: 2, passes: 2 },"""

NGINX = """
daemon off; worker_processes 2; pid @FOLDER@/nginx.pid; error_log @FOLDER@/error.log; worker_rlimit_nofile 60000; {user}
events {{ worker_connections {connections}; }}
http {{
  access_log {logs}; keepalive_requests 10000000; keepalive_timeout 300s; client_header_timeout 300s; client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@;
  fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@; proxy_max_temp_file_size 0;
  upstream api {{ {servers} keepalive 64; keepalive_requests 10000000; }}
  upstream other {{ server 127.0.0.1:{other}; keepalive 64; keepalive_requests 10000000; }}
  proxy_http_version 1.1; proxy_set_header Connection "";
  server {{
    listen 127.0.0.1:{web} backlog=8192;
    location = /said {{ return 200 "said"; }}
    location = /other {{ proxy_pass http://other; }}
    location / {{ proxy_pass http://api; proxy_connect_timeout 1s; proxy_read_timeout {patience}; proxy_next_upstream error timeout http_502 http_503 http_504; proxy_next_upstream_tries 3; }}
  }}
}}
"""


def ahead(priority: int, more: Callable[[], None] | None = None) -> Callable[[], None]:
    """Before a program starts: it computes whenever it can. In life harmful clients and measuring clients have machines of their own; here
    all of them want two processors, and what would be told is how long everybody waits for one."""

    def prepare() -> None:
        if more:
            more()
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

    return prepare


class FaultStand(Stand):
    """A gateway with two origin servers for `/` and another for `/other`."""

    def __init__(self, options, *, origins: int = 2, patience: str = "30s", delay: float = 0, logs: str = "",
                 preexec: Callable[[], None] | None = None, environment: dict[str, str] | None = None, workers: int = 2,
                 wrap: Callable[[list[str]], list[str]] | None = None):
        super().__init__("faults", origins=origins, delay=delay)
        self.options, self.other = options, free_port()
        self.start_origin(self.other, delay=0, preexec=ahead(2))
        if options.peer == "nginx":
            self.gateway = self.place.nginx(self.nginx_config(patience, logs), [self.web], preexec=ahead(1, preexec), environment=environment, wrap=wrap)
        else:
            self.gateway = self.place.gateway(options.binary, self.httpware_config(patience, logs), [self.web], workers, preexec=ahead(1, preexec), environment=environment)

    def httpware_config(self, patience: str, logs: str) -> str:
        log = f'{{ accessLog: {{ output: "file:{logs}" }} }}' if logs else ""
        endpoints = ", ".join(f'{{ url: "http://127.0.0.1:{port}" }}' for port in self.ports)
        return HTTPWARE.format(web=self.web, other=self.other, endpoints=endpoints, patience=patience, logs=log,
                               balance=BALANCE if self.options.balanced else "")

    def nginx_config(self, patience: str, logs: str) -> str:
        servers = " ".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for port in self.ports)
        return NGINX.format(web=self.web, other=self.other, servers=servers, patience=patience, logs=logs or "off", user="user root;" if os.getuid() == 0 else "",
                            connections=20000)

    def connecting(self) -> socket.socket:
        """A connection that may or may not be accepted some time."""
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", self.web))
        return sock

    def workers(self) -> list[int]:
        """The processes that serve: nginx's children, or the one."""
        if self.options.peer != "nginx":
            return [self.gateway.pid]
        return [int(pid) for pid in Path(f"/proc/{self.gateway.pid}/task/{self.gateway.pid}/children").read_text().split()]

    def resident(self) -> int:
        """KiB of memory, of all of them."""
        return sum(int(text.split()[1]) for pid in self.workers() for text in Path(f"/proc/{pid}/status").read_text().splitlines() if text.startswith("VmRSS:"))

    def descriptors(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.workers())

    def status(self, path: str = "/", timeout: float = 5) -> int:
        """The status of one request on a connection of its own; 0 where there is no answer."""
        try:
            client = self.client(timeout)
            try:
                client.send(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
                return client.read_response("GET").status
            finally:
                client.close()
        except (WireClosed, WireTimeout, Malformed, OSError):
            return 0

    def recovery(self, path: str = "/", within: float = 20) -> float:
        """How long from now until a request succeeds, in seconds."""
        began = time.monotonic()
        return round(time.monotonic() - began, 3) if eventually(lambda: self.status(path, 2) == 200, within) else within


class Beside:
    """Calm traffic on another route, as it is before a fault and under it."""

    def __init__(self, stand: FaultStand, path: str = "/other"):
        self.stand, self.path = stand, path

    def during(self, seconds: float, action: Callable[[], None] = lambda: None) -> dict:
        """The outcome of its requests in `seconds` at least, and while the action lasts."""
        program = str(Path(__file__).parent / "beside.py")
        # No function before it starts: that might hang beside the threads that are here.
        process = subprocess.Popen(["chrt", "-f", "2", sys.executable, program, str(self.stand.web), self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        began = time.monotonic()
        try:
            action()
            pause(seconds - (time.monotonic() - began), Why.MEASURED)
            return json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
            process.wait()

    def verdict(self, name: str, *rounds: tuple[dict, dict]) -> dict:
        """The verdict about pairs of calm and harmed traffic: the pair in the middle counts, by how much slower the harmed one is. A difference of less
        than 1 ms counts as that: below it the machine decides, whatever the gateway does."""
        pairs = sorted(((p99(calm["durations"]), p99(harmed["durations"])) for calm, harmed in rounds), key=lambda pair: pair[1] / max(1.0, pair[0]))
        before, under = pairs[len(pairs) // 2]
        failures = [failure for pair in rounds for seen in pair for failure in seen["failures"]]
        requests = sum(len(harmed["durations"]) - len(harmed["failures"]) for _, harmed in rounds)
        return line(f"{name}: another route", "0 fail, p99 under 1.5 times that without it",
                    {"times": round(under / before, 2), "p99 ms without": before, "p99 ms": under, "all": pairs, "requests": requests,
                     "failed": len(failures), "example": failures[:1]}, not failures and requests > 50 and under < max(1.0, before) * 1.5)


def p99(durations: list[float]) -> float:
    return sorted(durations)[int(len(durations) * 0.99)] if durations else 1e9


# How often both are harmed, in turns: what else the machine does meanwhile befalls both.
ROUNDS = 3


def beside_both(name: str, stand: FaultStand, control: FaultStand, harm: Callable[[FaultStand], None]) -> dict:
    """Calm traffic while another gateway is harmed, which takes the same share of the machine; then while this one is."""
    beside = Beside(stand)
    rounds = [(beside.during(0, lambda: harm(control)), beside.during(0, lambda: harm(stand))) for _ in range(ROUNDS)]
    return beside.verdict(name, *rounds)


class Cgroup:
    """A group of processes with a limit of memory; made here, and removed. Of either version."""

    def __init__(self, name: str, bytes: int):
        root = Path("/sys/fs/cgroup")
        self.is_second = (root / "cgroup.controllers").exists()
        self.folder = (root if self.is_second else root / "memory") / f"httpware-faults-{name}-{os.getpid()}"
        self.folder.mkdir()
        (self.folder / ("memory.max" if self.is_second else "memory.limit_in_bytes")).write_text(str(bytes))

    def enter(self) -> None:
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def killed(self) -> int:
        """How many processes were killed for want of memory."""
        text = (self.folder / ("memory.events" if self.is_second else "memory.oom_control")).read_text()
        return next(int(row.split()[1]) for row in text.splitlines() if row.split()[0] == "oom_kill")

    def peak(self) -> int:
        name = "memory.peak" if self.is_second else "memory.max_usage_in_bytes"
        return int((self.folder / name).read_text()) if (self.folder / name).exists() else 0

    def remove(self) -> None:
        def is_gone() -> bool:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            return not self.folder.exists()

        eventually(is_gone, 5, every=0.05)


def needs(*programs: str) -> None:
    """Says which program is missing, and how to install it."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for program in programs:
        if not shutil.which(program, path=path):
            raise FileNotFoundError(f"{program} is not installed: apt-get install nginx nftables iproute2 util-linux gcc")


def succeeds(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
