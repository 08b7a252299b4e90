// The readers of content, without a browser: node --test Tests/Page/
import test from "node:test";
import assert from "node:assert/strict";
import {
  finder,
  JsonReader,
  mostFields,
  mostParts,
  parts,
  prettyJson,
  protobuf,
} from "../../Sources/CInspectorPage/Page/parse.js";

const encoded = (text) => new TextEncoder().encode(text), decoded = (data) => new TextDecoder().decode(data);
const within = (milliseconds, body) => {
  const start = performance.now(), result = body();
  assert.ok(performance.now() - start < milliseconds, `takes ${Math.round(performance.now() - start)} ms`);
  return result;
};

test("a mark is found as indexOf finds it", () => {
  for (let round = 0; round < 2000; round += 1) {
    const letters = (length) => Array.from({ length }, () => "ab-"[Math.floor(Math.random() * 3)]).join("");
    const text = letters(40), mark = letters(1 + Math.floor(Math.random() * 6)), from = Math.floor(Math.random() * 10);
    assert.equal(finder(encoded(mark))(encoded(text), from), text.indexOf(mark, from));
  }
});

test("parts have their names, fields and content", () => {
  const body = 'preamble\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\n' +
    "--b\r\nContent-Type: text/plain\r\n\r\ntwo\r\nlines\r\n--b--\r\n";
  const found = parts(encoded(body), "b");
  assert.deepEqual(found.map((part) => [part.name, decoded(part.content)]), [["a", "one"], [null, "two\r\nlines"]]);
  assert.deepEqual(found[1].fields, [{ name: "Content-Type", value: "text/plain" }]);
  assert.deepEqual(parts(encoded("--b"), "b"), []);
});

test("no boundary and no number of parts or lines takes long", () => {
  const hyphens = new Uint8Array(8_000_000).fill(45);
  for (const length of [1, 8, 69, 70]) within(2000, () => parts(hyphens, "-".repeat(length)));
  for (const length of [71, 500, 8000]) assert.throws(() => parts(hyphens, "-".repeat(length)), /longer than 70/);
  assert.equal(within(2000, () => parts(encoded("--b\r\n\r\n\r\n".repeat(200_000)), "b")).length, mostParts);
  const lines = within(2000, () => parts(encoded("--b\r\n" + "a: b\r\n".repeat(500_000) + "\r\n--b--"), "b"));
  assert.ok(lines[0].fields.length <= 100);
});

test("JSON keeps its numbers, and two that differ are not the same", () => {
  const [a, b] = ["2", "3"].map((digit) => prettyJson(`{"id":900719925474099${digit},"x":[1.0,1e400,-0],"y":{}}`));
  assert.notEqual(a, b);
  assert.equal(a, '{\n  "id": 9007199254740992,\n  "x": [\n    1.0,\n    1e400,\n    -0\n  ],\n  "y": {}\n}');
  assert.equal(prettyJson("not {json"), "not {json");
  assert.equal(prettyJson('"a\\u0000\\ud800\\""'), JSON.stringify('a\u0000\ud800"'));
  for (const wrong of ['"', '"\\', '"\\x"', '"\n"', "{", "[1,]", "01", '{"a" 1}']) {
    assert.throws(() => new JsonReader(wrong).document());
  }
});

test("long and deep JSON ends in time", () => {
  within(4000, () => new JsonReader('"' + '\\"a'.repeat(2_000_000) + '"').document());
  within(4000, () => new JsonReader("[" + "1,".repeat(1_000_000) + "1]").document());
  assert.throws(() => new JsonReader("[".repeat(100_000)).document(), /too deeply/);
});

test("protobuf is read, with its messages, and stops at a number of fields", () => {
  const read = (data) =>
    protobuf(Uint8Array.from(data), (part) => {
      try {
        return new TextDecoder("utf-8", { fatal: true }).decode(part);
      } catch {
        return null;
      }
    });
  assert.deepEqual(read([8, 150, 1, 18, 2, 104, 105]), [[1, "varint", "150"], [2, "text", "hi"]]);
  assert.deepEqual(read([26, 3, 8, 150, 1]), [[3, "message", [[1, "varint", "150"]]]]);
  assert.throws(() => read([8]), /ends early/);
  const many = new Uint8Array(2_000_000).map((_, place) => place % 2 ? 0 : 8);
  assert.equal(within(2000, () => protobuf(many, () => null)).length, mostFields);
  const nested = [...Array(5000)].reduce((inner) => inner.length < 120 ? [10, inner.length, ...inner] : inner, [8, 0]);
  within(2000, () => read(Array(2000).fill(nested).flat()));
});
