"""How trials are told apart, and how one says what became of it."""

from __future__ import annotations

from collections.abc import Callable


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


TRIALS: list[tuple[str, bool, Callable]] = []


def client(name: str, *, smoke: bool = False):
    """Registers a trial; `smoke` ones need nothing that .ci/setup does not install."""

    def register(run: Callable) -> Callable:
        TRIALS.append((name, smoke, run))
        return run

    return register


def expect(condition: object, *what: object) -> None:
    if not condition:
        raise Failed(" ".join(str(part) for part in what)[:800])
