"""Content that proves where it comes from: its first line names the request and the identity, the rest follows from that line."""

from __future__ import annotations

import hashlib
import hmac
import json
import time

SECRET = b"of the suite"
# How long a version of a cacheable representation lasts, and how long a response with it is fresh, in seconds.
VERSION, FRESH = 3, 2


def made(head: dict, length: int) -> bytes:
    """Content of at least the first line. Of the given length behind it."""
    line = json.dumps(head, sort_keys=True).encode() + b"\n"
    return line + hashlib.shake_128(line).digest(length)


def read(content: bytes) -> dict | None:
    """The first line, if all that follows belongs to it; else nothing."""
    line, newline, rest = content.partition(b"\n")
    if not newline or hashlib.shake_128(line + b"\n").digest(len(rest)) != rest:
        return None
    try:
        head = json.loads(line)
    except ValueError:
        return None
    return head if isinstance(head, dict) and head.get("length") == len(rest) else None


def page_length(number: int) -> int:
    """The length of a cacheable representation: mostly small, some large."""
    return 300_000 if number % 50 == 7 else 200 + number * 37 % 9000


def page(path: str, language: str, user: str, version: int) -> bytes:
    """A cacheable representation. Every origin server makes the same."""
    length = page_length(int(path.rsplit("/", 1)[1]))
    return made({"path": path, "language": language, "user": user, "version": version, "length": length}, length)


def entity_tag(content: bytes) -> str:
    return '"' + hashlib.sha256(content).hexdigest()[:16] + '"'


def token(credential: str, number: int, lifetime: float) -> str:
    text = f"{credential}.{number}.{time.time() + lifetime:.3f}".replace(".", "-")
    return f"{text}-{hmac.new(SECRET, text.encode(), 'sha256').hexdigest()[:16]}"


def token_owner(value: str, slack: float = 0.3) -> tuple[str, bool]:
    """The credential that a token is of, and whether it is still good; an empty name for a token that the suite did not give."""
    text, _, mark = value.rpartition("-")
    if not hmac.compare_digest(mark, hmac.new(SECRET, text.encode(), "sha256").hexdigest()[:16]):
        return "", False
    credential, _, seconds, thousandths = text.split("-")
    return credential, float(f"{seconds}.{thousandths}") + slack > time.time()
