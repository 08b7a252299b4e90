"""The outcomes that clients report, held against the faults: each failure is explained by one of them, or is a violation."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from .plan import Fault


class Judge:
    def __init__(self, faults: list[Fault], found: Callable[[dict], None]):
        self.faults, self.found, self.lock = faults, found, threading.Lock()
        self.seconds: list[tuple[float, dict[str, list[float]]]] = []
        self.counts: Counter[str] = Counter()
        self.succeeded: Counter[str] = Counter()
        self.explained: Counter[tuple[str, str, str]] = Counter()
        self.violations: list[dict] = []

    def told(self, line: dict) -> None:
        """A line of a process of clients."""
        if "failed" in line:
            return self.failure(line)
        with self.lock:
            self.seconds.append((line["second"], line["durations"]))
            self.counts.update(line["counts"])
            for kind, durations in line["durations"].items():
                self.succeeded[kind] += len(durations)

    def failure(self, line: dict) -> None:
        for fault in self.faults:
            if fault.covers(line["began"], line["ended"]) and fault.explains(line["failed"], line["what"]):
                with self.lock:
                    self.explained[(fault.name, line["failed"], line["what"].split(":")[0][:24])] += 1
                return
        self.violation(line)

    def violation(self, line: dict) -> None:
        with self.lock:
            self.violations.append(line)
        self.found(line)

    def complain(self, what: str) -> None:
        """A violation that is not one of a request."""
        now = time.time()
        self.failure({"failed": "run", "began": now, "ended": now, "what": what, "request": "", "response": ""})

    def disturbed(self, began: float, ended: float) -> bool:
        return any(fault.covers(began, ended) for fault in self.faults)

    def latencies(self, kinds: tuple[str, ...], since: float, until: float) -> list[float]:
        """The durations of what ended in the undisturbed seconds of that time."""
        found = []
        with self.lock:
            seconds = list(self.seconds)
        for at, durations in seconds:
            if since <= at < until and not self.disturbed(at - 1.5, at):
                for kind in kinds:
                    found += durations.get(kind, [])
        return sorted(found)

    def series(self, began: float) -> tuple[dict[str, list[tuple[float, float]]], dict[str, list[tuple[float, float]]]]:
        """Requests a second by kind, and latencies, by the second of the run."""
        with self.lock:
            seconds = list(self.seconds)
        counts: dict[str, Counter[int]] = {}
        ordinary: dict[int, list[float]] = {}
        direct: dict[int, list[float]] = {}
        for at, durations in seconds:
            second = int(at - began)
            for kind, values in durations.items():
                counts.setdefault(kind, Counter())[second] += len(values)
                if kind in ORDINARY:
                    ordinary.setdefault(second, []).extend(values)
                elif kind == "direct":
                    direct.setdefault(second, []).extend(values)
        last = max((int(at - began) for at, _ in seconds), default=0)
        rates = {kind: [(at, found[at]) for at in range(last)] for kind, found in sorted(counts.items())}
        lines = {"p50": [(at, share(sorted(values), 0.5)) for at, values in sorted(ordinary.items())],
                 "p99": [(at, share(sorted(values), 0.99)) for at, values in sorted(ordinary.items())],
                 "p99 without the gateway": [(at, share(sorted(values), 0.99)) for at, values in sorted(direct.items())]}
        return rates, lines


# The kinds whose latencies are compared: their answers take no time at the origin server.
ORDINARY = ("get", "tls", "h2", "own", "cache", "mine", "h2 origin", "named")


def share(values: list[float], part: float) -> float:
    """The value below which that part of the sorted values is."""
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0
