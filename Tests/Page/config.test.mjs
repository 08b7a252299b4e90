// Routes and the configuration, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { effectText, lineOf } from "../../Sources/CInspectorPage/Page/config.js";

test("each effect of a ware has a line", () => {
  assert.equal(effectText({ reason: "r", added: ["A: b"], removed: ["C"] }), "r\n+ A: b\n− C");
  assert.equal(effectText({ target: "/x" }), "/x");
  assert.equal(effectText({}), "");
});

test("a link marks a line of the file that it names", () => {
  const wanted = new URLSearchParams({ file: "httpware.yaml", line: "4" });
  assert.equal(lineOf({ name: "httpware.yaml" }, wanted), 4);
  assert.equal(lineOf({ name: "/etc/httpware/httpware.yaml" }, wanted), 4);
  assert.equal(lineOf({ name: "/etc/other-httpware.yaml" }, wanted), 0);
  assert.equal(lineOf({ name: "a.yaml" }, new URLSearchParams()), 0);
});
