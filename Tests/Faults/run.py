#!/usr/bin/env python3
"""Faults: one JSON line per result (name, goal, measured, pass). Python 3.11, standard library only.

    Tests/Faults/run.py --binary .build/release/httpware [--only NAME] [--seconds N] [--soak SECONDS]
    Tests/Faults/run.py --peer nginx      # the same against nginx, to see that the goals can be met

Needs root, for memory limits, packet loss, full disks, names, and for the order in which processes compute (chrt); some 23,000 descriptors; nginx, nftables, gcc. Everything is on the
loopback, of this machine or of a network namespace, and ends by itself. The soak takes 30 minutes, unless told otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.results import tell  # noqa: E402
from Rig.trials import Trials  # noqa: E402

from Faults import clients, machine, names, origins, soak, upgrade  # noqa: E402

TRIALS = Trials()
# These are also tried with ejection and health checks.
BALANCED = {"killed": origins.killed, "hung": origins.hung, "resetting": origins.resetting, "all-down": origins.all_down}
for name, body in BALANCED.items():
    TRIALS.add(f"{name}-balanced")(body)
for name, body in {
    **BALANCED, "slow-origin": origins.slow, "slow-clients": clients.slow, "slow-readers": clients.readers,
    "descriptors": machine.descriptors, "ports": machine.ports, "disk-full": machine.disk_full, "stopped": machine.stopped, "clock": machine.clock,
    "loss": machine.loss, "names": names.flapping,
    "upgrade": upgrade.upgrade, "soak": soak.soak,
}.items():
    TRIALS.add(name)(body)
# These have their own network.
APART = ["ports", "loss"]


def results(name: str, options: argparse.Namespace) -> list[dict]:
    if name in APART and not options.inside:
        command = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:], "--inside", "--only", name]
        return [json.loads(text) for text in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    options.balanced = name.endswith("-balanced")
    told = TRIALS.lines(name, options)
    return [each | {"name": each["name"] + ", with ejection and health checks"} for each in told] if options.balanced else told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--peer", choices=["httpware", "nginx"], default="httpware")
    parser.add_argument("--only", action="append", default=[], choices=TRIALS.names)
    parser.add_argument("--seconds", type=float, default=10, help="how long each takes, roughly")
    parser.add_argument("--soak", type=float, default=1800, help="how long the soak takes, in seconds")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if options.peer == "httpware" and not shutil.which(options.binary):
        print(f"faults: {options.binary} is not there; build it first", file=sys.stderr)
        return 1
    if os.getuid() != 0:
        print("faults: only root may fill disks, drop packets and limit memory", file=sys.stderr)
        return 1
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    chosen = options.only[-1:] if options.inside else options.only or TRIALS.names
    told = ({"peer": options.peer} | each for name in TRIALS.names if name in chosen for each in results(name, options))
    return tell(told, sums=not options.inside)


if __name__ == "__main__":
    sys.exit(main())
