// Content as people read it: JSON as formatted text or as a tree, forms, multipart, images, GraphQL, protobuf, text,
// and bytes.
import { button, bytes, copy, empty, facts, make, save, table } from "./dom.js";
import { Find } from "./find.js";
import { hexText } from "./hex.js";
import { jwtViews } from "./jwt.js";
import { jsonPieces, JsonReader, mostFields, parts, prettyJson, protobuf } from "./parse.js";

const mostText = 400000,
  mostColoured = 20000,
  mostOpened = 5000,
  mostHex = 65536,
  mostChildren = 200,
  mostValue = 20000;

const valueOf = (fields, name) =>
  (fields ?? []).filter((line) => line.name.toLowerCase() === name).map((line) => line.value).join(", ");

/**
 * Fills `box` with `data`, the content of a message with `fields`; `content` says how much of it was kept. `raw(isRaw)`
 * draws it again as it went over the wire, or decoded. `name` is the one of the file to save, `choice` an element.
 */
export function showContent(box, { data, fields, content, isOpen, isRaw, name, choice, raw }) {
  const type = valueOf(fields, "content-type"), coding = valueOf(fields, "content-encoding");
  const text = readText(data, type), note = noteOf(content, isOpen);
  const find = new Find(make("div.content"));
  const { tabs, draw } = switcher(isRaw ? plainWays(data, text) : waysOf(type, data, text), find);
  box.replaceChildren(
    make(
      "div.contenthead",
      make(
        "span.quiet",
        headText({ type, coding, size: content.size, count: content.masked ? content.size : data.length, isRaw }),
      ),
      choice,
      tabs,
      coding ? rawToggle(isRaw, raw) : null,
      find.element,
      text !== null ? button("copy", () => copy(text, "content")) : null,
      button("save", () => save(name, data, "application/octet-stream")),
    ),
    note ? make("p.note", note) : "",
    find.view,
    ...(text === null ? [] : jwtViews(text)),
  );
  draw(0);
}

/** Buttons for the ways to show content in the view of `find`. Each is drawn once. */
function switcher(ways, find) {
  const shown = new Map();
  const tabs = make(
    "span.ways",
    ways.map((way, place) => button(way.name, () => draw(place), { "aria-pressed": "false" })),
  );
  function draw(place) {
    [...tabs.children].forEach((tab, index) => tab.setAttribute("aria-pressed", String(index === place)));
    if (!shown.has(place)) shown.set(place, drawn(ways[place]));
    find.view.replaceChildren(shown.get(place));
    if (find.input.value) find.search();
  }
  return { tabs, draw };
}

function drawn(way) {
  try {
    return way.draw();
  } catch (error) {
    return empty("It is not well-formed", error.message);
  }
}

/** The type, coding and size of content. */
export function headText({ type, coding, size, count, isRaw }) {
  const decodedSize = count !== size && !isRaw ? " → " + bytes(count) : "";
  return [
    type || "no content type",
    coding && coding + (isRaw ? ", as it went over the wire" : ", decoded"),
    bytes(size) + decodedSize,
  ].filter(Boolean).join(" · ");
}

/** Says what of the content is not there. */
export function noteOf({ kept, size, sha256, whole = kept >= size, masked }, isOpen) {
  const notes = isOpen ? ["It is still in progress."] : [];
  if (masked) notes.push("Values in it are masked.");
  if (!whole) {
    const whole = sha256 ? `; the whole has SHA-256 ${sha256}.` : ".";
    notes.push(`${bytes(kept)} of ${bytes(size)} were kept` + whole);
  }
  return notes.join(" ");
}

const rawToggle = (isRaw, raw) =>
  make(
    "label",
    make("input", { type: "checkbox", checked: isRaw, onchange: (event) => raw(event.target.checked) }),
    " raw",
  );

/** The text of content; `null` for bytes. Only a type that names another charset is read leniently. */
export function readText(data, type) {
  if (data.subarray(0, 4096).includes(0)) return null;
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
  const isUtf8 = /^utf-?8$/i.test(charset);
  const text = decoded(data, isUtf8 ? "utf-8" : charset, isUtf8);
  if (text !== null) return text;
  // The end may be in the middle of a character.
  for (let cut = 1; cut < 4 && cut < data.length; cut += 1) {
    const shorter = decoded(data.subarray(0, data.length - cut), "utf-8", true);
    if (shorter !== null) return shorter;
  }
  return null;
}

function decoded(data, charset, fatal) {
  try {
    return new TextDecoder(charset, { fatal }).decode(data);
  } catch {
    return null;
  }
}

/** The ways that any content can be shown. */
function plainWays(data, text) {
  const ways = [{ name: "Bytes", draw: () => hexView(data) }];
  if (text !== null) ways.unshift({ name: "Text", draw: () => textView(text) });
  return ways;
}

