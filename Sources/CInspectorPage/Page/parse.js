// Reads content: JSON, multipart and protocol buffers. Each reader takes linear time and is bounded, because content
// was written by others.

/** The longest boundary. RFC 2046 §5.1.1. */
export const mostBoundary = 70;
export const mostParts = 200;
/** The most fields of a protobuf message, with those of the messages inside it. */
export const mostFields = 20000;
const mostHead = 16384, mostHeadLines = 100, mostDepth = 20;

// Bytes

/**
 * A function of `data` and `from`: the place of `mark` in the data at or after `from`, or -1. It takes linear time for
 * any bytes (Knuth, Morris and Pratt).
 */
export function finder(mark) {
  const falls = [0];
  for (let index = 1, length = 0; index < mark.length; index += 1) {
    while (length && mark[index] !== mark[length]) length = falls[length - 1];
    if (mark[index] === mark[length]) length += 1;
    falls.push(length);
  }
  return (data, from) => {
    for (let at = from, length = 0; at < data.length; at += 1) {
      while (length && data[at] !== mark[length]) length = falls[length - 1];
      if (data[at] === mark[length]) length += 1;
      if (length === mark.length) return at - mark.length + 1;
    }
    return -1;
  };
}

// Multipart

/** The parts between lines with the boundary: their head lines and their content. RFC 2046 §5.1. */
export function parts(data, boundary) {
  if (boundary.length > mostBoundary) throw new Error(`the boundary is longer than ${mostBoundary} characters`);
  const mark = new TextEncoder().encode("--" + boundary), find = finder(mark), found = [];
  let at = find(data, 0);
  while (at >= 0 && found.length < mostParts) {
    const start = at + mark.length + 2, next = find(data, start);
    if (next < 0) break;
    const part = data.subarray(start, Math.max(start, next - 2)), most = Math.min(part.length, mostHead);
    let end = 0;
    while (end < most && !(part[end] === 13 && part[end + 1] === 10 && part[end + 2] === 13 && part[end + 3] === 10)) {
      end += 1;
    }
    const head = new TextDecoder("latin1").decode(part.subarray(0, end));
    const fields = head.split("\r\n", mostHeadLines).filter(Boolean).map((line) => ({
      name: line.slice(0, line.indexOf(":")),
      value: line.slice(line.indexOf(":") + 1).trim(),
    }));
    found.push({
      name: /name="([^"]*)"/.exec(head)?.[1] ?? null,
      fields,
      content: part.subarray(Math.min(part.length, end + 4)),
    });
    at = next;
  }
  return found;
}

// JSON: numbers and the order of members stay as they were written, so this does not go by JSON.parse.

export class JsonReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  document() {
    const value = this.value();
    this.blank();
    if (this.at < this.text.length) this.fail();
    return value;
  }

  fail() {
    throw new Error("JSON is wrong at character " + (this.at + 1));
  }
  blank() {
    while (" \t\n\r".includes(this.text[this.at]) && this.at < this.text.length) this.at += 1;
  }

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
    let end = this.at + 1;
    while (end < this.text.length && this.text[end] !== '"') end += this.text[end] === "\\" ? 2 : 1;
    if (end >= this.text.length) this.fail();
    const start = this.at;
    this.at = end + 1;
    try {
      return JSON.parse(this.text.slice(start, end + 1));
    } catch {
      this.at = start;
      return this.fail();
    }
  }

  group(open) {
    if ((this.depth += 1) > 500) throw new Error("JSON is nested too deeply");
    const close = open === "{" ? "}" : "]", items = [];
    this.at += 1;
    this.blank();
    if (this.text[this.at] === close) {
      this.at += 1;
      this.depth -= 1;
      return { kind: open, items };
    }
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
      if (this.text[this.at] === ",") {
        this.at += 1;
        continue;
      }
      if (this.text[this.at] !== close) this.fail();
      this.at += 1;
      this.depth -= 1;
      return { kind: open, items };
    }
  }
}

/**
 * JSON with one member on a line, and with its numbers as they were written. A text that is not JSON stays as it is.
 */
export function prettyJson(text) {
  try {
    return jsonPieces(new JsonReader(text).document()).map(([, piece]) => piece).join("");
  } catch {
    return text;
  }
}

/**
 * JSON with one member on a line, as pieces: a kind (`key`, `s`, `n`, `w`, or `null` for what is between) and a text.
 */
export function jsonPieces(value) {
  const pieces = [];
  write(value, "\n", (kind, text) => {
    const last = pieces[pieces.length - 1];
    if (kind === null && last?.[0] === null) last[1] += text;
    else pieces.push([kind, text]);
  });
  return pieces;
}

function write(value, line, put) {
  if (value.kind !== "{" && value.kind !== "[") {
    return put(value.kind, value.kind === "s" ? JSON.stringify(value.text) : value.text);
  }
  const close = value.kind === "{" ? "}" : "]", inner = line + "  ";
  if (!value.items.length) return put(null, value.kind + close);
  put(null, value.kind);
  value.items.forEach(([key, item], place) => {
    put(null, (place ? "," : "") + inner);
    if (value.kind === "{") {
      put("key", JSON.stringify(key));
      put(null, ": ");
    }
    write(item, inner, put);
  });
  return put(null, line + close);
}

// Protocol buffers without their description: numbers of fields, and the values as the wire shows them.

/**
 * The fields of a message as `[number, kind, value]`; the value of a message inside it is a list of fields.
 * `budget.left` counts down; at 0 the rest is left out.
 */
export function protobuf(data, readText, budget = { left: mostFields }, depth = 0) {
  let at = 0;
  const found = [];
  const varint = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      if (at >= data.length || shift > 63n) throw new Error("the message ends early");
      const byte = data[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
      shift += 7n;
    }
  };
  while (at < data.length && budget.left > 0) {
    const tag = Number(varint() & 0xffffffffn), number = tag >>> 3, wire = tag & 7;
    if (!number) throw new Error("a field has the number 0");
    budget.left -= 1;
    if (wire === 0) {
      found.push([number, "varint", String(varint())]);
      continue;
    }
    const length = wire === 1 ? 8 : wire === 5 ? 4 : wire === 2 ? Number(varint()) : NaN;
    if (!(at + length <= data.length)) throw new Error("the message ends early");
    const part = data.subarray(at, at + length);
    at += length;
    if (wire !== 2) {
      const view = new DataView(part.buffer, part.byteOffset, length);
      found.push([
        number,
        wire === 1 ? "fixed64" : "fixed32",
        wire === 1
          ? view.getBigUint64(0, true) + " / " + view.getFloat64(0, true)
          : view.getUint32(0, true) + " / " + view.getFloat32(0, true),
      ]);
      continue;
    }
    const text = readText(part);
    // deno-lint-ignore no-control-regex
    if (text !== null && !/[\u0000-\u0008\u000e-\u001f]/.test(text)) {
      found.push([number, "text", text]);
      continue;
    }
    let inner = null;
    if (depth < mostDepth && length) {
      try {
        inner = protobuf(part, readText, budget, depth + 1);
      } catch { /* bytes */ }
    }
    found.push(
      inner ? [number, "message", inner] : [
        number,
        "bytes",
        [...part.subarray(0, 64)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ") +
        (length > 64 ? " …" : ""),
      ],
    );
  }
  return found;
}
