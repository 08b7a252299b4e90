#!/usr/bin/env python3
"""Every link within the repository leads somewhere; every file, make target and command that a document names exists.

    Tests/Words/links.py [--binary .build/release/httpware] [--root DIR]

Reads the documents at the top, Tests/README.md and the articles in Sources/*/*.docc: links to files, articles, pictures and headings; paths
below conf, docker, Sources, Tests and .ci in code; `make TARGET`. With a binary, also the commands and options behind `httpware` in code. Links
to other sites and to symbols are not followed: `make docs` resolves symbols. First, planted mistakes must be found. Last, the links of the
documents as a package has them.
Python 3.11, standard library only. Last: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docker"))

import dist  # noqa: E402

ARTICLES = "Sources/*/*.docc/**/*.md"
FENCE = re.compile(r"(?ms)^(`{3,})(\w*)\n(.*?)^\1$")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
# Of this repository; other paths in code may be invented, and those of MyGateway are in a package that `httpware init ware` writes.
PATH = re.compile(r"(?<![\w/.$~}-])(?:(?:conf|docker|Sources|Tests|\.ci)/(?!MyGateway)[\w.*/-]*[\w*])")
COMMAND = re.compile(r"(?:^|(?<=[\s(|]))httpware((?: [^\n]*)?)$")
OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def catalogue(file: Path) -> Path:
    """The catalogue of an article, which may be in a folder of it."""
    return next((parent for parent in file.parents if parent.suffix == ".docc"), file.parent)


def article_file(folder: Path, name: str) -> Path:
    """The article of this name in a catalogue or in a folder of it."""
    return next(iter(sorted(folder.glob(f"**/{name}.md"))), folder / f"{name}.md")


def blanked(text: str, *patterns: re.Pattern) -> str:
    """The text with what the patterns match replaced by spaces. Offsets and lines stay."""
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it. DocC's differs in case and in signs that are left out here."""
    return re.sub(r"[^\w-]", "", heading.strip().replace("`", "").lower().replace(" ", "-"))


@cache
def anchors(file: Path) -> set[str]:
    text = blanked(file.read_text(), FENCE)
    return {slug(heading) for heading in re.findall(r"(?m)^#{1,6} (.*)$", text)}


def code(text: str) -> Iterator[tuple[int, str, bool]]:
    """Each line of code with its offset, and whether it is a line of a shell; spans of code are lines, too."""
    for fence in FENCE.finditer(text):
        offset = fence.start(3)
        for line in fence[3].splitlines(keepends=True):
            yield offset, line.rstrip("\n"), fence[2] == "sh"
            offset += len(line)
    for span in SPAN.finditer(blanked(text, FENCE)):
        yield span.start(1), span[1].replace("\\|", "|"), False


class Commands:
    """The commands of the program and their options, by their help."""

    def __init__(self, printed) -> None:
        self.options: dict[tuple[str, ...], set[str]] = {}
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            command = waiting.pop()
            text = printed(*command, "--help")
            listed = "\n".join(re.findall(r"(?ms)^(?:[A-Z ]+ )?SUBCOMMANDS:\n(.*?)(?:\n\n|\Z)", text))
            options = re.search(r"(?ms)^OPTIONS:\n(.*?)(?:\n\n|\Z)", text)
            self.options[command] = {name for line in re.findall(r"(?m)^  (-.*)$", options[1] if options else "")
                                     for name in OPTION.findall(line.split("   ")[0])}
            waiting += [(*command, name) for name in re.findall(r"(?m)^  (\w[\w-]*)", listed)]

    def fault(self, arguments: str, is_shell: bool) -> str | None:
        """The faults of the words behind `httpware`, up to the end of this command."""
        own = re.split(r" -- | --$| #|[;&>]" + ("|[|]" if is_shell else ""), arguments + " ")[0]
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", " Q ", own)
        command: tuple[str, ...] = ()
        for word in bare.partition("[")[0].split():  # [ls | show KEY] are alternatives
            if (*command, word) in self.options:
                command = (*command, word)
            elif command == () and re.fullmatch(r"[a-z][a-z-]*", word) and word != "help":
                return f"httpware has no command {word}"
            else:
                break
        known = {name for path, names in self.options.items() if path[:len(command)] == command for name in names}
        unknown = [name for name in OPTION.findall(bare) if name not in known]
        return f"{' '.join(('httpware', *command))} has no option {unknown[0]}" if unknown else None


