#!/usr/bin/env python3
"""The cases of the examples in conf/, by `httpware test`: each example has some, they pass, and they fail without the ware that they show.

    Tests/Cases/run.py --binary .build/release/httpware [--only TEXT]

The examples are copied first, and the certificate of conf/tls.yaml is made by the command in it. An example of a ware, `conf/wares/NAME.yaml`,
is tried twice: as it is, and with a ware that acts on no request; then at least one case must fail. Python 3.11 and openssl.
Last: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Examples without cases, each with the reason.
WITHOUT: dict[str, str] = {}
# A condition that no case meets.
NEVER = "if: { path: /a-path-that-no-case-asks-for }"


def examples(folder: Path) -> list[Path]:
    """The configurations below a folder; a folder `NAME.d` has parts of one."""
    files = (path for path in folder.rglob("*.yaml") if not path.name.endswith(".test.yaml"))
    return sorted(path for path in files if not any(part.endswith(".d") for part in path.parts))


def cases(example: Path) -> Path:
    return example.with_suffix(".test.yaml")


def idle(text: str, ware: str) -> str:
    """The configuration with a ware that acts on no request; unchanged if the ware has no entry."""
    return "\n".join(_idle_lines(text.split("\n"), ware))


def _idle_lines(lines: list[str], ware: str) -> Iterator[str]:
    inside = None  # the indentation of the keys of the entry that is read
    for line in lines:
        if inside is not None:
            indentation = len(line) - len(line.lstrip())
            if line.strip() and indentation < inside:
                inside = None
            elif indentation == inside and line.lstrip().startswith("if:"):
                continue  # its own condition
        entry = re.match(rf"( *)- {ware}(?::(.*)|( #.*)?)$", line)
        if not entry:
            # An entry inside brackets.
            yield re.sub(rf"\[{{ {ware}: ", f"[{{ {NEVER}, {ware}: ", line)
            continue
        inside = len(entry[1]) + 2
        yield f"{entry[1]}- {NEVER}"
        yield f"{' ' * inside}{ware}:{entry[2] if entry[2] is not None else ' {}'}"


# Tests of `idle`: a configuration with the ware `mock`, and the same with an idle one.
IDLE = [
    ("  - mock: { body: a }\n  - cors", f"  - {NEVER}\n    mock: {{ body: a }}\n  - cors"),
    ("  - mock:\n      if: a\n    if: b\n  - cors:\n    if: c", f"  - {NEVER}\n    mock:\n      if: a\n  - cors:\n    if: c"),
    ("  - mock # a word", f"  - {NEVER}\n    mock: {{}}"),
    ("a: { middlewares: [{ mock: { body: a } }] }", f"a: {{ middlewares: [{{ {NEVER}, mock: {{ body: a }} }}] }}"),
    ("  - mocks: {}\n    mock: {}", "  - mocks: {}\n    mock: {}"),
]


class Trial:
    """The program before a copy of the examples."""

    def __init__(self, binary: str, folder: Path):
        self.binary, self.folder = binary, folder
        shutil.copytree(ROOT / "conf", folder / "conf")
        text = (folder / "conf/tls.yaml").read_text()
        command = next(line for line in text.splitlines() if line.startswith("#   openssl "))
        subprocess.run(["bash", "-c", command.strip("# ")], cwd=folder / "conf", check=True, capture_output=True, timeout=60)

    def test(self, example: Path) -> subprocess.CompletedProcess:
        # Values from outside would take the place of the examples' own.
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SWIFT_BACKTRACE": "enable=no"}
        return subprocess.run([self.binary, "test", "-c", str(example.relative_to(self.folder))], cwd=self.folder, env=environment,
                              capture_output=True, text=True, timeout=120)

    def problem(self, example: Path) -> str | None:
        """The first problem of an example; `None` if there is none."""
        name = str(example.relative_to(self.folder))
        if not cases(example).exists():
            return None if name in WITHOUT else f"{cases(example).name} is missing: write one, or add the example to WITHOUT with a reason"
        if name in WITHOUT:
            return "it has cases, and is listed in WITHOUT"
        result = self.test(example)
        if result.returncode != 0:
            return result.stdout + result.stderr
        return self.idle_problem(example) if example.parent.name == "wares" else None

    def idle_problem(self, example: Path) -> str | None:
        text = example.read_text()
        without = idle(text, example.stem)
        if without == text:
            return f"no entry {example.stem} was found"
        example.write_text(without)
        result = self.test(example)
        example.write_text(text)
        if "FAILED  " in result.stdout:
            return None
        return f"all cases pass although {example.stem} acts on no request: {result.stdout}{result.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    results: dict[str, str | None] = {}
    for text, expected in IDLE:
        results[f"idle: {text!r}"] = None if idle(text, "mock") == expected else f"became {idle(text, 'mock')!r}"
    with tempfile.TemporaryDirectory(prefix="httpware-cases.") as folder:
        trial = Trial(str(Path(options.binary).resolve()), Path(folder))
        found = examples(Path(folder) / "conf")
        for example in found:
            results[str(example.relative_to(folder))] = trial.problem(example) if options.only in str(example) else None
        lost = {path for path in Path(folder).rglob("*.test.yaml")} - {cases(example) for example in found}
        results["each file of cases has an example"] = ", ".join(path.name for path in sorted(lost)) or None
        results["each example in WITHOUT exists"] = ", ".join(name for name in WITHOUT if not (ROOT / name).exists()) or None
    for name, problem in results.items():
        if problem:
            print(f"FAILED  {name}: {problem.strip()}")
    failed = sum(1 for problem in results.values() if problem)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
