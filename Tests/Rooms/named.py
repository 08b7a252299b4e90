#!/usr/bin/env python3
"""Files of the data path that no Swift test is about: the list must be empty.

    Tests/Rooms/named.py

A test is about a file if its code names the main type of the file, as in the file's name, or if it is the suite of that name: `SentContent.swift`
has tests if they use `SentContent`, or are `SentContentTests`. A comment, a text and a test's name name nothing. For `Type+Role.swift`, the
type counts. Python 3.11, standard library only. Last: `N passed, N failed`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The rooms of the data path, below Sources/HttpWare.
ROOMS = ("Codec", "Content", "Attempts", "Exchange", "Interception", "Transport")


def words(tests: str) -> set[str]:
    """The words of the code of tests, without comments, texts and names in backticks."""
    found, is_text = set(), False
    for line in tests.splitlines():
        if is_text:
            is_text = not re.match(r'\s*"""', line)
            continue
        # A text of several lines begins at the end of a line, and ends at the beginning of one.
        is_text = re.search(r'"""$', line) is not None
        line = re.sub(r'`[^`]*`|"(?:\\.|[^"\\])*"', "", line)
        found.update(re.findall(r"\w+", re.sub(r"(?:^|\s)//.*", "", line)))
    return found


def unnamed(files: list[str], tests: str) -> list[str]:
    """The names of those source files, without `.swift`, that no test is about."""
    named = words(tests)
    return [Path(file).stem for file in files if named.isdisjoint({stem := Path(file).stem.split("+")[0], stem + "Tests"})]


# Tests of the rule: a source file, the text of a test, and whether the test is about the file.
EXAMPLES = [
    ("A/ContentStream.swift", "let stream = ContentStream(source)", True),
    ("A/ContentStream.swift", "@Suite struct ContentStreamTests {", True),
    ("A/ContentStream+Turns.swift", "ContentStream.bytesPerTurn", True),
    ("A/ContentStream.swift", "let stream = ContentStreams()", False),
    ("A/ContentStream.swift", "/// `ContentStream` is not tested here.", False),
    ("A/ContentStream.swift", "stage.turn() // of the ContentStream", False),
    ("A/ContentStream.swift", '#expect(text == "a \\" ContentStream")', False),
    ("A/ContentStream.swift", '"http://a.test/" + ContentStream.name', True),
    ("A/ContentStream.swift", "@Test func `a ContentStream ends`() {}", False),
    ("A/ContentStream.swift", 'let text = """\n    ContentStream\n    """', False),
    ("A/ContentStream.swift", 'let text = """\n    a\n    """\nContentStream()', True),
]


def main() -> int:
    faults = [f"{test!r} counts wrongly for {file}" for file, test, isAbout in EXAMPLES if isAbout == bool(unnamed([file], test))]
    tests = "\n".join(path.read_text() for path in (ROOT / "Tests").rglob("*.swift"))
    files = [path for room in ROOMS for path in sorted((ROOT / "Sources/HttpWare" / room).glob("*.swift"))]
    faults += [f"{room} has no Swift file" for room in ROOMS if not any(path.parent.name == room for path in files)]
    missing = set(unnamed([str(path) for path in files], tests))
    faults += [f"{path.relative_to(ROOT)}: no Swift test is about it" for path in files if path.stem in missing]
    for fault in faults:
        print(f"FAILED  {fault}")
    print(f"{len(files) + len(EXAMPLES) - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
