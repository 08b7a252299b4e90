// The list of requests, without a browser: columns, counts, values of the filter, records and archives.
import test from "node:test";
import assert from "node:assert/strict";
import {
  allColumns,
  emptyColumns,
  fitting,
  hostAndPath,
  layout,
  narrowWidth,
  usual,
  widthsOf,
} from "../../Sources/CInspectorPage/Page/columns.js";
import { valuesOf } from "../../Sources/CInspectorPage/Page/filter.js";
import { importText } from "../../Sources/CInspectorPage/Page/har.js";
import { captureOf, rowOf } from "../../Sources/CInspectorPage/Page/record.js";
import { timesOf } from "../../Sources/CInspectorPage/Page/chart.js";
import { hostPart, toggled } from "../../Sources/CInspectorPage/Page/chips.js";
import { hintFor, withRecent } from "../../Sources/CInspectorPage/Page/filter.js";
import { sample } from "../../Sources/CInspectorPage/Page/gateway.js";
import { ordered } from "../../Sources/CInspectorPage/Page/order.js";
import { pointsOfRows } from "../../Sources/CInspectorPage/Page/past.js";
import { reason } from "../../Sources/CInspectorPage/Page/why.js";
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
  assert.equal(shown("did", { replayOf: "7", rules: ["a"], did: ["hit", "held"] }), "sent again, rule, hit, held");
  assert.equal(shown("did", { did: ["hit", "httpCache: hit"] }), "httpCache hit");
  assert.equal(shown("did", { status: 503, did: ["tokenRefresh: aborted"] }), "tokenRefresh refused");
  assert.equal(shown("did", { status: 200, did: ["mock: aborted"] }), "mock answered");
  assert.equal(shown("path", { method: "CONNECT", url: "http://a:443" }), "tunnel");
});

test("columns leave until the others fit", () => {
  const keys = (chosen, width) => fitting(new Set(chosen), width).map((column) => column.key);
  const inOrder = allColumns.map((column) => column.key);
  assert.deepEqual(keys(usual, 5000), inOrder.filter((key) => usual.includes(key)));
  assert.ok(!keys(usual, 900).includes("route"));
  assert.deepEqual(keys(usual, 0), ["method", "status", "host", "path"]);
  const rows = [{ url: "https://a.example/a/long/path", did: ["httpCache: hit"] }], widths = widthsOf(rows);
  assert.ok(widths.path > 110 && widthsOf([{ url: "http://a/" + "x".repeat(999) }]).path <= 340);
  const shown = (width) => layout(new Set(usual), width, ["route"], widths);
  assert.equal(shown(390).isTall, true);
  assert.deepEqual(shown(390).columns.map(({ key }) => key).sort(), [
    "did",
    "duration",
    "method",
    "size",
    "status",
    "where",
  ]);
  assert.equal(shown(1400).isTall, false);
  assert.ok(shown(1400).columns.find(({ key }) => key === "host").width.startsWith(`minmax(${widths.host}px,`));
  assert.deepEqual(keys(["host"], 600), ["host"]);
  for (let width = narrowWidth; width < 2000; width += 100) {
    const fewer = keys(usual, width), more = keys(usual, width + 100);
    assert.ok(fewer.every((key) => more.includes(key)), `${width}: ${fewer} and ${more}`);
  }
});

test("columns that tell nothing are left out", () => {
  assert.deepEqual(emptyColumns([{ route: "a" }, { route: "a" }]), ["did", "route"]);
  assert.deepEqual(emptyColumns([{ route: "a", did: ["hit"] }, { route: "b" }]), []);
});

test("rows are ordered by a value, newest first among equals, and in groups of hosts", () => {
  const row = (number, host, size) => ({ id: String(number), number, parts: [host, "/"], size });
  const rows = [row(1, "b", 5), row(2, "a", 7), row(3, "b", 5), row(4, "a", undefined)];
  const ids = (items) => items.map((item) => item.isGroup ? item.host + item.count : item.number);
  const bySize = { value: (row) => row.size, isDown: false };
  assert.deepEqual(ids(ordered(rows, bySize, null)), [3, 1, 2, 4]);
  assert.deepEqual(ids(ordered(rows, null, { closed: new Set() })), ["a2", 4, 2, "b2", 3, 1]);
  assert.deepEqual(ids(ordered(rows, null, { closed: new Set(["a"]) })), ["a2", "b2", 3, 1]);
});

