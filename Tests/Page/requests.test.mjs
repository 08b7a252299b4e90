// The list of requests, without a browser: columns, counts, values of the filter, records and archives.
import test from "node:test";
import assert from "node:assert/strict";
import { allColumns, fitting, hostAndPath, usual } from "../../Sources/CInspectorPage/Page/columns.js";
import { valuesOf } from "../../Sources/CInspectorPage/Page/filter.js";
import { importText } from "../../Sources/CInspectorPage/Page/har.js";
import { captureOf, rowOf } from "../../Sources/CInspectorPage/Page/record.js";
import { countText } from "../../Sources/CInspectorPage/Page/requests.js";
import { boundedWidth } from "../../Sources/CInspectorPage/Page/divider.js";

const shown = (key, row) => allColumns.find((column) => column.key === key).text(row);

test("a URL has a host and a path", () => {
  assert.deepEqual(hostAndPath("http://a.example:8080/b?c#d"), ["a.example:8080", "/b?c#d"]);
  assert.deepEqual(hostAndPath("https://a.example"), ["a.example", "/"]);
  assert.deepEqual(hostAndPath("a.example:443"), ["", "a.example:443"]);
  assert.deepEqual(hostAndPath(undefined), ["", ""]);
});

test("columns show a row", () => {
  assert.equal(shown("status", { status: 404 }), "404");
  assert.equal(shown("status", { state: "open" }), "…");
  assert.equal(shown("status", { state: "ended", fault: "connection_refused" }), "fault");
  assert.equal(shown("status", { state: "ended" }), "–");
  assert.equal(shown("path", { url: "http://a/b", pinned: true, operation: "User" }), "★ User  /b");
  assert.equal(shown("type", { kind: "websocket", contentType: "text/html" }), "ws");
  assert.equal(shown("type", { kind: "http", contentType: "application/json; charset=utf-8" }), "json");
  assert.equal(shown("type", { kind: "http", contentType: "application/x-javascript" }), "js");
  assert.equal(shown("type", { kind: "http" }), "");
  assert.equal(shown("did", { fault: "dns_error", did: ["hit"] }), "dns_error");
  assert.equal(shown("did", { replayOf: "7", rules: ["a"], did: ["hit", "held"] }), "replay rule hit held");
});

test("columns leave until the others fit", () => {
  const keys = (chosen, width) => fitting(new Set(chosen), width).map((column) => column.key);
  const inOrder = allColumns.map((column) => column.key);
  assert.deepEqual(keys(usual, 5000), inOrder.filter((key) => usual.includes(key)));
  assert.ok(!keys(usual, 900).includes("route"));
  assert.deepEqual(keys(usual, 0), ["method", "status", "path", "duration"]);
  assert.deepEqual(keys(["host"], 0), ["host"]);
  for (let width = 0; width < 2000; width += 100) {
    const fewer = keys(usual, width), more = keys(usual, width + 100);
    assert.ok(fewer.every((key) => more.includes(key)), `${width}: ${fewer} and ${more}`);
  }
});

test("the counts say whether there are more, and what a pause holds back", () => {
  assert.equal(countText({ shown: 1 }), "1 request");
  assert.equal(countText({ shown: 0 }), "0 requests");
  assert.equal(countText({ shown: 200, hasMore: 17 }), "200+ requests");
  assert.equal(countText({ shown: 2, isPaused: true, waiting: 0 }), "2 requests, paused");
  assert.equal(countText({ shown: 2, isPaused: true, waiting: 3 }), "2 requests, paused, 3 new");
});

test("values of rows follow an operator, each once and in order", () => {
  const rows = [
    { method: "POST", status: 404, parts: ["b.example:80", "/"], contentType: "text/html; charset=utf-8" },
    { method: "GET", parts: ["a.example", "/"], did: ["hit", "held"] },
    { method: "POST", status: 200 },
  ];
  assert.deepEqual(valuesOf("~m", rows), ["GET", "POST"]);
  assert.deepEqual(valuesOf("~d", rows), ["a.example", "b.example"]);
  assert.deepEqual(valuesOf("~c", rows), ["200", "404"]);
  assert.deepEqual(valuesOf("~t", rows), ["text/html"]);
  assert.deepEqual(valuesOf("~did", rows), ["hit"]);
  for (const operator of ["~u", "~nothing", "constructor"]) assert.deepEqual(valuesOf(operator, rows), []);
  const many = Array.from({ length: 5000 }, (_, index) => ({ route: "r" + index }));
  assert.equal(valuesOf("~route", many).length, 2999);
});

test("a record is a row and a capture", () => {
  const wares = [{ decision: "passed" }, { decision: "hit" }];
  const record = { id: "7", host: "a.example", target: "/b", wares, responseBytes: 5, protocol: "HTTP/2" };
  const row = rowOf(record);
  assert.deepEqual([row.url, row.did, row.responseSize, row.version], ["http://a.example/b", ["hit"], 5, "HTTP/2"]);
  assert.equal(row.record, record);
  assert.equal(captureOf(record).url, "http://a.example/b");
  assert.equal(captureOf({ host: "a.example:443", target: "-", tunnel: {} }).url, "https://a.example:443");
});

test("a read archive tells its first warning", () => {
  assert.equal(importText({ imported: 3 }), "3 requests read");
  assert.equal(importText({ imported: 3, warnings: [] }), "3 requests read");
  assert.equal(importText({ imported: 3, warnings: ["a", "b"] }), "3 requests read, 2 warnings: a");
});

test("the width of the detail is bounded", () => {
  assert.deepEqual([-5, 25, 52, 80, 99].map(boundedWidth), [25, 25, 52, 80, 80]);
});
