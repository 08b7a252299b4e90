#!/usr/bin/env python3
"""The host for mitmproxy's addons, with a gateway in the test that speaks the callout protocol. Python 3.11, standard library only.

    Tests/Addons/run.py [--only TEXT] [--verbose]
    Tests/Addons/run.py --examples FOLDER       # each addon in the folder: runs unmodified, or is refused with its reasons

Prints a line for each case that failed, and `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

import examples  # noqa: E402
import hooks  # noqa: E402, F401 (registers its cases, as the modules below do)
import hostile  # noqa: E402, F401
import loads  # noqa: E402, F401
import members  # noqa: E402, F401
from suite import CASES, Failure, load_host, trial  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="runs the cases whose name contains TEXT")
    parser.add_argument("--verbose", action="store_true", help="prints the cases that passed, too")
    parser.add_argument("--examples", type=Path, metavar="FOLDER", help="tries each addon in FOLDER, and prints a table")
    arguments = parser.parse_args()
    if arguments.examples:
        return examples.run(arguments.examples)
    host = load_host()
    passed = failed = 0
    for case in CASES:
        if arguments.only not in case.name:
            continue
        began, problem = time.monotonic(), ""
        try:
            with trial(host) as tools:
                case.run(tools)
        except Failure as fault:
            problem = str(fault)
        except Exception:
            problem = traceback.format_exc()
        passed, failed = passed + (not problem), failed + bool(problem)
        if problem:
            print(f"FAILED  {case.name}: {problem}", flush=True)
        elif arguments.verbose:
            print(f"ok {time.monotonic() - began:6.2f}s  {case.name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
