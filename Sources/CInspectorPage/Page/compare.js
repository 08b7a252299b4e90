// Two requests side by side: what one has and the other has not.
import { bytes, duration, empty, make } from "./dom.js";
import { ask, get } from "./api.js";
import { link } from "./state.js";
import { comparable } from "./content.js";

const mostLines = 3000;

export function compare(main, start) {
  let turn = 0;

  async function update(now) {
    const own = ++turn, ids = [now.parameters.get("a"), now.parameters.get("b")];
    main.replaceChildren(make("p.quiet", "reading …"));
    try {
      const both = await Promise.all(ids.map(async (id) => {
        const capture = await get("/v1/captures/" + encodeURIComponent(id));
        const read = async (half) => {
          const message = capture[half].client ?? capture[half].origin;
          if (!message?.content.size) return "";
          const side = capture[half].client ? "client" : "origin";
          return comparable(
            new Uint8Array(await (await ask(`/v1/captures/${id}/${half}/content?side=${side}`)).arrayBuffer()),
            message.headers,
          );
        };
        return { capture, request: await read("request"), response: await read("response") };
      }));
      if (own !== turn) return;
      const [a, b] = both;
      const fields = (item, half) =>
        ((item.capture[half].client ?? item.capture[half].origin)?.headers ?? []).map((line) =>
          line.name + ": " + line.value
        ).sort((x, y) => x.toLowerCase() < y.toLowerCase() ? -1 : 1);
      const line = (item) => [item.capture.method + " " + item.capture.url];
      const status = (item) => [String(item.capture.status ?? "no response")];
      const steps = (item) => (item.capture.record?.wares ?? []).map((ware) => ware.ware + ": " + ware.text);
      main.replaceChildren(
        make(
          "h2",
          "Compare ",
          make("a", { href: link("requests", ids[0]) }, "request " + ids[0]),
          " with ",
          make("a", { href: link("requests", ids[1]) }, "request " + ids[1]),
        ),
        make(
          "p.legend",
          make("span.removed", "− only in " + ids[0]),
          "  ",
          make("span.added", "+ only in " + ids[1]),
          `  ${duration(a.capture.duration)} and ${duration(b.capture.duration)}, ${
            bytes(a.capture.responseSize)
          } and ${bytes(b.capture.responseSize)}`,
        ),
        part("Request line", line(a), line(b)),
        part("Request headers", fields(a, "request"), fields(b, "request")),
        part("Request content", a.request.split("\n"), b.request.split("\n")),
        part("Status", status(a), status(b)),
        part("Response headers", fields(a, "response"), fields(b, "response")),
        part("Response content", a.response.split("\n"), b.response.split("\n")),
        part("The wares", steps(a), steps(b)),
      );
    } catch (error) {
      if (own === turn) {
        main.replaceChildren(
          empty(
            "They cannot be compared",
            error.status === 404 ? "One of the two is not kept any more." : error.message,
          ),
        );
      }
    }
  }

  update(start);
  return {
    update,
    leave() {
      turn += 1;
    },
    escape() {
      history.back();
    },
  };
}

function part(title, a, b) {
  if (a.join("\n") === b.join("\n")) {
    return make("section", make("h3", title, make("span.quiet", a.join("").length ? "  equal" : "  none")));
  }
  const lines = difference(a.slice(0, mostLines), b.slice(0, mostLines));
  const rows = [];
  let same = [];
  const flush = (isLast) => {
    if (same.length > 7) {
      const first = rows.length ? same.slice(0, 3) : [], last = isLast ? [] : same.slice(-3);
      rows.push(
        ...first.map((text) => row("", text)),
        make("div.skipped", `… ${same.length - first.length - last.length} equal lines`),
        ...last.map((text) => row("", text)),
      );
    } else rows.push(...same.map((text) => row("", text)));
    same = [];
  };
  for (const [mark, text] of lines) {
    if (mark === " ") same.push(text);
    else {
      flush(false);
      rows.push(row(mark === "-" ? "removed" : "added", text));
    }
  }
  flush(true);
  return make(
    "section",
    make("h3", title),
    make("div.diff", rows),
    a.length > mostLines || b.length > mostLines ? make("p.note", `The first ${mostLines} lines were compared.`) : null,
  );
}

const row = (kind, text) =>
  make(
    "div" + (kind ? "." + kind : ""),
    make("b", { "aria-hidden": "true" }, { removed: "−", added: "+" }[kind] ?? " "),
    kind ? make("span.hidden", kind + ": ") : null,
    make("code", text.length > 4000 ? text.slice(0, 4000) + " …" : text),
  );

/** The shortest list of lines that were removed and added (Myers), up to 500 of them; beyond that all differ. */
function difference(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail += 1;
  }
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  const middle = shortest(x, y) ?? [...x.map((text) => ["-", text]), ...y.map((text) => ["+", text])];
  return [
    ...a.slice(0, head).map((text) => [" ", text]),
    ...middle,
    ...a.slice(a.length - tail).map((text) => [" ", text]),
  ];
}

function shortest(a, b) {
  const most = Math.min(a.length + b.length, 500), trace = [];
  const ends = new Map([[1, 0]]);
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(ends));
    for (let k = -edits; k <= edits; k += 2) {
      let x = k === -edits || (k !== edits && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1))
        ? ends.get(k + 1) ?? 0
        : (ends.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      ends.set(k, x);
      if (x >= a.length && y >= b.length) return walk(trace, a, b);
    }
  }
  return null;
}

function walk(trace, a, b) {
  const found = [];
  let x = a.length, y = b.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const ends = trace[edits], k = x - y;
    const before = k === -edits || (k !== edits && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : ends.get(before) ?? 0, fromY = fromX - before;
    while (x > fromX && y > Math.max(0, fromY) && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      x -= 1;
      y -= 1;
      found.push([" ", a[x]]);
    }
    if (edits === 0) break;
    if (x > fromX) {
      x -= 1;
      found.push(["-", a[x]]);
    } else if (y > 0) {
      y -= 1;
      found.push(["+", b[y]]);
    }
  }
  return found.reverse();
}
