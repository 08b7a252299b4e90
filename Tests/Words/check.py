#!/usr/bin/env python3
"""Plain English in what users read: fails on a short list of shapes, each with file, line and the fix.

    Tests/Words/check.py [FILE …] [--binary .build/release/httpware]

Without a file: README.md, Tests/README.md, the articles in Sources/*/*.docc and their folders, which contain the texts that wares declare; the comments of the
Swift files in `ROOMS` and of all Swift tests; the texts in all Swift files of Sources, errors and problems among them; the names of all Swift tests;
the names, docstrings and comments of the Python files in Tests; the texts and comments of the inspector page, and the length of its lines. With a
binary, also the help of every command and the descriptions in the schema. Code is not read.
A FILE may be a Swift or Python file, a file of the page, or a folder of them. Each shape is first tried on its own good and bad sentences.
Python 3.11, standard library only. Last: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where a sentence begins: a line, a cell, an item of a list, or behind the end of another sentence.
START = r"(?m)(?:^[ \t]*(?:[-*] |\d+\. )?(?:(?:Parameter \w+|Returns|Throws): )?|\| |(?<=[a-z0-9X)`*][.?!] ))"
# The folders beneath Sources whose comments are read: whole modules, or rooms. Sorted.
ROOMS: tuple[str, ...] = (
    "Acme",
    "Authentication",
    "Capturing",
    "Credentials",
    "DiskCaching",
    "DiskCapturing",
    "GatewayConfig",
    "GatewayExample",
    "GatewayWares",
    "HttpCaching",
    "HttpGateway",
    "HttpWare/Attempts",
    "HttpWare/Balance",
    "HttpWare/Broker",
    "HttpWare/Calls",
    "HttpWare/Chain",
    "HttpWare/Codec",
    "HttpWare/Exchange",
    "HttpWare/Fields",
    "HttpWare/Formats",
    "HttpWare/Interception",
    "HttpWare/Loop",
    "HttpWare/Matching",
    "HttpWare/Messages",
    "HttpWare/Options",
    "HttpWare/Recording",
    "HttpWare/Routing",
    "HttpWare/Tls",
    "HttpWare/Transport",
    "HttpWare/Values",
    "HttpWareClient",
    "HttpWareClientConfiguration",
    "HttpWareCombine",
    "HttpWareCommand",
    "HttpWareFoundation",
    "HttpWareGateway",
    "HttpWareProgram",
    "HttpWareRedis",
    "HttpWareTesting",
    "Jail",
    "ScriptWares",
    "Scripting",
    "TodoExample",
    "Wares",
    "httpware-bench",
)

PAGE = "Sources/CInspectorPage/Page"
# The longest line of JavaScript. deno, which formats it, does not break comments and texts.
COLUMNS = 120


@dataclass(frozen=True)
class Shape:
    pattern: str
    fix: str
    bad: tuple[str, ...]
    good: tuple[str, ...]

    def found(self, text: str) -> Iterator[re.Match]:
        return re.finditer(self.pattern, text)


SHAPES = (
    Shape(r"(?i)\b(?:nobody|somebody|whoever)\b", "name the subject: the client, a request, the operator",
          ("Nobody waits longer than five seconds.", "for somebody else may have rotated", "accepts whoever answers"),
          ("No request waits longer than five seconds.", "The body is nobly encoded.")),
    Shape(r"(?i)\bthose (?:who|that|which)\b", "name them: the clients, the requests",
          ("sends those that were refused again", "for those who read slowly", "those\nthat wait"),
          ("Requests that were refused are sent again.", "like those of the client")),
    Shape(START + r"(?:Who|What)\b(?! (?:if|about)\b)(?![^.|\n]*\?)", "begin with a noun: the client, the value",
          ("Who finds no room is answered 503.", "It is bounded. What waits is counted.", "- What remains is sent."),
          ("Who finds no room?", "A client that finds no room is answered 503.", "It shows what remains.")),
    Shape(r"(?i)(?<!there )\b(?:is|are|was|were) (?:none|nobody's)\b", "say what is missing, or that it is invalid",
          ("A name that is none is refused.", "it is nobody's without a client"),
          ("If there is none, the answer is 404.", "The name is invalid.")),
    Shape(r"(?i)(?<!there )\b(?:is|are) no (?!(?:longer|more|less|fewer|larger|smaller|better|later)\b)\w+", "is not a …, or does not exist",
          ("A folder that is no folder is refused.", "the files are no PEM"),
          ("There is no admin listener.", "The key is no longer accepted.", "The files are not PEM.")),
    Shape(r"(?i)\bso many\b", "name the quantity: at most `max` requests",
          ("Sends so many requests at once.",), ("Sends at most five requests at once.", "so there are many requests")),
    Shape(r"(?i)\bas (?:long|often|much) as it is told\b|\bwhat it is told to\b", "name the option",
          ("Answers as long as it is told to.", "It holds what it is told to."), ("Answers for the time in `for`.",)),
    Shape(START + r"(?:Is|Are|Was|Were|Has|Have|Had|Should) (?:it|the|a|an|there|no|one)\b[^?|\n]*, ", "put the condition first, with if",
          ("Is it late, the response goes on.", "It waits. Has it ended, it is told.", "Had it ended, nothing is sent."),
          ("If it is late, the response is passed on.", "Is it late? It continues.", "Is read, or written.")),
    Shape(r"(?i)\banew\b", "again", ("It is read anew.",), ("It is read again.", "a new one")),
    Shape(r"(?i)\bmend(?:s|ed|ing)?\b", "fix", ("with the mend", "until that is mended"), ("with the fix", "it amends the file")),
    Shape(r"(?i)\b(?:gone|goes|go|going) on with\b", "continue", ("A valid one is gone on with.", "others go on with it"), ("A valid one is continued.", "it goes on")),
    Shape(r"(?i)\b(?:is|are|be|been) (?:over with|had)\b", "fails, is abandoned; is available",
          ("then it is over with it", "keys cannot be had"), ("then it fails", "the keys are not available", "it is hard")),
    Shape(r"(?i)\blets? in (?:who|what|those)\b|\bkeeps? strangers\b", "restricts access to, requires",
          ("Lets in who shows a key.", "a ware that keeps strangers out"), ("Requires an API key.", "lets in 5 requests")),
    Shape(r"(?i)\brule \d+\b", "say the rule's words", ("as rule 7 has it",), ("20 rules", "the rules of RFC 9111")),
    Shape(r"(?i)\bnot built\b|\buntil \w+ is built\b", "describe what exists", ("Upgrade is not built.", "ipRule, until authentication is built"), ("It is built by make.",)),
)

# Shapes of articles only: a comment may begin with such a verb.
ARTICLE_SHAPES = (
    Shape(START + r"(?:Does|Do|Comes|Asks|Goes) (?:it|the|a|an|there|no|one)\b[^?|\n]*, ", "put the condition first, with if",
          ("Asks the response for more, it is passed on.", "It waits. Does it end, it is told."),
          ("If the response asks for more, it is passed on.", "Does it end? It continues.", "Asks a server about each token.")),
)
# Shapes of comments only.
COMMENT_SHAPES = (
    Shape(START + r"(?:One|Ones|Those|Another|Others|None) (?:that|which|who|whose|with|without|for|of which)\b", "begin with a noun: a request, a connection",
          ("One that is lost stays lost.", "It ends. Those without a name are skipped.", "- Parameter key: One that is free."),
          ("One of the two is used.", "A lost lease stays lost.", "Those two are equal.")),
    Shape(r"(?i)\bis one (?:that|which|who|whose|of which)\b", "say what it is", ("The key is one that is held.",), ("The key is held.", "It is one of five.")),
    Shape(r"(?i)\bthat is to say\b|\ball the same\b(?=\s*(?:[.,;:]|$))|\bbut for\b", "leave it out; still; except",
          ("It ends all the same.", "that is to say, now", "all but for one"), ("They are all the same size.", "It still ends.")),
    Shape(r"(?i)\bwhom\b|\b(?:thereof|whereof|therein|wherein|whereto|thereto|whither|lest)\b", "name it",
          ("To whom it is sent.", "the length thereof", "lest it ends"), ("The receiver.", "at least one")),
    Shape(r"(?i)\b(?:tell|tells|told|hears?|heard) of\b|\b(?:knows?|says?|learns?) (?:nothing|something|more|anything)?\b ?of\b", "reports, is notified about, about",
          ("The loop tells of an end.", "It knows nothing of the chain.", "is told of the end"), ("The loop reports an end.", "It knows nothing about the chain.")),
    Shape(r"(?i)(?<!or )\bmay not\b", "must not; or might not, need not", ("It may not be used.",), ("It must not be used.", "It may or may not be used.")),
    Shape(r"(?i)\b(?:is|are|was|were|be) over\b(?! (?:the|a|an|its|this|that|max|X|\d))", "ends, has ended", ("until it is over.",), ("until it ends", "is over the limit", "is over 5")),
    Shape(r"(?i)\bso (?:much|long|few|little)\b(?! as\b)", "name the quantity: for the time in X, at most X bytes",
          ("It waits so long.", "reads so much at once"), ("It waits for five seconds.", "so long as it is held")),
)
# Shapes of texts in code only, which may begin in lower case.
TEXT_SHAPES = (
    Shape(r"^(?:who|whoever|what|those (?:that|who)|one (?:that|who))\b(?![^.|\n]*\?)", "begin with a noun: the client, the value",
          ("what is done", "those that wait"), ("the operation", "what is done?", "whatever is done")),
)
# Shapes of the names of Python cases only, which often begin with a word and a colon, and list what they show.
CASE_SHAPES = (
    Shape(r"(?i)(?:[,;] (?:and |or |but )?|\band )(?:who|what|those)\b(?!, )(?! (?:if|about)\b)(?![^.|\n]*\?)", "begin with a noun: the client, the value",
          ("a slot is free, who waits gets it", "one ends, and what is left goes on"), ("a slot is free", "it names the client, and whatever it sent")),
    Shape(r"(?i)(?<!there is )(?<!there are )\bnone (?!that\b)\w+s\b|(?:^|, )none\b(?= )|\bnone$", "say no request, without a certificate",
          ("none fails", "required, none sent", "known, unknown, none"), ("no request fails", "there is none that fails")),
    Shape(r"(?i)\bnever not\b|\bnot without\b|\bnothing but\b|\bno \w+ (?:that|which) (?:is|are|does|do) not\b", "say it without two negations",
          ("nothing but ALPN counts",), ("only ALPN counts",)),
)


def readable(text: str) -> str:
    """The text with code, comments and addresses blanked out. Offsets stay; lines of one paragraph are joined."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
    text = re.sub(r"(?ms)^```.*?^```", blank, text)
    text = re.sub(r"(?s)<!--.*?-->", blank, text)
    text = re.sub(r"`[^`\n]+`", lambda match: "X" * len(match[0]), text)
    text = re.sub(r"\]\([^)\n]*\)", lambda match: "]" + " " * (len(match[0]) - 1), text)
    return re.sub(r"\n(?=[ ]*[A-Za-z0-9(*X\"'])(?! *(?:\d+\.|[-*]) )", " ", text)


