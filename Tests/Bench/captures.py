#!/usr/bin/env python3
"""The cost of captures: CPU and memory, and how long a filter over many of them takes. Standard library, nginx, wrk, h2load, socat, openssl.

    Tests/Bench/captures.py --binary .build/release/httpware [--only cost,filters,memory] [--rounds 3] [--seconds 3] [--captures 100000]

    cost     CPU of a GET of 1 KiB with and without capture, plain and intercepted, 32 connections, one worker. They take turns
    filters  two gateways capture as many requests as `--captures` says, before an origin server that answers with 1 KiB of JSON: one keeps them in memory, the
             other in files. The filters match nothing, so that all captures are looked at. `first` is the time of the first page, which may
             end before the search does; `whole` is the time until all pages that `next` names are there. Medians, in milliseconds
    memory   resident memory and the bytes of the disk, behind each tenth of ten times as many requests, with 64 MiB of memory and 256 MiB of disk
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.dont_write_bytecode = True

from Bench.intercept import Bench, report  # noqa: E402
from Rig.processes import Process, Workplace, free_port  # noqa: E402
from Rig.waits import Why, pause  # noqa: E402

ORIGIN = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", chain: all }} }}
chains: {{ all: {{ middlewares: [{{ mock: {{ status: 200, headers: {{ Content-Type: application/json }}, body: '{body}' }} }}] }} }}
routes: [{{ chain: all }}]
log: {{ level: error }}
"""
GATEWAY = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}", chain: all }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none, capture: {capture} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains: {{ all: {{ middlewares: [{{ requestHeaders: {{ set: {{ X-Via: gateway }} }} }}], postwares: [{{ responseHeaders: {{ set: {{ X-Served-By: gateway }} }} }}] }} }}
routes: [{{ service: origin }}]
log: {{ level: error }}
"""
PLAIN = """
version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{port}" }} }}
admin: {{ bind: "127.0.0.1:{admin}", token: none{capture} }}
services: {{ origin: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
routes: [{{ service: origin }}]
log: {{ level: error }}
"""
FILTERS = ("~u nothing", "~u no.hing", "~d nothing & ~c 200", "~m nothing", "~t nothing", "~src nothing", "~did nothing", "~ware nothing", "~hq nothing",
           "~h nothing", "~h no.hing", "~bs nothing", "~b no.hing")


def ask(admin: int, query: dict) -> dict:
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/v1/captures?{urllib.parse.urlencode(query)}", timeout=60) as answer:
        return json.loads(answer.read())


def search(admin: int, text: str) -> tuple[float, float, int]:
    """The times of the first page and of all, and the number of pages."""
    began, first, pages, found = time.monotonic(), 0.0, 0, {"next": None}
    while pages == 0 or found.get("next"):
        found = ask(admin, {"filter": text, "limit": 100} | ({"before": found["next"]} if pages else {}))
        pages += 1
        first = first or time.monotonic() - began
        assert not found["captures"], text
    return first * 1000, (time.monotonic() - began) * 1000, pages


class Captures:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.place, self.origin = Workplace("captures"), free_port()
        body = json.dumps({"items": ["a word of text"] * 56})[:1024]
        self.place.gateway(options.binary, ORIGIN.format(port=self.origin, body=body), [self.origin], 1)

    def gateway(self, capture: str) -> tuple[Process, int, int]:
        web, admin = free_port(), free_port()
        text = GATEWAY.format(port=web, admin=admin, capture=capture, origin=self.origin)
        return self.place.gateway(self.options.binary, text, [web, admin], 1), web, admin

    def fill(self, web: int, count: int) -> None:
        urls = self.place.subfolder("urls") / "urls"
        urls.write_text("\n".join(f"http://127.0.0.1:{web}/path/{number}?page={number % 7}" for number in range(1000)))
        subprocess.run(["h2load", "--h1", "-n", str(count), "-c", "8", "-i", str(urls)], check=True, capture_output=True, timeout=300)

    # cost

    def cost(self) -> None:
        benches = {name: Bench(self.options, f'admin: {{ bind: "127.0.0.1:{free_port()}", token: none{more} }}')
                   for name, more in (("without capture", ""), ("with capture", ", capture: {}"))}
        try:
            figures: dict[str, dict[str, list[float]]] = {"plain": {}, "intercepted": {}}
            gateways = {"without capture": self.plain(""), "with capture": self.plain(", capture: {}")}
            for turn in range(self.options.rounds + 1):
                for name, bench in benches.items():
                    value = bench.turn("intercepted", "HTTP/1.1", self.options.seconds if turn else 1)
                    plain = self.turn(*gateways[name], self.options.seconds if turn else 1)
                    if turn:
                        figures["intercepted"].setdefault(name, []).append(value)
                        figures["plain"].setdefault(name, []).append(plain)
            for name, found in figures.items():
                report(f"µs of CPU per request, {name}, 1 KiB, 32 connections", found)
        finally:
            for bench in benches.values():
                bench.place.close()

    def plain(self, capture: str) -> tuple[Process, int]:
        web, admin = free_port(), free_port()
        text = PLAIN.format(port=web, admin=admin, capture=capture, origin=self.origin)
        return self.place.gateway(self.options.binary, text, [web, admin], 1), web

    def turn(self, process: Process, port: int, seconds: float) -> float:
        before = process.cpu_seconds()
        output = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", f"http://127.0.0.1:{port}/1k"], capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            raise RuntimeError(output)
        return (process.cpu_seconds() - before) * 1e6 / int(re.search(r"(\d+) requests in", output)[1])

    # filters

    def filters(self) -> None:
        admins = {}
        folder = self.place.subfolder("disk")
        for name, capture in (("memory", "{ memory: 2GiB }"), ("disk", f'{{ memory: 1MiB, disk: {{ path: "{folder}/captures", maxSize: 4GiB }} }}')):
            _, web, admin = self.gateway(capture)
            self.fill(web, self.options.captures)
            admins[name] = admin
        pause(2, Why.BEFORE)  # some are written behind
        print(f"\nfilters that match none of {self.options.captures:,} captures, ms")
        for text in FILTERS:
            for name, admin in admins.items():
                times = [search(admin, text) for _ in range(self.options.rounds)]
                first, whole = (statistics.median(each[part] for each in times) for part in (0, 1))
                print(f"  {name:7} {text:22} first {first:6.1f}, whole {whole:7.1f} in {times[0][2]} pages, {whole * 1e6 / self.options.captures:6.0f} ns a capture", flush=True)

    # memory

    def memory(self) -> None:
        folder = self.place.subfolder("disk") / "captures"
        process, web, _ = self.gateway(f'{{ memory: 64MiB, disk: {{ path: "{folder}", maxSize: 256MiB }} }}')
        print("\nresident memory in MiB, and MiB of the disk, behind requests")
        for part in range(1, 11):
            self.fill(web, self.options.captures)
            disk = sum(file.stat().st_size for file in folder.iterdir())
            print(f"  {part * self.options.captures:9,}  {process.status('VmRSS') / 1024:7.1f}  {disk / (1 << 20):7.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--captures", type=int, default=100_000)
    parser.add_argument("--only", default="cost,filters,memory")
    parser.set_defaults(mitmdump=None)
    options = parser.parse_args()
    captures = Captures(options)
    try:
        for name in options.only.split(","):
            getattr(captures, name)()
    finally:
        captures.place.close()


if __name__ == "__main__":
    main()
