"""The tests that may fail once, with a date and a reason each: Tests/quarantine.txt. `.ci/swift-test` and `Tests/Wire/run.py` judge by it."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field

# The maximum number of tests, and of days for each.
MOST = 5
LONGEST = 90
# Begins the names of cases of the protocol suite.
WIRE = "Wire/"


@dataclass
class Quarantine:
    """The entries, by the names of tests, and the faults of the file."""

    entries: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def missing(self, tests: set[str], wire: bool = False) -> list[str]:
        """The faults of entries that name no test of a whole run: of the Swift tests, or of the protocol suite."""
        return [f"{self.places[name]}: {name} is the name of no test; remove the line"
                for name in self.entries if name.startswith(WIRE) == wire and name not in tests]


def read(text: str, today: datetime.date, file: str = "Tests/quarantine.txt") -> Quarantine:
    """Reads lines of a date, a test and a reason with tabs between them; empty lines and lines that begin with # are comments."""
    result = Quarantine()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        place = f"{file}:{number}"
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 3 or not all(parts):
            result.faults.append(f"{place}: a line is a date, the name of a test and a reason, with tabs between them")
            continue
        when, name, reason = parts
        try:
            date = datetime.date.fromisoformat(when)
        except ValueError:
            result.faults.append(f"{place}: {when!r} is not a date such as {today.isoformat()}")
            continue
        if date > today:
            result.faults.append(f"{place}: {when} is in the future")
        elif (today - date).days > LONGEST:
            result.faults.append(f"{place}: {name} is listed since {when}, for more than {LONGEST} days; mend the test")
        elif name in result.entries:
            result.faults.append(f"{place}: {name} is listed twice")
        else:
            result.entries[name] = f"{reason}, since {when}"
            result.places[name] = place
    if len(result.entries) > MOST:
        result.faults.append(f"{file}: {len(result.entries)} tests are listed, at most {MOST} may be; mend one")
    return result


def plain(suite: str, name: str) -> str:
    """A test's name as the file and the results show it: `Module.Suite/name`, without backticks and parameters."""
    return suite + "/" + re.sub(r"\([^()]*\)$", "", name).strip("`")
