#!/usr/bin/env python3
"""The articles as a site: `.ci/docs --articles` builds it, every link and anchor leads somewhere, the search finds, and newcomers' questions have answers.

    Tests/Articles/site.py [--only TEXT]

Each of `SEARCHES` has to find its page first or second, by `search.js` in Node; without Node these are skipped. Each of `QUESTIONS` has its answer
below a heading of a page, at most two links away from the README or from the site's first page, or found by one search. With chromium,
chromium-driver and selenium, the search box is used as a reader would; without them that is skipped. Python 3.11. Last: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests"), str(ROOT / ".ci")]
sys.dont_write_bytecode = True

from pages import words  # noqa: E402
from pages.markdown import Renderer, slug  # noqa: E402
from pages.site import Site  # noqa: E402
from Rig.packages import NotInstalled, provide  # noqa: E402
from Rig.waits import eventually  # noqa: E402

SITE = ROOT / ".build-docs/site"
CATALOGUE = ROOT / "Sources/HttpGateway/HttpGateway.docc"

# Queries of readers, and the page that has to be first or second.
SEARCHES = {
    "staleIfError": "ware-httpCache",
    "sticky": "ConfigurationServices",
    "docker": "Containers",
    "compose": "Containers",
    "kubernetes": "Containers",
    "grafana": "Monitoring",
    "prometheus": "Monitoring",
    "opentelemetry": "Monitoring",
    "alerts": "Monitoring",
    "token": "Tokens",
    "502": "WhenSomethingIsWrong",
    "429": "ware-rateLimit",
    "nginx": "ComingFrom",
    "rate limit": "ware-rateLimit",
    "https certificate": "ConfigurationCertificates",
    "let's encrypt": "ConfigurationCertificates",
    "health check": "ConfigurationServices",
    "cors": "ware-cors",
    "oidcLogin": "ware-oidcLogin",
    "trustedProxies": "ConfigurationListeners",
    "agent": "TokensForPrograms",
    "breakpoint": "Admin",
    "systemd": "Operations",
    "lua": "Scripts",
    "mitmproxy addon": "Addons",
    "websocket": "Recipes",
    "exit status": "Commands",
    "cach": "Caching",
}

# The question of a newcomer; the search that finds the answer; the page, the heading above the answer, and words of the answer.
QUESTIONS = [
    ("How do I see my program's token?", "see token", "LocalProxy", "See a token that a program sends", "har export --with-secrets"),
    ("How do I run it with Docker?", "docker run", "Containers", "Docker", "docker run --rm"),
    ("How do I get a dashboard?", "dashboard", "Monitoring", "Grafana", "docker/compose/dashboard.json"),
    ("How do I add HTTPS?", "add https", "ConfigurationCertificates", "Certificates by ACME", "tls: { acme:"),
    ("How do I limit requests?", "limit requests", "ware-rateLimit", "Overview", "rateLimit: { rate:"),
    ("How do I hide a token from an agent?", "hide token agent", "TokensForPrograms", None, "placeholder"),
    ("How do I cache?", "how do I cache", "Caching", "Overview", "httpCache"),
    ("Why is my request 502?", "why 502", "WhenSomethingIsWrong", "A status that the application did not send", "connection_refused"),
    ("How do I write my own ware?", "write my own ware", "WritingAWare", None, "ConfigurableWare"),
    ("How do I come from nginx?", "come from nginx", "ComingFrom", None, "httpware import nginx"),
]


class Failed(Exception):
    pass


def expect(condition: object, *shown: object) -> None:
    if not condition:
        raise Failed(" ".join(str(one)[-1200:] for one in shown))


class Page(HTMLParser):
    """The links, anchors and elements of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.anchors: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag not in ("meta", "link", "img", "input", "source", "br"):
            self.open.append(tag)
        if tag == "a" and self.open.count("a") > 1:
            self.faults.append("a link in a link")
        if tag == "img" and not named.get("alt"):
            self.faults.append("a picture without words")
        self.links += [named["href"]] if "href" in named else []
        self.sources += [named[name] for name in ("src", "srcset") if name in named]
        self.anchors += [named["id"]] if "id" in named else []

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another element")


