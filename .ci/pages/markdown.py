"""Markdown to HTML: the part of it that the articles use, which is CommonMark without raw HTML, with tables."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
HEADING = re.compile(r"^(#{1,6}) (.*)$")
ITEM = re.compile(r"^(?:([-*])|\d+\.) +(.*)$")
RULE = re.compile(r"^\|[-| :]+\|$")
# In this order at each place: code, a picture, a link, an address, strong, emphasis, an escaped sign.
INLINE = re.compile(
    r"(?s)(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|!\[(?P<alternative>[^\]]*)\]\((?P<picture>[^)\s]+)\)"
    r"|\[(?P<text>(?:[^\[\]`]|`[^`]*`)+)\]\((?P<target>[^)\s]+)\)"
    r"|<(?P<address>(?:doc|https?):[^>\s]+)>"
    r"|\*\*(?P<strong>.+?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*(?!\w)"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+.!|<>-])"
)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w-]", "", heading.strip().replace("`", "").lower().replace(" ", "-"))


@dataclass
class Section:
    """A part of a page: what the search finds."""

    heading: str
    anchor: str
    text: str = ""
    # The code in the first cells of tables: names of options, statuses, metrics.
    keys: list[str] = field(default_factory=list)


@dataclass
class Rendered:
    title: str = ""
    body: str = ""
    # Level, text and anchor of each heading below the title.
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)


class Renderer:
    """One page. `link` makes an address from a target, or `None` where it leads nowhere here; `named` the text of a target; `picture` an element."""

    def __init__(self, link: Callable[[str], str | None], named: Callable[[str], str], picture: Callable[[str, str], str], code: Callable[[str], str | None]):
        self.link, self.named, self.picture, self.code = link, named, picture, code

    def render(self, text: str) -> Rendered:
        page, out = Rendered(), []
        lines = re.sub(r"(?s)<!--.*?-->", "", text).splitlines()
        at = 0
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                at += 1
            elif fence := FENCE.match(line):
                end = next((number for number in range(at + 1, len(lines)) if lines[number] == fence[1]), len(lines))
                out.append(self.block("\n".join(lines[at + 1:end]), fence[2]))
                self.says(page, "\n".join(lines[at + 1:end]))
                at = end + 1
            elif heading := HEADING.match(line):
                self.heading(page, out, len(heading[1]), heading[2])
                at += 1
            elif line.startswith("|") and at + 1 < len(lines) and RULE.match(lines[at + 1]):
                end = next((number for number in range(at, len(lines)) if not lines[number].startswith("|")), len(lines))
                out.append(self.table(page, lines[at:end]))
                at = end
            elif item := ITEM.match(line):
                tag = "ul" if item[1] else "ol"
                items, at = self.items(lines, at, bool(item[1]))
                out.append(f"<{tag}>\n" + "".join(f"<li>{self.inline(each)}</li>\n" for each in items) + f"</{tag}>")
                self.says(page, *items)
            else:
                end = next((number for number in range(at + 1, len(lines)) if self.ends(lines, number)), len(lines))
                paragraph = "\n".join(lines[at:end])
                out.append(f"<p>{self.inline(paragraph)}</p>")
                self.says(page, paragraph)
                at = end
        page.body = "\n".join(out)
        return page

    @staticmethod
    def ends(lines: list[str], at: int) -> bool:
        """Whether another block begins at this line."""
        line = lines[at]
        return not line.strip() or bool(FENCE.match(line) or HEADING.match(line) or ITEM.match(line) or line.startswith("|"))

    @staticmethod
    def items(lines: list[str], at: int, is_bullet: bool) -> tuple[list[str], int]:
        """The items of a list, and the line behind it. An item ends at an empty line or at the next one."""
        items: list[str] = []
        while at < len(lines):
            line = lines[at]
            if (item := ITEM.match(line)) and bool(item[1]) == is_bullet:
                items.append(item[2])
            elif items and line.startswith(" ") and line.strip():
                items[-1] += "\n" + line.strip()
            elif items and line.strip() and not FENCE.match(line) and not HEADING.match(line) and not line.startswith("|") and not item:
                items[-1] += "\n" + line
            else:
                break
            at += 1
        return items, at

    def heading(self, page: Rendered, out: list[str], level: int, text: str) -> None:
        plain = self.plain(text)
        if level == 1:
            page.title = plain
            page.sections.append(Section("", ""))
            out.append(f"<h1>{self.inline(text)}</h1>")
            return
        anchor = slug(text)
        page.headings.append((level, plain, anchor))
        page.sections.append(Section(plain, anchor))
        out.append(f'<h{level} id="{html.escape(anchor)}">{self.inline(text)} <a class="anchor" href="#{html.escape(anchor)}" aria-label="Link to this heading">#</a></h{level}>')

    def table(self, page: Rendered, lines: list[str]) -> str:
        head, _, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))] for line in lines)
        out = "<tr>" + "".join(f"<th>{self.inline(cell)}</th>" for cell in head) + "</tr>\n"
        for row in rows:
            self.says(page, " ".join(row))
            if page.sections:
                page.sections[-1].keys += re.findall(r"`([^`]+)`", row[0]) or ([row[0]] if re.fullmatch(r"\d{3}", row[0]) else [])
            out += "<tr>" + "".join(f"<td>{self.inline(cell.replace(chr(92) + '|', '|'))}</td>" for cell in row) + "</tr>\n"
        return f'<div class="table"><table>\n{out}</table></div>'

    @staticmethod
    def block(text: str, language: str) -> str:
        escaped = html.escape(text, quote=False)
        if language in ("yaml", "sh"):
            escaped = re.sub(r"(?m)(^|\s)(#.*)$", r'\1<span class="comment">\2</span>', escaped)
        return f'<pre class="{language or "text"}"><code>{escaped}</code></pre>'

    def inline(self, text: str) -> str:
        out, end = [], 0
        for match in INLINE.finditer(text):
            out.append(html.escape(text[end:match.start()], quote=False))
            out.append(self.piece(match))
            end = match.end()
        return "".join(out) + html.escape(text[end:], quote=False)

    def piece(self, match: re.Match) -> str:
        if match["code"]:
            code = f"<code>{html.escape(match['code'].strip() if len(match['ticks']) > 1 else match['code'], quote=False)}</code>"
            address = self.code(match["code"])
            return f'<a href="{html.escape(address)}">{code}</a>' if address else code
        if match["picture"]:
            return self.picture(match["picture"], match["alternative"])
        if match["target"]:
            # Code in it would be a link in a link.
            inner = Renderer(self.link, self.named, self.picture, lambda _: None).inline(match["text"])
            return self.anchored(match["target"], inner)
        if match["address"]:
            return self.anchored(match["address"], html.escape(self.named(match["address"]), quote=False))
        if match["strong"]:
            return f"<strong>{self.inline(match['strong'])}</strong>"
        if match["emphasis"]:
            return f"<em>{self.inline(match['emphasis'])}</em>"
        return html.escape(match["escaped"], quote=False)

    def anchored(self, target: str, inner: str) -> str:
        address = self.link(target)
        return f'<a href="{html.escape(address)}">{inner}</a>' if address else inner

    def plain(self, text: str) -> str:
        return html.unescape(re.sub(r"<[^>]+>", "", self.inline(text)))

    def says(self, page: Rendered, *texts: str) -> None:
        if page.sections:
            page.sections[-1].text += " ".join(("", *(re.sub(r"\s+", " ", self.plain(text) if "\n" not in text or "`" in text or "<" in text else text) for text in texts)))
