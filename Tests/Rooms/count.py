#!/usr/bin/env python3
"""Counts the middle room: how large the driver of an exchange is, how much it remembers, and which of its files no Swift test names.

    Tests/Rooms/count.py [COMMIT …]

Without a commit, the files of the folder are counted; with several, a column is shown for each. Text is counted, no compiler is asked:

- driver: `ExchangeDriver*.swift` in Sources/HttpWare/Exchange;
- functions: declarations of `func`, `init` and `deinit` outside of comments;
- stored values: `let` and `var` of instances in the class `ExchangeDriver` and in the structs of ExchangeProgress.swift, without computed ones;
- phase: lines of code in the driver that contain the word `phase`;
- not named: files of the room that no Swift test is about, by the rule of named.py.

Python 3.11, standard library only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import named

ROOT = Path(__file__).resolve().parents[2]
ROOM = "Sources/HttpWare/Exchange"
# Rooms into which parts of it move.
MOVED = ("Sources/HttpWare/Content", "Sources/HttpWare/Attempts", "Sources/HttpWare/Interception")
MODIFIERS = r"(?:@\w+(?:\([^)]*\))?\s+|(?:public|package|internal|fileprivate|private|final|static|class|mutating|override|weak|unowned|lazy|nonisolated|indirect)(?:\((?:set|unsafe)\))?\s+)*"


class Tree:
    """The Swift files of a commit, or of the folder."""

    def __init__(self, commit: str | None) -> None:
        self.commit = commit
        listed = self.git("ls-tree", "-r", "--name-only", commit, "Sources", "Tests") if commit else self.git("ls-files", "-co", "--exclude-standard", "Sources", "Tests")
        self.files = [name for name in listed.splitlines() if name.endswith(".swift") and (commit or (ROOT / name).exists())]

    @staticmethod
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    def text(self, name: str) -> str:
        return self.git("show", f"{self.commit}:{name}") if self.commit else (ROOT / name).read_text()

    def below(self, folder: str) -> list[str]:
        return [name for name in self.files if name.startswith(folder + "/")]

    def all_tests(self) -> str:
        if self.commit:
            return self.git("grep", "-h", "", self.commit, "--", "Tests/*.swift")
        return "\n".join(self.text(name) for name in self.below("Tests"))


def code(text: str) -> list[str]:
    """The lines without comments; what stands in a literal stays."""
    return [re.sub(r"(?:^|\s)//.*", "", line) for line in text.splitlines()]


def stored(text: str, kind: str) -> int:
    """The stored values of instances of the types that `kind` matches, which begin at the left edge."""
    count, is_inside = 0, False
    for line in code(text):
        if re.match(rf"{MODIFIERS}{kind}\b", line):
            is_inside = True
        elif line.startswith("}"):
            is_inside = False
        match = is_inside and re.match(rf"    ({MODIFIERS})(?:let|var) (.*)", line)
        if match and not re.search(r"\b(?:static|class)\b", match[1]):
            is_computed = match[2].endswith("{") and "=" not in match[2]
            is_computed = is_computed or re.search(r"[^=]\{ .*\}$", match[2]) is not None and "= " not in match[2].split("{")[0]
            count += match[2].split("=")[0].count(", ") + 1 if not is_computed and ":" not in match[2] else int(not is_computed)
    return count


def counted(commit: str | None) -> dict[str, object]:
    tree = Tree(commit)
    room = tree.below(ROOM)
    moved = [name for folder in MOVED for name in tree.below(folder)]
    texts = {name: tree.text(name) for name in room + moved}
    driver = [name for name in room if Path(name).name.startswith("ExchangeDriver")]
    lines = [line for name in driver for line in code(texts[name])]
    unnamed = named.unnamed(room, tree.all_tests())
    progress = texts.get(f"{ROOM}/ExchangeProgress.swift", "")
    return {
        "lines of the driver": sum(text.count("\n") for name, text in texts.items() if name in driver),
        "files of the driver": len(driver),
        "longest file of the driver": max((texts[name].count("\n") for name in driver), default=0),
        "functions of the driver": sum(bool(re.match(rf"\s*{MODIFIERS}(?:func\b|init[?(<]|deinit\b)", line)) for line in lines),
        "stored values": sum(stored(texts[name], "class ExchangeDriver") for name in driver) + stored(progress, "struct"),
        "lines that consult the phase": sum(bool(re.search(r"\bphase\b", line)) for line in lines),
        "lines of the room": sum(texts[name].count("\n") for name in room),
        "lines of Content, Attempts, Interception": sum(texts[name].count("\n") for name in moved),
        "files of the room": len(room),
        "files that no Swift test names": len(unnamed),
        "lines of Sources": sum(tree.text(name).count("\n") for name in tree.below("Sources")) if not commit else lines_of(commit),
        "": unnamed,
    }


def lines_of(commit: str) -> int:
    return len(Tree.git("grep", "-h", "", commit, "--", "Sources/*.swift").splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*")
    commits = parser.parse_args().commits
    columns = [(commit[:12], counted(commit)) for commit in commits] or [("now", counted(None))]
    width = max(len(name) for name in columns[0][1])
    print(f"{'':{width}}  " + "  ".join(f"{title:>12}" for title, _ in columns))
    for name in columns[0][1]:
        if name:
            print(f"{name:{width}}  " + "  ".join(f"{column[name]:>12,}" for _, column in columns))
    for title, column in columns:
        print(f"\nnot named, {title}: {', '.join(column['']) or 'no file'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