@functools.cache
def built() -> dict[str, Page]:
    """All pages of the site, just built."""
    done = subprocess.run([str(ROOT / ".ci/docs"), "--articles"], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stdout, done.stderr)
    return {path.name: Page(path.read_text()) for path in sorted(SITE.glob("*.html"))}


def found(queries: list[str]) -> dict[str, list[dict]]:
    """The pages that `search.js` finds for each query, best first."""
    script = f"""
        require({json.dumps(str(SITE / "search.js"))});
        const index = JSON.parse(require("fs").readFileSync({json.dumps(str(SITE / "search-index.json"))}, "utf8"));
        const queries = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(Object.fromEntries(queries.map((one) => [one, Search.find(index, one)]))));"""
    done = subprocess.run(["node", "-e", script], input=json.dumps(queries), capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


TRIALS: dict[str, Callable[[], str | None]] = {}


def trial(title: str) -> Callable:
    def register(run: Callable[[], str | None]) -> Callable:
        TRIALS[title] = run
        return run

    return register


@trial("Markdown becomes HTML")
def _() -> None:
    def shown(text: str) -> str:
        return Renderer(lambda target: f"{target}.html" if target != "doc:none" else None, lambda target: "T", lambda name, words: f"<{name}>", lambda path: None).render(text).body.rstrip("\n")

    for text, expected in (
        ("a < b & `c<d>`", "<p>a &lt; b &amp; <code>c&lt;d&gt;</code></p>"),
        ("**bold** and *slanted*, 2 * 3 * 4, a*b", "<p><strong>bold</strong> and <em>slanted</em>, 2 * 3 * 4, a*b</p>"),
        ("[`a`](x) <doc:y> [b](doc:none)", '<p><a href="x.html"><code>a</code></a> <a href="doc:y.html">T</a> b</p>'),
        ("``Type`` and `*not*`", "<p><code>Type</code> and <code>*not*</code></p>"),
        ("- a\n  b\n- c\n\nd", "<ul>\n<li>a\nb</li>\n<li>c</li>\n</ul>\n<p>d</p>"),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("| a | b |\n|---|---|\n| `x \\| y` | |", '<div class="table"><table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td><code>x | y</code></td>\n<td></td>\n</tr>\n</tbody>\n</table></div>'),
        ("```yaml\na: <b> # c\n# d\n```", '<pre class="yaml"><code>a: &lt;b&gt; <span class="comment"># c</span>\n<span class="comment"># d</span></code></pre>'),
        ("```\n## no heading\n```", '<pre class="text"><code>## no heading</code></pre>'),
        ("<!-- not\nshown -->a <script>", "<p>a &lt;script&gt;</p>"),
        ("![w](p)", "<p><p></p>"),
    ):
        expect(shown(text) == expected, text, shown(text))


@trial("the site is built from the articles")
def _() -> None:
    pages = built()
    for path in CATALOGUE.glob("**/*.md"):
        expect(path.stem == "HttpGateway" or f"{path.stem}.html" in pages, path)
    expect(len(pages) > 100, len(pages))


@trial("every link, anchor and picture leads somewhere")
def _() -> None:
    pages, faults = built(), []
    for name, page in pages.items():
        faults += [f"{name}: {fault}" for fault in page.faults]
        faults += [f"{name}: #{anchor} twice" for anchor in {one for one in page.anchors if page.anchors.count(one) > 1}]
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"https?:", link) or path.startswith("documentation/"):
                continue
            if path and not (SITE / path).exists():
                faults.append(f"{name}: {link} does not exist")
            elif anchor and anchor not in pages[path or name].anchors:
                faults.append(f"{name}: {link}: no such heading")
        faults += [f"{name}: {source} does not exist" for source in page.sources if not (SITE / source).exists()]
    expect(not faults, *faults[:20])


