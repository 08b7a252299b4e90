// Content as people read it: JSON as a tree, forms, multipart, images, GraphQL, protobuf, text, and bytes.
import { make, button, bytes, table, facts, save, copy, empty } from "./dom.js";

const mostText = 400000, mostHex = 65536, mostChildren = 200;

const valueOf = (fields, name) => (fields ?? []).filter(line => line.name.toLowerCase() === name).map(line => line.value).join(", ");

/** Fills `box`. `raw(isRaw)` draws it anew as it went over the wire. */
export function showContent(box, { data, fields, content, isOpen, isRaw, url, name, choice, operation, raw }) {
  const type = valueOf(fields, "content-type"), media = type.split(";")[0].trim().toLowerCase();
  const coding = valueOf(fields, "content-encoding");
  const text = readText(data, type);
  const ways = isRaw ? [] : waysOf(media, type, data, text, url);
  ways.push(...(text !== null && !ways.some(way => way.name === "Text") ? [{ name: "Text", draw: () => textView(text) }] : []), { name: "Bytes", draw: () => hexView(data) });
  const view = make("div.content");
  const shown = new Map();
  const tabs = make("span.ways", ways.map((way, place) => button(way.name, () => draw(place), { "aria-pressed": "false" })));
  function draw(place) {
    [...tabs.children].forEach((tab, index) => tab.setAttribute("aria-pressed", String(index === place)));
    if (!shown.has(place)) {
      try { shown.set(place, ways[place].draw()); } catch (error) { shown.set(place, empty("It is not well-formed", error.message)); }
    }
    view.replaceChildren(shown.get(place));
  }
  const notes = [];
  if (isOpen) notes.push("It is still under way.");
  if (content.kept < content.size) notes.push(`${bytes(content.kept)} of ${bytes(content.size)} were kept` + (content.sha256 ? `; the whole has SHA-256 ${content.sha256}.` : "."));
  box.replaceChildren(make("div.contenthead", make("span.quiet", [type || "no content type", coding && (isRaw ? coding + ", as it went over the wire" : coding + ", decoded"), bytes(content.size) + (data.length !== content.size && !isRaw ? " → " + bytes(data.length) : "")].filter(Boolean).join(" · ")),
    choice, tabs, coding ? make("label", make("input", { type: "checkbox", checked: isRaw, onchange: event => raw(event.target.checked) }), " raw") : null,
    text !== null ? button("copy", () => copy(text, "content")) : null, button("save", () => save(name, data, "application/octet-stream"))),
    notes.length ? make("p.note", notes.join(" ")) : "", view);
  draw(0);
}

function readText(data, type) {
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1];
  for (let index = 0; index < Math.min(data.length, 4096); index += 1) if (data[index] === 0) return null;
  try {
    return new TextDecoder(charset && !/^utf-?8$/i.test(charset) ? charset : "utf-8", { fatal: !charset || /^utf-?8$/i.test(charset) }).decode(data);
  } catch {
    // The end may be in the middle of a character.
    for (let cut = 1; cut < 4 && cut < data.length; cut += 1) try { return new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(0, data.length - cut)); } catch { /* further back */ }
    return null;
  }
}

