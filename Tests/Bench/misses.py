#!/usr/bin/env python3
"""The cost of a request that the cache stores, or that waits for the response to another, beside a request that is only passed on.
Standard library, nginx and wrk.

    Tests/Bench/misses.py --binary .build/release/httpware [--beside OLD] [--rounds 5] [--seconds 3] [--only stored,waiting]

The gateway runs with one worker on the first CPU; wrk and the origin servers share the second. Chains, and binaries where a second one
is given with --beside, take turns, round by round. The figure is the CPU time of the gateway's process divided by the requests that wrk
completed. The ratio is to the chain of the first row, of the same binary and run.

    stored   GET 1 KiB, 64 connections, every URL new: passed on; stored in a store that is full; stored while the store fills
    waiting  GET 1 KiB, 2000 connections, an origin server that takes 300 ms: each on its own; behind `coalesce`; collapsed by `httpCache`
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Rig.processes import Process, Workplace, free_port  # noqa: E402
from run import ORIGIN  # noqa: E402

HTTPWARE = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}", host: preserve, timeouts: {{ idle: 600s }}, pool: {{ maxIdle: 4096, maxPerEndpoint: 8192 }} }} }}
stores: {{ cache: {{ memory: {{ maxSize: {size} }} }} }}
chains: {{ bench: {{ middlewares: [{ware}] }} }}
routes: [{{ service: origin, chain: bench }}]
"""
SLOW = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", limits: {{ idleTimeout: 600s }} }} }}
chains: {{ slow: {{ middlewares: [{{ mock: {{ delay: 300ms, headers: {{ Cache-Control: max-age=0, ETag: '"a"' }}, body: "{body}" }} }}] }} }}
routes: [{{ chain: slow }}]
"""
SCRIPT = """
local number, seed = 0, "0"
init = function(arguments) seed = arguments[1] end
request = function()
  number = number + 1
  return wrk.format("GET", "/new/" .. seed .. "/" .. number)
end
"""
CACHE = "{ httpCache: { store: cache } }"
# scenario → chain → the ware and the size of the store
SCENARIOS = {
    "stored": {"passed on": ("", "1MiB"), "stored, full": (CACHE, "64MiB"), "stored, filling": (CACHE, "8GiB")},
    "waiting": {
        "on its own": ("", "1MiB"), "coalesced": ("{ coalesce: { maxWaiters: 10000 } }", "1MiB"), "collapsed": (CACHE, "64MiB"),
    },
}


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.place = Workplace("bench")
        self.seed = 0
        cpus = sorted(os.sched_getaffinity(0))
        self.gateway_cpu, self.load_cpu = {cpus[0]}, {cpus[min(1, len(cpus) - 1)]}
        files = self.place.subfolder("files")
        (files / "1k").write_bytes(b"x" * 1024)
        self.script = files / "new.lua"
        self.script.write_text(SCRIPT)
        load = lambda: os.sched_setaffinity(0, self.load_cpu)  # noqa: E731
        self.origin, self.slow = free_port(), free_port()
        text = ORIGIN.format(port=self.origin, files=files).replace("root ", "location /new/ { add_header Cache-Control max-age=60; try_files /1k =404; } root ")
        self.place.nginx(text, [self.origin], preexec=load)
        self.place.gateway(options.binary, SLOW.format(port=self.slow, body="x" * 1024), [self.slow], 1, preexec=load)

    def start(self, binary: str, scenario: str, chain: str) -> tuple[Process, int]:
        ware, size = SCENARIOS[scenario][chain]
        port = free_port()
        text = HTTPWARE.format(port=port, origin=self.slow if scenario == "waiting" else self.origin, ware=ware, size=size)
        return self.place.gateway(binary, text, [port], 1, preexec=lambda: os.sched_setaffinity(0, self.gateway_cpu)), port

    def turn(self, process: Process, port: int, scenario: str, seconds: float) -> float:
        """µs of CPU time per request."""
        self.seed += 1
        url = f"http://127.0.0.1:{port}/same"
        command = ["wrk", "-t1", f"-d{seconds}s", "--timeout", "10s"]
        command += ["-c2000", url] if scenario == "waiting" else ["-c64", "-s", str(self.script), url, "--", str(self.seed)]
        before = process.cpu_seconds()
        output = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, self.load_cpu)).stdout
        spent = process.cpu_seconds() - before
        if "Non-2xx" in output:
            raise RuntimeError(output)
        return spent * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

    def scenario(self, scenario: str, binaries: list[str]) -> dict[tuple[str, str], list[float]]:
        chains = [(binary, chain) for chain in SCENARIOS[scenario] for binary in binaries]
        figures: dict[tuple[str, str], list[float]] = {chain: [] for chain in chains}
        running = {chain: self.start(chain[0], scenario, chain[1]) for chain in chains if "filling" not in chain[1]}
        try:
            for (_, chain), (process, port) in running.items():
                # Long enough to fill the store.
                self.turn(process, port, scenario, 6 if "full" in chain else 2)
            for round in range(self.options.rounds):
                shift = round % len(chains)
                for chain in chains[shift:] + chains[:shift]:
                    if chain in running:
                        figures[chain].append(self.turn(*running[chain], scenario, self.options.seconds))
                        continue
                    process, port = self.start(chain[0], scenario, chain[1])
                    try:
                        figures[chain].append(self.turn(process, port, scenario, self.options.seconds))
                    finally:
                        process.stop()
        finally:
            for process, _ in running.values():
                process.stop()
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--beside")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    binaries = [options.binary] + ([str(Path(options.beside).resolve())] if options.beside else [])
    missing = [program for program in ("nginx", "wrk") if not shutil.which(program) and not shutil.which(f"/usr/sbin/{program}")]
    if missing:
        print(f"bench: the comparison needs {' and '.join(missing)} (Debian: nginx, wrk); left out")
        return 0
    for binary in binaries:
        if not shutil.which(binary):
            print(f"bench: {binary} is not there; build it first", file=sys.stderr)
            return 1
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, most), most))
    bench = Bench(options)
    print(f"{datetime.date.today()}, {options.rounds} rounds of {options.seconds} s, CPU µs per request (median), spread, ratio to the first row\n")
    names = ["new", "beside"][: len(binaries)]
    print("| chain | " + " | ".join(f"{name} | ratio" for name in names) + " |\n|---|" + "---|" * (2 * len(names)))
    try:
        for scenario in options.only.split(","):
            figures = bench.scenario(scenario, binaries)
            chains = list(SCENARIOS[scenario])
            for chain in chains:
                cells = []
                for binary in binaries:
                    values = figures[binary, chain]
                    median = statistics.median(values)
                    ratio = median / statistics.median(figures[binary, chains[0]])
                    cells.append(f"{median:.1f} (±{(max(values) - min(values)) / 2 / median:.0%}) | {ratio:.2f}")
                print(f"| {chain} | " + " | ".join(cells) + " |", flush=True)
    finally:
        bench.place.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