@trial("beside DocC's pages, the first page leads to each module, and a missing one is a fault")
def _() -> None:
    modules = ["HttpGateway", "HttpWareClient", "HttpWare"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for module in modules[:2]:
            place = folder / "documentation" / module.lower()
            place.mkdir(parents=True)
            (place / "index.html").write_text("")
        (folder / "Former.html").write_text("an article that was removed")
        faults = Site(ROOT, modules).write(folder)
        expect(faults == ["documentation/httpware does not exist"], faults)
        links = Page((folder / "index.html").read_text()).links
        expect(all(f"documentation/{module.lower()}/" in links for module in modules), links)
        expect(not (folder / "Former.html").exists(), "a former page is left")


@trial("DocC finds every article and heading that a link names")
def _() -> str | None:
    swift = shutil.which("swift")
    docc = shutil.which("docc") or swift and shutil.which("docc", path=str(Path(swift).resolve().parent))
    if not docc:
        return "docc is missing"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([docc, "convert", str(CATALOGUE), "--fallback-display-name", "HttpGateway", "--fallback-bundle-identifier", "HttpGateway",
                               "--output-path", f"{folder}/out"], capture_output=True, text=True, timeout=300)
    # Its symbols are not there, so the module itself is not found.
    found = [line for line in re.findall(r"(?m)^(?:warning|error): .*", done.stdout + done.stderr) if "'HttpGateway'" not in line]
    expect(not found, *found[:20])


@trial("no mark of Markdown is left in a page")
def _() -> None:
    built()
    for path in SITE.glob("*.html"):
        text = re.sub(r"(?s)<(pre|code|script)\b.*?</\1>", "", path.read_text())
        left = re.search(r"\*\*\w[^*\n]*\*\*|\]\(|doc:|```|(?m:^#{1,6} )", html.unescape(re.sub(r"<[^>]+>", "", text)))
        expect(not left, path.name, left and left[0], left and left.string[max(0, left.start() - 60):left.end() + 60])


@trial("words of the index and of a query are divided alike")
def _() -> str | None:
    if not shutil.which("node"):
        return "node is missing"
    built()
    sample = " ".join(path.read_text() for path in sorted(CATALOGUE.glob("*.md")))
    script = f'require({json.dumps(str(SITE / "search.js"))}); console.log(JSON.stringify(Search.words(require("fs").readFileSync(0, "utf8"))));'
    done = subprocess.run(["node", "-e", script], input=sample, capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0, done.stderr)
    theirs, ours = json.loads(done.stdout), words.words(sample)
    expect(theirs == ours, next(((a, b) for a, b in zip(theirs, ours) if a != b), (len(theirs), len(ours))))
    expect(words.words("staleIfError caches HTTPS the keys") == ["staleiferror", "stal", "error", "cach", "https", "key"], words.words("staleIfError caches HTTPS the keys"))


@trial("the search finds the right page")
def _() -> str | None:
    if not shutil.which("node"):
        return "node is missing"
    built()
    wrong = []
    for query, pages in found(list(SEARCHES)).items():
        first = [page["file"].removesuffix(".html") for page in pages[:2]]
        if SEARCHES[query] not in first:
            wrong.append(f"{query!r} finds {first}, not {SEARCHES[query]}")
    expect(not wrong, "; ".join(wrong))
    nothing = found(["qqqqzzzz", "", "the of"])
    expect(nothing == {"qqqqzzzz": [], "": [], "the of": []}, nothing)


def distances() -> dict[str, int]:
    """How many links each page is away from the README, or from the site's first page: the smaller number."""
    pages = built()
    readme = {f"{name}.html" for name in re.findall(r"\.docc/(?:\w+/)?([\w-]+)\.md", (ROOT / "README.md").read_text())}
    near = {page: 1 for page in readme} | {link.partition("#")[0]: 1 for link in pages["index.html"].links}
    far = {}
    for page in near:
        if page in pages:
            # The list beside each text would make every page near: only links of the text count.
            text = re.search(r"(?s)<main.*</main>", (SITE / page).read_text())
            far |= {link.partition("#")[0]: 2 for link in re.findall(r'href="([^"]+)"', text[0] if text else "")}
    return far | near


@trial("each question of a newcomer has its answer, near or found")
def _() -> str | None:
    pages, near = built(), distances()
    for question, _, name, heading, answer in QUESTIONS:
        text = next(CATALOGUE.glob(f"**/{name}.md")).read_text()
        if heading:
            expect(slug(heading) in pages[f"{name}.html"].anchors, question, "no heading", heading)
            parts = re.split(rf"(?m)^##+ {re.escape(heading)}$", text)
            text = re.split(r"(?m)^## ", parts[1])[0]
        expect(answer in text, question, "is not answered in", name, heading)
        expect(near.get(f"{name}.html", 9) <= 2, question, name, "is not within two links")
    if not shutil.which("node"):
        return "node is missing"
    results = found([query for _, query, *_ in QUESTIONS])
    for question, query, name, *_ in QUESTIONS:
        first = [page["file"] for page in results[query][:3]]
        expect(f"{name}.html" in first, question, query, "finds", first)


@trial("the README is short, and begins with three lines to copy")
def _() -> None:
    text = (ROOT / "README.md").read_text()
    expect(len(text.split()) <= 900, len(text.split()), "words")
    blocks = re.split(r"\n\n", text)
    expect(blocks[0] == "# httpware" and blocks[1].count(". ") == 0 and blocks[1].endswith("."), blocks[:2])
    lines = blocks[2].splitlines()
    expect(lines[0] == "```sh" and len(lines) == 5, lines)
    expect(all(word in line for word, line in zip(("apt install", "docker run", "make install"), lines[1:4])), lines)
    expect(all(word in text for word in ("Prometheus", "Grafana", "OpenTelemetry", "Docker", "Kubernetes")), "a name is missing")


@trial("a browser: search box, results, contents, both colours")
def _() -> str | None:
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        return "chromium or chromium-driver is missing"
    try:
        provide("selenium==4.27.1")
    except NotInstalled as problem:
        return str(problem)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    built()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        home = f"http://127.0.0.1:{server.server_port}/"
        browser.get(home)
        browser.find_element(By.TAG_NAME, "body").send_keys("/")
        box = browser.switch_to.active_element
        expect(box.get_attribute("name") == "q", "the key / does not lead to the box")
        box.send_keys("staleIf")
        eventually(lambda: browser.find_elements(By.CSS_SELECTOR, "#search-found li a"), 10)
        expect("httpCache" in browser.find_element(By.CSS_SELECTOR, "#search-found li a").text, browser.find_element(By.ID, "search-found").text)
        box.send_keys(Keys.ESCAPE)
        expect(not browser.find_element(By.ID, "search-found").is_displayed(), "Escape does not close the list")
        box.clear()  # Escape has emptied it already in some browsers
        box.send_keys("staleIfError", Keys.ENTER)
        eventually(lambda: browser.find_elements(By.CSS_SELECTOR, "#search-results li a"), 10)
        expect("search.html?q=" in browser.current_url, browser.current_url)
        browser.find_element(By.CSS_SELECTOR, "#search-results li a").click()
        expect(eventually(lambda: "ware-httpCache.html" in browser.current_url, 10), browser.current_url)
        expect(browser.find_element(By.CSS_SELECTOR, "aside li a").text == "Overview", "no contents beside the text")
        expect(browser.find_element(By.CSS_SELECTOR, "nav [aria-current]").text == "httpCache", "the list does not show the page")
        expect(browser.find_elements(By.CSS_SELECTOR, "pre .copy"), "no button to copy")
        colours = []
        for scheme in ("light", "dark"):
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            colours.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        expect(len(set(colours)) == 2, colours)
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
        for page in ("index.html", "Configuration.html", "ConfigurationListeners.html", "Monitoring.html", "ware-rateLimit.html"):
            browser.get(home + page)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            expect(wide <= 391, page, "is", wide, "wide at 390")
        severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE" and "favicon" not in entry["message"]]
        expect(not severe, severe)
    finally:
        browser.quit()
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    passed = failed = 0
    for title, run in TRIALS.items():
        if options.only not in title:
            continue
        try:
            skipped = run()
            passed += 1
            print(f"ok      {title}" + (f", skipped in part: {skipped}" if skipped else ""), flush=True)
        except Exception as problem:  # a mistake in a trial fails it, like any other
            failed += 1
            print(f"FAILED  {title}: {type(problem).__name__}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
