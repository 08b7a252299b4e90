"""The index of the search: for each word the sections that have it, with weights. `search.js` reads it, and divides and shortens words as here."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from pages.markdown import Rendered

# Words that every page has, and those of questions.
COMMON = frozenset("""a add an and are as at be but by can do does each for from get has have how i if in into is it its make me my need no not of on one or our own program
so than that the their them then there they this to use want was we what when where which who why will with you your""".split())
# How much a word counts where it stands. The text of a section counts at most TEXT, however often it has the word.
TITLE, OTHER_TITLE, HEADING, KEY, TEXT = 10.0, 3.0, 6.0, 4.0, 3.0
SNIPPET = 180


def words(text: str) -> list[str]:
    """The words of a text. A name such as `staleIfError` is a word, and so are its parts."""
    found: list[str] = []
    for word in re.findall(r"[A-Za-z0-9]+", text):
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", word)
        found += [stem(part.lower()) for part in ([word, *parts] if len(parts) > 1 else [word])]
    return [word for word in found if word not in COMMON]


def stem(word: str) -> str:
    """Without the usual endings of English, so that `caching` finds `cache`."""
    if word == "https" or len(word) < 4:
        return word
    word = re.sub(r"(?<=[a-z]{3})ies$", "y", word)
    word = re.sub(r"(?<=[a-z]{2}[^su])s$", "", word)
    word = re.sub(r"(?<=[a-z]{3})(?:ing|ed)$", "", word)
    return re.sub(r"(?<=[a-z]{3})e$", "", word)


def index(pages: list[tuple[str, Rendered]]) -> dict:
    """Pages, sections and words: sections are [page, heading, anchor, beginning], and a word has its sections and weights in turns."""
    sections, weights = [], defaultdict(dict)
    for number, (_, page) in enumerate(pages):
        title = set(words(page.title))
        for place, section in enumerate(page.sections):
            own: Counter = Counter()
            text = words(section.text)
            # A long section says less about each of its words.
            length = 0.5 + len(text) / 200
            for word, count in Counter(text).items():
                own[word] += TEXT * count / (count + length)
            for word in set(words(section.heading)):
                own[word] += HEADING
            for word in {word for key in section.keys for word in words(key)}:
                own[word] += KEY
            for word in title:
                own[word] += TITLE if place == 0 else OTHER_TITLE
            for word, weight in own.items():
                weights[word][len(sections)] = weight
            sections.append([number, section.heading, section.anchor, section.text.strip()[:SNIPPET]])
    total = len(sections)
    table = {}
    for word, found in sorted(weights.items()):
        rarity = math.log(1 + total / len(found))
        table[word] = [value for place, weight in sorted(found.items()) for value in (place, round(weight * rarity * 10))]
    return {"pages": [[file, page.title] for file, page in pages], "sections": sections, "words": table}