def faults(name: str, text: str, shapes: tuple[Shape, ...] = SHAPES + ARTICLE_SHAPES, line: int = 1) -> list[str]:
    shown = readable(text)
    found = sorted((match.start() + len(match[0]) - len(match[0].lstrip()), shape.fix) for shape in shapes for match in shape.found(shown))
    return [f"{name}:{text.count(chr(10), 0, offset) + line}: {text[offset:offset + 60].splitlines()[0]!r}: {fix}" for offset, fix in found]


def comments(code: str) -> Iterator[tuple[int, str]]:
    """The comments of a Swift file, each with its first line. Whole lines below each other with the same marker are one comment."""
    first, marker, lines = 0, "", []
    for number, line in enumerate((*code.splitlines(), ""), 1):
        match = re.match(r"\s*(///?)(?!/) ?(.*)", line) or re.match(r"((?:[^\"/]|\"(?:[^\"\\]|\\.)*\"|/(?!/))*)(?<=\s)// (.*)", line)
        found = match[1] if match and match[1].startswith("//") else ""
        if lines and found != marker:
            yield first, "\n".join(lines)
            lines = []
        if found:
            first, marker, lines = (first if lines else number), found, [*lines, match[2]]
        elif match:
            yield number, match[2]


def swift_faults(name: str, code: str) -> list[str]:
    return [fault for line, text in comments(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES, line)]