class Documents:
    def __init__(self, root: Path, commands: Commands | None) -> None:
        self.root, self.commands = root, commands
        self.files = sorted([*root.glob("*.md"), *root.glob("Tests/*.md"), *root.glob(ARTICLES)])
        makefile = root / "Makefile"
        self.targets = set(re.findall(r"(?m)^([a-z][\w-]*):", makefile.read_text())) if makefile.exists() else set()

    @staticmethod
    def links(text: str) -> Iterator[tuple[int, str]]:
        """Each link with its offset."""
        prose = blanked(text, FENCE, re.compile(r"(?s)<!--.*?-->"), SPAN)
        for pattern in (r"\]\(<?([^)>\s]+)[^)]*\)", r"\b(?:src|srcset|href)=\"([^\"\s]+)", r"<(doc:[^>]*)>"):
            yield from ((match.start(), match[1]) for match in re.finditer(pattern, prose))

    def faults(self, file: Path) -> list[str]:
        text = file.read_text()
        found = [(offset, self.link(file, target)) for offset, target in self.links(text)]
        for offset, line, is_shell in code(text):
            found += [(offset + match.start(), self.path(match[0])) for match in PATH.finditer(line)]
            if target := re.match(r"make ([a-z][\w-]*)(?: |$)", line):
                found.append((offset, None if target[1] in self.targets else f"the Makefile has no target {target[1]}"))
            if self.commands and (command := COMMAND.search(line)):
                found.append((offset, self.commands.fault(command[1], is_shell)))
        name = file.relative_to(self.root)
        return [f"{name}:{text.count(chr(10), 0, offset) + 1}: {fault}" for offset, fault in sorted(found, key=lambda pair: pair[0]) if fault]

    def link(self, file: Path, target: str) -> str | None:
        if re.match(r"[a-z]+:", target):
            return self.article(file, target[4:]) if target.startswith("doc:") else None
        path, _, anchor = target.partition("#")
        other = (file.parent / path) if path else file
        if catalogue(file).suffix == ".docc" and not other.exists():  # a picture, by its name alone
            pictures = [picture for picture in (catalogue(file) / "Resources").glob(f"{path}*") if re.fullmatch(re.escape(path) + r"(~dark)?(@\dx)?\.\w+", picture.name)]
            return None if pictures else f"{path}: no such file or picture"
        if not other.exists() or not other.resolve().is_relative_to(self.root.resolve()):
            return f"{target}: no such file in the repository"
        if anchor and (other.suffix != ".md" or anchor not in anchors(other)):
            return f"{target}: no such heading"
        return None

    def article(self, file: Path, target: str) -> str | None:
        path, _, anchor = target.partition("#")
        parts = [part for part in path.split("/") if part and part != "documentation"]
        if not parts:
            other = file
        elif len(parts) == 1:
            other = article_file(catalogue(file), parts[0])
        else:  # of another module
            other = article_file(self.root / "Sources" / parts[0] / f"{parts[0]}.docc", parts[-1])
        if not other.exists():
            return f"<doc:{target}>: no such article"
        if anchor and slug(anchor) not in anchors(other):
            return f"<doc:{target}>: no such heading"
        return None

    def path(self, named: str) -> str | None:
        if re.search(r"\b[A-Z]{3,}\.\w+$", named):  # NAME.yaml stands for any
            return None
        there = any(self.root.glob(named.rstrip("/"))) if "*" in named else (self.root / named).exists()
        return None if there else f"{named}: no such file"


