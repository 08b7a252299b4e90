#!/usr/bin/env python3
"""CPU time per request on the loopback, beside nginx and HAProxy where they are installed. Standard library, nginx, wrk and h2load.

    Tests/Bench/run.py --binary .build/release/httpware [--before OTHER] [--rounds 5] [--seconds 3] [--only get,fields]

Each peer runs with one worker, pinned to the first CPU; wrk and the origin server (nginx) share the second. The peers
take turns, round by round. The figure is the CPU time of the peer's process, from the kernel's clock, divided by the
requests that wrk or h2load completed (by the MiB moved, for the download). Ratios hold within one run only; a difference inside
the spread means nothing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Bench.tunnels import build_echo, echo  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402

ORIGIN = """
daemon off; master_process off; pid @FOLDER@/pid; error_log @FOLDER@/error.log crit;
events {{ worker_connections 12000; }}
http {{
  access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on; default_type text/plain;
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {files}; location / {{ add_header X-Powered-By origin; add_header Cache-Control max-age=60; }} }}
}}
"""
NGINX = """
daemon off; master_process off; pid @FOLDER@/pid; error_log @FOLDER@/error.log crit;
events {{ worker_connections 12000; }}
http {{
  access_log off; keepalive_requests 100000000; tcp_nodelay on; proxy_max_temp_file_size 0;
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 128; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port}{http2} backlog=4096;
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      {edits}
    }}
    location /echo {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade; }}
  }}
}}
"""
HAPROXY_WEB = """
global
  nbthread 1
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend web
  bind 127.0.0.1:{port} backlog 4096"""
HAPROXY = HAPROXY_WEB + """{http2}
  default_backend origin
backend origin
{edits}  server one 127.0.0.1:{origin}
"""
HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, timeouts: {{ idle: 600s }} }} }}
chains:
  bench:
    middlewares:
{requests}    postwares:
{responses}
routes: [{{ service: origin, chain: bench }}]
"""

# scenario → (what it is, path, wrk options, number of edited request fields, edit the response)
SCENARIOS = {
    "get": ("GET 1 KiB, keep-alive, 64 connections", "/1k", ["-c64"], 0, False),
    "fields": ("the same, 3 request fields set, 1 response field set, 1 removed", "/1k", ["-c64"], 3, True),
    "rules": ("the same, 20 request fields set by 20 rules", "/1k", ["-c64"], 20, False),
    "close": ("GET 1 KiB, a connection for each request", "/1k", ["-c16", "-H", "Connection: close"], 0, False),
    "http2": ("HTTP/2 in clear text, GET 1 KiB, 8 connections of 8 streams", "/1k", ["h2load", "-c8", "-m8"], 0, False),
    "http2many": ("the same, 100 connections of 32 streams", "/1k", ["h2load", "-c100", "-m32"], 0, False),
    "c512": ("GET 1 KiB, keep-alive, 512 connections", "/1k", ["-c512"], 0, False),
    "c4096": ("the same, 4,096 connections", "/1k", ["-c4096"], 0, False),
    "http2single": ("HTTP/2 in clear text, 1,000 connections of one stream", "/1k", ["h2load", "-c1000", "-m1"], 0, False),
    "slow": ("GET from an origin server that takes 200 ms, 2,000 connections", "/slow", ["-c2000", "--timeout", "10s"], 0, False),
    "tunnel64": ("a WebSocket's messages of 64 bytes, 64 connections", "/echo", ["tunnel", "64"], 0, False),
    "tunnel1k": ("the same, 1 KiB", "/echo", ["tunnel", "1024"], 0, False),
    "tunnel16k": ("the same, 16 KiB", "/echo", ["tunnel", "16384"], 0, False),
    "tunnel256k": ("the same, 256 KiB, 8 connections", "/echo", ["tunnel", "262144", "8"], 0, False),
    "download": ("GET 16 MiB, 4 connections (µs per MiB)", "/16m", ["-c4"], 0, False),
}


def config(peer: str, port: int, origin: int, edits: int, response: bool, http2: bool) -> str:
    names = [f"X-Rule-{index}" for index in range(edits)]
    if peer == "nginx":
        text = " ".join(f"proxy_set_header {name} value;" for name in names) + (" add_header X-Served-By bench; proxy_hide_header X-Powered-By;" if response else "")
        return NGINX.format(port=port, origin=origin, edits=text, http2=" http2" if http2 else "")
    if peer == "haproxy":
        text = "".join(f"  http-request set-header {name} value\n" for name in names)
        text += "  http-response set-header X-Served-By bench\n  http-response del-header X-Powered-By\n" if response else ""
        return HAPROXY.format(port=port, origin=origin, edits=text, http2=" proto h2" if http2 else "")
    requests = "".join(f"      - requestHeaders: {{ set: {{ {name}: value }} }}\n" for name in names)
    responses = "      - responseHeaders: { set: { X-Served-By: bench }, remove: [X-Powered-By] }" if response else ""
    return HTTPWARE.format(port=port, origin=origin, requests=requests, responses=responses)


