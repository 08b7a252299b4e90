"""Markdown to HTML, by markdown-it: CommonMark with tables and without raw HTML, and what a search finds on a page."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from Rig.packages import provide

provide("markdown-it-py==4.3.0")

from markdown_it import MarkdownIt  # noqa: E402
from markdown_it.token import Token  # noqa: E402


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
    """One page. `link` makes an address from a target, or `None` where it leads nowhere here; `named` the text of a target; `picture` an element; `code` the address
    of a file that code names."""

    def __init__(self, link: Callable[[str], str | None], named: Callable[[str], str], picture: Callable[[str, str], str], code: Callable[[str], str | None]):
        self.link, self.named, self.picture, self.code = link, named, picture, code
        self.parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        for name, rule in {"fence": self.fence, "code_inline": self.code_inline, "image": self.image, "heading_close": self.heading_close,
                           "table_open": lambda *_: '<div class="table"><table>\n', "table_close": lambda *_: "</table></div>\n"}.items():
            self.parser.renderer.rules[name] = rule

    def render(self, text: str) -> Rendered:
        page = Rendered()
        tokens = self.parser.parse(re.sub(r"(?s)<!--.*?-->", "", text))
        for at, token in enumerate(tokens):
            before = tokens[at - 1] if at else None
            if token.type == "fence":
                self.says(page, token.content)
            elif token.type == "inline":
                self.settle_links(token)
                if before.type == "heading_open":
                    self.heading(page, before, token)
                elif before.type != "th_open":
                    self.says(page, self.plain(token))
                if before.type == "td_open" and tokens[at - 2].type == "tr_open" and page.sections:
                    page.sections[-1].keys += [child.content for child in token.children if child.type == "code_inline"] or re.findall(r"^\d{3}$", token.content)
        page.body = self.parser.renderer.render(tokens, self.parser.options, {})
        return page

    def settle_links(self, inline: Token) -> None:
        """Gives links their addresses; a link that leads nowhere here becomes its text. Code in a link is no link of its own."""
        is_inside = is_link = False
        for at, child in enumerate(inline.children):
            if child.type == "link_open":
                target = child.attrGet("href")
                address = self.link(target)
                if child.markup == "autolink":
                    inline.children[at + 1].content = self.named(target)
                is_inside, is_link = True, address is not None
                child.attrSet("href", address or "")
                child.hidden = not is_link
            elif child.type == "link_close":
                child.hidden = not is_link
                is_inside = False
            child.meta["is_inside"] = is_inside
        inline.children = [child for child in inline.children if not (child.hidden and child.type.startswith("link"))]

    @staticmethod
    def plain(inline: Token) -> str:
        return "".join({"softbreak": " "}.get(child.type, child.content) for child in inline.children)

    def heading(self, page: Rendered, opening: Token, inline: Token) -> None:
        plain = self.plain(inline)
        if opening.tag == "h1":
            page.title = plain
            page.sections.append(Section("", ""))
            return
        anchor = slug(inline.content)
        opening.attrSet("id", anchor)
        page.headings.append((int(opening.tag[1]), plain, anchor))
        page.sections.append(Section(plain, anchor))

    @staticmethod
    def heading_close(tokens: list[Token], at: int, *_: object) -> str:
        anchor, tag = tokens[at - 2].attrGet("id"), tokens[at].tag
        mark = f' <a class="anchor" href="#{html.escape(anchor)}" aria-label="Link to this heading">#</a>' if anchor else ""
        return f"{mark}</{tag}>\n"

    def fence(self, tokens: list[Token], at: int, *_: object) -> str:
        return self.block(tokens[at].content.rstrip("\n"), tokens[at].info.strip()) + "\n"

    @staticmethod
    def block(text: str, language: str) -> str:
        escaped = html.escape(text, quote=False)
        if language in ("yaml", "sh"):
            escaped = re.sub(r"(?m)(^|\s)(#.*)$", r'\1<span class="comment">\2</span>', escaped)
        return f'<pre class="{language or "text"}"><code>{escaped}</code></pre>'

    def code_inline(self, tokens: list[Token], at: int, *_: object) -> str:
        code = f"<code>{html.escape(tokens[at].content, quote=False)}</code>"
        address = None if tokens[at].meta.get("is_inside") else self.code(tokens[at].content)
        return f'<a href="{html.escape(address)}">{code}</a>' if address else code

    def image(self, tokens: list[Token], at: int, *_: object) -> str:
        return self.picture(tokens[at].attrGet("src"), tokens[at].content)

    @staticmethod
    def says(page: Rendered, text: str) -> None:
        if page.sections:
            page.sections[-1].text += " " + re.sub(r"\s+", " ", text).strip()
