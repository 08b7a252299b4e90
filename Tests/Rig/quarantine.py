"""The tests that may fail once: `.ci/quarantine`, a short list with dates and reasons. Every other test that fails and then passes has failed."""

from __future__ import annotations

import datetime
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / ".ci/quarantine"
MOST = 5
LONGEST = datetime.timedelta(days=30)


def names(text: str | None = None, today: datetime.date | None = None) -> set[str]:
    """The names in the list. Raises ValueError if an entry is malformed or too old, or if there are too many."""
    lines = (FILE.read_text() if text is None else text).splitlines()
    entries = [line.split(" | ") for line in lines if line.strip() and not line.startswith("#")]
    if len(entries) > MOST:
        raise ValueError(f"quarantine: {len(entries)} entries, at most {MOST} are allowed; fix some tests")
    for entry in entries:
        if len(entry) != 3 or not all(part.strip() for part in entry):
            raise ValueError(f"quarantine: {' | '.join(entry)!r} is not a date, a name and a reason, with ' | ' between them")
        age = (today or datetime.date.today()) - datetime.date.fromisoformat(entry[0].strip())
        if age > LONGEST:
            raise ValueError(f"quarantine: {entry[1].strip()!r} is listed for {age.days} days, at most {LONGEST.days} are allowed; fix the test")
    return {entry[1].strip() for entry in entries}