# Answers after 200 ms, and is fast enough for thousands of connections.
SLOW_ORIGIN = """
version: 1
listeners: {{ slow: {{ bind: "127.0.0.1:{port}" }} }}
services: {{ none: {{ baseUrl: "http://127.0.0.1:9" }} }}
chains: {{ slow: {{ middlewares: [ {{ mock: {{ status: 200, body: slow, delay: 200ms }} }} ] }} }}
routes: [{{ service: none, chain: slow }}]
"""


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.place = Workplace("bench")
        cpus = sorted(os.sched_getaffinity(0))
        self.peer_cpu, self.load_cpu = {cpus[0]}, {cpus[min(1, len(cpus) - 1)]}
        files = self.place.subfolder("files")
        (files / "1k").write_bytes(b"x" * 1024)
        (files / "16m").write_bytes(os.urandom(16 << 20))
        self.origin = free_port()
        self.place.nginx(ORIGIN.format(port=self.origin, files=files), [self.origin], preexec=lambda: os.sched_setaffinity(0, self.load_cpu))

        self.slow = free_port()
        self.place.gateway(options.binary, SLOW_ORIGIN.format(port=self.slow), [self.slow], 1, preexec=lambda: os.sched_setaffinity(0, self.load_cpu))
        self.echo = build_echo(self.place.subfolder("echo"))
        self.echo_listener = socket.create_server(("127.0.0.1", 0), backlog=4096)

    def start(self, peer: str, path: str, edits: int, response: bool, http2: bool) -> tuple[Process, int]:
        port = free_port()
        origin = {"/slow": self.slow, "/echo": self.echo_listener.getsockname()[1]}.get(path, self.origin)
        text = config(peer, port, origin, edits, response, http2)
        pinned = lambda: os.sched_setaffinity(0, self.peer_cpu)  # noqa: E731
        if peer == "nginx":
            return self.place.nginx(text, [port], preexec=pinned), port
        if peer == "haproxy":
            file = self.place.subfolder("haproxy-config") / "haproxy.cfg"
            file.write_text(text)
            return self.place.command([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-q", "-f", str(file)], [port], preexec=pinned), port
        return self.place.gateway(self.options.before if peer == "before" else self.options.binary, text, [port], 1, preexec=pinned), port

    def turn(self, peer: str, process: Process, port: int, path: str, wrk: list[str], seconds: float) -> float:
        """µs of CPU time per request, or per MiB for the download."""
        if wrk[0] == "tunnel":
            connections = int(wrk[2]) if len(wrk) > 2 else 64
            return 1e6 * echo(self.echo, self.echo_listener, port, connections, int(wrk[1]), seconds, process.cpu_seconds, lambda: os.sched_setaffinity(0, self.load_cpu))
        before = process.cpu_seconds()
        if wrk[0] == "h2load":
            output = subprocess.run([*wrk, "-t1", f"-D{seconds}s", f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True,
                                    preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
            spent = process.cpu_seconds() - before
            match = re.search(r"(\d+) succeeded, (\d+) failed", output)
            if int(match[2]):
                raise RuntimeError(f"errors of {peer}: {output}")
            return spent * 1e6 / max(int(match[1]), 1e-9)
        output = subprocess.run(["wrk", "-t1", f"-d{seconds}s", *wrk, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True,
                                preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        spent = process.cpu_seconds() - before
        if "Non-2xx" in output:
            raise RuntimeError(f"errors of {peer}: {output}")
        if path == "/16m":
            match = re.search(r"in [\d.]+\w+, ([\d.]+)(MB|GB|KB) read", output)
            work = float(match[1]) * {"KB": 1 / 1024, "MB": 1, "GB": 1024}[match[2]]
        else:
            work = int(re.search(r"(\d+) requests in", output)[1])
        return spent * 1e6 / max(work, 1e-9)

    def scenario(self, name: str, peers: list[str]) -> dict[str, list[float]]:
        _, path, wrk, edits, response = SCENARIOS[name]
        running = {peer: self.start(peer, path, edits, response, "h2load" in wrk) for peer in peers}
        figures: dict[str, list[float]] = {peer: [] for peer in peers}
        try:
            for peer, (process, port) in running.items():
                self.turn(peer, process, port, path, wrk, 1)  # warms up
            for round in range(self.options.rounds):
                order = peers[round % len(peers) :] + peers[: round % len(peers)]
                for peer in order:
                    figures[peer].append(self.turn(peer, *running[peer], path, wrk, self.options.seconds))
        finally:
            for process, _ in running.values():
                process.stop()
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--before", help="another httpware, which takes turns as a peer of its own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    missing = [program for program in ("nginx", "wrk", "h2load") if not shutil.which(program) and not shutil.which(f"/usr/sbin/{program}")]
    if missing:
        print(f"bench: the comparison needs {' and '.join(missing)} (Debian: nginx, wrk, nghttp2-client); left out")
        return 0
    if options.before:
        options.before = str(Path(options.before).resolve())
    peers = ["httpware"] + (["before"] if options.before else []) + ["nginx"] + (["haproxy"] if shutil.which("haproxy") or shutil.which("/usr/sbin/haproxy") else [])
    if not shutil.which(options.binary):
        print(f"bench: {options.binary} is not there; build it first", file=sys.stderr)
        return 1
    bench = Bench(options)
    print(f"{datetime.date.today()}, {options.rounds} rounds of {options.seconds} s, CPU µs per request (median), spread, ratio to the best other peer\n")
    print("| scenario | " + " | ".join(peers) + " | ratio |\n|---|" + "---|" * (len(peers) + 1))
    failed = 0
    try:
        for name in options.only.split(","):
            try:
                figures = bench.scenario(name, peers)
            except RuntimeError as error:
                # A peer that answers with errors has no figure; the next scenario may have one.
                print(f"{SCENARIOS[name][0]}: {error}", file=sys.stderr)
                failed += 1
                continue
            medians = {peer: statistics.median(values) for peer, values in figures.items()}
            cells = [f"{medians[peer]:.1f} (±{(max(values) - min(values)) / 2 / medians[peer]:.0%})" for peer, values in figures.items()]
            ratio = medians["httpware"] / min(medians[peer] for peer in peers if peer not in ("httpware", "before"))
            print(f"| {SCENARIOS[name][0]} | " + " | ".join(cells) + f" | {ratio:.2f} |", flush=True)
    finally:
        bench.place.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
