#!/usr/bin/env python3
"""Descriptors that Swift code opens: each is closed in a program that is started meanwhile (close-on-exec).

    Tests/Rooms/descriptors.py

A socket that a child has inherited does not end when its owner closes it: a test that waits for the end then fails now and then, because of another
test that has just started a program; a gateway would keep connections open in its successor. Python 3.11, standard library only.
Last: `N passed, N failed`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The functions of the system that open one, without a type in front of them, except for `Glibc`.
CALL = re.compile(r"(?:(?<![\w.])|(?<=Glibc\.))(?<!func )(socketpair|socket|pipe2?|accept4?|open|openat|fopen|dup[23]?|eventfd|memfd_create|epoll_create1?|inotify_init1?)\(")
# A call of the system has one of these in it; one of ours with the same name has none.
OURS = {
    "open": re.compile(r"\bO_\w+"), "openat": re.compile(r"\bO_\w+"), "socket": re.compile(r"\bSOCK_|\bAF_|\.family"), "accept": re.compile(r"\bnil\b"),
    "fopen": re.compile(r'"[rwa]'), "dup": re.compile(r"."), "pipe": re.compile(r"&"),
}
CLOSED = re.compile(r'CLOEXEC|"[rwab+]*e"')
# Files, the number of their calls that leave a descriptor open in children, and the reason for each.
LISTED = {
    "Tests/HttpWareTestingTests/Origins/TestRedisTests.swift": (1, "what a started server inherits is what this test is about"),
    "Sources/httpware-bench/BenchOrigin.swift": (2, "the system's pipe has no flags in Swift: they are set behind it"),
}
# Swift code, and the number of its calls that count.
TRIALS = {
    "socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)": 1,
    "socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)": 0,
    "let type = Int32(SOCK_STREAM.rawValue)\nsocketpair(AF_UNIX, type, 0, &ends)": 1,
    "let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)\nsocketpair(AF_UNIX, type, 0, &ends)": 0,
    "let type =\n    Int32(SOCK_STREAM.rawValue)\n    | Int32(SOCK_CLOEXEC.rawValue)\nsocketpair(AF_UNIX, type, 0, &ends)": 0,
    "let type =\n    Int32(SOCK_STREAM.rawValue)\n    | Int32(SOCK_NONBLOCK.rawValue)\nsocketpair(AF_UNIX, type, 0, &ends)": 1,
    "let type = Int32(\n    SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)\nsocketpair(AF_UNIX, type, 0, &ends)": 0,
    "pipe(&ends)": 1,
    "pipe2(&ends, O_CLOEXEC)": 0,
    "accept(listener, nil, nil)": 1,
    "Socket.accept(listener)": 0,
    "Glibc.open(path, O_RDONLY)": 1,
    "open(path, O_RDONLY | O_CLOEXEC)": 0,
    "open(key, of: 2)": 0,
    'fopen(path, "r")': 1,
    'fopen(path, "re")': 0,
    "// open(path, O_RDONLY)": 0,
}


def arguments(code: str, start: int) -> str:
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return code[start:place]
    return code[start:]


def value(code: str, start: int) -> str:
    """An expression, to the end of its last line."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth <= 0 and code[place] == "\n" and not re.match(r"\s*[|.?:]", code[place + 1:]):
            return code[start:place]
    return code[start:]


def count(text: str) -> int:
    code = re.sub(r"(?m)(?:^|\s)//.*$", "", text)
    found = 0
    for call in CALL.finditer(code):
        said = arguments(code, call.end())
        if (ours := OURS.get(call[1])) and not ours.search(said):
            continue
        # Names that stand for flags have their value nearby, before the call or as a member of the file.
        for name in set(re.findall(r"\b[a-z]\w*\b", said)):
            said += "".join(value(code, named.end()) for named in re.finditer(rf"\b(?:let|var) {name}\b[^\n]*=\s*", code))
            said += "".join(re.findall(rf"\bvar {name}: [^\n]*\{{\n([^\n]*)", code))
        found += not CLOSED.search(said)
    return found


def main() -> int:
    wrong = [f"{code!r} counts as {count(code)}" for code, right in TRIALS.items() if count(code) != right]
    paths = sorted([*(ROOT / "Tests").rglob("*.swift"), *(ROOT / "Sources").rglob("*.swift")])
    for path in paths:
        name = str(path.relative_to(ROOT))
        found, (listed, _) = count(path.read_text()), LISTED.get(name, (0, ""))
        if found != listed:
            wrong.append(f"{name} opens {found} descriptors without close-on-exec, {listed} are listed in Tests/Rooms/descriptors.py")
    wrong += [f"{name} is listed and does not exist" for name in LISTED if not (ROOT / name).exists()]
    for fault in wrong:
        print(f"FAILED  {fault}")
    print(f"{len(paths) + len(TRIALS) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
