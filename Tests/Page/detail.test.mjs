// The parts of one request, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { changes, editors, readFields, writeFields } from "../../Sources/CInspectorPage/Page/fields.js";
import { partsOf, ruleFilter } from "../../Sources/CInspectorPage/Page/detail.js";
import { clientFacts, originFacts, tlsFacts } from "../../Sources/CInspectorPage/Page/connection.js";
import { hasBothSides } from "../../Sources/CInspectorPage/Page/sides.js";
import { hexText } from "../../Sources/CInspectorPage/Page/hex.js";
import { messageText } from "../../Sources/CInspectorPage/Page/messages.js";
import { changeOf } from "../../Sources/CInspectorPage/Page/edit.js";
import { rowsOf, sentence } from "../../Sources/CInspectorPage/Page/waterfall.js";

const fields = (...lines) => lines.map(([name, value]) => ({ name, value }));

test("fields are written as lines and read again", () => {
  const written = fields(["Accept", "*/*"], ["X-Empty", ""], ["X-Time", "12:30:00"]);
  assert.equal(writeFields(written), "Accept: */*\nX-Empty: \nX-Time: 12:30:00");
  assert.deepEqual(readFields(writeFields(written)), written);
  assert.deepEqual(readFields("\r\n A :  b \r\n\n"), fields(["A", "b"]));
  for (const wrong of ["no colon", ": no name"]) assert.throws(() => readFields(wrong), /“Name: value”/);
});

test("changes between two sides are marked, with equal fields in any order", () => {
  const before = fields(["Host", "a"], ["Cookie", "x"], ["Accept", "1"]);
  const after = fields(["accept", "1"], ["host", "a"], ["Cookie", "y"]);
  const marked = changes(before, after).map(({ mark, field }) => [mark, field.name, field.value]);
  assert.deepEqual(marked, [
    [null, "Host", "a"],
    ["removed", "Cookie", "x"],
    [null, "Accept", "1"],
    ["added", "Cookie", "y"],
  ]);
  const twice = fields(["A", "1"], ["A", "1"]);
  assert.deepEqual(changes(twice, twice.slice(1)).map(({ mark }) => mark), [null, "removed"]);
});

test("a changed field has the names of the wares of its half", () => {
  const wares = [
    { ware: "requestHeaders", side: "request", added: ["X-Via"] },
    { ware: "tokenInject", side: "request", rewritten: ["x-via"], removed: ["Cookie"] },
    { ware: "responseHeaders", side: "postware", added: ["X-Served-By"] },
  ];
  const request = editors({ wares }, "request"), response = editors({ wares }, "response");
  assert.deepEqual([...request.get("x-via")], ["requestHeaders", "tokenInject"]);
  assert.deepEqual([...request.keys()], ["x-via", "cookie"]);
  assert.deepEqual([...response.keys()], ["x-served-by"]);
  assert.equal(editors(null, "request").size, 0);
});

test("only an exchange with messages has their tab, and a record has no content", () => {
  assert.ok(!partsOf({ kind: "http", messages: 0 }).includes("messages"));
  for (const capture of [{ kind: "sse", messages: 0 }, { kind: "http", messages: 2 }]) {
    assert.ok(partsOf(capture).includes("messages"));
  }
  assert.deepEqual(partsOf({ isRecord: true, kind: "http" }), ["timing", "connection"]);
});

test("the filter of a rule takes the URL literally", () => {
  const filter = ruleFilter({ method: "GET", url: "http://a.example:8080/b.c/(d)?e=f" });
  assert.equal(filter, '~m ^GET$ & ~d ^a\\.example$ & ~u "/b\\.c/\\(d\\)"');
  assert.equal(ruleFilter({ method: "CONNECT", url: "not a URL" }), "");
});

test("the facts of a connection name the tunnel, its reason and certificates", () => {
  const of = (facts, name) => facts.find((fact) => fact[0] === name)[1];
  const tunnel = { host: "a.example", port: 443, address: "192.0.2.1", principal: "ada" };
  const client = clientFacts({ client: "127.0.0.1" }, { tunnel, unread: "pinned" });
  assert.equal(of(client, "tunnel"), "a.example:443 at 192.0.2.1, opened by ada");
  assert.equal(of(client, "passes unread"), "the client refused the certificate for the host");
  assert.equal(of(clientFacts({}, { unread: "other" }), "passes unread"), "other");
  assert.equal(of(originFacts({}, { attempts: 2, reused: true }), "connection"), "reused");
  assert.equal(of(originFacts({ server: "a" }, {}), "connection"), null);
  const tls = tlsFacts({ version: "TLS 1.3", cipher: "X", sha256: "00", names: ["a", "b"], moreNames: 3 });
  assert.equal(of(tls, "TLS"), "TLS 1.3, X");
  assert.equal(of(tls, "certificate"), "without a subject");
  assert.equal(of(tls, "names"), "a, b and 3 more");
  assert.deepEqual(tlsFacts(undefined), []);
});

