#!/usr/bin/env python3
"""CPU time for files, beside Debian's nginx: 1 KiB and 100 KiB per request, 1 GiB per MiB, all in the page cache. Needs wrk and nginx.

    Tests/Bench/files.py --binary .build/release/httpware [--rounds 5] [--seconds 3] [--only 1k,100k,1g] [--open-file-cache]

As run.py: one worker each on the first CPU, the client on the second, turns round by round. nginx has sendfile and no access log, and with
--open-file-cache also that. Before that, one response is compared with the file.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Process, Workplace, free_port  # noqa: E402

NGINX = """
daemon off; master_process off; pid @FOLDER@/pid; error_log @FOLDER@/error.log crit;
events {{ worker_connections 12000; }}
http {{
  access_log off; keepalive_requests 100000000; sendfile on; tcp_nodelay on; default_type application/octet-stream; {cache}
  client_body_temp_path @FOLDER@; proxy_temp_path @FOLDER@; fastcgi_temp_path @FOLDER@; uwsgi_temp_path @FOLDER@; scgi_temp_path @FOLDER@;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {files}; }}
}}
"""
CACHE = "open_file_cache max=1000 inactive=60s; open_file_cache_valid 1s;"
HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
chains: {{ bench: {{ middlewares: [{{ files: {{ root: "{files}", precompressed: [] }} }}] }} }}
routes: [{{ chain: bench }}]
"""
SIZES = {"1k": 1 << 10, "10k": 10 << 10, "100k": 100 << 10, "1m": 1 << 20, "1g": 1 << 30}


class Bench:
    def __init__(self, options):
        self.options, self.place = options, Workplace("bench-files")
        cpus = sorted(os.sched_getaffinity(0))
        self.peer_cpu, self.load_cpu = {cpus[0]}, {cpus[-1]}
        self.files = self.place.subfolder("files")
        for name in options.only:
            with open(self.files / name, "wb") as file:
                piece = os.urandom(min(SIZES[name], 1 << 20))
                for _ in range(SIZES[name] // len(piece)):
                    file.write(piece)
        self.peers = {peer: self.start(peer) for peer in ("nginx", "httpware")}

    def start(self, peer: str) -> tuple[Process, int]:
        port, pinned = free_port(), lambda: os.sched_setaffinity(0, self.peer_cpu)
        if peer == "nginx":
            cache = CACHE if self.options.open_file_cache else ""
            return self.place.nginx(NGINX.format(port=port, files=self.files, cache=cache), [port], preexec=pinned), port
        return self.place.gateway(self.options.binary, HTTPWARE.format(port=port, files=self.files), [port], 1, preexec=pinned), port

    def verify(self, name: str) -> None:
        for peer, (_, port) in self.peers.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=60) as response, open(self.files / name, "rb") as file:
                while piece := file.read(1 << 20):
                    assert response.read(len(piece)) == piece, f"{peer}: not the file"
                assert response.read(1) == b""

    def requests(self, name: str, port: int) -> int:
        """wrk's requests, in all."""
        connections = 64 if SIZES[name] <= 10 << 10 else 16
        command = ["wrk", "-t1", f"-c{connections}", f"-d{self.options.seconds}s", f"http://127.0.0.1:{port}/{name}"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            raise RuntimeError(f"errors: {output}")
        return int(re.search(r"(\d+) requests in", output)[1])

    def download(self, name: str, port: int) -> int:
        """One download; the MiB that came. Read by a process of its own, into one buffer."""
        reader = f"""
import os, socket
os.sched_setaffinity(0, {self.load_cpu!r})
s = socket.create_connection(("127.0.0.1", {port}))
s.sendall(b"GET /{name} HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
buffer, total = bytearray(1 << 20), 0
while count := s.recv_into(buffer):
    total += count
print(total)
"""
        total = int(subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=True, timeout=120).stdout)
        if not SIZES[name] < total < SIZES[name] + 2000:
            raise RuntimeError(f"{total} bytes came")
        return SIZES[name] >> 20

    def run(self, name: str) -> bool:
        self.verify(name)
        is_large = SIZES[name] > 1 << 20
        figures: dict[str, list[float]] = {peer: [] for peer in self.peers}
        for turn in range(self.options.rounds + 1):
            for peer, (process, port) in self.peers.items():
                before = process.cpu_seconds()
                count = self.download(name, port) if is_large else self.requests(name, port)
                if turn:  # the first warms up
                    figures[peer].append((process.cpu_seconds() - before) * 1e6 / count)
        medians = {peer: statistics.median(f) for peer, f in figures.items()}
        spread = {peer: f"{min(f):.2f}…{max(f):.2f}" for peer, f in figures.items()}
        ratio = medians["httpware"] / medians["nginx"]
        unit = "MiB" if is_large else "request"
        print(f"{name}: µs per {unit}: " + ", ".join(f"{peer} {medians[peer]:.2f} ({spread[peer]})" for peer in figures) + f"; ratio {ratio:.3f}", flush=True)
        return ratio <= 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="1k,100k,1g", type=lambda text: text.split(","))
    parser.add_argument("--open-file-cache", action="store_true")
    bench = Bench(parser.parse_args())
    try:
        return 0 if all([bench.run(name) for name in bench.options.only]) else 1
    finally:
        bench.place.close()


if __name__ == "__main__":
    sys.exit(main())
