// The filter box: completion of operators, the last filters, and the place of a mistake. The server reads the filter,
// never the page; while a filter is not finished, the list keeps the last one.
import { make } from "./dom.js";
import { get } from "./api.js";
import { choices } from "./state.js";

/** How long after a key the filter is asked about, and a mistake is named, in milliseconds. */
const checkAfter = 150, sayAfter = 1300;
const mostRecent = 10;

/** The last filters, the newest one first. */
export const recentFilters = () => choices.read("filters", []).filter((text) => typeof text === "string");

/** The last filters with another one; an earlier one that only lacks its end is replaced. */
export function withRecent(list, text) {
  return [text, ...list.filter((other) => !text.startsWith(other))].slice(0, mostRecent);
}

const methods = new Set(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"]);

/** The advice for a text that the URL does not contain: a sentence, and filters to write instead. */
export function hintFor(text) {
  const word = text.trim(), filters = [];
  if (!word || /[~()&|!]/.test(word)) return null;
  const plain = word.replace(/^(["'])(.*)\1$/, "$2");
  if (methods.has(plain.toUpperCase())) filters.push("~m " + plain.toUpperCase());
  if (/^[1-5]\d\d$/.test(plain)) filters.push("~c " + plain);
  if (/^[1-5]xx$/i.test(plain)) filters.push("~c " + plain.toLowerCase());
  if (/^[<>]=?\d{3}$/.test(plain)) filters.push("~c " + plain);
  if (/^(json|html|xml|css|javascript|image|text|pdf|[\w-]+\/[\w.+-]+)$/i.test(plain)) filters.push("~t " + plain);
  const quoted = /\s/.test(plain) ? JSON.stringify(plain) : word;
  filters.push("~h " + quoted, "~b " + quoted);
  return { text: `Text alone is searched for in the URL. To search elsewhere:`, filters: filters.slice(0, 4) };
}

const operators = [
  ["~a", "assets: images, scripts, styles"],
  ["~all", "every request"],
  ["~b", "text in the content"],
  ["~bq", "text in the request's content"],
  ["~bs", "text in the response's content"],
  ["~c", "status, as 404, 5xx, >=400 or 500-599"],
  ["~comment", "text in the comment"],
  ["~d", "host"],
  ["~did", "the decision of a ware: held hit retried mocked"],
  ["~dst", "address of the origin server"],
  ["~dur", "duration, as >500ms"],
  ["~e", "ended with a fault"],
  ["~err", "errors: a fault, or a status of 400 and above"],
  ["~gql", "name of a GraphQL operation"],
  ["~grpc", "gRPC"],
  ["~h", "a header field"],
  ["~hq", "a header field of the request"],
  ["~hs", "a header field of the response"],
  ["~http", "plain HTTP exchanges"],
  ["~id", "number, as 17 or >17"],
  ["~m", "method"],
  ["~marked", "pinned"],
  ["~q", "without a response"],
  ["~replay", "sent again"],
  ["~route", "name of the route"],
  ["~s", "with a response"],
  ["~service", "name of the service"],
  ["~size", "size, as >1MiB"],
  ["~src", "address of the client"],
  ["~sse", "event streams"],
  ["~t", "content type"],
  ["~tq", "content type of the request"],
  ["~ts", "content type of the response"],
  ["~u", "URL"],
  ["~ware", "a ware that acted"],
  ["~websocket", "WebSockets"],
];
const alone = new Set([
  "~a",
  "~all",
  "~e",
  "~err",
  "~grpc",
  "~http",
  "~marked",
  "~q",
  "~replay",
  "~s",
  "~sse",
  "~websocket",
]);

/** The value of a row that may follow an operator. */
const valueReaders = {
  "~m": (row) => row.method,
  "~d": (row) => row.parts?.[0]?.replace(/:\d+$/, ""),
  "~c": (row) => row.status ? String(row.status) : "",
  "~route": (row) => row.route,
  "~service": (row) => row.service,
  "~did": (row) => row.did?.[0]?.replace(/^.*: /, ""),
  "~gql": (row) => row.operation,
  "~t": (row) => row.contentType?.split(";")[0],
  "~ts": (row) => row.contentType?.split(";")[0],
};

/** The values that may follow an operator, of the last 3000 rows, in order. */
export function valuesOf(operator, rows) {
  if (!Object.hasOwn(valueReaders, operator)) return [];
  const read = valueReaders[operator];
  return [...new Set(rows.slice(-2999).map(read).filter(Boolean))].sort();
}

export class FilterBox {
  /**
   * `onChange(text)` is called with filters that are valid; `values(operator)` gives words that may follow an
   * operator.
   */
  constructor(onChange, values) {
    this.onChange = onChange;
    this.values = values;
    this.applied = ""; // the last valid filter
    this.timer = 0;
    this.sayTimer = 0;
    this.turn = 0;
    this.choice = -1;
    this.input = make("input", {
      type: "search",
      id: "filter",
      "aria-label": "filter",
      placeholder: "Filter: text of the URL, ~c 5xx, ~m POST & ~d example.com …",
      autocomplete: "off",
      spellcheck: "false",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": "completions",
      "aria-describedby": "filter-mistake",
    });
    this.list = make("ul.completions", {
      id: "completions",
      role: "listbox",
      "aria-label": "completions",
      hidden: true,
    });
    this.mistake = make("p.mistake", { id: "filter-mistake", role: "status", hidden: true });
    this.element = make("div.filter", { role: "search" }, this.input, this.list, this.mistake);
    this.input.addEventListener("input", () => {
      this.complete();
      this.say(null);
      this.check(this.input.value ? checkAfter : 0);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("focus", () => this.input.value || this.complete());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  /** The filter of the list. */
  get value() {
    return this.applied;
  }
  set value(text) {
    this.turn += 1;
    clearTimeout(this.timer);
    clearTimeout(this.sayTimer);
    this.applied = text;
    if (this.input.value.trim() !== text) this.input.value = text;
  }

  /** Applies a filter that is not written by hand, such as a chip. */
  apply(text) {
    this.value = text;
    this.say(null);
    this.onChange(text);
    this.remember(text);
  }

  remember(text) {
    if (text) choices.write("filters", withRecent(recentFilters(), text));
  }

  /**
   * Asks the gateway about the text in the box, and applies it if it is valid. With `isDone`, a mistake is named at
   * once.
   */
  check(wait, isDone = false) {
    clearTimeout(this.timer);
    clearTimeout(this.sayTimer);
    const own = ++this.turn;
    this.timer = setTimeout(() => this.ask(own, isDone), wait);
  }

  async ask(own, isDone) {
    const text = this.input.value.trim();
    try {
      const answer = text ? await get("/v1/filter?" + new URLSearchParams({ filter: text })) : { valid: true };
      if (own !== this.turn) return;
      if (answer.valid) {
        this.say(null);
        if (text !== this.applied) {
          this.applied = text;
          this.onChange(text);
        }
        if (isDone) this.remember(text);
        else this.sayTimer = setTimeout(() => this.remember(text), sayAfter * 2);
        return;
      }
      const error = { column: answer.column, message: answer.detail };
      if (isDone) this.say(error);
      else this.sayTimer = setTimeout(() => this.say(error), sayAfter);
    } catch (error) {
      if (own === this.turn && isDone) this.say(error);
    }
  }

  /** Shows a mistake with its column, from 1; `null` for none. */
  say(error) {
    this.mistake.hidden = !error;
    this.input.setAttribute("aria-invalid", error ? "true" : "false");
    if (!error) return this.mistake.replaceChildren();
    this.close();
    const text = this.input.value.trim(), at = Math.max(0, (error.column ?? 1) - 1);
    const message = error.message.replace(/^column \d+: /, "");
    this.mistake.replaceChildren(
      error.column
        ? make("code", text.slice(0, at), make("mark", text.slice(at, at + 1) || " "), text.slice(at + 1))
        : "",
      make("span", (error.column ? "column " + error.column + ": " : "") + message),
    );
  }

  /** The operator or the word that is being written, before the cursor. */
  get word() {
    return /(\S*)$/.exec(this.input.value.slice(0, this.input.selectionStart))[1].replace(/^[!(]+/, "");
  }

  complete() {
    const word = this.word, before = this.input.value.slice(0, this.input.selectionStart);
    let found = [];
    if (!this.input.value) found = recentFilters().map((text) => [text, "recent"]);
    else if (word.startsWith("~")) found = operators.filter(([name]) => name.startsWith(word) && name !== word);
    else {
      const operator = /(~\w+)\s+\S*$/.exec(before)?.[1];
      if (operator && !alone.has(operator)) {
        found = this.values(operator).filter((value) => value.startsWith(word) && value !== word).slice(0, 12).map(
          (value) => [value, ""],
        );
      }
    }
    this.choice = -1;
    this.list.hidden = !found.length;
    this.input.setAttribute("aria-expanded", String(!!found.length));
    this.list.replaceChildren(
      ...found.map(([name, text], place) =>
        make(
          "li",
          {
            role: "option",
            id: "completion-" + place,
            onmousedown: (event) => {
              event.preventDefault();
              this.take(name);
            },
          },
          make("code", name),
          " ",
          make("span", text),
        )
      ),
    );
  }

  take(name) {
    if (!this.input.value) {
      this.input.value = name;
      this.close();
      return this.check(0, true);
    }
    const end = this.input.selectionStart, start = end - this.word.length;
    const text = /[^\w.~/-]/.test(name) ? '"' + name + '"' : name;
    this.input.setRangeText(text + (alone.has(name) || !name.startsWith("~") ? "" : " "), start, end, "end");
    this.input.focus();
    this.complete();
    this.check(checkAfter);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  key(event) {
    const items = [...this.list.children];
    if (!this.list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.choice = (this.choice + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length;
      items.forEach((item, place) => item.setAttribute("aria-selected", String(place === this.choice)));
      this.input.setAttribute("aria-activedescendant", "completion-" + this.choice);
      items[this.choice].scrollIntoView({ block: "nearest" });
    } else if (!this.list.hidden && (event.key === "Tab" || event.key === "Enter") && this.choice >= 0) {
      event.preventDefault();
      this.take(items[this.choice].firstChild.textContent);
    } else if (!this.list.hidden && event.key === "Tab" && this.input.value) {
      event.preventDefault();
      this.take(items[0].firstChild.textContent);
    } else if (event.key === "Escape") {
      // A search field would empty itself.
      event.preventDefault();
      event.stopPropagation();
      if (!this.list.hidden) return this.close();
      this.value = this.applied;
      this.say(null);
      this.input.blur();
    } else if (event.key === "ArrowDown" && this.list.hidden) {
      this.complete();
    } else if (event.key === "Enter") {
      this.close();
      this.check(0, true);
    }
  }
}
