#!/usr/bin/env python3
"""CPU time per request where no token comes twice, beside HAProxy: each is verified. Needs wrk, nginx, haproxy, and cryptography from PyPI.

    Tests/Bench/tokens.py --binary .build/release/httpware [--rounds 5] [--seconds 3] [--algorithms RS256,HS256]

As run.py: one worker each on the first CPU, wrk and the origin server on the second, turns round by round. 40,000 tokens go by in a
circle; httpware remembers at most 32,768, the oldest go first, so that none is met again. "repeated" sends one token over and over.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402
from run import HAPROXY_WEB, ORIGIN  # noqa: E402

COUNT = 40_000
SECRET = "a-secret-of-the-benchmark-of-thirty-two-bytes"
HAPROXY = HAPROXY_WEB + """
  http-request deny deny_status 401 unless {{ req.hdr(authorization) -m found }}
  http-request set-var(txn.bearer) http_auth_bearer
  http-request set-var(txn.algorithm) var(txn.bearer),jwt_header_query('$.alg')
  http-request set-var(txn.expires) var(txn.bearer),jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 if {{ var(txn.expires),sub(txn.now) -m int lt 0 }}
  http-request deny deny_status 401 unless {{ var(txn.algorithm) -m str {algorithm} }}
  http-request deny deny_status 401 unless {{ var(txn.bearer),jwt_verify(txn.algorithm,"{key}") 1 }}
  default_backend origin
backend origin
  server one 127.0.0.1:{origin} pool-max-conn 128
"""
HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, timeouts: {{ idle: 600s }}, pool: {{ maxIdle: 128 }} }} }}
chains: {{ bench: {{ middlewares: [{{ jwt: {{ key: "{key}", algorithms: [{algorithm}] }} }}] }} }}
routes: [{{ service: origin, chain: bench }}]
"""
WRK = """
local tokens, at = {}, 0
for line in io.lines("%s") do tokens[#tokens + 1] = line end
request = function()
  at = at %% #tokens + 1
  return wrk.format("GET", "/1k", {["Authorization"] = "Bearer " .. tokens[at]})
end
"""


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def tokens(algorithm: str, key) -> list[str]:
    head = b64(json.dumps({"alg": algorithm, "typ": "JWT", "kid": "one"}).encode())
    result = []
    for index in range(COUNT):
        claims = {"iss": "bench", "sub": f"user-{index}", "exp": 4102444800, "scope": "read write"}
        signed = f"{head}.{b64(json.dumps(claims).encode())}"
        signature = hmac.digest(SECRET.encode(), signed.encode(), hashlib.sha256) if algorithm == "HS256" else key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        result.append(f"{signed}.{b64(signature)}")
    return result


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options, self.place = options, Workplace("tokens")
        cpus = sorted(os.sched_getaffinity(0))
        self.peer_cpu, self.load_cpu = {cpus[0]}, {cpus[min(1, len(cpus) - 1)]}
        files = self.place.subfolder("files")
        (files / "1k").write_bytes(b"x" * 1024)
        self.origin = free_port()
        self.place.nginx(ORIGIN.format(port=self.origin, files=files), [self.origin], preexec=lambda: os.sched_setaffinity(0, self.load_cpu))
        self.folder = self.place.subfolder("tokens")
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.pem = self.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        (self.folder / "key.pem").write_text(self.pem)

    def start(self, peer: str, algorithm: str) -> tuple[Process, int]:
        port, pinned = free_port(), lambda: os.sched_setaffinity(0, self.peer_cpu)
        if peer == "haproxy":
            file = self.folder / f"{algorithm}.cfg"
            key = SECRET if algorithm == "HS256" else self.folder / "key.pem"
            file.write_text(HAPROXY.format(port=port, origin=self.origin, algorithm=algorithm, key=key))
            return self.place.command([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-q", "-f", str(file)], [port], preexec=pinned), port
        key = SECRET if algorithm == "HS256" else self.pem.replace("\n", "\\n")
        return self.place.gateway(self.options.binary, HTTPWARE.format(port=port, origin=self.origin, algorithm=algorithm, key=key), [port], 1, preexec=pinned), port

    def turn(self, process: Process, port: int, script: Path) -> float:
        before = process.cpu_seconds()
        command = ["wrk", "-t1", "-c64", f"-d{self.options.seconds}s", "-s", str(script), f"http://127.0.0.1:{port}/1k"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        spent = process.cpu_seconds() - before
        if "Non-2xx" in output:
            raise RuntimeError(f"errors: {output}")
        return spent * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

    def run(self, algorithm: str) -> None:
        made = tokens(algorithm, self.key)
        for name, lines in (("never repeated", made), ("repeated", made[:1])):
            file, script = self.folder / f"{algorithm}.txt", self.folder / "wrk.lua"
            file.write_text("\n".join(lines) + "\n")
            script.write_text(WRK % file)
            peers = {peer: self.start(peer, algorithm) for peer in ("haproxy", "httpware")}
            figures: dict[str, list[float]] = {peer: [] for peer in peers}
            for turn in range(self.options.rounds + 1):
                for peer, (process, port) in peers.items():
                    figure = self.turn(process, port, script)
                    if turn:  # the first warms up
                        figures[peer].append(figure)
            medians = {peer: statistics.median(f) for peer, f in figures.items()}
            spread = {peer: (max(f) - min(f)) / medians[peer] for peer, f in figures.items()}
            print(f"{algorithm} {name}: " + ", ".join(f"{peer} {medians[peer]:.2f} µs (spread {spread[peer]:.0%})" for peer in peers)
                  + f", ratio {medians['httpware'] / medians['haproxy']:.2f}", flush=True)
            for process, _ in peers.values():
                process.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--algorithms", default="RS256,HS256")
    options = parser.parse_args()
    bench = Bench(options)
    try:
        for algorithm in options.algorithms.split(","):
            bench.run(algorithm)
    finally:
        bench.place.close()
