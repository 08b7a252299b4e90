// Rules and breakpoints, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { ruleOf, untilText } from "../../Sources/CInspectorPage/Page/rules.js";
import { changeOf, firstValues } from "../../Sources/CInspectorPage/Page/breakpoints.js";

test("a rule has the options and the count that were written", () => {
  const values = {
    filter: " ~m GET ",
    ware: "fault",
    options: '{"status": 418}',
    time: " 5m ",
    count: "",
    reason: "r",
  };
  const rule = { filter: "~m GET", ware: "fault", options: { status: 418 }, for: "5m", reason: "r" };
  assert.deepEqual(ruleOf(values), rule);
  assert.deepEqual(ruleOf({ ...values, options: " ", count: "3" }), { ...rule, options: {}, count: 3 });
  assert.throws(() => ruleOf({ ...values, options: "{" }), /the options are not JSON/);
});

test("the end of a rule says how much time is left", () => {
  const end = "2026-01-01T12:00:10Z", now = Date.parse("2026-01-01T12:00:00Z");
  assert.match(untilText(end, now), /^\d\d:\d\d:10, 10\.0 s left$/);
  assert.match(untilText(end, now + 20000), /:10, over$/);
});

test("a held request is changed only where the user changed it", () => {
  const message = { headers: [{ name: "A", value: "b" }] };
  const capture = { method: "GET", url: "http://a/", status: 204, request: { client: message }, response: {} };
  const first = firstValues({ side: "request" }, capture);
  assert.deepEqual(first, { method: "GET", url: "http://a/", status: "204", headers: "A: b" });
  assert.deepEqual(changeOf(true, first, { ...first, body: "" }), {});
  assert.deepEqual(changeOf(true, first, { ...first, url: "/c", status: "500", body: "d" }), { url: "/c", body: "d" });
  assert.deepEqual(changeOf(false, first, { ...first, url: "/c", status: "500", body: "" }), { status: 500 });
  assert.deepEqual(firstValues({ side: "response", status: 404 }, null), {
    method: "",
    url: "",
    status: "404",
    headers: "",
  });
});
