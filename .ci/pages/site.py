"""The articles as static pages: HTML that can be read without JavaScript, with contents beside the text, and the index of a search."""

from __future__ import annotations

import html
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pages import words
from pages.markdown import Rendered, Renderer

HERE = Path(__file__).resolve().parent
# The catalogues whose articles are pages. Of the other modules, DocC shows the types.
CATALOGUES = ("HttpGateway", "HttpWareClient")
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{sentence}">
<link rel="stylesheet" href="articles.css">
<script src="search.js" defer></script>
</head>
<body>
<a class="skip" href="#the-text">To the text</a>
<header>
<a class="name" href="index.html">httpware</a>
<form role="search" action="search.html"><input type="search" name="q" placeholder="Search (press /)" aria-label="Search" autocomplete="off"><div id="search-found" hidden></div></form>
<a class="to-articles" href="#the-articles">Articles</a>
</header>
<div class="columns">
<nav id="the-articles" aria-label="Articles">
{articles}
</nav>
<main id="the-text"{wide}>
{body}
</main>
{contents}
</div>
</body>
</html>
"""


@dataclass
class Article:
    name: str
    path: Path
    text: str

    @property
    def file(self) -> str:
        return f"{self.name}.html"

    @property
    def title(self) -> str:
        return re.sub(r"[`*]", "", self.text.partition("\n")[0].lstrip("# "))

    @property
    def sentence(self) -> str:
        """The first sentence below the title, without marks."""
        line = next((line for line in self.text.splitlines()[1:] if line.strip()), "")
        return re.sub(r"[`*]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", line))


class Site:
    def __init__(self, root: Path, modules: list[str]):
        self.root, self.modules = root, modules
        self.articles: dict[str, Article] = {}
        for module in CATALOGUES:
            for path in sorted((root / f"Sources/{module}/{module}.docc").glob("**/*.md")):
                self.articles[path.stem] = Article(path.stem, path, path.read_text())
        self.pictures = {path.name: path for module in CATALOGUES for path in (root / f"Sources/{module}/{module}.docc/Resources").glob("*")}
        self.files: dict[str, str] = {}
        self.faults: list[str] = []
        self.has_types = False
        self.counted = ""

    # MARK: Writing

    def write(self, folder: Path) -> list[str]:
        """Writes all pages, and returns the faults: links that lead nowhere."""
        folder.mkdir(parents=True, exist_ok=True)
        self.has_types = (folder / "documentation").is_dir()
        if self.has_types:
            self.faults += [f"documentation/{name.lower()} does not exist" for name in self.modules if not (folder / "documentation" / name.lower() / "index.html").exists()]
        for stale in folder.glob("*.html"):
            stale.unlink()
        pages: list[tuple[str, Rendered]] = []
        for article in self.articles.values():
            if article.name == "HttpGateway":
                continue
            # What follows is the order of DocC's contents.
            page = self.renderer(article).render(article.text.partition("\n## Topics\n")[0])
            pages.append((article.file, page))
            (folder / article.file).write_text(self.framed(f"{page.title} – httpware", article.sentence, page.body, article.file, self.beside(page)))
        for path, file in sorted(self.files.items()):
            text = (self.root / path).read_text()
            body = f"<h1>{html.escape(path)}</h1>\n{Renderer.block(text.rstrip(), 'yaml' if path.endswith('.yaml') else '')}"
            (folder / file).write_text(self.framed(f"{path} – httpware", path, body, file))
        (folder / "index.html").write_text(self.framed("httpware", self.sentence, self.home(), "index.html"))
        results = '<h1>Search</h1>\n<div id="search-results"><p>The search needs JavaScript. All articles are in the list beside.</p></div>'
        (folder / "search.html").write_text(self.framed("Search – httpware", "Search", results, "search.html"))
        table = json.dumps(words.index(pages), ensure_ascii=False, separators=(",", ":"))
        (folder / "search-index.json").write_text(table)
        shutil.copyfile(HERE / "search.js", folder / "search.js")
        shutil.copyfile(HERE / "style.css", folder / "articles.css")
        for name, path in self.pictures.items():
            (folder / "pictures").mkdir(exist_ok=True)
            shutil.copyfile(path, folder / "pictures" / name)
        self.counted = f"{len(pages)} articles, {len(self.files)} files, an index of {len(table.encode()) // 1024} KiB"
        return self.faults

    def framed(self, title: str, sentence: str, body: str, file: str, contents: str = "") -> str:
        return FRAME.format(title=html.escape(title), sentence=html.escape(sentence), articles=self.listed(file), body=body, contents=contents,
                            wide="" if contents else ' class="wide"')

    def beside(self, page: Rendered) -> str:
        """The headings of a page."""
        rows = [f'<li{" class=deep" if level > 2 else ""}><a href="#{html.escape(anchor)}">{html.escape(text)}</a></li>' for level, text, anchor in page.headings]
        return f'<aside aria-label="On this page"><h2>On this page</h2><ul>{"".join(rows)}</ul></aside>'

    # MARK: Contents

    @property
    def sentence(self) -> str:
        return Article("README", self.root, (self.root / "README.md").read_text()).sentence

    def topics(self) -> list[tuple[str, list[str]]]:
        """The headings of the catalogues, each with its articles."""
        found = []
        for module in CATALOGUES:
            for topic in re.split(r"(?m)^### ", self.articles[module].text.partition("\n## Topics\n")[2])[1:]:
                if names := re.findall(r"(?m)^- <doc:([\w-]+)>$", topic):
                    found.append((topic.splitlines()[0] if module == "HttpGateway" else f"In a Swift app: {topic.splitlines()[0].lower()}", names))
        client = next((number for number, (title, _) in enumerate(found) if title.startswith("In a Swift app")), len(found))
        # One group for all articles of the client, with the one that leads into it.
        return [*found[:client], ("In a Swift app", ["HttpWareClient", *(name for _, names in found[client:] for name in names)])]

    def wares(self) -> list[str]:
        return sorted((name for name in self.articles if name.startswith("ware-")), key=str.lower)

    def listed(self, file: str) -> str:
        out = []
        for topic, names in self.topics():
            out.append(f"<h2>{html.escape(topic)}</h2>\n<ul>")
            for name in names:
                out.append(f"<li>{self.entry(name, file)}</li>")
                if name == "Wares":
                    is_open = " open" if file.startswith("ware-") else ""
                    rows = "".join(f"<li>{self.entry(ware, file)}</li>" for ware in self.wares())
                    out.append(f"<li><details{is_open}><summary>a page for each</summary><ul>{rows}</ul></details></li>")
            out.append("</ul>")
        return "\n".join(out)

    def entry(self, name: str, file: str) -> str:
        article = self.articles[name]
        current = ' aria-current="page"' if article.file == file else ""
        return f'<a href="{article.file}"{current}>{html.escape(article.title)}</a>'

    def home(self) -> str:
        out = ["<h1>httpware</h1>", f"<p>{html.escape(self.sentence)}</p>"]
        for topic, names in self.topics():
            cards = "".join(f'<li><a href="{self.articles[name].file}">{html.escape(self.articles[name].title)}</a><small>{html.escape(self.articles[name].sentence)}</small></li>\n' for name in names)
            out.append(f'<h2>{html.escape(topic)}</h2>\n<ul class="cards">\n{cards}</ul>')
        if self.has_types:
            cards = "".join(f'<li><a href="documentation/{name.lower()}/">{name}</a></li>\n' for name in self.modules)
            out.append(f'<h2>Types and functions in Swift</h2>\n<ul class="cards">\n{cards}</ul>')
        return "\n".join(out)

    # MARK: Links

    def renderer(self, article: Article) -> Renderer:
        return Renderer(lambda target: self.link(article, target), self.named, self.picture, self.file)

    def link(self, article: Article, target: str) -> str | None:
        """The address of a target; `None` if it is not on this site, where the text stands alone."""
        if re.match(r"https?:", target) or target.startswith("#"):
            return target
        if target.startswith("doc:"):
            path, _, anchor = target[4:].partition("#")
            parts = [part for part in path.split("/") if part and part != "documentation"]
            name = parts[-1] if parts else article.name
            if name == "HttpGateway":
                return "index.html"
            if name in self.articles:
                from_heading = re.sub(r"[^\w-]", "", anchor.lower())
                return self.articles[name].file + (f"#{from_heading}" if from_heading else "")
            if len(parts) > 1 and self.has_types:
                return f"documentation/{'/'.join(parts).lower()}/"
            if len(parts) == 1 and parts[0] in self.modules:
                return f"documentation/{parts[0].lower()}/" if self.has_types else None
            if len(parts) == 1:
                self.faults.append(f"{article.path.relative_to(self.root)}: <{target}>: no such article")
            return None
        return self.file(str((article.path.parent / target.partition("#")[0]).resolve().relative_to(self.root))) if (article.path.parent / target.partition("#")[0]).exists() else None

    def named(self, target: str) -> str:
        name = re.split(r"[/#]", target.removeprefix("doc:").rstrip("/"))
        found = next((part for part in reversed(name) if part in self.articles), None)
        return self.articles[found].title if found else target.removeprefix("doc:")

    def file(self, path: str) -> str | None:
        """The page of a file that a text names, such as `conf/wares/jwt.yaml`."""
        if not re.fullmatch(r"(?:conf|docker)/[\w./-]+\.(?:yaml|json|conf|txt|lua|py)", path) or not (self.root / path).is_file():
            return None
        self.files[path] = path.replace("/", "-") + ".html"
        return self.files[path]

    def picture(self, name: str, alternative: str) -> str:
        light = next((file for file in self.pictures if Path(file).stem == name), None)
        dark = next((file for file in self.pictures if Path(file).stem == f"{name}~dark"), None)
        if not light:
            self.faults.append(f"{name}: no such picture")
            return ""
        source = f'<source media="(prefers-color-scheme: dark)" srcset="pictures/{dark}">' if dark else ""
        return f'<picture>{source}<img src="pictures/{light}" alt="{html.escape(alternative)}" loading="lazy"></picture>'