test("the side of content is a choice only if the sides differ", () => {
  const message = (size, sha256) => ({ content: { size, sha256 } });
  assert.equal(hasBothSides({ client: message(3, "a"), origin: message(3, "a") }), false);
  assert.equal(hasBothSides({ client: message(3, "a"), origin: message(3, "b") }), true);
  assert.equal(hasBothSides({ client: message(0), origin: message(3, "b") }), true);
  assert.equal(hasBothSides({ client: message(0, "a"), origin: message(0, "b") }), false);
  assert.equal(hasBothSides({ client: message(3, "a"), origin: null }), false);
});

test("bytes have their place, values and characters", () => {
  const data = Uint8Array.from({ length: 18 }, (_, index) => index + 60);
  const lines = hexText(data).split("\n");
  assert.equal(lines[0], "00000000  3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b  <=>?@ABCDEFGHIJK");
  assert.equal(lines[1], "00000010  4c 4d" + " ".repeat(43) + " LM");
  assert.match(hexText(Uint8Array.of(0, 65, 127, 255), 0, 3), / ·A·$/);
  assert.match(hexText(Uint8Array.of(0, 65), 0, 2, "."), / \.A$/);
  assert.equal(hexText(new Uint8Array()), "");
});

test("a message is one line of text", () => {
  assert.equal(messageText({ data: "hi" }), "hi");
  assert.equal(messageText({ type: "ping" }), "");
  assert.equal(messageText({ encoding: "base64", size: 2048, data: "AA==" }), "binary, 2.0 KiB");
  const nested = [{ number: 1, value: "a" }];
  const grpc = [{ number: 1, value: "7" }, { number: 2, value: nested }, { number: 3, value: { base64: "AA==" } }];
  const text = '1: 7  2: [{"number":1,"value":"a"}]  3: AA==';
  assert.equal(messageText({ type: "grpc", encoding: "base64", fields: grpc }), text);
});

test("only what the user changed is sent", () => {
  const first = { method: "GET", url: "http://a/", headers: "A: b", body: "" };
  assert.deepEqual(changeOf(first, { ...first }), {});
  assert.deepEqual(changeOf(first, { ...first, method: "PUT", body: "c" }), { method: "PUT", body: "c" });
  const headers = fields(["A", "b"], ["C", "d"]);
  assert.deepEqual(changeOf(first, { ...first, headers: "A: b\nC: d" }), { headers });
  assert.throws(() => changeOf(first, { ...first, headers: "A" }), /“Name: value”/);
});

const record = {
  duration: 100,
  wares: [
    { ware: "bodyLimit", side: "request", attempt: 1, start: 0, duration: 1, decision: "passed" },
    { ware: "requestHeaders", side: "request", attempt: 1, start: 1, duration: 1, decision: "passed", added: ["X-A"] },
    { ware: "retry", side: "responseHalf", attempt: 1, start: 40, duration: 1, decision: "replayed", text: "again" },
  ],
  phases: [
    { phase: "connect", attempt: 1, start: 2, duration: 10, endpoint: "a:80" },
    { phase: "firstByte", attempt: 1, start: 12, duration: 20, endpoint: "a:80", fault: "timeout" },
    { phase: "backoff", attempt: 2, start: 41, duration: 30 },
    { phase: "odd", attempt: 2, start: 71, duration: 20, endpoint: "b:80" },
  ],
};

test("the waterfall has wares and phases in order, with what they changed", () => {
  const rows = rowsOf(record);
  const names = [
    "bodyLimit",
    "requestHeaders",
    "connect",
    "wait for the response",
    "retry",
    "wait before the next attempt",
    "odd",
  ];
  assert.deepEqual(rows.map((row) => row.name), names);
  assert.deepEqual(rows.map((row) => row.isPlain), [true, false, false, false, false, false, false]);
  assert.deepEqual(rows.map((row) => row.text), ["", "", "a:80", "timeout", "again", "", "b:80"]);
  assert.deepEqual(rows.map((row) => row.kind).slice(2), ["phase", "fault", "responseHalf", "backoff", "phase"]);
  assert.deepEqual(rows[1].changes, ["+ X-A"]);
});

test("a sentence says what took the time", () => {
  assert.equal(
    sentence(record),
    "100 ms in total: 3.0 ms in 3 ware steps, 50.0 ms with the origin server, 30.0 ms in pauses before retries.",
  );
  assert.equal(
    sentence({ duration: 1, wares: record.wares.slice(1, 2), phases: [] }),
    "1.0 ms in total: 1.0 ms in 1 ware step.",
  );
});
