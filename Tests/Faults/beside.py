#!/usr/bin/env python3
"""Calm traffic on one path until standard input ends, in a process of its own: what harms the gateway must not slow down who measures.

    beside.py PORT PATH      prints one JSON line: p99 ms, requests, failures
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Load.run import Traffic  # noqa: E402
from Rig.wire import Wire, connect  # noqa: E402


class Place:
    def client(self) -> Wire:
        return connect(("127.0.0.1", int(sys.argv[1])), 20)


def main() -> None:
    traffic = Traffic(Place(), readers=4, think=0.01, path=sys.argv[2])
    sys.stdin.read()
    traffic.end()
    durations = sorted(traffic.durations)
    p99 = durations[int(len(durations) * 0.99)] * 1000 if durations else 1e9
    print(json.dumps({"p99 ms": round(p99, 2), "requests": traffic.succeeded, "failures": traffic.failures}))


if __name__ == "__main__":
    main()
