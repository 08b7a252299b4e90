"""The only real sleeps of the suites outside Swift: `eventually`, and pauses with a reason. Tests/Rooms/sleeps.py finds others."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

Value = TypeVar("Value")


class Why(Enum):
    """The reasons for a pause. For a condition there is `eventually`."""

    SLOW = "a peer is slow: the pause is a part of what it sends, reads or answers"
    MEASURED = "a measurement, or the load of one, lasts that long"
    PASSES = "a lifetime, an interval or a timeout of the test passes"
    NOTHING = "nothing may happen meanwhile"
    BEFORE = "something comes first that nothing tells"


def pause(seconds: float, why: Why) -> None:
    """Waits that long, for the reason."""
    assert isinstance(why, Why)
    time.sleep(max(0.0, seconds))


async def pausing(seconds: float, why: Why) -> None:
    """Waits as `pause` does, in a task."""
    assert isinstance(why, Why)
    await asyncio.sleep(max(0.0, seconds))


def eventually(condition: Callable[[], Value], within: float = 30.0, every: float = 0.01) -> Value:
    """Asks until the condition is true, for `within` seconds at most. Returns its last value."""
    deadline = time.monotonic() + within
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(every)
    return value


def accepts(port: int, address: str = "127.0.0.1") -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True
