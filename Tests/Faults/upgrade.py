"""Another process in the place of the one that runs, ten times under load."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from Rig.results import line
from Rig.stand import Traffic
from Rig.waits import Why, eventually, pause

from .stand import FaultStand


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def awaited(condition, seconds: float, what: str) -> None:
    if not eventually(condition, seconds, every=0.005):
        raise TimeoutError(what)


class Line:
    """The processes that follow each other."""

    def __init__(self, stand: FaultStand):
        self.stand, self.pid = stand, stand.gateway.pid
        if stand.options.peer == "nginx":
            self.pid = int((stand.gateway.folder / "nginx.pid").read_text())

    def next_httpware(self, turn: int) -> int:
        log = self.stand.gateway.folder / "output.log"
        os.kill(self.pid, signal.SIGUSR2)
        awaited(lambda: log.read_text().count("takes over; draining") == turn, 30, "nothing takes over: " + log.read_text()[-500:])
        return int(log.read_text().rsplit(" takes over; draining", 1)[0].rsplit(" ", 1)[1])

    def next_nginx(self, _: int) -> int:
        """As its manual says: USR2, and QUIT for the former one when the new one is there."""
        file, former = self.stand.gateway.folder / "nginx.pid", self.pid
        os.kill(former, signal.SIGUSR2)
        awaited(lambda: file.exists() and file.read_text().strip() not in ("", str(former)), 30, "nobody goes on")
        pid = int(file.read_text())
        awaited(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), 30, "no workers")
        os.kill(former, signal.SIGQUIT)
        return pid


def orphan(command: list[str]) -> list[str]:
    """nginx lets itself be followed only when the process that started it has ended."""
    return ["/bin/sh", "-c", '("$@" & sleep 1); exec sleep 600', "sh", *command]


def upgrade(options) -> list[dict]:
    with FaultStand(options, delay=0.02, wrap=orphan) as stand:
        if options.peer == "nginx":
            pause(1.2, Why.BEFORE)
        line_ = Line(stand)
        kept = Traffic(stand, readers=12, writers=4, think=0.005)
        fresh = Traffic(stand, readers=8, reconnect=1)
        took, former = [], []
        try:
            pause(1, Why.MEASURED)
            for turn in range(1, 11):
                began = time.monotonic()
                pid = line_.next_nginx(turn) if options.peer == "nginx" else line_.next_httpware(turn)
                took.append(time.monotonic() - began)
                former.append(line_.pid)
                line_.pid = pid
                pause(max(0.5, options.seconds / 10), Why.MEASURED)
        finally:
            for traffic in (kept, fresh):
                traffic.end()
        try:
            awaited(lambda: all(map(ended, former)), 15, "")
        except TimeoutError:
            pass
        left = [pid for pid in former if not ended(pid)]
        for pid in [line_.pid, *left]:
            if pid != stand.gateway.pid and not ended(pid):
                os.kill(pid, signal.SIGTERM)
        failures = kept.failures + fresh.failures
        return [line("ten upgrades under load", "0 requests fail, and each former process ends",
                     {"requests": kept.succeeded + fresh.succeeded, "new connections": fresh.succeeded, "failed": len(failures), "example": failures[:2], "upgrades": len(took),
                      "slowest start s": round(max(took), 2), "left": len(left), "slowest request ms": round(max(kept.slowest, fresh.slowest) * 1000)},
                     not failures and len(took) == 10 and not left and kept.succeeded > 500 and fresh.succeeded > 500)]
