"""The table of known differences, kinds.txt: a line for each mutation, with the outcomes of each program, the RFC, and the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

COLUMNS = ("ours", "nginx", "haproxy", "envoy")
HEAD = """# What each program does with each kind of odd request. `run.py` checks it: an outcome that does not stand here fails the run.
# The columns: mutation | {columns} | section | why ours is right.
# A line with " + " is about two mutations of one request together, in addition to the lines of each; * stands for any text.
# "forwards": the origin server receives a request; a number: the status of the refusal; "closes": the connection ends without a response;
# "waits": the program expects more bytes; "end": it saw fewer requests than were sent; "extra": it forwards more.
# "*": anything.
# "changes", "lacks", "adds", "with chunks", "without framing": how a forwarded request differs from ours. "sends": what no sender may send.
# Versions: {versions}
"""


class Kinds:
    def __init__(self, path: Path):
        self.path = path
        self.rows: dict[str, dict[str, list[str]]] = {}
        self.reasons: dict[str, tuple[str, str]] = {}
        self.versions: dict[str, str] = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            if line.startswith("# Versions: "):
                self.versions = dict(each.split(" ") for each in line[12:].split(", ") if each)
            if not line or line.startswith("#"):
                continue
            mutation, *cells = [cell.strip() for cell in line.split("|")]
            self.rows[mutation] = {name: [each.strip() for each in cell.split(",") if each.strip()] for name, cell in zip(COLUMNS, cells)}
            self.reasons[mutation] = (cells[len(COLUMNS)], cells[len(COLUMNS) + 1]) if len(cells) > len(COLUMNS) + 1 else ("", "")

    def known(self, mutations: list[str]) -> Iterator[tuple[str, str, str]]:
        for subject, row in self.rows.items():
            for each in self.meant(subject, mutations):
                yield from ((each, name, outcome) for name, outcomes in row.items() for outcome in outcomes)

    @staticmethod
    def meant(subject: str, mutations: list[str]) -> set[str]:
        """The mutations, or pairs of them in their order, that the first column of a line means."""
        if " + " not in subject:
            return {subject}
        one, two = ([each for each in mutations if fnmatchcase(each, form)] for form in subject.split(" + "))
        return {"+".join(sorted((first, second))) for first in one for second in two if first != second}

    def never_at_the_front(self) -> list[str]:
        """Mutations after which ours may read no further request of a pipeline."""
        return [mutation for mutation, row in self.rows.items() if " + " not in mutation and row["ours"] != ["forwards"]]

    def faults(self, mutations: list[str]) -> Iterator[str]:
        yield from (f"{mutation} is missing" for mutation in mutations if mutation not in self.rows)
        for subject in self.rows:
            if not all(self.reasons.get(subject, ("", ""))):
                yield f"{subject} needs a section and a reason"
            if not self.meant(subject, mutations) or (" + " not in subject and subject not in mutations):
                yield f"{subject} does not exist"

    def learn(self, mutations: list[str], outcomes: list[tuple[str, str, str, int]], names: list[str], only: list[str] | None) -> None:
        seen: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for mutation, name, outcome, count in outcomes:
            seen[mutation, name][outcome] = count
        former = self.rows
        self.rows = {}
        for mutation in mutations:
            self.rows[mutation] = former.get(mutation, {name: [] for name in COLUMNS})
            for name in names:
                if not only or mutation in only:
                    counts = seen[mutation, name]
                    self.rows[mutation][name] = sorted(counts, key=lambda outcome: (outcome != "forwards", outcome))
        self.rows |= {subject: row for subject, row in former.items() if " + " in subject}

    def write(self) -> None:
        lines = []
        for mutation, row in self.rows.items():
            section, reason = self.reasons.get(mutation, ("", ""))
            lines.append(" | ".join([mutation, *(", ".join(row.get(name, [])) for name in COLUMNS), section, reason]).rstrip())
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        self.path.write_text(HEAD.format(columns=" | ".join(COLUMNS), versions=versions) + "\n".join(lines) + "\n")