def is_sentence(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 3


def texts(code: str) -> Iterator[tuple[int, str]]:
    """The literals of a Swift file that have three words or more, each with its line; a value in one is an X."""
    for number, line in enumerate(code.splitlines(), 1):
        for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"^\s*//.*", "", line)):
            if is_sentence(match[1]):
                yield number, re.sub(r"\\\((?:[^()]|\([^()]*\))*\)", "X", match[1])


def text_faults(name: str, code: str) -> list[str]:
    return [fault for line, text in texts(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES + TEXT_SHAPES, line)]


def names(code: str) -> Iterator[tuple[int, str]]:
    """The names of tests that are sentences, each with its line, as sentences with a capital letter."""
    for number, line in enumerate(code.splitlines(), 1):
        for match in re.finditer(r"\bfunc `([^`]+)`", line):
            yield number, match[1][0].upper() + match[1][1:]


def name_faults(name: str, code: str) -> list[str]:
    return [fault for line, text in names(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES, line)]


def python_comments(code: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a Python file, each with its first line. Whole lines below each other are one comment."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text
    first, column, lines = 0, 0, []
    for token in (*tokenize.generate_tokens(io.StringIO(code).readline), None):
        if token and token.type != tokenize.COMMENT:
            continue
        whole = token and token.line.lstrip().startswith("#")
        if lines and not (whole and token.start == (first + len(lines), column)):
            yield first, "\n".join(lines)
            lines = []
        if token:
            first, column = (first, column) if lines else token.start
            lines.append(re.sub(r"^#!?/? ?|  # noqa.*|^noqa.*", "", token.string.removeprefix("# noqa")))


def spoken(node: ast.expr) -> str | None:
    """The text of a literal. A value in it is an X. `None` for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = spoken(node.left), spoken(node.right)
        return None if left is None and right is None else f"{left or 'X'}{right or 'X'}"
    return None


class CaseNames(ast.NodeVisitor):
    """Finds the names of the cases in a Python file, by the line and column of each.

    A name is the first argument of a decorator, or of a call whose result is called with the case, and both texts of a line of results. A variable
    in one of them adds the literals that it takes: from the loop around it, or from the calls of the function around it.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.found: dict[tuple[int, int], str] = {}
        self.scopes: list[ast.For | ast.FunctionDef] = []
        self.tables = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
        self.returned = {node.name: each.value for node in tree.body if isinstance(node, ast.FunctionDef) for each in node.body if isinstance(each, ast.Return)}
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        self.visit(tree)

    def visit_For(self, node: ast.For) -> None:
        self.scopes.append(node)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args:
                self.add(decorator.args[0])
        self.scopes.append(node)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("line", "case"):
            for argument in node.args[: 2 if node.func.id == "line" else 1]:
                self.add(argument)
        if isinstance(node.func, ast.Call) and node.func.args:
            self.add(node.func.args[0])
        self.generic_visit(node)

    def add(self, node: ast.expr) -> None:
        if (text := spoken(node)) is not None:
            self.found[node.lineno, node.col_offset] = text
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                for value in self.values(part.id):
                    if (text := spoken(value)) is not None:
                        self.found[value.lineno, value.col_offset] = text

    def rows(self, table: ast.expr) -> Iterator[ast.expr]:
        """The rows of a table: written in place, kept under a name, or returned by a function of the file."""
        part = ""
        if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute) and table.func.attr in ("items", "values"):
            table, part = table.func.value, table.func.attr
        if isinstance(table, ast.Name):
            table = self.tables.get(table.id, table)
        if isinstance(table, ast.Call) and isinstance(table.func, ast.Name):
            table = self.returned.get(table.func.id, table)
        if isinstance(table, ast.Dict):
            pairs = (ast.Tuple([key, value]) for key, value in zip(table.keys, table.values) if key)
            yield from table.values if part == "values" else pairs if part == "items" else filter(None, table.keys)
        elif isinstance(table, (ast.List, ast.Tuple)):
            for row in table.elts:
                yield from self.rows(row.value) if isinstance(row, ast.Starred) else [row]

    def values(self, name: str) -> Iterator[ast.expr]:
        """The expressions that a variable takes, as far as they are written in the file."""
        for scope in reversed(self.scopes):
            if isinstance(scope, ast.For):
                targets = scope.target.elts if isinstance(scope.target, ast.Tuple) else [scope.target]
                places = [place for place, target in enumerate(targets) if isinstance(target, ast.Name) and target.id == name]
                if places:
                    for row in self.rows(scope.iter):
                        yield row.elts[places[0]] if isinstance(row, ast.Tuple) and isinstance(scope.target, ast.Tuple) else row
                    return
            else:
                places = [place for place, argument in enumerate(scope.args.args) if argument.arg == name]
                if places:
                    yield from (call.args[places[0]] for call in self.calls if call.func.id == scope.name and places[0] < len(call.args))
                    return


