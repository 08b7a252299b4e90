// Content as people read it: JSON as a tree, forms, multipart, images, GraphQL, protobuf, text, and bytes.
import { button, bytes, copy, empty, facts, make, save, table } from "./dom.js";
import { hexText } from "./hex.js";
import { JsonReader, mostFields, parts, prettyJson, protobuf } from "./parse.js";

const mostText = 400000, mostHex = 65536, mostChildren = 200, mostValue = 20000;

const valueOf = (fields, name) =>
  (fields ?? []).filter((line) => line.name.toLowerCase() === name).map((line) => line.value).join(", ");

/** Fills `box`. `raw(isRaw)` draws it again as it went over the wire. */
export function showContent(box, { data, fields, content, isOpen, isRaw, name, choice, raw }) {
  const type = valueOf(fields, "content-type"), media = type.split(";")[0].trim().toLowerCase();
  const coding = valueOf(fields, "content-encoding");
  const text = readText(data, type);
  const ways = isRaw ? [] : waysOf(media, type, data, text);
  ways.push(
    ...(text !== null && !ways.some((way) => way.name === "Text")
      ? [{ name: "Text", draw: () => textView(text) }]
      : []),
    { name: "Bytes", draw: () => hexView(data) },
  );
  const view = make("div.content");
  const shown = new Map();
  const tabs = make(
    "span.ways",
    ways.map((way, place) => button(way.name, () => draw(place), { "aria-pressed": "false" })),
  );
  function draw(place) {
    [...tabs.children].forEach((tab, index) => tab.setAttribute("aria-pressed", String(index === place)));
    if (!shown.has(place)) {
      try {
        shown.set(place, ways[place].draw());
      } catch (error) {
        shown.set(place, empty("It is not well-formed", error.message));
      }
    }
    view.replaceChildren(shown.get(place));
  }
  const notes = [];
  if (isOpen) notes.push("It is still under way.");
  if (content.kept < content.size) {
    notes.push(
      `${bytes(content.kept)} of ${bytes(content.size)} were kept` +
        (content.sha256 ? `; the whole has SHA-256 ${content.sha256}.` : "."),
    );
  }
  box.replaceChildren(
    make(
      "div.contenthead",
      make(
        "span.quiet",
        [
          type || "no content type",
          coding && (isRaw ? coding + ", as it went over the wire" : coding + ", decoded"),
          bytes(content.size) + (data.length !== content.size && !isRaw ? " → " + bytes(data.length) : ""),
        ].filter(Boolean).join(" · "),
      ),
      choice,
      tabs,
      coding
        ? make(
          "label",
          make("input", {
            type: "checkbox",
            checked: isRaw,
            onchange: (event) => raw(event.target.checked),
          }),
          " raw",
        )
        : null,
      text !== null ? button("copy", () => copy(text, "content")) : null,
      button("save", () => save(name, data, "application/octet-stream")),
    ),
    notes.length ? make("p.note", notes.join(" ")) : "",
    view,
  );
  draw(0);
}

function readText(data, type) {
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1];
  for (let index = 0; index < Math.min(data.length, 4096); index += 1) if (data[index] === 0) return null;
  try {
    return new TextDecoder(charset && !/^utf-?8$/i.test(charset) ? charset : "utf-8", {
      fatal: !charset || /^utf-?8$/i.test(charset),
    }).decode(data);
  } catch {
    // The end may be in the middle of a character.
    for (let cut = 1; cut < 4 && cut < data.length; cut += 1) {
      try {
        return new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(0, data.length - cut));
      } catch { /* further back */ }
    }
    return null;
  }
}

function waysOf(media, type, data, text) {
  const ways = [];
  if (text !== null && (/json$/.test(media) || /^\s*[[{]/.test(text))) {
    try {
      const value = new JsonReader(text).document();
      const query = value.kind === "{" ? value.items.find(([key]) => key === "query")?.[1] : null;
      if (query?.kind === "s" && /\{/.test(query.text)) {
        ways.push({
          name: "GraphQL",
          draw: () => graphQL(value, query.text),
        });
      }
      ways.push({ name: "JSON", draw: () => jsonView(value) });
    } catch { /* shown as a text */ }
  }
  if (media === "application/x-www-form-urlencoded" && text !== null) {
    ways.push({
      name: "Form",
      draw: () => pairs([...new URLSearchParams(text.slice(0, mostText))]),
    });
  }
  if (media === "application/graphql" && text !== null) ways.push({ name: "GraphQL", draw: () => make("pre", text) });
  const boundary = /boundary="?([^";]+)/i.exec(type)?.[1];
  if (media.startsWith("multipart/") && boundary) ways.push({ name: "Parts", draw: () => multipart(data, boundary) });
  if (media.startsWith("image/")) ways.push({ name: "Image", draw: () => image(data, media) });
  if (/protobuf|x-protobuf|grpc/.test(media)) {
    ways.push({
      name: "Protobuf",
      draw: () => protobufView(/grpc/.test(media) ? data.subarray(5) : data),
    });
  }
  return ways;
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

const jsonView = (value) => make("div.json", { role: "tree", "aria-label": "JSON" }, jsonNode(null, value, 2));

function jsonNode(key, value, levels) {
  const label = key === null
    ? null
    : [make("span.key", typeof key === "number" ? String(key) : short(JSON.stringify(key))), ": "];
  if (value.kind !== "{" && value.kind !== "[") {
    return make(
      "div",
      { role: "treeitem" },
      label,
      make("span.v" + value.kind, short(value.kind === "s" ? JSON.stringify(value.text) : value.text)),
    );
  }
  const count = value.items.length, close = value.kind === "{" ? "}" : "]";
  if (!count) return make("div", { role: "treeitem" }, label, value.kind + close);
  const node = make(
    "details",
    { role: "treeitem" },
    make(
      "summary",
      label,
      value.kind,
      make(
        "span.quiet",
        ` ${count} ${value.kind === "{" ? count === 1 ? "member" : "members" : count === 1 ? "item" : "items"} `,
      ),
      close,
    ),
  );
  let built = false;
  const build = () => {
    if (!built && node.open) {
      built = true;
      inSteps(node, value.items, (some) => some.map(([key, item]) => jsonNode(key, item, levels - 1)));
    }
  };
  node.addEventListener("toggle", build);
  if (key === null || levels > 0 && count <= 100) {
    node.open = true;
    build();
  }
  return node;
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
      const build = () => {
        if (node.open && node.childElementCount === 1) protobufRows(node, value, depth + 1);
      };
      node.addEventListener("toggle", build);
      if (depth < 3 && value.length <= 20) {
        node.open = true;
        build();
      }
      return node;
    }));
}

/** JSON with one member on a line, for comparing; else the text itself; `null` for bytes. */
export function comparable(data, fields) {
  const text = readText(data, valueOf(fields, "content-type"));
  if (text === null) return data.length ? hexText(data, 0, Math.min(data.length, 16384)) : "";
  return prettyJson(text);
}
