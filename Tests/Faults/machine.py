"""The machine fails: no descriptor, no port, no disk, no time, a clock that jumps, packets that are lost."""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from Rig.results import line
from Rig.stand import Traffic
from Rig.waits import Why, eventually, pause
from Rig.wire import Malformed, WireClosed, WireTimeout

from .stand import Beside, FaultStand, needs, succeeds


def descriptors(options) -> list[dict]:
    """1,000 clients where there are 256 descriptors: no busy loop, and all is well when they leave."""
    with FaultStand(options, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))) as stand:
        clients = [stand.connecting() for _ in range(1000)]
        pause(1, Why.BEFORE)
        before = processor(stand)
        pause(3, Why.MEASURED)
        share = (processor(stand) - before) / 3
        for sock in clients:
            sock.close()
        took = stand.recovery()
        return [line("256 descriptors and 1,000 clients", "under 10 % of a CPU while it lasts; recovery within 1 s", {"CPU %": round(share * 100, 1), "recovery s": took},
                     share < 0.1 and took <= 1)]


def processor(stand: FaultStand) -> float:
    """CPU seconds of the processes that serve."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in stand.workers())


def ports(options) -> list[dict]:
    """Fifty ports for connections upstream, and 200 requests at once that need one each: those without are told so, and others do not notice."""
    needs("ip")
    succeeds("ip", "link", "set", "lo", "up")
    with FaultStand(options, origins=1, delay=1) as stand:
        beside = Beside(stand, "/said")
        calm = beside.during(options.seconds / 2)
        held, statuses, slowest = [], {}, [0.0]
        place = Path("/proc/sys/net/ipv4/ip_local_port_range")
        usual = place.read_text()

        def harm() -> None:
            for _ in range(200):  # their own ports are taken before
                held.append(stand.client(15))
            place.write_text("40000 40049")
            began = time.monotonic()
            for client in held:
                client.send(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
            for client in held:
                try:
                    status = client.read_response("GET").status
                except (WireClosed, WireTimeout, Malformed):
                    status = 0
                statuses[status] = statuses.get(status, 0) + 1
            slowest[0] = time.monotonic() - began
            place.write_text(usual)
            for client in held:
                client.close()

        under = beside.during(0, harm)
        took = round(stand.recovery() - stand.delay, 3)
        told = statuses.get(502, 0) + statuses.get(503, 0)
        return [line("50 ports upstream and 200 requests at once", "requests without a port are answered 502 or 503, the others are served; recovery within 1 s",
                     {"statuses": statuses, "s": round(slowest[0], 2), "recovery s": took}, statuses.get(200, 0) >= 40 and told + statuses.get(200, 0) == 200 and took <= 1),
                beside.verdict("50 ports upstream and 200 requests at once", (calm, under))]


def disk_full(options) -> list[dict]:
    """The disk of the log fills up: no request notices, and lines are written again when there is room."""
    place = Path(subprocess.run(["mktemp", "-d", "-t", "httpware-full.XXXXXX"], capture_output=True, text=True, check=True).stdout.strip())
    succeeds("mount", "-t", "tmpfs", "-o", "size=8m,mode=0777", "tmpfs", str(place))
    try:
        log = place / "access.log"
        filler = place / "filler"
        with FaultStand(options, logs=str(log)) as stand:
            beside = Beside(stand)
            calm = beside.during(options.seconds / 2)

            def harm() -> None:
                with open(filler, "wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(b"x" * 4096)
                    except OSError:
                        pass

            under = beside.during(options.seconds, harm)
            full = log.stat().st_size
            filler.unlink()
            began = time.monotonic()
            eventually(lambda: stand.status("/other") and log.stat().st_size > full, 10, every=0.05)
            took = round(time.monotonic() - began, 2)
            return [line("the disk of the log is full", "lines are written again within 2 s after the disk has room", {"s": took, "bytes when full": full}, took < 2),
                    beside.verdict("the disk of the log is full", (calm, under))]
    finally:
        succeeds("umount", str(place))
        place.rmdir()


def stopped(options) -> list[dict]:
    """The gateway gets no time for 5 s: who waits is served afterwards."""
    with FaultStand(options) as stand:
        traffic = Traffic(stand, readers=16, writers=4, think=0.01)
        pause(2, Why.MEASURED)
        pids = stand.workers()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        pause(5, Why.PASSES)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        took = stand.recovery()
        pause(2, Why.MEASURED)
        traffic.end()
        return [line("stopped for 5 s", "no request fails; recovery within 1 s",
                     {"requests": traffic.succeeded, "failed": len(traffic.failures), "example": traffic.failures[:2], "recovery s": took, "slowest s": round(traffic.slowest, 2)},
                     not traffic.failures and took <= 1 and traffic.succeeded > 100)]


def clock(options) -> list[dict]:
    """The clock jumps an hour forward, two back, and to the next year: deadlines do not follow it. It is moved for the gateway only."""
    needs("gcc")
    with tempfile.TemporaryDirectory(prefix="httpware-clock.") as folder:
        library, file = Path(folder) / "clock.so", Path(folder) / "offset"
        Path(folder).chmod(0o755)
        succeeds("gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(Path(__file__).parent / "clock.c"))
        file.write_bytes(bytes(8))

        def move(seconds: int) -> None:
            with open(file, "r+b") as there:
                there.write(struct.pack("=q", seconds))

        with FaultStand(options, environment={"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(file)}) as stand:
            beside = Beside(stand)
            calm = beside.during(options.seconds / 2)
            traffic = Traffic(stand, readers=8, writers=2, think=0.005)
            idle = stand.client(10)
            idle.send(b"GET /said HTTP/1.1\r\nHost: a.test\r\n\r\n")
            dates = [idle.read_response("GET").get("Date")]

            def harm() -> None:
                for offset in (3600, -3600, 31_536_000, 0):
                    move(offset)
                    pause(max(1.0, options.seconds / 4), Why.MEASURED)
                    idle.send(b"GET /said HTTP/1.1\r\nHost: a.test\r\n\r\n")
                    dates.append(idle.read_response("GET").get("Date"))

            under = beside.during(0, harm)
            traffic.end()
            jumped = len({str(date)[:22] for date in dates}) >= 4  # to the hour: it was really moved
            return [line("a clock that jumps", "no request fails, an idle connection stays, Date follows",
                         {"requests": traffic.succeeded, "failed": len(traffic.failures), "example": traffic.failures[:2], "dates": dates},
                         not traffic.failures and traffic.succeeded > 100 and jumped),
                    beside.verdict("a clock that jumps", (calm, under))]


def loss(options) -> list[dict]:
    """One packet of twenty is lost, in a network of its own: requests take longer, none fails."""
    needs("ip", "nft")
    succeeds("ip", "link", "set", "lo", "up")
    with FaultStand(options) as stand:
        succeeds("nft", "add table inet faults; add chain inet faults arrivals { type filter hook input priority 0; }; add rule inet faults arrivals numgen random mod 100 < 5 counter drop")
        traffic = Traffic(stand, readers=16, writers=4, reconnect=20)
        pause(max(10.0, options.seconds), Why.MEASURED)
        traffic.end()
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
        dropped = int(rules.split("counter packets ")[1].split()[0])
        durations = sorted(traffic.durations)
        return [line("5 % of packets lost", "no request fails",
                     {"requests": traffic.succeeded, "failed": len(traffic.failures), "example": traffic.failures[:2], "packets lost": dropped,
                      "p50 ms": round(durations[len(durations) // 2] * 1000, 1), "p99 ms": round(durations[int(len(durations) * 0.99)] * 1000), "slowest ms": round(traffic.slowest * 1000)},
                     not traffic.failures and dropped > 100 and traffic.succeeded > 100)]
