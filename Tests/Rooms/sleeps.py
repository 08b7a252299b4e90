#!/usr/bin/env python3
"""Real sleeps in Swift tests and in their library, HttpWareTesting: only in `eventually`, and where this list says why.

    Tests/Rooms/sleeps.py

A sleep makes a test slow on a quiet machine and wrong on a busy one. Time is a `ManualClock`; a test that waits for another process or another
thread asks again and again, in `eventually`. Waits on a loop's own clock are not counted. Python 3.11, standard library only.
Last: `N passed, N failed`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLEEP = re.compile(
    r"\b(?:Task|Thread)\.sleep\b|\w*Clock\(\)\.sleep\(|\bclock\.sleep\(|(?<![\w.])(?:u|nano|clock_nano)?sleep\(|\bpoll\(nil|(?<![\w.])p?select\(|\.asyncAfter\("
)
# Files, the number of their sleeps, and the reason for each.
LISTED = {
    "Sources/HttpWareTesting/Clocks/Eventually.swift": (2, "`eventually`, for tasks and for threads"),
    "Sources/HttpWareTesting/Origins/ScriptedOrigin.swift": (1, "nothing tells that the other end has read a piece"),
    "Tests/HttpWareTests/Loop/EventLoopTests.swift": (2, "a loop that is held up by its own work is what these tests are about"),
}
# Lines with a sleep, and lines without one.
SLEEPS = ["try await Task.sleep(for: .seconds(1))", "Thread.sleep(forTimeInterval: 1)", "usleep(1)", "sleep(1)", "nanosleep(&a, nil)", "poll(nil, 0, 5)"]
SLEEPS += ["try await ContinuousClock().sleep(for: .seconds(1))", "try await clock.sleep(until: end)", "select(0, nil, nil, nil, &time)", "queue.asyncAfter(deadline: end) {}"]
OTHERS = ["try await loop.sleep(for: .seconds(1))", "try await exchange.sleep(for: .zero)", "// usleep(1)", "poll(&entry, 1, 5000)", "let sleeper = 1", "server.select(1)", 'run("sleep(1)")']


def count(text: str) -> int:
    # A string may be a script in a language that sleeps by itself.
    code = re.sub(r'"""(?:.|\n)*?"""', '""', text)
    return sum(len(SLEEP.findall(re.sub(r'(?:^|\s)//.*|"(?:\\.|[^"\\])*"', "", line))) for line in code.splitlines())


def main() -> int:
    wrong = [f"{line!r} counts wrongly" for line in SLEEPS + OTHERS if count(line) != int(line in SLEEPS)]
    paths = sorted([*(ROOT / "Tests").rglob("*.swift"), *(ROOT / "Sources/HttpWareTesting").rglob("*.swift")])
    for path in paths:
        name = str(path.relative_to(ROOT))
        found, (most, _) = count(path.read_text()), LISTED.get(name, (0, ""))
        if found > most:
            wrong.append(f"{name} has {found} real sleeps, {most} are allowed: use a manual clock, or `eventually`")
        elif found < most:
            wrong.append(f"{name} has {found} real sleeps, {most} are listed: lower the number in Tests/Rooms/sleeps.py")
    wrong += [f"{name} is listed and does not exist" for name in LISTED if not (ROOT / name).exists()]
    for fault in wrong:
        print(f"FAILED  {fault}")
    print(f"{len(paths) + len(SLEEPS) + len(OTHERS) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