test("chips add a part of a filter, and take it away again", () => {
  assert.equal(toggled("", "~err"), "~err");
  assert.equal(toggled("~err", "~err"), "");
  assert.equal(toggled("~m GET", "~err"), "~m GET & ~err");
  assert.equal(toggled("~m GET & ~err & ~t json", "~err"), "~m GET & ~t json");
  assert.equal(toggled("~c 404 | ~c 410", "~err"), "(~c 404 | ~c 410) & ~err");
  assert.equal(hostPart("a.example"), "~d ^a\\.example$");
});

test("a text that the URL does not contain has a hint", () => {
  assert.deepEqual(hintFor("POST").filters, ["~m POST", "~h POST", "~b POST"]);
  assert.equal(hintFor("500").filters[0], "~c 500");
  assert.equal(hintFor("5XX").filters[0], "~c 5xx");
  assert.equal(hintFor("json").filters[0], "~t json");
  assert.equal(hintFor("~c 404"), null);
});

test("the last ten filters are kept, each once, without beginnings of longer ones", () => {
  assert.deepEqual(withRecent(["~c 4", "a"], "~c 404"), ["~c 404", "a"]);
  assert.equal(withRecent([..."abcdefghijk"], "z").length, 10);
});

test("an exchange tells in a sentence why it ended so", () => {
  const record = {
    responder: "tokenRefresh",
    end: "completed",
    attempts: 1,
    replays: 0,
    wares: [
      { ware: "tokenRefresh", decision: "aborted", text: "5 refreshes in 30s are used up" },
    ],
  };
  assert.deepEqual(reason({ status: 503, record }), {
    text: "503 by tokenRefresh: 5 refreshes in 30s are used up.",
    isBad: true,
  });
  const fault = { ...record, responder: "gateway", wares: [], fault: "connection_refused", reason: "no answer" };
  assert.equal(reason({ status: 502, record: fault }).text, "502 by the gateway: connection refused: no answer.");
  const plain = { ...record, responder: "upstream", wares: [] };
  assert.equal(reason({ status: 200, record: plain }), null);
  assert.match(
    reason({ status: 200, record: { ...plain, attempts: 2, replays: 1 } }).text,
    /2 attempts, sent again once/,
  );
});

test("the sample names the listener", () => {
  const listener = { name: "web", mode: "reverse", address: "0.0.0.0:8080", isTls: false };
  assert.equal(sample(listener), "curl http://127.0.0.1:8080/");
  assert.equal(sample({ ...listener, mode: "forward" }), "curl -x http://127.0.0.1:8080 http://example.com/");
  assert.equal(sample({ ...listener, isTls: true }), "curl -k https://127.0.0.1:8080/");
});

test("kept requests make points for the time before the overview", () => {
  const now = Date.parse("2026-01-01T00:01:00Z");
  const row = (second, status, duration) => ({
    time: `2026-01-01T00:00:${second}Z`,
    state: "ended",
    kind: "http",
    status,
    duration,
  });
  const points = pointsOfRows([row("01", 200, 10), row("02", 500, 30), row("25", 200, 5)], now);
  assert.deepEqual(points.map(({ rate }) => rate), [0, 0.2, 0, 0.1, 0, 0, 0]);
  assert.equal(points[1].bad, 0.1);
  assert.ok(Number.isNaN(points[2].p50));
  assert.deepEqual(pointsOfRows([], now), []);
});

test("the times of an axis are round", () => {
  assert.deepEqual(timesOf(5000, 45000), [10000, 20000, 30000, 40000]);
  assert.ok(timesOf(0, 3600000).length <= 6);
});

test("the counts say whether there are more, and what a pause holds back", () => {
  assert.equal(countText({ shown: 1 }), "1 request");
  assert.equal(countText({ shown: 0 }), "0 requests");
  assert.equal(countText({ shown: 200, hasMore: 17 }), "200+ requests");
  assert.equal(countText({ shown: 200, hasMore: 17, kept: 317 }), "317 requests");
  assert.equal(countText({ shown: 39, kept: 317, isFiltered: true }), "39 of 317 requests");
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