def case_names(code: str) -> Iterator[tuple[int, str]]:
    """The names of the cases in a Python file, each with its line: parts between colons, as sentences with a capital letter."""
    for (line, _), text in sorted(CaseNames(ast.parse(code)).found.items()):
        for part in text.split(": "):
            if re.search(r"[A-Za-z]{2,} [A-Za-z]", part):
                yield line, part[0].upper() + part[1:]


def python_faults(name: str, code: str) -> list[str]:
    return [fault for line, text in python_comments(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES, line)] + [
        fault for line, text in case_names(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES + CASE_SHAPES, line)]


def page_texts(code: str) -> Iterator[tuple[int, str]]:
    """Literals, comments and texts between tags in a file of the page, each with its line."""
    found = r'"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`|(?:^|\s)//+ ?(.*)|/\*\*? ?(.*?)\*/|^\s+\* (.*)|>([^<>]+)<'
    for number, line in enumerate(code.splitlines(), 1):
        for match in re.finditer(found, line):
            text = next((group for group in match.groups() if group), "")
            if is_sentence(text):
                yield number, re.sub(r"\$\{[^}]*\}", "X", text)


def page_faults(name: str, code: str) -> list[str]:
    return [fault for line, text in page_texts(code) for fault in faults(name, text, SHAPES + COMMENT_SHAPES + TEXT_SHAPES, line)]


