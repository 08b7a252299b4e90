#!/usr/bin/env python3
"""The cost that wares and tables add to a GET: CPU time per request beside the same gateway without them. Needs wrk and nginx.

    Tests/Bench/wares.py --binary .build/release/httpware [--rounds 3] [--seconds 3] [--only extAuthz,split,routes,mirror,script,callout]

One worker on the first CPU; wrk and the origin servers share the second. The routes take turns, round by round, in one process, so that nothing
differs but the route; for `routes`, a process with 10,000 routes and one with a single route take turns. For `mirror`, the median latency of
one connection follows: it must delay nothing.

- extAuthz: an answer of the authorization server that is remembered
- split: two services, without and with a cookie that makes sticky
- routes: a table of 10,000 routes by host and path
- mirror: a copy of each request to a service that answers at once, and to one that never does
- script: a script that changes each request and each response, one that only makes garbage, and one without a function for requests
- callout: a server that decides about requests, and one that decides about both halves and sets a field of each
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Process, Workplace, free_port  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

ORIGIN = """
daemon off; master_process off; pid @FOLDER@/pid; error_log @FOLDER@/error.log crit;
events {{ worker_connections 4000; }}
http {{
  access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on; default_type text/plain;
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ root {files}; try_files /1k =404; }}
    location /auth {{ add_header Cache-Control max-age=600; add_header Remote-User alice; return 204; }}
    location /decide {{ return 200 '{{"set":{{"X-Tenant":"acme"}}}}'; }} }}
}}
"""
CONFIG = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services:
  origin: {{ baseUrl: "http://127.0.0.1:{origin}" }}
  second: {{ baseUrl: "http://127.0.0.1:{origin}" }}
  silent: {{ baseUrl: "http://127.0.0.1:{silent}" }}
chains:
  auth: {{ middlewares: [{{ extAuthz: {{ url: "http://127.0.0.1:{origin}/auth", copy: [Remote-User], cache: {{}} }} }}] }}
  mirror: {{ middlewares: [{{ mirror: {{ service: second }} }}] }}
  silent: {{ middlewares: [{{ mirror: {{ service: silent }} }}] }}
  script: {{ middlewares: [{{ script: {{ file: {tenant} }} }}] }}
  garbage: {{ middlewares: [{{ script: {{ source: "return {{ request = function(req) local t = {{}} for i = 1, 50 do t[i] = {{ i, req.path .. i }} end end }}" }} }}] }}
  oneHalf: {{ middlewares: [{{ script: {{ source: "return {{ ended = nil, response = nil }}" }} }}] }}
  callout: {{ middlewares: [{{ callout: {{ url: "http://127.0.0.1:{origin}/decide" }} }}] }}
  bothHalves: {{ middlewares: [{{ callout: {{ url: "http://127.0.0.1:{origin}/decide", response: true }} }}] }}
routes:
  - {{ name: extAuthz, match: {{ path: /extAuthz }}, chain: auth, service: origin }}
  - {{ name: split, match: {{ path: /split }}, split: [{{ service: origin }}, {{ service: second }}] }}
  - {{ name: sticky, match: {{ path: /sticky }}, split: [{{ service: origin }}, {{ service: second }}], sticky: {{ cookie: share }} }}
  - {{ name: mirror, match: {{ path: /mirror }}, chain: mirror, service: origin }}
  - {{ name: silent, match: {{ path: /silent }}, chain: silent, service: origin }}
  - {{ name: script, match: {{ path: /script }}, chain: script, service: origin }}
  - {{ name: garbage, match: {{ path: /garbage }}, chain: garbage, service: origin }}
  - {{ name: oneHalf, match: {{ path: /oneHalf }}, chain: oneHalf, service: origin }}
  - {{ name: callout, match: {{ path: /callout }}, chain: callout, service: origin }}
  - {{ name: bothHalves, match: {{ path: /bothHalves }}, chain: bothHalves, service: origin }}
  - {{ name: get, match: {{ path: /get }}, service: origin }}
"""
TABLE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
routes:
{routes}
"""
COUNT = 10_000
ROUTES = {"extAuthz": ["extAuthz"], "split": ["split", "sticky"], "mirror": ["mirror", "silent"], "script": ["script", "garbage", "oneHalf"],
          "callout": ["callout", "bothHalves"]}


class Bench:
    def __init__(self, options):
        self.options, self.place = options, Workplace("bench-wares")
        cpus = sorted(os.sched_getaffinity(0))
        self.peer_cpu, self.load_cpu = {cpus[0]}, {cpus[-1]}
        files = self.place.subfolder("files")
        (files / "1k").write_bytes(os.urandom(1 << 10))
        self.paced = files / "paced.lua"
        self.paced.write_text("function delay() return 1 end\n")
        self.origin = free_port()
        on_load = lambda: os.sched_setaffinity(0, self.load_cpu)  # noqa: E731
        self.place.nginx(ORIGIN.format(port=self.origin, files=files), [self.origin], preexec=on_load)
        # Connections are taken, and nothing is ever answered.
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=4000)
        threading.Thread(target=self.swallow, daemon=True).start()
        self.gateway = self.start(CONFIG, silent=self.silent.getsockname()[1], tenant=ROOT / "conf/wares/tenant.lua")

    def swallow(self) -> None:
        kept = []
        while True:
            kept.append(self.silent.accept())

    def start(self, config: str, **more) -> tuple[Process, int]:
        port = free_port()
        text = config.format(port=port, origin=self.origin, **more)
        return self.place.gateway(self.options.binary, text, [port], 1, preexec=lambda: os.sched_setaffinity(0, self.peer_cpu)), port

    def cookie(self, path: str, port: int) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as response:
            assert len(response.read()) == 1 << 10
            return (response.headers.get("Set-Cookie") or "a=b").split(";")[0]

    def wrk(self, port: int, path: str, cookie: str, connections: int = 64, *more: str) -> str:
        command = ["wrk", "-t1", f"-c{connections}", f"-d{self.options.seconds}s", "-H", f"Cookie: {cookie}", *more, f"http://127.0.0.1:{port}/{path}"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            raise RuntimeError(f"errors: {output}")
        return output

    def cost(self, process: Process, port: int, path: str, cookie: str) -> float:
        before = process.cpu_seconds()
        output = self.wrk(port, path, cookie)
        return (process.cpu_seconds() - before) * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

    def latency(self, port: int, path: str, cookie: str) -> float:
        """Of requests with a pause of a millisecond between them: the copy of one is at its end before the next one begins."""
        paced = ["--latency", "-s", str(self.paced)]
        number, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", self.wrk(port, path, cookie, 1, *paced)).groups()
        return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]

    def compare(self, name: str, sides: dict[str, tuple[Process, int, str]], isDelay: bool = False) -> None:
        cookies = {side: self.cookie(path, port) for side, (_, port, path) in sides.items()}
        costs: dict[str, list[float]] = {side: [] for side in sides}
        delays: dict[str, list[float]] = {side: [] for side in sides}
        for turn in range(self.options.rounds + 1):
            for side, (process, port, path) in sides.items():
                cost = self.cost(process, port, path, cookies[side])
                if turn:  # the first warms up
                    costs[side].append(cost)
                if isDelay and turn:
                    delays[side].append(self.latency(port, path, cookies[side]))
        base = next(iter(sides))
        for figures, unit in ((costs, "µs CPU"), (delays, "µs latency")):
            if not figures[base]:
                continue
            medians = {side: statistics.median(f) for side, f in figures.items()}
            texts = [f"{side} {medians[side]:.2f} ({min(f):.2f}…{max(f):.2f}; {medians[side] / medians[base]:.3f})" for side, f in figures.items()]
            print(f"{name}: {unit} a request: " + ", ".join(texts), flush=True)

    def table(self, count: int) -> tuple[Process, int]:
        lines = [f'  - {{ name: r{n}, match: {{ host: "h{n % 100}.example", path: "/p{n}/**" }}, service: origin }}' for n in range(count - 1)]
        return self.start(TABLE, routes="\n".join([*lines, "  - { name: get, match: { path: /get }, service: origin }"]))

    def run(self, name: str) -> None:
        if name == "routes":
            one, many = self.table(1), self.table(COUNT)
            return self.compare(name, {"one route": (*one, "get"), f"{COUNT} routes": (*many, "get")})
        sides = {"get": (*self.gateway, "get")} | {route: (*self.gateway, route) for route in ROUTES[name]}
        self.compare(name, sides, isDelay=name == "mirror")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="extAuthz,split,routes,mirror,script,callout", type=lambda text: text.split(","))
    bench = Bench(parser.parse_args())
    try:
        for name in bench.options.only:
            bench.run(name)
    finally:
        bench.place.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
