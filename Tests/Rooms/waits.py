#!/usr/bin/env python3
"""Times a release build in a folder of its own, and shows the compiler's own timings of each module.

    Tests/Rooms/waits.py              builds, and prints the table of CONTRIBUTING.md
    Tests/Rooms/waits.py --keep DIR   builds in DIR, which stays
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = (("types", "Type checking and Semantic analysis"), ("SIL", "SIL optimization"), ("LLVM", "LLVM pipeline"))


def build(folder: Path, stats: Path) -> float:
    """Builds the program as `make build` does. Returns the seconds that it took."""
    stats.mkdir(parents=True, exist_ok=True)
    command = ["swift", "build", "-c", "release", "--product", "httpware", "--static-swift-stdlib", "--scratch-path", str(folder),
               "-Xlinker", "--build-id=none", "-Xswiftc", "-stats-output-dir", "-Xswiftc", str(stats)]
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SWIFT_DETERMINISTIC_HASHING": "1"})
    return time.monotonic() - began


def rows(stats: Path) -> list[tuple[str, int, float, list[float]]]:
    """The modules with their lines, the seconds of CPU, and those of each part, the most first."""
    found = []
    for file in stats.glob("*.json"):
        name = re.search(r"frontend-(\w+)-all", file.name)
        if not name:
            continue
        values = json.loads(file.read_text())
        total = sum(value for key, value in values.items() if key.startswith("time.swift-frontend.") and not key.endswith(".wall"))
        found.append((name[1], values.get("AST.NumSourceLines", 0), total, [values.get(f"time.swift.{part}.user", 0.0) for _, part in PARTS]))
    return sorted(found, key=lambda row: -row[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="builds in this folder, which stays")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="httpware-waits."))
    try:
        seconds = build(folder / "build", folder / "stats")
        table = rows(folder / "stats")
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    print("| module | lines | CPU, s | " + " | ".join(name for name, _ in PARTS) + " |\n|---|---|---|" + "---|" * len(PARTS))
    for name, lines, total, parts in table:
        print(f"| `{name}` | {lines:,} | {total:.0f} | " + " | ".join(f"{part:.0f}" for part in parts) + " |")
    print(f"\n{sum(row[2] for row in table):.0f} s of CPU, {seconds:.0f} s with {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
