#!/usr/bin/env python3
"""A soak: the gateway with everything on, under all faults at once, while every response is checked. Python 3.11, standard library only.

    Tests/Soak/run.py --binary .build/release/httpware --minutes 90 [--seed N] [--page FILE] [--plan]

Faults follow from the seed, which is printed. A violation is printed with the events of the seconds before, the request, the response and the
gateway's record. Last come JSON lines of results (name, goal, measured, pass); the page has plots of it all, and is written again all the while.
Needs root for a small disk and for names, nginx, redis-server, openssl. Everything is on the loopback.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Rig.results import line, tell  # noqa: E402
from Rig.waits import Why, eventually, pause  # noqa: E402

from Soak.clients import GROUPS  # noqa: E402
from Soak.faults import Lane, Reloads  # noqa: E402
from Soak.judge import ORDINARY, Judge, share  # noqa: E402
from Soak.page import Mark, page, plot  # noqa: E402
from Soak.plan import STARVED, Fault, Plan  # noqa: E402
from Soak.stand import TOKEN, SoakStand, descriptors, memory, waited  # noqa: E402

# Of violations of one shape only the first are printed in full.
SHOWN = 4


class Soak:
    def __init__(self, options: argparse.Namespace):
        self.options, self.plan = options, Plan(options.seed, options.minutes * 60)
        self.faults = self.plan.faults()
        self.judge = Judge(self.faults, self.show)
        self.over, self.told, self.lock = threading.Event(), [], threading.Lock()
        # Second, process, RSS and PSS in MiB, descriptors, processes, load of the machine.
        self.samples: list[tuple[float, int, float, float, int, int, float]] = []
        self.starved: list[tuple[float, float]] = []
        self.results: list[dict] = []
        self.started = ""

    # Violations

    def show(self, found: dict) -> None:
        """Prints a violation, and keeps it for the page."""
        shape = (found["failed"], re.sub(r"[0-9]+", "N", found["what"])[:40])
        with self.lock:
            seen = sum(each == shape for each, _ in self.told)
            if seen >= SHOWN:
                self.told.append((shape, ""))
                return
            at = found["began"] - self.began
            text = f"VIOLATION at {at:.2f} s, for {found['ended'] - found['began']:.2f} s: {found['failed']}: {found['what']}\n"
            before = [fault for fault in self.faults if fault.covers(found["began"] - 15, found["ended"])]
            events = [(fault.began, f"{fault.name} {fault.choice % 2 + 1}, {'until ' + format(fault.ended - self.began, '.2f') if fault.ended else 'in force'}") for fault in before]
            events += [(each, "reload") for each in self.reloads.times if found["began"] - 5 <= each <= found["ended"]]
            text += "".join(f"  {when - self.began:9.2f} s  {what}\n" for when, what in sorted(events)) or "  no event in the 15 s before\n"
            text += f"  request:  {found['request'].strip()!r}\n  response: {found['response']}\n" if found["request"] else ""
            text += self.record(found)
            self.told.append((shape, text))
        print(text, flush=True)

    def record(self, found: dict) -> str:
        """The gateway's own record of the exchange, and the end of its log."""
        match = re.search(r"i[0-9a-f]+x[0-9a-f]+x", found["request"])
        text = ""
        if match:
            try:
                rows = [row for row in json.loads(self.stand.ask("/v1/requests?limit=2000", timeout=5)[1]) if match[0] in row.get("target", "")]
                if not rows:  # of a former process: its captures are on the disk
                    rows = json.loads(self.stand.ask(f"/v1/captures?limit=1&filter=~u%20{match[0]}", timeout=5)[1])["captures"]
                text = f"  record:   {json.dumps(rows[0] | {'wares': [each.get('ware', '') + ': ' + each.get('text', '') for each in rows[0].get('wares', [])]})[:2500]}\n" if rows else "  record:   none\n"
            except (OSError, ValueError, KeyError, http.client.HTTPException) as problem:
                text = f"  record:   could not be asked for: {problem}\n"
        log = self.stand.gateway.log.splitlines()[-6:]
        return text + "".join(f"  log:      {each[:300]}\n" for each in log)

    # The run

    def listen(self, process: subprocess.Popen) -> None:
        for text in process.stdout:
            try:
                told = json.loads(text)
            except ValueError:
                self.judge.complain(f"a process of clients says {text[:200]!r}")
                continue
            self.judge.told(told)
        if not self.over.is_set():
            self.judge.complain("a process of clients has ended")

    def starve(self) -> None:
        """Notes the times in which a server of the stand waited for a processor for a quarter of a second or more."""
        before, then, fault = {}, time.time(), None
        while not self.over.wait(0.5):
            now, seen = time.time(), {pid: waited(pid) for pid in self.stand.servers()}
            longest = max((seen[pid] - before.get(pid, seen[pid]) for pid in seen), default=0)
            # If this thread had to wait, clients had to wait, too.
            longest, before = max(longest, now - then - 0.6), seen
            self.starved.append((now - self.began, round(max(0.0, longest), 3)))
            if longest > 0.25:
                if not fault:
                    fault = Fault(STARVED, then - self.began, 0, 0, "machine", then)
                    self.faults.append(fault)
                fault.ended = now
            elif fault and now - fault.ended > 2:
                fault = None
            then = now

    def sample(self) -> None:
        written = 0.0
        while not self.over.wait(1):
            pids = self.stand.processes()
            rss, pss = memory(pids[0])
            self.samples.append((time.time() - self.began, pids[0], rss / 1024, pss / 1024, descriptors(pids[0]), len(pids), os.getloadavg()[0]))
            for pid, since in self.stand.former:
                if time.monotonic() - since > 90:
                    self.stand.former.remove((pid, since))
                    self.judge.complain(f"the former process {pid} has not ended 90 s behind the upgrade; {descriptors(pid)} descriptors")
            if time.time() - written > max(20, self.plan.seconds / 60):
                written = time.time()
                self.write()

    def run(self) -> list[dict]:
        self.started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        with SoakStand(self.options.binary, self.options.seed) as self.stand:
            place = json.dumps({"ports": self.stand.ports, "ca": str(self.stand.paths["ca"]), "token": TOKEN, "seed": self.options.seed})
            # Behind the growth of the first requests the run begins.
            self.began = time.time() + 3
            self.reloads = Reloads(self.stand, self.plan, self.faults, self.began, self.over, self.judge.complain)
            clients = [subprocess.Popen([sys.executable, str(Path(__file__).with_name("clients.py")), group, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for group in GROUPS]
            threads = [threading.Thread(target=self.listen, args=(process,), daemon=True) for process in clients]
            lanes = [Lane(self.stand, [fault for fault in self.faults if fault.lane == lane], self.began, self.over, self.judge.complain) for lane in ("around", "within", "upgrade")]
            try:
                for thread in (*threads, threading.Thread(target=self.sample, daemon=True), threading.Thread(target=self.starve, daemon=True), *lanes, self.reloads):
                    thread.start()
                self.watch()
            finally:
                self.over.set()
                for process in clients:
                    process.stdin.close()
                for process in clients:
                    try:
                        process.wait(40)
                    except subprocess.TimeoutExpired:
                        process.kill()
                for thread in threads:
                    thread.join(5)
            self.results = [*self.verdicts(), self.rest()]
            if self.options.log:
                Path(self.options.log).write_text(self.stand.gateway.log)
        self.write()
        return self.results

    def watch(self) -> None:
        end, next_told = self.began + self.plan.seconds, time.time() + 30
        while time.time() < end:
            pause(0.5, Why.MEASURED)
            if not self.stand.processes() or not Path(f"/proc/{self.stand.pid}").exists():
                self.judge.complain(f"the gateway has ended: {self.stand.gateway.log[-1500:]}")
                return
            if time.time() > next_told:
                next_told += 30
                _, pid, rss, pss, count, processes, load = self.samples[-1]
                done = sum(self.judge.succeeded.values())
                print(f"{time.time() - self.began:6.0f} s: {done} exchanges, {sum(self.judge.explained.values())} failures that faults explain, {len(self.judge.violations)} violations, "
                      f"process {pid} RSS {rss:.1f} PSS {pss:.1f} MiB, {count} descriptors, {processes} processes, load {load:.1f}", flush=True)

    # Verdicts

    def around(self, end: float, seconds: float) -> tuple[float, float, float, int]:
        """The middle of RSS, PSS and descriptors in that time before `end`, and the process."""
        chosen = [sample for sample in self.samples if end - seconds <= sample[0] < end]
        if not chosen:
            return 0.0, 0.0, 0.0, 0
        middle = len(chosen) // 2
        return tuple(sorted(sample[index] for sample in chosen)[middle] for index in (2, 3, 4)) + (chosen[-1][1],)

    def verdicts(self) -> list[dict]:
        plan, judge = self.plan, self.judge
        # Each process is as old before the first upgrade as the last one is at the end.
        window = min(60.0, plan.upgrade_every / 3)
        first, last = self.around(plan.upgrade_every - 0.5, window), self.around(plan.seconds, window)
        allowed = 1.05 if plan.upgrade_every >= 300 else 1.5
        growth = [round(after / before, 3) if before else 0 for before, after in zip(first[:3], last[:3], strict=True)]
        quiet = judge.latencies(ORDINARY, self.began + 2, self.began + plan.quiet)
        later = judge.latencies(ORDINARY, self.began + plan.quiet, self.began + plan.seconds)
        beside = [share(judge.latencies(("direct",), *times), 0.99) for times in ((self.began + 2, self.began + plan.quiet), (self.began + plan.quiet, self.began + plan.seconds))]
        slower = max(1.0, beside[1] / beside[0]) if beside[0] else 1.0
        twice = [identifier for identifier, count in Counter(self.stand.posts.read_text().split()).items() if count > 1] if self.stand.posts.exists() else []
        made = Counter(fault.name for fault in self.faults if fault.ended)
        tokens = self.stand.tokens
        without = sum(fault.ended - fault.began for fault in self.faults if fault.name == STARVED)
        shapes = Counter(f"{kind}: {what}" for (kind, what), _ in self.told)
        return [
            line("violations", "none: every response belongs to its request and identity, every failure has a fault that explains it",
                 {"violations": len(judge.violations), "shapes": dict(shapes.most_common(12)), "exchanges": sum(judge.succeeded.values())}, not judge.violations and sum(judge.succeeded.values()) > 1000),
            line("faults", "those of the plan", {"made": dict(made), "reloads": len(self.reloads.times), "explained": {" / ".join(key): count for key, count in judge.explained.most_common(30)}},
                 sum(made.values()) >= len(self.faults) - 2),
            line("machine", "has time for the suite in nine tenths of the run; else its results are worth little",
                 {"seconds without": round(without, 1), "longest wait s": max((each for _, each in self.starved), default=0)}, without < plan.seconds / 10),
            line("POST", "no request is sent twice", {"twice": twice[:5], "count": len(twice)}, not twice),
            line("refresh tokens", "at most one is redeemed twice for each fault of Redis, and none by two calls at once without one",
                 {"calls": tokens.calls, "redeemed twice": tokens.doubled, "overlaps": tokens.overlaps, "notes": [f"{at - self.began:.1f} s: {what}" for at, what in tokens.notes][:5]},
                 tokens.doubled <= sum(count for name, count in made.items() if name.startswith(("redis", "tokens", "stopped")))),
            line("memory and descriptors", f"RSS, PSS and descriptors at the end within {round(allowed * 100 - 100)} % of those before the first upgrade, in a process of the same age",
                 {"before": [round(value, 1) for value in first[:3]], "at the end": [round(value, 1) for value in last[:3]], "ratio": growth},
                 bool(first[3]) and all(after <= max(before * allowed, before + (8 if index == 2 else 0)) for index, (before, after) in enumerate(zip(first[:3], last[:3], strict=True)))),
            line("latency outside faults", "p99 at most twice that of the quiet time; more by as much as the machine itself is slower",
                 {"p50 ms": [share(quiet, 0.5), share(later, 0.5)], "p99 ms": [share(quiet, 0.99), share(later, 0.99)], "p99 ms without the gateway": beside, "exchanges": [len(quiet), len(later)],
                  "p99 ms by kind": {kind: [share(judge.latencies((kind,), *times), 0.99) for times in ((self.began + 2, self.began + plan.quiet), (self.began + plan.quiet, self.began + plan.seconds))]
                                     for kind in ORDINARY},
                  "load": round(sum(sample[6] for sample in self.samples) / max(1, len(self.samples)), 1)},
                 bool(quiet) and len(later) > 500 and share(later, 0.99) <= 2 * slower * share(quiet, 0.99)),
        ]

    def rest(self) -> dict:
        """Without clients nothing goes on: what is counted in the gateway comes back to nothing."""
        names = ("httpware_requests_in_flight", "httpware_connections", "httpware_upstream_requests_waiting", "httpware_credential_held_requests", "httpware_rate_waiting",
                 "httpware_upstream_connections")
        left: dict[str, float] = {}

        def is_at_rest() -> bool:
            left.clear()
            for text in self.stand.ask("/metrics")[1].decode().splitlines():
                name, _, value = text.rpartition(" ")
                if name.partition("{")[0] in names and 'state="idle"' not in name and float(value):
                    left[name] = float(value)
            return not left

        pause(0.5, Why.BEFORE)
        eventually(is_at_rest, 20, every=0.5)
        return line("at rest", "no request, connection of a client or held request is left within 20 s behind the last client", {"left": left}, not left)

    def write(self) -> None:
        """Writes the page, in one step."""
        now = time.time()
        marks = [Mark(fault.began - self.began, (fault.ended or now) - self.began, fault.lane, f"{fault.name} {fault.choice % 2 + 1}") for fault in self.faults if fault.began]
        red = [Mark(found["began"] - self.began, found["ended"] - self.began, "violation", f"{found['failed']}: {found['what'][:200]}") for found in list(self.judge.violations)[:500]]
        rates, latencies = self.judge.series(self.began)
        samples, seconds = list(self.samples), min(now - self.began, self.plan.seconds)
        columns = {name: [(each[0], each[index]) for each in samples] for name, index in (("RSS", 2), ("PSS", 3), ("descriptors", 4), ("processes", 5), ("load", 6))}
        columns["longest wait for a processor, in tenths of a second"] = [(at, wait * 10) for at, wait in list(self.starved)]
        plots = [plot("Exchanges that succeeded", "/s", rates, seconds, marks + red), plot("Latency", "ms", latencies, seconds, marks + red),
                 plot("Memory of the process that serves", "MiB", {"RSS": columns["RSS"], "PSS": columns["PSS"]}, seconds, marks + red),
                 plot("Descriptors", "", {"descriptors": columns["descriptors"]}, seconds, marks + red),
                 plot("Processes of the gateway, and load of the machine", "", {name: columns[name] for name in list(columns)[3:]}, seconds, marks + red)]
        facts = [("began", self.started), ("seed", str(self.plan.seed)), ("lasted", f"{seconds / 60:.1f} of {self.plan.seconds / 60:g} minutes; the first {self.plan.quiet:.0f} s are quiet"),
                 ("exchanges", str(sum(self.judge.succeeded.values()))), ("by kind", ", ".join(f"{kind} {count}" for kind, count in sorted(self.judge.succeeded.items()))),
                 ("also", ", ".join(f"{name} {count}" for name, count in sorted(self.judge.counts.items()))), ("reloads", str(len(self.reloads.times))),
                 ("failures that faults explain", ", ".join(f"{name} → {kind} {what} × {count}" for (name, kind, what), count in sorted(self.judge.explained.items())))]
        text = page(f"A soak of {self.plan.seconds / 60:g} minutes", facts, self.results, plots, sorted(marks, key=lambda mark: mark.began), [text for _, text in list(self.told) if text])
        place = Path(self.options.page)
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(place)


def leave(*_) -> None:
    """Ends the run in order; a second signal does not disturb that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--page", default=".build/soak.html", help="the file of the page")
    parser.add_argument("--log", default="", help="a file for the gateway's log")
    parser.add_argument("--plan", action="store_true", help="only print the faults")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if options.plan:
        for fault in Plan(options.seed, options.minutes * 60).faults():
            print(f"{fault.at:8.1f} s  {fault.name} {fault.choice % 2 + 1} ({fault.seconds:.1f} s)")
        return 0
    missing = [program for program in (options.binary, "nginx", "redis-server", "openssl") if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if missing or os.getuid() != 0:
        print(f"soak: needs {', '.join(missing) or 'root, for a small disk and for names'}", file=sys.stderr)
        return 1
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    signal.signal(signal.SIGTERM, leave)
    print(f"seed {options.seed}: {options.minutes:g} minutes; the page is {options.page}", flush=True)
    return tell(Soak(options).run())


if __name__ == "__main__":
    sys.exit(main())
