#!/usr/bin/env python3
"""CPU time per request that is answered with 100 KiB of JSON as gzip, beside Debian's nginx. Needs wrk and nginx.

    Tests/Bench/compress.py --binary .build/release/httpware [--rounds 5] [--seconds 3] [--levels 1,4,6]

As run.py: one worker each on the first CPU, wrk and the origin server on the second, turns round by round. Both use the same zlib, window
and memory. Each response is decoded again, and its size is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Process, Workplace, free_port  # noqa: E402
from run import NGINX, ORIGIN  # noqa: E402

GZIP = "gzip on; gzip_proxied any; gzip_types text/plain; gzip_comp_level %d; gzip_min_length 1024; gzip_vary on;"
HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, pool: {{ maxIdle: 128 }} }} }}
chains: {{ bench: {{ postwares: [{{ compress: {{ encodings: [gzip], level: {level} }} }}] }} }}
routes: [{{ service: origin, chain: bench }}]
"""


def document() -> bytes:
    """100 KiB as an interface answers them: names that repeat, and values that do not."""
    chance = random.Random(7)
    words = ["".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(chance.randint(3, 9))) for _ in range(800)]
    items, size = [], 0
    while size < 100 << 10:
        item = {"id": chance.getrandbits(40), "name": " ".join(chance.choices(words, k=3)), "price": round(chance.random() * 1000, 2),
                "tags": chance.choices(words, k=4), "created": f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T10:00:00Z"}
        items.append(item)
        size += len(json.dumps(item)) + 2
    return json.dumps(items).encode()[: 100 << 10]


class Bench:
    def __init__(self, options):
        self.options, self.place = options, Workplace("bench-compress")
        cpus = sorted(os.sched_getaffinity(0))
        self.peer_cpu, self.load_cpu = {cpus[0]}, {cpus[-1]}
        files = self.place.subfolder("files")
        self.document = document()
        (files / "page").write_bytes(self.document)
        self.origin = free_port()
        self.place.nginx(ORIGIN.format(port=self.origin, files=files), [self.origin], preexec=lambda: os.sched_setaffinity(0, self.load_cpu))

    def start(self, peer: str, level: int) -> tuple[Process, int]:
        port, pinned = free_port(), lambda: os.sched_setaffinity(0, self.peer_cpu)
        if peer == "nginx":
            return self.place.nginx(NGINX.format(port=port, origin=self.origin, http2="", edits=GZIP % level), [port], preexec=pinned), port
        text = HTTPWARE.format(port=port, origin=self.origin, level=level)
        return self.place.gateway(self.options.binary, text, [port], 1, preexec=pinned), port

    def size(self, port: int) -> int:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/page", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=10) as response:
            content = response.read()
        assert gzip.decompress(content) == self.document, "not what the origin server sent"
        return len(content)

    def turn(self, process: Process, port: int) -> float:
        before = process.cpu_seconds()
        command = ["wrk", "-t1", "-c16", f"-d{self.options.seconds}s", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/page"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        spent = process.cpu_seconds() - before
        if "Non-2xx" in output or "Socket errors" in output:
            raise RuntimeError(f"errors: {output}")
        return spent * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

    def run(self, level: int) -> bool:
        peers = {peer: self.start(peer, level) for peer in ("nginx", "httpware")}
        sizes = {peer: self.size(port) for peer, (_, port) in peers.items()}
        figures: dict[str, list[float]] = {peer: [] for peer in peers}
        for turn in range(self.options.rounds + 1):
            for peer, (process, port) in peers.items():
                figure = self.turn(process, port)
                if turn:  # the first warms up
                    figures[peer].append(figure)
        medians = {peer: statistics.median(f) for peer, f in figures.items()}
        ratio = medians["httpware"] / medians["nginx"]
        print(f"gzip level {level}: " + ", ".join(f"{peer} {medians[peer]:.0f} µs, {sizes[peer]} bytes" for peer in peers) + f"; ratio {ratio:.3f}", flush=True)
        for process, _ in peers.values():
            process.stop()
        return ratio <= 1 and sizes["httpware"] <= sizes["nginx"] * 1.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--levels", default="1,4,6")
    bench = Bench(parser.parse_args())
    try:
        return 0 if all([bench.run(int(level)) for level in bench.options.levels.split(",")]) else 1
    finally:
        bench.place.close()


if __name__ == "__main__":
    sys.exit(main())
