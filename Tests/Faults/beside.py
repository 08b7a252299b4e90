#!/usr/bin/env python3
"""Calm traffic on one path until standard input ends, in a process of its own: what harms the gateway must not slow down who measures.

    beside.py PORT PATH      prints a line when each connection has its first answer, at the end a JSON line: durations in ms, failures
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.stand import Traffic  # noqa: E402
from Rig.waits import eventually  # noqa: E402
from Rig.wire import Wire, connect  # noqa: E402


class Place:
    def client(self) -> Wire:
        return connect(("127.0.0.1", int(sys.argv[1])), 20)


def main() -> None:
    readers = 4
    traffic = Traffic(Place(), readers=readers, think=0.01, path=sys.argv[2])
    # The harm begins when all readers are connected: a reader that connects later would wait behind the harmful connections.
    eventually(lambda: len(traffic.durations) >= readers, 60, every=0.001)
    print("ready", flush=True)
    sys.stdin.read()
    traffic.end()
    print(json.dumps({"durations": [round(each * 1000, 2) for each in traffic.durations], "failures": traffic.failures}))


if __name__ == "__main__":
    main()
