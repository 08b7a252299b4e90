"""The registry of a script's trials: each has a name, is called with the options, and returns its lines of results."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from Rig.results import line

Run = Callable[[argparse.Namespace], list[dict]]


class Trials:
    """Trials in the order in which they were added."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def add(self, name: str) -> Callable[[Run], Run]:
        """Registers the function below it."""

        def register(run: Run) -> Run:
            assert name not in self._runs, f"two trials are named {name!r}"
            self._runs[name] = run
            return run

        return register

    @property
    def names(self) -> list[str]:
        return list(self._runs)

    def lines(self, name: str, options: argparse.Namespace) -> list[dict]:
        """Runs a trial. If it raises, that is its only result, and it failed."""
        try:
            return self._runs[name](options)
        except Exception as problem:
            return [line(name, "runs", f"{type(problem).__name__}: {problem}", False)]