def script_faults(name: str, code: str) -> list[str]:
    """A script of the page or of its tests: no line is longer than `COLUMNS`."""
    return [f"{name}:{number}: {len(line)} columns: at most {COLUMNS}" for number, line in enumerate(code.splitlines(), 1) if len(line) > COLUMNS]


def trials() -> Iterator[tuple[str, list[str]]]:
    """Each shape on its own sentences: the bad ones are found, the good ones are not."""
    for shape in SHAPES + ARTICLE_SHAPES + COMMENT_SHAPES + TEXT_SHAPES + CASE_SHAPES:
        wrong = [f"{sentence!r} is not found" for sentence in shape.bad if not any(shape.found(readable(sentence)))]
        wrong += [f"{sentence!r} is found" for sentence in shape.good if any(shape.found(readable(sentence)))]
        yield f"the shape {shape.pattern}", wrong
    sample = "# A title\n\nA `code that is none` word.\n\n```sh\nread anew\n```\n\nIt is read\nanew.\n"
    expected = ["sample:10: 'anew.': again"]
    yield "a sample", [] if faults("sample", sample) == expected else [f"{faults('sample', sample)}, not {expected}"]
    code = '/// Read\n/// anew.\nlet who = "// anew"  // What is read.\n    // One `is none`\n    // that\n    //\n    // One that\n'
    expected = ["code:2: 'anew.': again", "code:3: 'What is read.': begin with a noun: the client, the value", "code:7: 'One that': begin with a noun: a request, a connection"]
    yield "a sample of code", [] if swift_faults("code", code) == expected else [f"{swift_faults('code', code)}, not {expected}"]
    code = '@Test func `what is none`() { fail("what \\(name) is") } // "what is not read"\n'
    expected = ["code:1: 'What is none': begin with a noun: the client, the value", "code:1: 'is none': say what is missing, or that it is invalid"]
    yield "a sample of names", [] if name_faults("code", code) == expected else [f"{name_faults('code', code)}, not {expected}"]
    code = '"""What is read."""\nTABLE = {"who waits": 1}\nfor label in TABLE:\n    @case(f"RFC 1: {label} is none")\n    def _(): pass  # Read anew.\n'
    expected = ["code:1: 'What is read.': begin with a noun: the client, the value", "code:5: 'anew.': again",
                "code:2: 'Who waits': begin with a noun: the client, the value", "code:4: 'is none': say what is missing, or that it is invalid",
                "code:4: 'none': say no request, without a certificate"]
    yield "a sample of Python", [] if python_faults("code", code) == expected else [f"{python_faults('code', code)}, not {expected}"]
    code = 'def refused(name):\n    case(f"{name}: refused")(run)\n\n\nrefused("a name that is none")\nline(name, "none fails", 1, True)\n'
    expected = ["code:5: 'is none': say what is missing, or that it is invalid", "code:6: 'None fails': say no request, without a certificate"]
    found = python_faults("code", code)
    yield "a sample of Python calls", [] if all(fault in found for fault in expected) else [f"{found}, not {expected}"]
    code = 'throw Mistake("what \\(name) is none, \\(at(1))")\n'
    expected = ["code:1: 'what X is none, X': begin with a noun: the client, the value", "code:1: 'is none, X': say what is missing, or that it is invalid"]
    yield "a sample of texts", [] if text_faults("code", code) == expected else [f"{text_faults('code', code)}, not {expected}"]
    code = '// Read it anew.\nmake("p", `${one} that nobody has`); make("a", "none"); /** One. */ "https://a.b"\n'
    expected = ["code:1: 'anew.': again", "code:2: 'nobody has': name the subject: the client, a request, the operator"]
    yield "a sample of the page", [] if page_faults("code", code) == expected else [f"{page_faults('code', code)}, not {expected}"]
    code, expected = "/**\n * It is read\n * by all, anew.\n */\n", ["code:3: 'anew.': again"]
    yield "a sample of a comment of the page", [] if page_faults("code", code) == expected else [f"{page_faults('code', code)}, not {expected}"]
    code, expected = "x" * COLUMNS + "\n" + "é" * (COLUMNS + 1) + "\n", [f"code:2: {COLUMNS + 1} columns: at most {COLUMNS}"]
    yield "a sample of a script", [] if script_faults("code", code) == expected else [f"{script_faults('code', code)}, not {expected}"]


