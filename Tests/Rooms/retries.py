#!/usr/bin/env python3
"""Tests of `.ci/swift-test` with a `swift` that fails as it is told: a test that fails once has failed, unless Tests/quarantine.txt lists it.

    Tests/Rooms/retries.py

Python 3.11, standard library only. Last: `N passed, N failed`.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TODAY = datetime.date.today()
# Takes the place of `swift`: each `swift test` follows the next entry of the plan, a list of failing tests, "crash" or "endless".
SWIFT = """#!/usr/bin/env python3
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "build":
    sys.exit(0)
with open(folder + "/runs", "a+") as runs:
    runs.seek(0)
    number = len(runs.readlines())
    runs.write(" ".join(sys.argv[2:]) + "\\n")
step = json.load(open(folder + "/plan"))[number]
print("◇ Test run started.")
print('◇ Test "one" started.', flush=True)
if step == "endless":
    time.sleep(60)
if step == "crash":
    sys.exit(1)
report = sys.argv[sys.argv.index("--xunit-output") + 1].replace(".xml", "-swift-testing.xml")
with open(report, "w") as out:
    out.write("<testsuites><testsuite>")
    for name in ["one", "two", "three"]:
        failure = "<failure/>" if name in step else ""
        out.write(f'<testcase classname="M.S" name="`{name} of it`(a:b:)">{failure}</testcase>')
    out.write("</testsuite></testsuites>")
sys.exit(1 if step else 0)
"""


@dataclass
class Case:
    """The runs of `swift test`, the lines of the list, the expected last line, and texts that the output must contain."""

    name: str
    plan: list[list[str] | str]
    last: str
    shows: list[str] = field(default_factory=list)
    listed: str = ""
    runs: int | None = None


def line(name: str, days: int = 0, reason: str = "the clock of the peer") -> str:
    return f"{TODAY - datetime.timedelta(days)}\t{name}\t{reason}\n"


ONE = "M.S/one of it"
CASES = [
    Case("all tests pass", [[]], "3 passed, 0 failed", runs=1),
    Case("a test that fails twice has failed", [["one"], ["one"]], "2 passed, 1 failed", [f"FAILED  {ONE}\n"], runs=2),
    Case("a test that fails and then passes has failed", [["one"], []], "2 passed, 1 failed", [f"FAILED  {ONE}: it failed, and passed alone"]),
    Case(
        "a listed test that fails and then passes has passed, and is told",
        [["one"], []], "3 passed, 0 failed", [f"UNSTABLE  {ONE}: the clock of the peer, since {TODAY}"], line(ONE),
    ),
    Case("a listed test that fails twice has failed", [["one"], ["one"]], "2 passed, 1 failed", [f"FAILED  {ONE}\n"], line(ONE)),
    Case("a listed test excuses no other one", [["one", "two"], []], "2 passed, 1 failed", ["FAILED  M.S/two of it: it failed"], line(ONE)),
    Case("only suites with failures run again", [["one"], []], "2 passed, 1 failed", [], runs=2),
    Case("a second run that ends early excuses nothing", [["one"], "crash"], "2 passed, 1 failed", [f"FAILED  {ONE}\n"], line(ONE)),
    Case("a run that names no test has failed", ["crash"], "0 passed, 1 failed", ["ended with 1 and named no test"]),
    Case("a run that does not end has failed, whatever comes of the second", ["endless", []], "0 passed, 1 failed", ["NO END  one", "did not end within 1 s"]),
    Case("an entry may be 90 days old", [[]], "3 passed, 0 failed", listed=line(ONE, 90)),
    Case("an entry of 91 days fails the run at once", [[]], "0 passed, 1 failed", [f"{ONE} is listed since", "for more than 90 days"], line(ONE, 91), runs=0),
    Case("an entry of tomorrow fails the run", [[]], "0 passed, 1 failed", ["is in the future"], line(ONE, -1), runs=0),
    Case("an entry without a reason fails the run", [[]], "0 passed, 1 failed", ["Tests/list.txt:1: a line is a date"], f"{TODAY}\t{ONE}\n", runs=0),
    Case("an entry with an empty reason fails the run", [[]], "0 passed, 1 failed", ["a line is a date"], line(ONE, 0, " "), runs=0),
    Case("an entry without tabs fails the run", [[]], "0 passed, 1 failed", ["with tabs between them"], f"{TODAY} {ONE} late\n", runs=0),
    Case("an entry without a date fails the run", [[]], "0 passed, 1 failed", ["'soon' is not a date"], f"soon\t{ONE}\tlate\n", runs=0),
    Case("an entry that is repeated fails the run", [[]], "0 passed, 1 failed", [f"{ONE} is listed twice"], line(ONE) * 2, runs=0),
    Case("an entry that names no test fails the run", [[]], "2 passed, 1 failed", ["Tests/list.txt:2: M.S/four is the name of no test"], "# a\n" + line("M.S/four")),
    Case("six entries are too many", [[]], "0 passed, 1 failed", ["6 tests are listed, at most 5"], "".join(line(f"M.S/{n}") for n in range(6)), runs=0),
]


def fault(case: Case) -> str | None:
    """The difference of a case from its expectation."""
    with tempfile.TemporaryDirectory(prefix="httpware-retries-") as name:
        folder = Path(name)
        (folder / "swift").write_text(SWIFT)
        (folder / "swift").chmod(0o755)
        (folder / "plan").write_text(json.dumps(case.plan))
        (folder / "runs").touch()
        (folder / "list.txt").write_text(case.listed)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        command = [sys.executable, ROOT / ".ci/swift-test", "--quarantine", folder / "list.txt", "--longest", "1" if "endless" in case.plan else "60"]
        result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        runs = (folder / "runs").read_text().splitlines()
    if result.stdout.splitlines()[-1:] != [case.last] or (result.returncode == 0) != case.last.endswith(" 0 failed"):
        return f"it ends with {result.returncode} and {result.stdout[-300:]!r} {result.stderr[-300:]!r}"
    for text in case.shows:
        if text not in result.stdout:
            return f"it does not show {text!r} but {result.stdout[-300:]!r}"
    if case.runs is not None and len(runs) != case.runs:
        return f"it ran {len(runs)} times instead of {case.runs}"
    if len(runs) == 2 and "endless" not in case.plan and r"--filter ^(M\.S)(/|$)" not in runs[1]:
        return f"it ran {runs[1]!r} again"
    return None


def main() -> int:
    failed = 0
    for case in CASES:
        if text := fault(case):
            failed += 1
            print(f"FAILED  {case.name}: {text}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
