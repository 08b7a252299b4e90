// The words of the view of questions.
import assert from "node:assert/strict";
import test from "node:test";
import { restText, subjectOf, waitText } from "../../Sources/CInspectorPage/Page/questions.js";

test("a question names its request, or its host", () => {
  const item = { scope: "request", method: "POST", url: "http://a.test/x", host: "a.test:80" };
  assert.equal(subjectOf(item), "POST http://a.test/x");
  assert.equal(subjectOf({ ...item, scope: "host" }), "all requests to a.test:80");
});

test("the time that a question has waited is told, with the number of its requests", () => {
  const since = "2026-11-28T10:00:00Z", now = Date.parse("2026-11-28T10:00:05Z");
  assert.equal(waitText({ since, waiting: 1 }, now), "5.00 s");
  assert.equal(waitText({ since, waiting: 3 }, now), "5.00 s, 3 requests");
  assert.equal(restText({ until: "2026-11-28T10:00:05Z" }, Date.parse(since)), "in 5.00 s");
});
