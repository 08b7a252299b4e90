#!/usr/bin/env python3
"""Hostile scripts on the one loop of a gateway, and the clients of other routes beside them. One JSON line per result.

    Tests/Load/scripts.py --binary .build/release/httpware [--seconds 4]

A client asks a plain route again and again, first alone, then while others ask a route whose script never ends, fills its memory, or the like. Exits 1
when a plain request takes over 6 ms longer at the 99th percentile, when a hostile one gets another answer than 500, or when memory grows.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

from Rig.origins import Origin, answering  # noqa: E402
from Rig.processes import Workplace, free_port  # noqa: E402
from Rig.results import line, tell  # noqa: E402

HOSTILE = {
    "a loop without end": "while true do end",
    "a loop that catches its errors": "while true do pcall(function() while true do end end) end",
    "a string of a gigabyte": "return { text = string.rep('x', 1 << 30) }",
    "a table that grows": "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
    "a recursion without end": "local function f() return 1 + f() end f()",
    "a pattern that goes back": "return { text = string.rep('a', 30000):match('(a*)*(a*)*(a*)*b') or 'none' }",
    "an expression that goes back": "return { text = tostring(re.match(string.rep('a', 3000), '(a+)+$b')) }",
    "coroutines in coroutines": "local function f() return coroutine.wrap(f)() end f()",
    "texts that double": "local s = 'x' while true do s = s .. s end",
    "sorting with a false order": "local t = {} for i = 1, 50000 do t[i] = i % 7 end while true do table.sort(t, function() return true end) end",
}

ATTACKERS = 4
# The limits of an expression end it without an error of the script.
ANSWERED = {"an expression that goes back"}

CONFIG = """version: 1
listeners: {{ web: {{ bind: "127.0.0.1:{web}" }} }}
services: {{ app: {{ baseUrl: "http://127.0.0.1:{origin}" }} }}
chains:
{chains}
routes:
{routes}
  - {{ service: app }}
log: {{ level: critical }}
"""


class Client:
    def __init__(self, port: int):
        self.port, self.socket = port, None

    def get(self, path: str) -> int:
        """The status; 0 without an answer."""
        try:
            if not self.socket:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10)
            self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
            data = b""
            while b"\r\n\r\n" not in data:
                piece = self.socket.recv(65536)
                if not piece:
                    raise OSError("the connection ended")
                data += piece
            head, _, rest = data.partition(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            missing = int(fields.get(b"content-length", b"0")) - len(rest)
            while missing > 0:
                missing -= len(self.socket.recv(65536))
            if fields.get(b"connection") == b"close":
                self.close()
            return int(head.split(b" ", 2)[1])
        except OSError:
            self.close()
            return 0

    def close(self) -> None:
        if self.socket:
            self.socket.close()
        self.socket = None


def times(port: int, seconds: float) -> list[float]:
    """The milliseconds of each of many plain requests, sorted."""
    client, found, end = Client(port), [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        if client.get("/plain") != 200:
            raise RuntimeError("a plain request failed")
        found.append((time.monotonic() - began) * 1000)
    client.close()
    return sorted(found)


def part(values: list[float], of: float) -> float:
    return round(values[min(len(values) - 1, int(len(values) * of))], 2)


def memory(pid: int) -> int:
    return next(int(row.split()[1]) for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--seconds", type=float, default=4, help="of each trial")
    options = parser.parse_args()
    place, web = Workplace("scripts"), free_port()
    origin = Origin()
    origin.begin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    chains = "".join(
        f"  s{number}:\n    middlewares:\n      - script:\n          source: |\n            return {{ request = function(req)\n            {body}\n            end }}\n"
        for number, body in enumerate(HOSTILE.values()))
    routes = "".join(f'  - {{ match: {{ path: "/s{number}" }}, service: app, chain: s{number} }}\n' for number in range(len(HOSTILE)))

    def results():
        gateway = place.gateway(str(Path(options.binary).resolve()), CONFIG.format(web=web, origin=origin.port, chains=chains, routes=routes.rstrip()), [web], 1)
        times(web, 1)
        quiet = times(web, options.seconds)
        before = memory(gateway.pid)
        for number, name in enumerate(HOSTILE):
            statuses: list[int] = []
            is_over = threading.Event()

            def attack(path: str = f"/s{number}", statuses: list[int] = statuses, is_over: threading.Event = is_over) -> None:
                client = Client(web)
                while not is_over.is_set():
                    statuses.append(client.get(path))
                client.close()

            threads = [threading.Thread(target=attack) for _ in range(ATTACKERS)]
            for thread in threads:
                thread.start()
            beside = times(web, options.seconds)
            is_over.set()
            for thread in threads:
                thread.join()
            more = part(beside, 0.99) - part(quiet, 0.99)
            yield line(name, "answered; other clients wait at most 5 ms more, and one for the loop itself",
                       {"p99 ms": part(beside, 0.99), "alone": part(quiet, 0.99), "most": part(beside, 1), "plain": len(beside), "hostile": len(statuses), "statuses": sorted(set(statuses))},
                       set(statuses) == {200 if name in ANSWERED else 500} and more <= 6)
        grown = memory(gateway.pid) - before
        # A state may hold 16 MiB, until its memory is collected.
        yield line("memory", "grows by at most 16 MiB for each script", {"KiB": grown}, grown <= 16 * 1024 * len(HOSTILE))

    try:
        return tell(results())
    finally:
        place.close()


if __name__ == "__main__":
    sys.exit(main())
