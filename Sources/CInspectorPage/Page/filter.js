// The filter box: completion of operators, and the place of a mistake. The server reads the filter, never the page.
import { make } from "./dom.js";

const operators = [
  ["~a", "assets: images, scripts, styles"],
  ["~all", "every request"],
  ["~b", "text in the content"],
  ["~bq", "text in the request's content"],
  ["~bs", "text in the response's content"],
  ["~c", "status, as 404"],
  ["~comment", "text in the comment"],
  ["~d", "host"],
  ["~did", "the decision of a ware: held hit retried mocked"],
  ["~dst", "address of the origin server"],
  ["~dur", "duration, as >500ms"],
  ["~e", "ended with a fault"],
  ["~gql", "name of a GraphQL operation"],
  ["~grpc", "gRPC"],
  ["~h", "a header field"],
  ["~hq", "a header field of the request"],
  ["~hs", "a header field of the response"],
  ["~http", "plain HTTP exchanges"],
  ["~id", "number"],
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
const alone = new Set(["~a", "~all", "~e", "~grpc", "~http", "~marked", "~q", "~replay", "~s", "~sse", "~websocket"]);

/** The value of a row that may follow an operator. */
const valueReaders = {
  "~m": (row) => row.method,
  "~d": (row) => row.parts?.[0]?.replace(/:\d+$/, ""),
  "~c": (row) => String(row.status ?? ""),
  "~route": (row) => row.route,
  "~service": (row) => row.service,
  "~did": (row) => row.did?.[0],
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
  /** `values(operator)` gives words that may follow an operator. */
  constructor(onChange, values) {
    this.onChange = onChange;
    this.values = values;
    this.timer = 0;
    this.choice = -1;
    this.input = make("input", {
      type: "search",
      id: "filter",
      "aria-label": "filter",
      placeholder: "Filter: text of the URL, ~c 404, ~m POST & ~d example.com …",
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
    this.mistake = make("p.mistake", { id: "filter-mistake", role: "alert", hidden: true });
    this.element = make("div.filter", { role: "search" }, this.input, this.list, this.mistake);
    this.input.addEventListener("input", () => {
      this.complete();
      this.changed(250);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  get value() {
    return this.input.value.trim();
  }
  set value(text) {
    if (this.value !== text) this.input.value = text;
  }

  changed(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.onChange(this.value), wait);
  }

  /** Shows a mistake with its column, from 1; `null` for none. */
  say(error) {
    this.input.toggleAttribute("aria-invalid", false);
    this.mistake.hidden = !error;
    this.input.setAttribute("aria-invalid", error ? "true" : "false");
    if (!error) return this.mistake.replaceChildren();
    const text = this.input.value.trim(), at = Math.max(0, (error.column ?? 1) - 1);
    this.mistake.replaceChildren(
      error.column
        ? make("code", text.slice(0, at), make("mark", text.slice(at, at + 1) || " "), text.slice(at + 1))
        : "",
      make("span", (error.column ? "column " + error.column + ": " : "") + error.message),
    );
  }

  /** The operator or the word that is being written, before the cursor. */
  get word() {
    return /(\S*)$/.exec(this.input.value.slice(0, this.input.selectionStart))[1].replace(/^[!(]+/, "");
  }

  complete() {
    const word = this.word, before = this.input.value.slice(0, this.input.selectionStart);
    let found = [];
    if (word.startsWith("~")) found = operators.filter(([name]) => name.startsWith(word) && name !== word);
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
    const end = this.input.selectionStart, start = end - this.word.length;
    const text = /[^\w.~/-]/.test(name) ? '"' + name + '"' : name;
    this.input.setRangeText(text + (alone.has(name) || !name.startsWith("~") ? "" : " "), start, end, "end");
    this.input.focus();
    this.complete();
    this.changed(100);
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
    } else if (!this.list.hidden && event.key === "Tab") {
      event.preventDefault();
      this.take(items[0].firstChild.textContent);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (!this.list.hidden) return this.close();
      this.input.blur();
    } else if (event.key === "Enter") {
      this.close();
      this.changed(0);
    }
  }
}