def described(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "description" and isinstance(value, str))
        for value in node.values():
            yield from described(value)
    elif isinstance(node, list):
        for value in node:
            yield from described(value)


def declared(binary: str) -> Iterator[tuple[str, str]]:
    """The texts of the program: the descriptions in the schema, and the help of each command."""

    def printed(*arguments: str) -> str:
        return subprocess.run([binary, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

    yield "httpware schema", "\n\n".join(dict.fromkeys(described(json.loads(printed("schema")))))
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        command = waiting.pop()
        text = printed(*command, "--help")
        yield " ".join(("httpware", *command, "--help")), text
        listed = "\n".join(re.findall(r"(?ms)^(?:[A-Z ]+ )?SUBCOMMANDS:\n(.*?)(?:\n\n|\Z)", text))
        waiting += [(*command, name) for name in re.findall(r"(?m)^  (\w[\w-]*)", listed) if name != "help"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--binary")
    options = parser.parse_args()
    comment_rooms = [*(ROOT / "Sources" / room for room in ROOMS), ROOT / "Tests"]
    files = options.files or [ROOT / "README.md", ROOT / "Tests/README.md", *sorted(ROOT.glob("Sources/*/*.docc/**/*.md")), *comment_rooms]
    results = list(trials())

    def read(folder: Path, suffixes: tuple[str, ...], check: Callable[[str, str], list[str]]) -> None:
        paths = sorted(path for path in folder.rglob("*") if path.suffix in suffixes) if folder.is_dir() else [folder]
        for path in paths:
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
            results.append((name, check(name, path.read_text())))

    for file in files:
        check = swift_faults if file.is_dir() or file.suffix == ".swift" else python_faults if file.suffix == ".py" else page_faults if file.suffix in (".js", ".html") else faults
        read(file, (".swift",), check)
    if not options.files:
        read(ROOT / "Sources", (".swift",), text_faults)
        read(ROOT / "Tests", (".swift",), name_faults)
        read(ROOT / "Tests", (".py",), python_faults)
        read(ROOT / PAGE, (".js", ".html"), page_faults)
        read(ROOT / PAGE, (".js",), script_faults)
        read(ROOT / "Tests/Page", (".mjs",), script_faults)
    if options.binary:
        results += [(name, faults(name, text)) for name, text in declared(options.binary)]
    for name, wrong in results:
        for fault in wrong:
            print(f"FAILED  {fault if fault.startswith(name) else f'{name}: {fault}'}")
    failed = sum(bool(wrong) for _, wrong in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
