#!/usr/bin/env python3
"""Real sleeps in tests: only in `eventually`, and where this list says why.

    Tests/Rooms/sleeps.py

A sleep makes a test slow on a quiet machine and wrong on a busy one. In Swift, time is a `ManualClock`; a test that waits for another process or
another thread asks again and again, in `eventually`. Waits on a loop's own clock are not counted. In Python, `Rig.waits` has `eventually` too, and
`pause` for what has to last: it takes the reason. Python 3.11, standard library only. Last: `N passed, N failed`.
"""

from __future__ import annotations

import ast
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
# The file in Python whose sleeps are allowed, and folders with Python.
WAITS = "Tests/Rig/waits.py"
PYTHON = ("Tests", "docker", ".ci")
# Lines with a sleep, and lines without one.
SLEEPS = ["try await Task.sleep(for: .seconds(1))", "Thread.sleep(forTimeInterval: 1)", "usleep(1)", "sleep(1)", "nanosleep(&a, nil)", "poll(nil, 0, 5)"]
SLEEPS += ["try await ContinuousClock().sleep(for: .seconds(1))", "try await clock.sleep(until: end)", "select(0, nil, nil, nil, &time)", "queue.asyncAfter(deadline: end) {}"]
OTHERS = ["try await loop.sleep(for: .seconds(1))", "try await exchange.sleep(for: .zero)", "// usleep(1)", "poll(&entry, 1, 5000)", "let sleeper = 1", "server.select(1)", 'run("sleep(1)")']

PYTHON_SLEEPS = ["time.sleep(1)", "from time import sleep\nsleep(1)", "import time as clock\nclock.sleep(0)", "from asyncio import sleep as rest\nawait rest(1)"]
PYTHON_SLEEPS += ["await asyncio.sleep(0.1)", "threading.Event().wait(1)", "Event().wait(timeout=1)", "select.select([], [], [], 1)"]
PYTHON_OTHERS = ["pause(1, Why.SLOW)", "over.wait(1)", "process.wait(5)", "select.select([one], [], [], 1)", 'run("time.sleep(1)")', "# time.sleep(1)", "p.sleep"]


def python_count(text: str) -> int:
    """The number of calls in Python that only pass time; a text may be a script that sleeps by itself."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    renamed = {each.asname or each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names if each.name == "sleep"}
    calls = [(ast.unparse(node.func), node) for node in nodes if isinstance(node, ast.Call)]

    def is_sleep(name: str, call: ast.Call) -> bool:
        empty = all(isinstance(each, ast.List) and not each.elts for each in call.args[:3])
        return name.endswith(".sleep") or name in renamed or name.endswith("Event().wait") or name.endswith("select.select") and empty

    return sum(is_sleep(name, call) for name, call in calls)


def python_faults() -> tuple[int, list[str]]:
    """The number of checks, and the faults of the files in Python."""
    lines = PYTHON_SLEEPS + PYTHON_OTHERS
    wrong = [f"{line!r} counts wrongly" for line in lines if python_count(line) != int(line in PYTHON_SLEEPS)]
    paths = sorted(path for folder in PYTHON for path in (ROOT / folder).rglob("*.py"))
    names = {str(path.relative_to(ROOT)): path for path in paths}
    if WAITS not in names:
        wrong.append(f"{WAITS} does not exist")
    wrong += [
        f"{name} has {found} real sleeps: use `eventually` or `pause` of Rig.waits"
        for name, path in names.items() if name != WAITS and (found := python_count(path.read_text()))
    ]
    return len(lines) + len(names), wrong


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
    checks, others = python_faults()
    wrong += others
    for fault in wrong:
        print(f"FAILED  {fault}")
    print(f"{len(paths) + len(SLEEPS) + len(OTHERS) + checks - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
