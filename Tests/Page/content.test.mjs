// What content is read as, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { readJwt, tokensIn, validity } from "../../Sources/CInspectorPage/Page/jwt.js";
import { placesOf } from "../../Sources/CInspectorPage/Page/find.js";
import { jsonPieces, JsonReader } from "../../Sources/CInspectorPage/Page/parse.js";
import { comparable, headText, noteOf, readText, waysOf } from "../../Sources/CInspectorPage/Page/content.js";
import { serviceText } from "../../Sources/CInspectorPage/Page/services.js";
import { storeText } from "../../Sources/CInspectorPage/Page/cache.js";
import { credentialFacts } from "../../Sources/CInspectorPage/Page/tokens.js";

const encoded = (text) => new TextEncoder().encode(text);
const ways = (type, text) => waysOf(type, encoded(text), text).map((way) => way.name);

test("content is text in its charset, also if it is cut inside a character", () => {
  assert.equal(readText(encoded("Köln"), "text/plain"), "Köln");
  assert.equal(readText(encoded("Köln").subarray(0, 2), "text/plain"), "K");
  assert.equal(readText(Uint8Array.of(75, 246), "text/plain; charset=iso-8859-1"), "Kö");
  assert.equal(readText(Uint8Array.of(75, 246, 108, 110, 110, 110), "text/plain"), null);
  assert.equal(readText(Uint8Array.of(75, 0), "text/plain"), null);
  assert.equal(readText(encoded("ab"), "text/plain; charset=nonsense"), "a");
  assert.equal(readText(new Uint8Array(), ""), "");
});

test("each type has its ways, the best one first", () => {
  assert.deepEqual(ways("application/json", '{"a":1}'), ["JSON", "Tree", "Text", "Bytes"]);
  assert.deepEqual(ways("text/plain", " [1]"), ["JSON", "Tree", "Text", "Bytes"]);
  assert.deepEqual(ways("application/json", "{broken"), ["Text", "Bytes"]);
  assert.deepEqual(ways("application/json", '{"query":"{ user }"}'), ["GraphQL", "JSON", "Tree", "Text", "Bytes"]);
  assert.deepEqual(ways("application/json", '{"query":"words"}'), ["JSON", "Tree", "Text", "Bytes"]);
  assert.deepEqual(ways("application/x-www-form-urlencoded", "a=b"), ["Form", "Text", "Bytes"]);
  assert.deepEqual(ways("multipart/form-data; boundary=xy", "--xy"), ["Parts", "Text", "Bytes"]);
  assert.deepEqual(ways("multipart/form-data", "--xy"), ["Text", "Bytes"]);
  assert.deepEqual(ways("application/graphql", "query"), ["GraphQL", "Text", "Bytes"]);
  assert.deepEqual(waysOf("image/png", Uint8Array.of(0), null).map((way) => way.name), ["Image", "Bytes"]);
  assert.deepEqual(waysOf("application/grpc", Uint8Array.of(0), null).map((way) => way.name), ["Protobuf", "Bytes"]);
});

test("the head and the note say what is shown and what is not there", () => {
  const decoded = { type: "text/html", coding: "gzip", size: 100, count: 2048, isRaw: false };
  assert.equal(headText(decoded), "text/html · gzip, decoded · 100 B → 2.0 KiB");
  const raw = { ...decoded, count: 100, isRaw: true };
  assert.equal(headText(raw), "text/html · gzip, as it went over the wire · 100 B");
  assert.equal(headText({ type: "", coding: "", size: 5, count: 5 }), "no content type · 5 B");
  assert.equal(noteOf({ kept: 5, size: 5 }, false), "");
  assert.equal(noteOf({ kept: 5, size: 9 }, true), "It is still in progress. 5 B of 9 B were kept.");
  assert.equal(noteOf({ kept: 5, size: 9, sha256: "00" }, false), "5 B of 9 B were kept; the whole has SHA-256 00.");
});

test("content is compared as text, JSON by its members, bytes by their values", () => {
  const fields = [{ name: "Content-Type", value: "application/json" }];
  assert.equal(comparable(encoded('{"a":1}'), fields), '{\n  "a": 1\n}');
  assert.match(comparable(Uint8Array.of(0, 1), fields), /^00000000 {2}00 01/);
  assert.equal(comparable(new Uint8Array(), fields), "");
});

test("the state of the gateway is said in words", () => {
  const circuit = { opened: 2, refused: 7, openForMilliseconds: 1500 };
  assert.equal(
    serviceText({ balance: "roundRobin", circuit, retries: { sent: 3, denied: 1 } }),
    "roundRobin · circuit opened 2 times, refused 7, tries again in 1.50 s · retries sent 3, denied 1",
  );
  assert.equal(serviceText({}), "");
  assert.equal(storeText({ responses: 3, bytes: 2048 }), "3 responses, 2.0 KiB");
  assert.equal(
    storeText({ responses: 3, bytes: 1, limit: 1024, evicted: 4 }),
    "3 responses, 1 B of 1.0 KiB, 4 evicted",
  );
  const facts = Object.fromEntries(credentialFacts({ held: 2, heldTotal: 5, timeouts: 1, overflows: 0 }));
  assert.deepEqual(facts, {
    expires: "not known",
    "held now": "2 requests",
    "held in total": "5, of which 1 timed out and 0 found no place",
    "last refresh": "none",
    warning: null,
    pause: null,
  });
  const shortfall = "its tokens live 3s";
  assert.equal(Object.fromEntries(credentialFacts({ held: 0, heldTotal: 0, shortfall })).warning, shortfall);
});

test("formatted JSON keeps numbers, and its pieces have their kinds", () => {
  const pieces = jsonPieces(new JsonReader('{"a": [1.50, "x", null], "b": {}}').document());
  const text = '{\n  "a": [\n    1.50,\n    "x",\n    null\n  ],\n  "b": {}\n}';
  assert.equal(pieces.map(([, piece]) => piece).join(""), text);
  assert.deepEqual(pieces.filter(([kind]) => kind).map(([kind]) => kind), ["key", "n", "s", "w", "key"]);
});

test("a token is decoded, and its expiry is said", () => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "RS256" })}.${part({ sub: "Jörg", exp: 1000 })}.c2ln`;
  assert.deepEqual(tokensIn(`Bearer ${token}, ${token}`), [token]);
  assert.equal(readJwt(token).claims.sub, "Jörg");
  assert.equal(readJwt(token).isSigned, true);
  for (const text of ["a.b.c", "a.b", `${part([])}.${part({})}.`, `${part({})}.%%.x`]) {
    assert.equal(readJwt(text), null);
  }
  assert.match(validity({ exp: 1000 }, 1001000).text, /^expired 1\.00 s ago/);
  assert.equal(validity({ exp: 1000 }, 999000).isGood, true);
  assert.equal(validity({ nbf: 2000 }, 999000).isGood, false);
  assert.equal(validity({ exp: "soon" }).isGood, null);
});

test("places of a text are found without regard to case, and are bounded", () => {
  assert.deepEqual(placesOf("aXbx", "x"), [[1, 2], [3, 4]]);
  assert.deepEqual(placesOf("aaaa", "aa"), [[0, 2], [2, 4]]);
  assert.deepEqual(placesOf("abc", ""), []);
  assert.equal(placesOf("a".repeat(50), "a", 10).length, 10);
});
