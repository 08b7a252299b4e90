"""Hours in small: traffic of all kinds, and reloads, while memory and descriptors are looked at."""

from __future__ import annotations

import signal
import time

from Rig.results import line
from Rig.stand import Traffic
from Rig.waits import Why, pause

from .stand import FaultStand


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line through them that is nearest by least squares."""
    middle = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    spread = sum((x - middle[0]) ** 2 for x, _ in points)
    return sum((x - middle[0]) * (y - middle[1]) for x, y in points) / spread if spread else 0.0


def soak(options) -> list[dict]:
    """The first third, ten minutes at most, is for the process to grow to its size."""
    with FaultStand(options) as stand:
        kept = Traffic(stand, readers=6, writers=2, think=0.02)
        fresh = Traffic(stand, readers=2, think=0.02, reconnect=1)
        began, reloads, points, descriptors = time.monotonic(), 0, [], []
        warm = min(options.soak / 3, 600)
        file = stand.gateway.folder / "httpware.yaml"
        try:
            while (passed := time.monotonic() - began) < options.soak:
                if options.peer != "nginx":  # something changes each time
                    text = file.read_text()
                    file.write_text(text.replace('body: "said"', 'body: "told"') if reloads % 2 else text.replace('body: "told"', 'body: "said"'))
                stand.gateway.signal(signal.SIGHUP)
                reloads += 1
                pause(min(5, options.soak / 60), Why.MEASURED)
                if passed > warm:
                    points.append((passed / 3600, stand.resident() / 1024))
                    descriptors.append(stand.descriptors())
        finally:
            for traffic in (kept, fresh):
                traffic.end()
        failures = kept.failures + fresh.failures
        third = max(1, len(descriptors) // 3)
        first, last = sum(descriptors[:third]) / third, sum(descriptors[-third:]) / third
        each = slope(points)
        return [line(f"a soak of {round(options.soak)} s with reloads", "memory grows by less than 1 MiB/h, descriptors stay, 0 requests fail",
                     {"MiB/h": round(each, 2), "MiB": round(points[-1][1], 1), "descriptors, first third": round(first), "last third": round(last), "reloads": reloads,
                      "requests": kept.succeeded + fresh.succeeded, "failed": len(failures), "example": failures[:2]},
                     each < 1 and abs(last - first) <= 5 and not failures)]