# Documents with one mistake each, and how the report of it ends; those without a mistake have none.
PLANTED = (
    ("README.md", "[a](Sources/A/A.docc/First.md) [b](https://example.com/x#y) [c](#there)\n\n# There\n", None),
    ("README.md", "[a](missing.md)", "missing.md: no such file in the repository"),
    ("README.md", "[a](../README.md)", "../README.md: no such file in the repository"),
    ("README.md", '<img src="missing.png">', "missing.png: no such file in the repository"),
    ("README.md", "text\n\n[a](Sources/A/A.docc/First.md#not-there)", "README.md:3: Sources/A/A.docc/First.md#not-there: no such heading"),
    ("README.md", "```sh\n# not a heading\n```\n[a](#not-a-heading)", "#not-a-heading: no such heading"),
    ("README.md", "`make all` `make none`", "the Makefile has no target none"),
    ("README.md", "`conf/a.yaml` `conf/*.yaml` `/x/conf/none.yaml` `conf/NAME.yaml`", None),
    ("README.md", "```sh\nhttpware run -c conf/none.yaml\n```", "README.md:2: conf/none.yaml: no such file"),
    ("README.md", "```sh\nhttpware run -c conf/a.yaml --watch | grep --count x\nhttpware run -- curl --none\n```\n`httpware cache [ls \\| purge KEY] [--all]`", None),
    ("README.md", "```sh\nhttpware runs\n```", "httpware has no command runs"),
    ("README.md", "`httpware run --none`", "httpware run has no option --none"),
    ("README.md", "`httpware cache ls --watch`", "httpware cache ls has no option --watch"),
    ("Sources/A/A.docc/Second.md", "<doc:First> <doc:First#One-two> <doc:/A/First> ![p](shot)", None),
    ("Sources/A/A.docc/Inner/Second.md", "<doc:First> [a](doc:Second) ![p](shot)", None),
    ("Sources/A/A.docc/Second.md", "[a](doc:None)", "<doc:None>: no such article"),
    ("Sources/A/A.docc/Second.md", "<doc:None>", "<doc:None>: no such article"),
    ("Sources/A/A.docc/Second.md", "<doc:First#None>", "<doc:First#None>: no such heading"),
    ("Sources/A/A.docc/Second.md", "<doc:/B/First>", "<doc:/B/First>: no such article"),
    ("Sources/A/A.docc/Second.md", "![p](none)", "none: no such file or picture"),
)
HELP = {
    (): "OPTIONS:\n  -h, --help   Help.\n\nSUBCOMMANDS:\n  run   Runs.\n  cache   Lists.\n\n  See help.",
    ("run",): "OPTIONS:\n  -c, --config <config>   A file, --none.\n  --watch   Watches.\n",
    ("cache",): "OPTIONS:\n  -h, --help   Help.\n\nSUBCOMMANDS:\n  ls (default)   Lists.\n  purge   Purges.\n\n  See help.",
    ("cache", "ls"): "OPTIONS:\n  --json   JSON.\n",
    ("cache", "purge"): "OPTIONS:\n  --all   All.\n",
}


def trials() -> Iterator[tuple[str, list[str]]]:
    """Each planted mistake is found, and nothing else is."""
    commands = Commands(lambda *arguments: HELP[arguments[:-1]])
    for name, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            articles = root / "Sources/A/A.docc"
            (articles / "Resources").mkdir(parents=True)
            (articles / "Inner").mkdir()
            (root / "conf").mkdir()
            for path, content in (("conf/a.yaml", ""), ("Makefile", "all: x\n\techo\n"), ("Sources/A/A.docc/First.md", "# First\n\n## One two\n"),
                                  ("Sources/A/A.docc/Resources/shot~dark.png", ""), (name, text)):
                (root / path).write_text(content)
            anchors.cache_clear()
            found = Documents(root, commands).faults(root / name)
        right = found == [] if expected is None else len(found) == 1 and found[0].endswith(expected)
        yield f"planted {text!r}", [] if right else [f"found {found}, expected {expected}"]
    anchors.cache_clear()


def packed() -> list[str]:
    """The faults of the links in a package's documents: each leads to one of its files, and no article is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        dist.documents(root)
        documents, linked = Documents(root, None), set()
        faults = []
        for file in documents.files:
            for _, target in documents.links(file.read_text()):
                linked.add(target.partition("#")[0])
                if fault := documents.link(file, target):
                    faults.append(f"{file.name} of a package: {fault}")
        return faults + [f"no document of a package links to {path.name}" for path in documents.files
                         if path.name not in linked | {"README.md", "CHANGELOG.md"}]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()

    def printed(*arguments: str) -> str:
        return subprocess.run([options.binary, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

    documents = Documents(options.root, Commands(printed) if options.binary else None)
    results = [*trials(), *((str(file.relative_to(options.root)), documents.faults(file)) for file in documents.files)]
    if len(documents.files) < 10 and options.root == ROOT:
        results.append(("the documents", ["are not found"]))
    if options.root == ROOT:
        results.append(("the documents of a package", packed()))
    for name, wrong in results:
        for fault in wrong:
            print(f"FAILED  {fault if fault.startswith(name) else f'{name}: {fault}'}")
    failed = sum(bool(wrong) for _, wrong in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