/** The ways to show content of a type, the best one first. `text` is null for bytes. */
export function waysOf(type, data, text) {
  const media = type.split(";")[0].trim().toLowerCase(), ways = [];
  const add = (name, draw) => ways.push({ name, draw });
  if (text !== null && (/json$/.test(media) || /^\s*[[{]/.test(text))) ways.push(...jsonWays(text));
  if (media === "application/x-www-form-urlencoded" && text !== null) {
    add("Form", () => pairs([...new URLSearchParams(text.slice(0, mostText))]));
  }
  if (media === "application/graphql" && text !== null) add("GraphQL", () => make("pre", text));
  const boundary = /boundary="?([^";]+)/i.exec(type)?.[1];
  if (media.startsWith("multipart/") && boundary) add("Parts", () => multipart(data, boundary));
  if (media.startsWith("image/")) add("Image", () => image(data, media));
  if (/protobuf|x-protobuf|grpc/.test(media)) {
    add("Protobuf", () => protobufView(/grpc/.test(media) ? data.subarray(5) : data));
  }
  return ways.concat(plainWays(data, text));
}

/** The ways to show JSON; none for a text that is not JSON. */
function jsonWays(text) {
  let value;
  try {
    value = new JsonReader(text).document();
  } catch {
    return [];
  }
  const query = value.kind === "{" ? value.items.find(([key]) => key === "query")?.[1] : null;
  const isGraphQL = query?.kind === "s" && /\{/.test(query.text);
  return [
    isGraphQL && { name: "GraphQL", draw: () => graphQL(value, query.text) },
    { name: "JSON", draw: () => jsonText(value) },
    { name: "Tree", draw: () => jsonTree(value) },
  ].filter(Boolean);
}

// Text and bytes

function textView(text) {
  const isLong = text.length > mostText;
  return make(
    "div",
    make("pre", { tabindex: 0 }, isLong ? text.slice(0, mostText) : text),
    isLong
      ? make(
        "p.note",
        `The first ${mostText.toLocaleString()} characters of ${text.length.toLocaleString()}; ` +
          "save it to see the rest.",
      )
      : null,
  );
}

function hexView(data) {
  const isLong = data.length > mostHex;
  return make(
    "div",
    make("pre.hex", { tabindex: 0 }, hexText(data, 0, Math.min(data.length, mostHex))),
    isLong ? make("p.note", `The first ${bytes(mostHex)} of ${bytes(data.length)}.`) : null,
  );
}

const short = (text) => text.length > mostValue ? text.slice(0, mostValue) + " …" : text;

const pairs = (list) => {
  const box = make("div");
  inSteps(
    box,
    list,
    (some) => [table(["name", "value"], some.map(([name, value]) => [make("code", short(name)), short(value)]))],
  );
  return box;
};

/** Adds nodes for the items, some at a time: a browser needs long for many. */
function inSteps(box, items, draw, from = 0) {
  box.append(...draw(items.slice(from, from + mostChildren)));
  if (items.length <= from + mostChildren) return;
  const next = button(`${(items.length - from - mostChildren).toLocaleString()} more`, () => {
    next.remove();
    inSteps(box, items, draw, from + mostChildren);
  });
  box.append(next);
}

/** A picture is shown by the browser's decoder alone; in an image element, SVG runs no script and loads nothing. */
function image(data, media) {
  const url = URL.createObjectURL(new Blob([data], { type: media }));
  const size = make("p.quiet");
  const picture = make("img", {
    src: url,
    alt: "the image",
    onload: () => {
      size.textContent = picture.naturalWidth + " × " + picture.naturalHeight;
      URL.revokeObjectURL(url);
    },
    onerror: () => {
      size.textContent = "The browser cannot show it.";
      URL.revokeObjectURL(url);
    },
  });
  return make("div.image", picture, size);
}

function multipart(data, boundary) {
  const found = parts(data, boundary.trim());
  if (!found.length) return empty("No parts", "The boundary was not found.");
  return make(
    "div",
    found.map(({ name, fields, content }, place) => {
      const text = readText(content.subarray(0, mostValue), "");
      return make(
        "details",
        { open: place < 20 },
        make("summary", short(name ?? "part " + (place + 1)), make("span.quiet", "  " + bytes(content.length))),
        facts(fields.map((field) => [short(field.name), short(field.value)])),
        make("pre", text !== null ? text : hexText(content, 0, Math.min(content.length, 2048))),
      );
    }),
  );
}

function graphQL(value, query) {
  const rest = value.items.filter(([key]) => key !== "query");
  const box = make("div", make("pre.graphql", { tabindex: 0 }, query.slice(0, mostText)));
  inSteps(box, rest, (some) => some.map(([key, item]) => make("div", make("h4", short(key)), jsonView(item))));
  return box;
}

// JSON

/** JSON as a text with one member on a line. Of a very long one only the beginning has colours. */
function jsonText(value) {
  const pieces = jsonPieces(value), shown = pieces.slice(0, mostColoured);
  const nodes = shown.map(([kind, text]) =>
    kind === null ? text : make("span." + (kind === "key" ? "key" : "v" + kind), text)
  );
  const rest = pieces.slice(mostColoured).map(([, text]) => text).join("");
  return make(
    "div",
    make("pre.json", { tabindex: 0 }, nodes, rest.slice(0, mostText)),
    rest.length > mostText ? make("p.note", "The end is left out; save it to see the rest.") : null,
  );
}

const jsonView = (value) => make("div.json", { role: "tree", "aria-label": "JSON" }, jsonNode(null, value, 2));

/** JSON as a tree, with buttons that open and close all of it. */
function jsonTree(value) {
  const tree = jsonView(value), root = tree.firstChild;
  const expand = () => {
    // A node is filled when it opens, which adds to the list.
    const nodes = [root];
    for (let place = 0; place < nodes.length && nodes.length < mostOpened; place += 1) {
      if (nodes[place].tagName !== "DETAILS") continue;
      open(nodes[place]);
      nodes.push(...nodes[place].querySelectorAll(":scope > details"));
    }
  };
  const collapse = () => tree.querySelectorAll("details details").forEach((node) => node.open = false);
  return make(
    "div",
    make("div.tools.treetools", button("expand all", expand), button("collapse all", collapse)),
    tree,
  );
}

function jsonNode(key, value, levels) {
  const label = key === null ? null : [make("span.key", keyText(key)), ": "];
  if (value.kind !== "{" && value.kind !== "[") {
    const text = value.kind === "s" ? JSON.stringify(value.text) : value.text;
    return make("div", { role: "treeitem" }, label, make("span.v" + value.kind, short(text)));
  }
  const count = value.items.length, close = value.kind === "{" ? "}" : "]";
  if (!count) return make("div", { role: "treeitem" }, label, value.kind + close);
  const size = make("span.quiet", ` ${count} ${itemWord(value.kind, count)} `);
  const node = make("details", { role: "treeitem" }, make("summary", label, value.kind, size, close));
  const isOpen = key === null || levels > 0 && count <= 100;
  fillWhenOpen(node, isOpen, () => {
    inSteps(node, value.items, (some) => some.map(([key, item]) => jsonNode(key, item, levels - 1)));
  });
  return node;
}

/** A name as JSON writes it; a number for an item of a list. */
const keyText = (key) => typeof key === "number" ? String(key) : short(JSON.stringify(key));

function itemWord(kind, count) {
  const word = kind === "{" ? "member" : "item";
  return count === 1 ? word : word + "s";
}

/** The nodes that are not filled yet, with the function that fills each. */
const unfilled = new WeakMap();

/** Fills a node when it is open for the first time: now, or when the user opens it. */
function fillWhenOpen(node, isOpen, fill) {
  unfilled.set(node, fill);
  node.addEventListener("toggle", () => node.open && open(node));
  if (isOpen) open(node);
}

/** Opens a node at once: the browser reports it later. */
function open(node) {
  node.open = true;
  const fill = unfilled.get(node);
  unfilled.delete(node);
  fill?.();
}

// Protocol buffers

function protobufView(data) {
  const budget = { left: mostFields }, box = make("div.json");
  protobufRows(box, protobuf(data, (part) => readText(part, ""), budget));
  return make(
    "div",
    box,
    budget.left ? null : make("p.note", `The first ${mostFields.toLocaleString()} fields; save it to see the rest.`),
  );
}

function protobufRows(box, fields, depth = 0) {
  inSteps(box, fields, (some) =>
    some.map(([number, kind, value]) => {
      const head = [make("span.key", String(number)), " ", make("span.quiet", kind), ": "];
      if (kind !== "message") return make("div", head, short(kind === "text" ? JSON.stringify(value) : value));
      const node = make(
        "details.nested",
        make("summary", head, make("span.quiet", `${value.length.toLocaleString()} fields`)),
      );
      fillWhenOpen(node, depth < 3 && value.length <= 20, () => protobufRows(node, value, depth + 1));
      return node;
    }));
}

/** JSON with one member on a line, for comparing; else the text itself; `null` for bytes. */
export function comparable(data, fields) {
  const text = readText(data, valueOf(fields, "content-type"));
  if (text === null) return data.length ? hexText(data, 0, Math.min(data.length, 16384)) : "";
  return prettyJson(text);
}
