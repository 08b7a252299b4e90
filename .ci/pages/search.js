// The search of the static pages: an index that was made with them, no server. Also the buttons that copy code. Pages work without it, but for the search.
(function (scope) {
  "use strict";

  // The same lists and rules as in words.py.
  const COMMON = new Set(
    ("a add an and are as at be but by can do does each for from get has have how i if in into is it its make me my need no not of on one or our own program " +
      "so than that the their them then there they this to use want was we what when where which who why will with you your")
      .split(" "),
  );

  /** The word without the usual endings of English. */
  function stem(word) {
    if (word === "https" || word.length < 4) return word;
    return word.replace(/(?<=[a-z]{3})ies$/, "y").replace(/(?<=[a-z]{2}[^su])s$/, "").replace(
      /(?<=[a-z]{3})(?:ing|ed)$/,
      "",
    )
      .replace(/(?<=[a-z]{3})e$/, "");
  }

  /** The words of a text. A name such as `staleIfError` is a word, and so are its parts. */
  function words(text) {
    const found = [];
    for (const word of text.match(/[A-Za-z0-9]+/g) || []) {
      const parts = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g) || [];
      for (const part of parts.length > 1 ? [word, ...parts] : [word]) found.push(stem(part.toLowerCase()));
    }
    return found.filter((word) => !COMMON.has(word));
  }

  /** Adds the weights of a word's sections to a map, where they are higher. */
  function collect(list, factor, into) {
    for (let i = 0; i < list.length; i += 2) {
      into.set(list[i], Math.max(into.get(list[i]) || 0, list[i + 1] * factor));
    }
  }

  /** The sections for a word, with weights: for the word itself, and with less weight for words that begin with it. */
  function sectionsOf(index, word, mayGoOn) {
    const found = new Map();
    if (Object.hasOwn(index.words, word)) collect(index.words[word], 1, found);
    if (mayGoOn && word.length > 1) {
      for (const other of Object.keys(index.words)) {
        if (other !== word && other.startsWith(word)) collect(index.words[other], 0.5, found);
      }
    }
    return found;
  }

  /** The pages for a query, best first, each with its best sections: {file, title, score, sections: [{heading, anchor, text}]}. */
  function find(index, query) {
    const wanted = [...new Set(words(query))];
    if (wanted.length === 0) return [];
    const scores = new Map();
    const counts = new Map();
    const ofPages = new Map();
    wanted.forEach((word, place) => {
      const mayGoOn = place === wanted.length - 1 || word.length > 3;
      for (const [section, weight] of sectionsOf(index, word, mayGoOn)) {
        scores.set(section, (scores.get(section) || 0) + weight);
        counts.set(section, (counts.get(section) || 0) + 1);
        const page = index.sections[section][0];
        if (!ofPages.has(page)) ofPages.set(page, new Set());
        ofPages.get(page).add(word);
      }
    });
    const pages = new Map();
    for (const [number, score] of scores) {
      const [page, heading, anchor, text] = index.sections[number];
      // A section counts for the share of the words that it has; words that another section of the page has count half.
      const share = (counts.get(number) + ofPages.get(page).size) / 2 / wanted.length;
      if (!pages.has(page)) pages.set(page, []);
      pages.get(page).push({ heading, anchor, text, score: score * share });
    }
    const found = [];
    for (const [page, sections] of pages) {
      sections.sort((a, b) => b.score - a.score);
      const score = sections[0].score + 0.15 * sections.slice(1, 3).reduce((sum, one) => sum + one.score, 0);
      found.push({ file: index.pages[page][0], title: index.pages[page][1], score, sections: sections.slice(0, 3) });
    }
    found.sort((a, b) => b.score - a.score || a.file.localeCompare(b.file));
    return found.filter((one) => one.score > found[0].score / 20);
  }

  scope.Search = { words, find };
  if (typeof document === "undefined") return;

  let loading = null;
  /** The index, read once, when it is needed first. */
  function load() {
    loading ??= fetch("search-index.json").then((answer) => {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.json();
    });
    loading.catch(() => loading = null);
    return loading;
  }

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  /** Shows the results of a query in a list. */
  async function show(query, list, status, limit) {
    const words = query.trim();
    if (!words) {
      list.replaceChildren();
      status.textContent = "";
      return;
    }
    let index;
    try {
      index = await load();
    } catch (problem) {
      status.textContent =
        `The index cannot be read: ${problem.message}. It needs a web server, such as: httpware files`;
      return;
    }
    const found = find(index, words);
    status.textContent = found.length === 0
      ? "No page has these words."
      : found.length === 1
      ? "1 page"
      : `${found.length} pages`;
    list.replaceChildren(
      ...found.slice(0, limit).map((page) => {
        const item = element("li");
        const [best, ...others] = page.sections;
        item.append(
          element("a", page.title + (best.heading ? `: ${best.heading}` : ""), {
            href: `${page.file}#${best.anchor}`.replace(/#$/, ""),
          }),
        );
        item.append(element("small", best.text));
        for (const other of others.filter((one) => one.heading)) {
          item.append(element("a", other.heading, { href: `${page.file}#${other.anchor}`, class: "further" }));
        }
        return item;
      }),
    );
  }

  function begin() {
    const box = document.querySelector("header input[type=search]");
    const popup = document.getElementById("search-found");
    const list = element("ol");
    const status = element("p", "", { role: "status" });
    const results = document.getElementById("search-results");
    if (results) {
      const query = new URLSearchParams(location.search).get("q") || "";
      box.value = query;
      results.replaceChildren(status, list);
      show(query, list, status, 40);
      box.addEventListener("input", () => {
        show(box.value, list, status, 40);
        history.replaceState(null, "", `?q=${encodeURIComponent(box.value)}`);
      });
      box.form.addEventListener("submit", (event) => event.preventDefault());
      box.focus();
    } else {
      popup.append(status, list);
      box.addEventListener("focus", () => load().catch(() => {}));
      box.addEventListener("input", async () => {
        await show(box.value, list, status, 8);
        popup.hidden = !box.value.trim();
      });
      document.addEventListener("click", (event) => {
        if (!event.target.closest("form[role=search]")) popup.hidden = true;
      });
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && popup) popup.hidden = true;
      if (
        event.key !== "/" || event.target.closest("input, textarea") || event.ctrlKey || event.metaKey || event.altKey
      ) return;
      event.preventDefault();
      box.focus();
    });
    for (const code of document.querySelectorAll("main pre")) {
      const button = element("button", "Copy", { type: "button", class: "copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(code.querySelector("code").textContent + "\n");
        button.textContent = "Copied";
        setTimeout(() => button.textContent = "Copy", 1500);
      });
      code.append(button);
    }
  }

  begin();
})(globalThis);
