"""The results of a script, as JSON lines: name, goal, measured, pass."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable


def line(name: str, goal: str, measured: object, passed: object) -> dict:
    return {"name": name, "goal": goal, "measured": measured, "pass": bool(passed)}


def tell(results: Iterable[dict], *, sums: bool = True) -> int:
    """Prints each as it comes, and the sum last; the exit status."""
    passed = failed = 0
    for each in results:
        print(json.dumps(each, ensure_ascii=False), flush=True)
        passed, failed = passed + each["pass"], failed + (not each["pass"])
    if sums:
        print(f"{passed} passed, {failed} failed", file=sys.stderr)
    return 1 if failed or not passed else 0
