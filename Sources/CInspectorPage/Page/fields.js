// The fields of a request or response on both sides of the chain, with the wares that changed them.
import { button, make, toast } from "./dom.js";
import { isMasked } from "./copyas.js";
import { hideValue, revealedValue, revealValue } from "./secrets.js";
import { jwtViews } from "./jwt.js";

/** Fields as a text, one on a line. */
export const writeFields = (fields) => fields.map((field) => field.name + ": " + field.value).join("\n");

/** The fields of a text that a user has written. */
export function readFields(text) {
  return text.split(/\r?\n/).filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`a header line is “Name: value”, not “${line}”`);
    return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
  });
}

/** The names of the wares that added, removed or rewrote each field, by its name in lower case. */
export function editors(record, half) {
  const found = new Map();
  for (const ware of record?.wares ?? []) {
    if ((ware.side === "request") !== (half === "request")) continue;
    for (const name of [ware.added, ware.removed, ware.rewritten].flatMap((names) => names ?? [])) {
      const key = name.toLowerCase();
      if (!found.has(key)) found.set(key, new Set());
      found.get(key).add(ware.ware);
    }
  }
  return found;
}

/**
 * The fields before and after the chain, each with a mark: `removed`, `added`, or null if it is on both sides;
 * `index` is its place among those before, or among those after if it was added.
 */
export function changes(before, after) {
  const left = after.map((field, index) => ({ field, index })), found = [];
  before.forEach((field, index) => {
    const place = left.findIndex((other) => isSame(other.field, field));
    if (place >= 0) left.splice(place, 1);
    found.push({ mark: place >= 0 ? null : "removed", field, index });
  });
  return found.concat(left.map(({ field, index }) => ({ mark: "added", field, index })));
}

const isSame = (a, b) => a.name.toLowerCase() === b.name.toLowerCase() && a.value === b.value;

export function showHeaders(box, capture) {
  box.replaceChildren(
    make("h3", "Request"),
    make("p.summary", requestLine(capture)),
    halfFields(capture, "request"),
    make("h3", "Response"),
    halfFields(capture, "response"),
  );
}

export const requestLine = ({ method, url, version }) => method + " " + url + " " + (version ?? "");

/** The fields of a half, `request` or `response`, on both sides of the chain. */
export function halfFields(capture, half) {
  const { client, origin } = capture[half];
  if (!client && !origin) return make("p.quiet", noResponse(capture));
  return half === "request" ? requestTable(capture) : responseTable(capture);
}

const requestTable = ({ id, request, record }) =>
  fieldTable({
    places: { id, half: "request", before: "client", after: "origin" },
    before: request.client,
    after: request.origin,
    editors: editors(record, "request"),
    texts: ["the client sent", "the origin server got"],
    withoutAfter: "The request was not sent to an origin server.",
  });

const responseTable = ({ id, response, record }) =>
  fieldTable({
    places: { id, half: "response", before: "origin", after: "client" },
    before: response.origin,
    after: response.client,
    editors: editors(record, "response"),
    texts: ["the origin server sent", "the client got"],
    withoutAfter: "The response did not reach the client.",
  });

function noResponse({ state, fault }) {
  if (state === "open") return "There is no response yet.";
  return "There was no response" + (fault ? ": " + fault : "") + ".";
}

/** One table for the fields before and after the chain, changes marked. */
function fieldTable({ places, before, after, editors, texts, withoutAfter }) {
  const by = (field) => [...editors.get(field.name.toLowerCase()) ?? []].join(", ");
  const found = before && after ? changes(before.headers, after.headers) : oneSide(before ?? after);
  const rows = found.flatMap(({ mark, field, index }) => {
    const side = mark === "added" || !before ? places.after : places.before;
    const place = { id: places.id, half: places.half, side, index };
    if (mark) return fieldRow(mark, field, by(field) || "gateway", place);
    return fieldRow(null, field, before ? "" : by(field), place);
  });
  for (const field of (after ?? before)?.trailers ?? []) rows.push(...fieldRow(null, field, "trailer"));
  const hasMarks = found.some(({ mark }) => mark);
  return make(
    "div",
    legend({ before, after, hasMarks, texts, withoutAfter }),
    make(
      "div.scroll",
      make("table.fields", make("tbody", rows.length ? rows : make("tr", make("td.quiet", "no fields")))),
    ),
  );
}

const oneSide = (message) => (message?.headers ?? []).map((field, index) => ({ mark: null, field, index }));

function legend({ before, after, hasMarks, texts: [beforeText, afterText], withoutAfter }) {
  if (before && after) return hasMarks ? make("p.quiet.legend", "− ", beforeText, ", + ", afterText) : null;
  return make("p.quiet.legend", before ? withoutAfter : "The gateway made it: no origin server sent it.");
}

/** The row of a field, and one for each token in its value. */
function fieldRow(mark, field, note, place) {
  const cell = make("td.value"), tokens = make("tr.tokens", { hidden: true });
  const draw = () => {
    const alone = place && revealedValue(place), value = alone ?? field.value, found = jwtViews(value);
    // In a narrow table the note is below the value.
    cell.replaceChildren(...valueNodes(value, alone !== undefined, place, draw), note ? make("span.by", note) : "");
    tokens.hidden = !found.length;
    tokens.replaceChildren(make("td"), make("td", { colspan: 3 }, found));
  };
  draw();
  return [
    make(
      "tr" + (mark ? "." + mark : ""),
      make("td.mark", { "aria-label": mark ?? "" }, { added: "+", removed: "−" }[mark] ?? ""),
      make("th", { scope: "row" }, field.name),
      cell,
      make("td.quiet.maker", note),
    ),
    tokens,
  ];
}

/** A value; a masked one with a button that shows it. */
function valueNodes(value, isAlone, place, draw) {
  if (isAlone) {
    const hide = () => {
      hideValue(place);
      draw();
    };
    return [
      make("span.revealed", value),
      " ",
      button("hide", hide, { class: "small", "aria-label": "hide the value" }),
    ];
  }
  if (!isMasked(value)) return [make("span", value)];
  const show = async () => {
    try {
      await revealValue(place);
      draw();
    } catch (error) {
      toast(error.message);
    }
  };
  return [
    make("span.masked", { title: "masked; the gateway has the value in memory" }, value),
    " ",
    place ? button("reveal", show, { class: "small", "aria-label": "reveal the value" }) : "",
  ];
}
