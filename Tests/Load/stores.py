#!/usr/bin/env python3
"""The disk store under kills, damage and a full disk: one JSON line per result. Python 3.11, standard library only.

    HTTPWARE_BENCH=1 swift build -c release --scratch-path .build-bench --product StoreTrial
    Tests/Load/stores.py --binary .build-bench/release/StoreTrial [--kills 200] [--only NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.waits import Why, pause  # noqa: E402

LIMIT = "256MiB"
failed = 0


def report(name: str, goal: str, measured: str, passed: bool) -> None:
    global failed
    failed += not passed
    print(json.dumps({"name": name, "goal": goal, "measured": measured, "pass": passed}), flush=True)


class Trial:
    def __init__(self, binary: str):
        self.binary = binary
        self.folder = tempfile.mkdtemp(prefix="httpware-stores-")
        self.environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no"}

    def run(self, command: str, number: int, *, limit: str = LIMIT, preexec: Callable[[], None] | None = None) -> str:
        done = subprocess.run(
            [self.binary, command, self.folder, limit, str(number)], capture_output=True, text=True, timeout=300,
            env=self.environment, preexec_fn=preexec)
        return f"{done.stdout}{done.stderr}exit {done.returncode}"

    def killed(self, seed: int) -> None:
        """Writes, and is killed at a random moment."""
        process = subprocess.Popen(
            [self.binary, "write", self.folder, LIMIT, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=self.environment)
        process.stdout.readline()
        pause(random.random() * 0.25, Why.PASSES)
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else -1


def kills(trial: Trial, count: int) -> None:
    wrong = whole = least = 0
    slowest = 0
    damaged = Path(trial.folder, "data.mdb.damaged")
    for seed in range(1, count + 1):
        trial.killed(seed)
        # Not closed in order: what is left is verified, then read.
        if seed % 10 == 0 or seed == count:
            text = trial.run("check", 2000)
            read, bad = number(r"read (\d+) whole", text), number(r"whole, (\d+) wrong", text)
            if read < 0 or bad != 0:
                print(text, file=sys.stderr)
            whole, wrong = whole + max(read, 0), wrong + (bad if bad >= 0 else 1)
            least = read if least == 0 else min(least, read)
            slowest = max(slowest, number(r"open after (\d+) ms", text))
    report(
        f"kill -9 at {count} random moments under write load", "every stored response whole, none damaged",
        f"{whole} read whole in {(count + 9) // 10} looks, at least {least} in each, {wrong} wrong,"
        f" slowest opening {slowest} ms, moved aside: {damaged.exists()}",
        wrong == 0 and least > 0 and not damaged.exists())


def start(trial: Trial, count: int) -> None:
    shutil.rmtree(trial.folder)
    filled = number(r"stored (\d+)", trial.run("fill", 100_000, limit="1GiB"))
    Path(trial.folder, "clean").unlink()  # as a killed one leaves it
    text = trial.run("check", 1000, limit="1GiB")
    opened, read = number(r"open after (\d+) ms", text), number(r"read (\d+) whole", text)
    again = number(r"open after (\d+) ms", trial.run("check", 1, limit="1GiB"))
    report(
        "a start with 100,000 responses", "serving within 1,000 ms, after a kill too",
        f"{filled} stored; open after {opened} ms when verified, {read} of 1000 read; {again} ms more often",
        filled == 100_000 and 0 <= opened <= 1000 and read == 1000)


def large(trial: Trial, count: int) -> None:
    shutil.rmtree(trial.folder)
    process = subprocess.Popen(
        [trial.binary, "large", trial.folder, "4GiB", "1024"], stdout=subprocess.PIPE, text=True, env=trial.environment)
    highest = 0
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
            highest = max(highest, number(r"RssAnon:\s*(\d+) kB", text))
        except OSError:
            break
        pause(0.02, Why.MEASURED)
    text = process.communicate(timeout=60)[0]
    read = number(r"read (\d+) bytes", text)
    report(
        "a response of 1 GiB in and out", "never in memory whole: under 200 MiB",
        f"{read} bytes read, {highest // 1024} MiB of memory at most", read == 1 << 30 and highest < 200 * 1024)


def full(trial: Trial, count: int) -> None:
    shutil.rmtree(trial.folder)

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))

    text = trial.run("fill", 30_000, preexec=small_disk)
    said = text.count("not stored")
    check = trial.run("check", 30_000)
    stored = number(r"stored (\d+)", text.replace("not stored", ""))
    report(
        "a file that cannot grow beyond 16 MiB", "not stored, said once, the rest is whole",
        f"{stored} of 30000 stored, said {said} times; then {' '.join(check.split())}",
        "exit 0" in text and said == 1 and number(r"whole, (\d+) wrong", check) == 0)


def damaged(trial: Trial, count: int) -> None:
    """Garbage anywhere in a file that was not closed never ends the process that serves."""
    shutil.rmtree(trial.folder)
    trial.run("fill", 3000)
    data = Path(trial.folder, "data.mdb")
    whole = data.read_bytes()
    aside = ended = wrong = 0
    for turn in range(40):
        file = bytearray(whole)
        if turn % 4 == 0:
            file = file[: random.randrange(1, len(file))]
        else:
            for _ in range(20):
                place = random.randrange(0, len(file) - 64)
                file[place : place + 64] = random.randbytes(64)
        data.write_bytes(file)
        Path(trial.folder, "clean").unlink(missing_ok=True)
        Path(trial.folder, "data.mdb.damaged").unlink(missing_ok=True)
        text = trial.run("check", 3000)
        ended += "exit 0" not in text
        wrong += number(r"whole, (\d+) wrong", text) != 0
        aside += Path(trial.folder, "data.mdb.damaged").exists()
    report(
        "40 damaged files", "the process goes on, nothing wrong is served",
        f"{aside} moved aside, {ended} ended the process, {wrong} served something wrong", ended == 0 and wrong == 0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    random.seed(6)
    for body in (kills, start, large, full, damaged):
        if options.only and options.only != body.__name__:
            continue
        trial = Trial(os.path.abspath(options.binary))
        try:
            body(trial, options.kills)
        finally:
            trial.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
