"""The faults of a run, which follow from its seed, and the failures that each of them explains."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# Faults around the gateway, and faults of the gateway and its machine. Of each of the two at most one is in force at a time, so that of two
# servers that do the same one is always well.
AROUND = ["origin killed", "origin hangs", "proxy killed", "proxy reloads", "address changes", "names fail", "names silent", "redis fails over",
          "redis restarts", "redis hangs", "tokens fail", "tokens down"]
WITHIN = ["stopped", "disk full", "clients leave", "idle clients"]

# Not planned: other programs take the machine.
STARVED = "the machine has no time"

# The kinds of exchanges that a fault may harm, and how, as the first words of a failure. A fault that is not listed explains no failure.
# `cut off` is a response that had begun; `late` is an answer that a client would not have to wait for.
API = ("get", "tls", "h2", "slow", "big", "events", "socket", "own", "rotating", "cache", "mine", "post", "put", "limit")
EXPLAINS: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {
    # A request that may have been acted on is not sent again (RFC 9110 §9.2.2).
    "origin killed": [(API, ("cut off",)), (("post",), ("status 502", "status 504", "closed")), (("socket",), ("closed", "status 502"))],
    "origin hangs": [(("post",), ("status 504", "status 502"))],
    "proxy killed": [(("h2 origin",), ("cut off",))],
    "address changes": [(("named",), ("cut off",))],
    # Present tokens are used while they are valid. Behind that a refresh token cannot be redeemed by one gateway alone.
    "redis fails over": [(("rotating",), ("status 503",)), (("limit",), ("passed",))],
    "redis restarts": [(("rotating",), ("status 503",)), (("limit",), ("passed",))],
    "redis hangs": [(("rotating",), ("status 503",)), (("limit",), ("passed",))],
    "tokens fail": [(("own", "rotating"), ("status 503",))],
    "tokens down": [(("own", "rotating"), ("status 503",))],
    # Requests that waited arrive at once.
    "stopped": [(("limit",), ("passed",)), (("page",), ("late",))],
    "upgrade": [(("limit",), ("passed",)), (("page",), ("closed", "cut off"))],
    # The gateway or a server around it had to wait for a processor: timeouts of the suite and of the configuration pass.
    STARVED: [((*API, "page", "h2 origin", "named", "leaver"), ("late", "status 502", "status 504", "cut off: WireTimeout", "passed")),
              (("own", "rotating"), ("status 503", "status 401")), (("run",), ("the fault", "the configuration"))],
}
# How long behind its end a fault still explains failures, in seconds: ejections, a pause of at most 10 s behind a failed refresh.
AFTER = {STARVED: 12.0, "tokens fail": 12.0, "tokens down": 12.0, "redis fails over": 13.0, "redis restarts": 13.0, "redis hangs": 13.0, "stopped": 2.0, "upgrade": 2.0}


@dataclass
class Fault:
    name: str
    at: float
    seconds: float
    choice: int
    lane: str
    began: float = 0.0
    ended: float = 0.0

    def covers(self, began: float, ended: float) -> bool:
        """Whether it was in force, or still to be felt, in some moment between the two."""
        return bool(self.began) and self.began <= ended and (not self.ended or began <= self.ended + AFTER.get(self.name, 1.5))

    def explains(self, kind: str, failure: str) -> bool:
        return any(kind in kinds and failure.startswith(starts) for kinds, starts in EXPLAINS.get(self.name, []))


@dataclass
class Plan:
    """All faults of a run of `seconds`, of which the first `quiet` have none."""

    seed: int
    seconds: float
    quiet: float = field(init=False)
    upgrade_every: float = field(init=False)
    reload_every: float = field(init=False)

    def __post_init__(self) -> None:
        self.quiet = min(120.0, self.seconds / 6)
        self.upgrade_every = min(600.0, self.seconds / 3)
        self.reload_every = 5.0 if self.seconds >= 600 else 2.5

    def faults(self) -> list[Fault]:
        made: list[Fault] = []
        pace = 1.0 if self.seconds >= 1200 else 0.5
        for lane, names in (("around", AROUND), ("within", WITHIN)):
            choice, at, bag = random.Random(f"{self.seed} {lane}"), self.quiet, []
            while True:
                at += choice.uniform(6, 18) * pace
                if at > self.seconds - 15:
                    break
                # All kinds come before one comes again.
                bag = bag or choice.sample(names, len(names))
                fault = Fault(bag.pop(), at, choice.uniform(0.5, 4.0), choice.randrange(1000), lane)
                made.append(fault)
                at += fault.seconds + 2
        turn = 1
        while (at := turn * self.upgrade_every) < self.seconds - 1:
            made.append(Fault("upgrade", at, 0, turn, "upgrade"))
            turn += 1
        return sorted(made, key=lambda fault: fault.at)
