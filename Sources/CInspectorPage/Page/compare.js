// Two requests side by side: what one has and the other has not.
import { button, bytes, duration, empty, make } from "./dom.js";
import { ask, get } from "./api.js";
import { link } from "./state.js";
import { comparable } from "./content.js";
import { isRevealed, setRevealed, withSecrets } from "./secrets.js";
import { difference } from "./difference.js";
import { writeFields } from "./fields.js";

const mostLines = 3000, mostLine = 4000;
/** Of more equal lines than `mostEqual`, only `context` next to a difference are shown. */
const mostEqual = 7, context = 3;
/** How often a request that is in progress is read again, in milliseconds. */
const pause = 400;

export function compare(main, start) {
  let turn = 0, timer = 0;

  async function update(now, isAgain = false) {
    const own = ++turn, ids = [now.parameters.get("a"), now.parameters.get("b")];
    clearTimeout(timer);
    if (!isAgain) main.replaceChildren(make("p.quiet", "reading …"));
    try {
      const both = await Promise.all(ids.map(read));
      if (own !== turn) return;
      const reveal = (isOn) => {
        ids.forEach((id) => setRevealed(id, isOn));
        update(now, true);
      };
      main.replaceChildren(...comparison(ids, both, reveal));
      if (both.some(({ capture }) => capture.state === "open")) timer = setTimeout(() => update(now, true), pause);
    } catch (error) {
      if (own !== turn) return;
      const text = error.status === 404 ? "One of the two is no longer kept." : error.message;
      main.replaceChildren(empty("They cannot be compared", text));
    }
  }

  update(start);
  return {
    update,
    leave() {
      turn += 1;
      clearTimeout(timer);
    },
    escape() {
      history.back();
    },
  };
}

/** A capture with its contents as texts. */
async function read(id) {
  const capture = await get(withSecrets("/v1/captures/" + encodeURIComponent(id), id));
  const request = await readContent(capture, id, "request");
  return { capture, request, response: await readContent(capture, id, "response") };
}

async function readContent(capture, id, half) {
  const side = capture[half].client ? "client" : "origin", message = capture[half][side];
  if (!message?.content.size) return "";
  const answer = await ask(withSecrets(`/v1/captures/${id}/${half}/content?side=${side}`, id));
  return comparable(new Uint8Array(await answer.arrayBuffer()), message.headers);
}

/** The parts that are compared: a title, and the lines of a capture. */
const parts = [
  ["Request line", ({ capture }) => [capture.method + " " + capture.url]],
  ["Request headers", ({ capture }) => fieldLines(capture.request)],
  ["Request content", ({ request }) => request.split("\n")],
  ["Status", ({ capture }) => [String(capture.status ?? "no response")]],
  ["Response headers", ({ capture }) => fieldLines(capture.response)],
  ["Response content", ({ response }) => response.split("\n")],
  ["The wares", ({ capture }) => (capture.record?.wares ?? []).map((ware) => ware.ware + ": " + ware.text)],
];

/** The fields of a half as lines, in order of their names. */
function fieldLines({ client, origin }) {
  const lines = ((client ?? origin)?.headers ?? []).map((field) => writeFields([field]));
  return lines.sort((a, b) => a.toLowerCase() < b.toLowerCase() ? -1 : 1);
}

function comparison(ids, [a, b], reveal) {
  const isOn = ids.every(isRevealed);
  const requestLink = (id) => make("a", { href: link("requests", id) }, "request " + id);
  return [
    make(
      "div.viewhead",
      make("h2", "Compare ", requestLink(ids[0]), " with ", requestLink(ids[1])),
      button("reveal", () => reveal(!isOn), { "aria-pressed": String(isOn), title: "Show masked values" }),
    ),
    [a, b].some(({ capture }) => capture.state === "open") ? make("p.note", "A request is still in progress.") : "",
    make(
      "p.legend",
      make("span.removed", "− only in " + ids[0]),
      "  ",
      make("span.added", "+ only in " + ids[1]),
      `  ${duration(a.capture.duration)} and ${duration(b.capture.duration)}, ` +
        `${bytes(a.capture.responseSize)} and ${bytes(b.capture.responseSize)}`,
    ),
    ...parts.map(([title, linesOf]) => part(title, linesOf(a), linesOf(b))),
  ];
}

function part(title, a, b) {
  if (a.join("\n") === b.join("\n")) {
    return make("section", make("h3", title, make("span.quiet", a.join("").length ? "  equal" : "  none")));
  }
  const isCut = a.length > mostLines || b.length > mostLines;
  const lines = folded(difference(a.slice(0, mostLines), b.slice(0, mostLines)));
  return make(
    "section",
    make("h3", title),
    make("div.diff", lines.map(([mark, text]) => row(mark, text))),
    isCut ? make("p.note", `The first ${mostLines} lines were compared.`) : null,
  );
}

/** The lines of a difference, with one line marked `…` in place of many equal ones. */
export function folded(lines) {
  const found = [];
  let same = [];
  const flush = (isLast) => {
    if (same.length > mostEqual) {
      const first = found.length ? same.slice(0, context) : [], last = isLast ? [] : same.slice(-context);
      const count = same.length - first.length - last.length;
      same = [...first, ["…", `… ${count} equal lines`], ...last];
    }
    found.push(...same);
    same = [];
  };
  for (const line of lines) {
    if (line[0] === " ") {
      same.push(line);
    } else {
      flush(false);
      found.push(line);
    }
  }
  flush(true);
  return found;
}

function row(mark, text) {
  if (mark === "…") return make("div.skipped", text);
  const kind = { "-": "removed", "+": "added" }[mark];
  return make(
    "div" + (kind ? "." + kind : ""),
    make("b", { "aria-hidden": "true" }, { removed: "−", added: "+" }[kind] ?? " "),
    kind ? make("span.hidden", kind + ": ") : null,
    make("code", text.length > mostLine ? text.slice(0, mostLine) + " …" : text),
  );
}