function waysOf(media, type, data, text, url) {
  const ways = [];
  if (text !== null && (/json$/.test(media) || /^\s*[[{]/.test(text))) {
    try {
      const value = new JsonReader(text).document();
      const query = value.kind === "{" ? value.items.find(([key]) => key === "query")?.[1] : null;
      if (query?.kind === "s" && /\{/.test(query.text)) ways.push({ name: "GraphQL", draw: () => graphQL(value, query.text) });
      ways.push({ name: "JSON", draw: () => jsonView(value) });
    } catch { /* shown as a text */ }
  }
  if (media === "application/x-www-form-urlencoded" && text !== null) ways.push({ name: "Form", draw: () => pairs([...new URLSearchParams(text)]) });
  if (media === "application/graphql" && text !== null) ways.push({ name: "GraphQL", draw: () => make("pre", text) });
  const boundary = /boundary="?([^";]+)/i.exec(type)?.[1];
  if (media.startsWith("multipart/") && boundary) ways.push({ name: "Parts", draw: () => multipart(data, boundary) });
  if (media.startsWith("image/")) ways.push({ name: "Image", draw: () => image(data, media) });
  if (/protobuf|x-protobuf|grpc/.test(media)) ways.push({ name: "Protobuf", draw: () => protobufView(/grpc/.test(media) ? data.subarray(5) : data) });
  return ways;
}

// Text and bytes

function textView(text) {
  const isLong = text.length > mostText;
  return make("div", make("pre", { tabindex: 0 }, isLong ? text.slice(0, mostText) : text), isLong ? make("p.note", `The first ${mostText.toLocaleString()} characters of ${text.length.toLocaleString()}; save it to see the rest.`) : null);
}

export function hexText(data, from = 0, to = data.length) {
  const lines = [];
  for (let index = from; index < to; index += 16) {
    const part = [...data.subarray(index, Math.min(index + 16, to))];
    lines.push(index.toString(16).padStart(8, "0") + "  " + part.map(byte => byte.toString(16).padStart(2, "0")).join(" ").padEnd(48) + " " + part.map(byte => byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·").join(""));
  }
  return lines.join("\n");
}

function hexView(data) {
  const isLong = data.length > mostHex;
  return make("div", make("pre.hex", { tabindex: 0 }, hexText(data, 0, Math.min(data.length, mostHex))), isLong ? make("p.note", `The first ${bytes(mostHex)} of ${bytes(data.length)}.`) : null);
}

const pairs = list => table(["name", "value"], list.map(([name, value]) => [make("code", name), value]));

/** A picture is shown by the browser's decoder alone; in an image element, SVG runs no script and loads nothing. */
function image(data, media) {
  const url = URL.createObjectURL(new Blob([data], { type: media }));
  const size = make("p.quiet");
  const picture = make("img", { src: url, alt: "the image", onload: () => { size.textContent = picture.naturalWidth + " × " + picture.naturalHeight; URL.revokeObjectURL(url); }, onerror: () => { size.textContent = "The browser cannot show it."; URL.revokeObjectURL(url); } });
  return make("div.image", picture, size);
}

function multipart(data, boundary) {
  const mark = new TextEncoder().encode("--" + boundary), box = make("div");
  const find = from => { outer: for (let at = from; at <= data.length - mark.length; at += 1) { for (let index = 0; index < mark.length; index += 1) if (data[at + index] !== mark[index]) continue outer; return at; } return -1; };
  let at = find(0), count = 0;
  while (at >= 0 && count < 200) {
    const start = at + mark.length + 2, next = find(start);
    if (next < 0) break;
    const part = data.subarray(start, Math.max(start, next - 2));
    let end = 0;
    while (end < part.length && !(part[end] === 13 && part[end + 1] === 10 && part[end + 2] === 13 && part[end + 3] === 10)) end += 1;
    const head = new TextDecoder("latin1").decode(part.subarray(0, end)), content = part.subarray(Math.min(part.length, end + 4));
    const fields = head.split("\r\n").filter(Boolean).map(line => ({ name: line.slice(0, line.indexOf(":")), value: line.slice(line.indexOf(":") + 1).trim() }));
    const text = readText(content, "");
    box.append(make("details", { open: count < 20 }, make("summary", /name="([^"]*)"/.exec(head)?.[1] ?? "part " + (count + 1), make("span.quiet", "  " + bytes(content.length))),
      facts(fields.map(field => [field.name, field.value])), make("pre", text !== null ? text.slice(0, 20000) : hexText(content, 0, Math.min(content.length, 2048)))));
    count += 1;
    at = next;
  }
  return count ? box : empty("No parts", "The boundary was not found.");
}

function graphQL(value, query) {
  const rest = value.items.filter(([key]) => key !== "query");
  return make("div", make("pre.graphql", { tabindex: 0 }, query), rest.map(([key, item]) => make("div", make("h4", key), jsonView(item))));
}

// JSON: numbers and the order of members stay as they were written, so this does not go by JSON.parse.

class JsonReader {
  constructor(text) { this.text = text; this.at = 0; this.depth = 0; }

  document() {
    const value = this.value();
    this.blank();
    if (this.at < this.text.length) this.fail();
    return value;
  }

  fail() { throw new Error("JSON is wrong at character " + (this.at + 1)); }
  blank() { while (" \t\n\r".includes(this.text[this.at]) && this.at < this.text.length) this.at += 1; }

  value() {
    this.blank();
    const char = this.text[this.at];
    if (char === "{" || char === "[") return this.group(char);
    if (char === '"') return { kind: "s", text: this.string() };
    const rest = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/y;
    rest.lastIndex = this.at;
    const found = rest.exec(this.text);
    if (!found) this.fail();
    this.at = rest.lastIndex;
    return { kind: /[tfn]/.test(found[0][0]) ? "w" : "n", text: found[0] };
  }

  string() {
    const rest = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
    rest.lastIndex = this.at;
    const found = rest.exec(this.text);
    if (!found) this.fail();
    this.at = rest.lastIndex;
    return JSON.parse(found[0]);
  }

  group(open) {
    if ((this.depth += 1) > 500) throw new Error("JSON is nested too deeply");
    const close = open === "{" ? "}" : "]", items = [];
    this.at += 1;
    this.blank();
    if (this.text[this.at] === close) { this.at += 1; this.depth -= 1; return { kind: open, items }; }
    for (;;) {
      if (open === "{") {
        this.blank();
        const key = this.text[this.at] === '"' ? this.string() : this.fail();
        this.blank();
        if (this.text[this.at] !== ":") this.fail();
        this.at += 1;
        items.push([key, this.value()]);
      } else items.push([items.length, this.value()]);
      this.blank();
      if (this.text[this.at] === ",") { this.at += 1; continue; }
      if (this.text[this.at] !== close) this.fail();
      this.at += 1;
      this.depth -= 1;
      return { kind: open, items };
    }
  }
}

const jsonView = value => make("div.json", { role: "tree", "aria-label": "JSON" }, jsonNode(null, value, 2));

function jsonNode(key, value, levels) {
  const label = key === null ? null : [make("span.key", typeof key === "number" ? String(key) : JSON.stringify(key)), ": "];
  if (value.kind !== "{" && value.kind !== "[") return make("div", { role: "treeitem" }, label, make("span.v" + value.kind, value.kind === "s" ? JSON.stringify(value.text) : value.text));
  const count = value.items.length, close = value.kind === "{" ? "}" : "]";
  if (!count) return make("div", { role: "treeitem" }, label, value.kind + close);
  const node = make("details", { role: "treeitem" }, make("summary", label, value.kind, make("span.quiet", ` ${count} ${value.kind === "{" ? count === 1 ? "member" : "members" : count === 1 ? "item" : "items"} `), close));
  let built = false;
  const build = () => { if (!built && node.open) { built = true; more(node, value.items, 0, levels - 1); } };
  node.addEventListener("toggle", build);
  if (key === null || levels > 0 && count <= 100) { node.open = true; build(); }
  return node;
}

function more(node, items, from, levels) {
  node.append(...items.slice(from, from + mostChildren).map(([key, item]) => jsonNode(key, item, levels)));
  if (items.length > from + mostChildren) {
    const next = button(`${(items.length - from - mostChildren).toLocaleString()} more`, () => { next.remove(); more(node, items, from + mostChildren, levels); });
    node.append(next);
  }
}

// Protocol buffers without their description: numbers of fields, and what the wire says of their values.

function protobufView(data) {
  return make("div.json", protobuf(data, 0).map(([number, kind, value]) => make("div", make("span.key", String(number)), " ", make("span.quiet", kind), ": ", value)));
}

function protobuf(data, depth) {
  let at = 0;
  const found = [];
  const varint = () => { let value = 0n, shift = 0n; for (;;) { if (at >= data.length || shift > 63n) throw new Error("the message ends early"); const byte = data[at++]; value |= BigInt(byte & 127) << shift; if (byte < 128) return value; shift += 7n; } };
  while (at < data.length) {
    const tag = Number(varint() & 0xffffffffn), number = tag >>> 3, wire = tag & 7;
    if (!number) throw new Error("a field has the number 0");
    if (wire === 0) { found.push([number, "varint", String(varint())]); continue; }
    const length = wire === 1 ? 8 : wire === 5 ? 4 : wire === 2 ? Number(varint()) : NaN;
    if (!(at + length <= data.length)) throw new Error("the message ends early");
    const part = data.subarray(at, at + length);
    at += length;
    if (wire !== 2) {
      const view = new DataView(part.buffer, part.byteOffset, length);
      found.push([number, wire === 1 ? "fixed64" : "fixed32", wire === 1 ? view.getBigUint64(0, true) + " / " + view.getFloat64(0, true) : view.getUint32(0, true) + " / " + view.getFloat32(0, true)]);
      continue;
    }
    const text = readText(part, "");
    if (text !== null && !/[\u0000-\u0008\u000e-\u001f]/.test(text)) { found.push([number, "text", JSON.stringify(text)]); continue; }
    let inner = null;
    if (depth < 20 && length) try { inner = protobuf(part, depth + 1); } catch { /* bytes */ }
    found.push(inner ? [number, "message", make("div.nested", inner.map(([number, kind, value]) => make("div", make("span.key", String(number)), " ", make("span.quiet", kind), ": ", value)))]
      : [number, "bytes", [...part.subarray(0, 64)].map(byte => byte.toString(16).padStart(2, "0")).join(" ") + (length > 64 ? " …" : "")]);
  }
  return found;
}

/** JSON with one member on a line, for comparing; else the text itself; `null` for bytes. */
export function comparable(data, fields) {
  const text = readText(data, valueOf(fields, "content-type"));
  if (text === null) return data.length ? hexText(data, 0, Math.min(data.length, 16384)) : "";
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}
