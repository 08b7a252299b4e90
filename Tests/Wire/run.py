#!/usr/bin/env python3
"""Black-box protocol suite: exact bytes in, exact behaviour out. Python 3.11, standard library only.

    Tests/Wire/run.py --binary .build/release/httpware [--only TEXT] [--jobs N]
    Tests/Wire/run.py --peer nginx      # checks the suite itself, where nginx's behaviour is comparable

A case that fails is run again when nothing else runs. If it passes then, it is told as UNSTABLE. More than three such cases in a
run have failed, except cases that Tests/quarantine.txt lists as `Wire/NAME`. Prints a line for each case that failed, and
`N passed, N failed`.
"""

from __future__ import annotations

import argparse
import datetime
import queue
import re
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
sys.dont_write_bytecode = True

import cases  # noqa: E402, F401 (registers the cases)
from Rig import quarantine  # noqa: E402
from Rig.processes import DidNotStart  # noqa: E402
from setups import Setup  # noqa: E402
from suite import CASES, Case, Failure, Malformed, Skip, Trial, WireClosed, WireTimeout  # noqa: E402

# The number of cases in a run that may fail once. Busy disks and processors still make some of them late.
TOLERATED = 3


class Results:
    def __init__(self, verbose: bool, listed: quarantine.Quarantine):
        self.lock, self.verbose, self.listed = threading.Lock(), verbose, listed
        self.passed, self.failed, self.skipped = 0, [], []
        self.once: dict[str, str] = {}
        self.unstable = 0
        self.again: queue.Queue = queue.Queue()

    def add(self, case: Case, problem: str | None, took: float) -> None:
        with self.lock:
            before = self.once.pop(case.name, None)
            if problem is None and before is not None and quarantine.WIRE + case.name not in self.listed.entries:
                self.unstable += 1
            if problem is None and before is not None and self.unstable > TOLERATED:
                self.failed.append(case.name)
                print(f"FAILED  {case.name}: it failed, and passed alone; that is a fault of the case or of the program: {before}", flush=True)
            elif problem is None:
                self.passed += 1
                if before is not None:
                    print(f"UNSTABLE  {case.name}: {before}", flush=True)
                elif self.verbose:
                    print(f"ok {took:6.2f}s  {case.name}", flush=True)
            elif before is not None:
                self.failed.append(case.name)
                print(f"FAILED  {case.name}: {problem}", flush=True)
            else:
                self.once[case.name] = problem
                self.again.put(case)

    def skip(self, case: Case, reason: str) -> None:
        with self.lock:
            self.skipped.append(case.name)
            if self.verbose:
                print(f"skipped  {case.name}: {reason}", flush=True)


def run_case(case: Case, setup: Setup) -> str | None:
    """The problem of the case; `None` if it passed."""
    trial = Trial(setup)
    problem = None
    try:
        case.run(trial)
    except Skip:
        trial.finish()
        raise
    except (Failure, Malformed, WireClosed, WireTimeout, DidNotStart) as failure:
        problem = str(failure) if isinstance(failure, Failure) else f"{type(failure).__name__}: {failure}"
    except Exception:
        problem = " ".join(traceback.format_exc(limit=-2).split())
    faults = trial.finish()
    if problem is None and faults:
        problem = "; ".join(faults)
    if not setup.process.is_running:
        problem = f"the program died (status {setup.process.popen.returncode}): {setup.process.log[-600:]!r} after: {problem}"
    return problem


def work(todo: queue.Queue, results: Results, options: argparse.Namespace) -> None:
    setup = None
    try:
        while True:
            try:
                case = todo.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                if setup is None or not setup.process.is_running:
                    if setup is not None:
                        setup.close()
                    setup = Setup(options.binary, options.peer, options.workers)
                results.add(case, run_case(case, setup), time.monotonic() - began)
            except Skip as skip:
                results.skip(case, str(skip))
            except DidNotStart as problem:
                results.add(case, f"the program did not start: {problem}", 0)
                setup = None
    finally:
        if setup is not None:
            setup.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware", help="the program under test")
    parser.add_argument("--peer", choices=["httpware", "nginx"], default="httpware")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="cases whose name holds this (regular expression)")
    parser.add_argument("--jobs", type=int, default=4, help="cases at once, each job with a process of its own")
    parser.add_argument("--workers", type=int, default=1, help="loops of the program under test")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()

    chosen = [case for case in CASES if not options.only or any(re.search(text, case.name) for text in options.only)]
    if options.list:
        print(*(case.name for case in chosen), sep="\n")
        return 0
    if options.peer == "httpware":
        options.binary = str(Path(options.binary).resolve())
        if not shutil.which(options.binary):
            print(f"wire: {options.binary} is not there; build it first", file=sys.stderr)
            return 1

    root = Path(__file__).resolve().parents[2]
    listed = quarantine.read((root / "Tests/quarantine.txt").read_text(), datetime.date.today())
    faults = listed.faults + listed.missing({quarantine.WIRE + case.name for case in CASES}, wire=True)
    if faults:
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    results = Results(options.verbose, listed)
    todo: queue.Queue = queue.Queue()
    alone: queue.Queue = queue.Queue()
    for case in chosen:
        if options.peer == "nginx" and case.nginx:
            results.skip(case, case.nginx)
        else:
            (alone if case.alone else todo).put(case)
    threads = [threading.Thread(target=work, args=(todo, results, options)) for _ in range(max(1, options.jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(alone, results, options)  # what measures time, when nothing else runs
    work(results.again, results, options)
    if results.skipped:
        print(f"({len(results.skipped)} skipped)")
    print(f"{results.passed} passed, {len(results.failed)} failed")
    return 1 if results.failed or not results.passed else 0


if __name__ == "__main__":
    sys.exit(main())
