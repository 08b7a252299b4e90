#!/usr/bin/env python3
"""The cost of a request with a valid session of `oidcLogin` beside one without the ware. Standard library, nginx and wrk.

    Tests/Bench/logins.py --binary .build/release/httpware [--rounds 5] [--seconds 3]

One gateway with one worker on the first CPU; wrk and the origin server share the second. The routes take turns, round by round. The figure is
the CPU time of the gateway's process divided by the requests that wrk completed: GET 1 KiB, 64 connections. The cookie is that of a
login at a provider of the script's own, about 1.3 KB.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.provider import Provider  # noqa: E402
from run import ORIGIN  # noqa: E402

HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, timeouts: {{ idle: 600s }} }} }}
chains:
  login:
    middlewares:
      - oidcLogin: {{ issuer: "{issuer}", clientId: app, cookie: {{ secret: "a secret of the benchmark, thirty-two bytes" }}, claimsToHeaders: {{ sub: X-User, email: X-Email }} }}
routes:
  - {{ match: {{ path: "/open/**" }}, service: origin }}
  - {{ service: origin, chain: login }}
"""
ROWS = {"no ware, no cookie": ("/open/1k", False), "no ware, the cookie": ("/open/1k", True), "oidcLogin, a valid session": ("/login/1k", True)}


def get(url: str, method: str = "GET", body: str = "", **fields: str) -> http.client.HTTPResponse:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, fields)
    response = connection.getresponse()
    response.read()
    return response


def session(base: str) -> str:
    """The cookie of a login."""
    first = get(f"{base}/login/1k", Accept="text/html")
    login = first.getheader("Set-Cookie").split(";")[0]
    place = urlsplit(first.getheader("Location"))
    back = get(f"{place.scheme}://{place.netloc}/login?{place.query}", "POST", urlencode({"user": "ada"}))
    last = get(back.getheader("Location"), Cookie=login, Accept="text/html")
    assert last.status == 303, last.status
    return next(line.split(";")[0] for line in last.headers.get_all("Set-Cookie") if "login-" not in line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    missing = [program for program in ("nginx", "wrk") if not shutil.which(program) and not shutil.which(f"/usr/sbin/{program}")]
    if missing:
        print(f"bench: the comparison needs {' and '.join(missing)} (Debian: nginx, wrk); left out")
        return 0
    binary = str(Path(options.binary).resolve())
    if not shutil.which(binary):
        print(f"bench: {binary} is not there; build it first", file=sys.stderr)
        return 1
    cpus = sorted(os.sched_getaffinity(0))
    gateway_cpu, load_cpu = {cpus[0]}, {cpus[min(1, len(cpus) - 1)]}
    place = Workplace("bench")
    files = place.subfolder("files")
    (files / "1k").write_bytes(b"x" * 1024)
    origin, port = free_port(), free_port()
    load = lambda: os.sched_setaffinity(0, load_cpu)  # noqa: E731
    text = ORIGIN.format(port=origin, files=files).replace("root ", "location ~ ^/(open|login)/ { try_files /1k =404; } root ")
    place.nginx(text, [origin], preexec=load)
    provider = Provider(files, claims={"email": "ada@example.com", "name": "Ada Lovelace", "groups": ["a", "b", "c"]})
    process = place.gateway(binary, HTTPWARE.format(port=port, origin=origin, issuer=provider.url), [port], 1,
                            preexec=lambda: os.sched_setaffinity(0, gateway_cpu))
    try:
        base = f"http://127.0.0.1:{port}"
        cookie = session(base)

        def turn(row: str, seconds: float) -> float:
            path, hasCookie = ROWS[row]
            command = ["wrk", "-t1", "-c64", f"-d{seconds}s"] + (["-H", f"Cookie: {cookie}"] if hasCookie else []) + [base + path]
            before = process.cpu_seconds()
            output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=load).stdout
            spent = process.cpu_seconds() - before
            if "Non-2xx" in output:
                raise RuntimeError(output)
            return spent * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

        figures: dict[str, list[float]] = {row: [] for row in ROWS}
        for row in ROWS:
            turn(row, 1)
        for number in range(options.rounds):
            rows = list(ROWS)
            for row in rows[number % len(rows):] + rows[: number % len(rows)]:
                figures[row].append(turn(row, options.seconds))
    finally:
        process.stop()
        provider.stop()
        place.close()
    print(f"{datetime.date.today()}, {options.rounds} rounds of {options.seconds} s, a cookie of {len(cookie)} bytes\n")
    print("| GET 1 KiB | CPU µs per request (median) | spread | ratio |\n|---|---|---|---|")
    first = statistics.median(figures["no ware, no cookie"])
    for row, values in figures.items():
        median = statistics.median(values)
        print(f"| {row} | {median:.1f} | {(max(values) - min(values)) / median:.0%} | {median / first:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
