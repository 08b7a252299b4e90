// The fields of a request or response on both sides of the chain, with the wares that changed them.
import { make } from "./dom.js";
import { isMasked } from "./copyas.js";

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

/** The fields before and after the chain, each with a mark: `removed`, `added`, or null if it is on both sides. */
export function changes(before, after) {
  const left = after.slice(), found = [];
  for (const field of before) {
    const place = left.findIndex((other) => isSame(other, field));
    if (place >= 0) left.splice(place, 1);
    found.push({ mark: place >= 0 ? null : "removed", field });
  }
  return found.concat(left.map((field) => ({ mark: "added", field })));
}

const isSame = (a, b) => a.name.toLowerCase() === b.name.toLowerCase() && a.value === b.value;

export function showHeaders(box, capture) {
  box.replaceChildren(
    make("h3", "Request"),
    make("p.summary", capture.method + " " + capture.url + " " + (capture.version ?? "")),
    requestTable(capture),
    make("h3", "Response"),
    capture.response.client || capture.response.origin ? responseTable(capture) : make("p.quiet", noResponse(capture)),
  );
}

const requestTable = ({ request, record }) =>
  fieldTable({
    before: request.client,
    after: request.origin,
    editors: editors(record, "request"),
    texts: ["the client sent", "the origin server got"],
    withoutAfter: "The request was not sent to an origin server.",
  });

const responseTable = ({ response, record }) =>
  fieldTable({
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
function fieldTable({ before, after, editors, texts, withoutAfter }) {
  const by = (field) => [...editors.get(field.name.toLowerCase()) ?? []].join(", ");
  const found = before && after ? changes(before.headers, after.headers) : oneSide(before ?? after);
  const rows = found.map(({ mark, field }) => {
    if (mark) return fieldRow(mark, field, by(field) || "gateway");
    return fieldRow(null, field, before ? "" : by(field));
  });
  for (const field of (after ?? before)?.trailers ?? []) rows.push(fieldRow(null, field, "trailer"));
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

const oneSide = (message) => (message?.headers ?? []).map((field) => ({ mark: null, field }));

function legend({ before, after, hasMarks, texts: [beforeText, afterText], withoutAfter }) {
  if (before && after) return hasMarks ? make("p.quiet.legend", "− ", beforeText, ", + ", afterText) : null;
  return make("p.quiet.legend", before ? withoutAfter : "The gateway made it: no origin server sent it.");
}

function fieldRow(mark, field, note) {
  return make(
    "tr" + (mark ? "." + mark : ""),
    make("td.mark", { "aria-label": mark ?? "" }, { added: "+", removed: "−" }[mark] ?? ""),
    make("th", { scope: "row" }, field.name),
    make(
      "td.value",
      isMasked(field.value) ? make("span.masked", { title: "masked before it was kept" }, field.value) : field.value,
    ),
    make("td.quiet", note),
  );
}
