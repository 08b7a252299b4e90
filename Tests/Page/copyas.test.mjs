// Requests as commands of other programs, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { formats, isMasked, variables } from "../../Sources/CInspectorPage/Page/copyas.js";

const captured = (more, ...lines) => ({
  method: "GET",
  url: "http://a.example/b",
  version: "HTTP/1.1",
  request: { client: { headers: lines.map(([name, value]) => ({ name, value })) } },
  ...more,
});
const bytes = (text) => new TextEncoder().encode(text);
const empty = new Uint8Array();

/** The words that a shell reads in a command, without running it. */
const words = (command) =>
  execFileSync("sh", ["-c", `set -- ${command}; printf '%s\\0' "$@"`], { encoding: "utf8" }).split("\0").slice(0, -1);

test("a shell reads the fields, the body and the URL of a curl command as they were sent", () => {
  const value = 'it\'s "odd" $HOME `x` !! \\', body = "@file 'a'\n$b";
  const capture = captured({ method: "POST", url: "http://a.example/b?c='$d'" }, ["X-Odd", value], ["X-Empty", ""]);
  const read = words(formats.curl(capture, bytes(body)));
  assert.ok(read.includes("X-Odd: " + value), read.join("|"));
  assert.ok(read.includes("X-Empty;"));
  assert.equal(read[read.indexOf("--data-raw") + 1], body);
  assert.equal(read[read.indexOf("--url") + 1], capture.url);
});

test("fields that a program makes by itself, and fields that are no field lines, are left out", () => {
  const capture = captured({}, ["Host", "a"], ["Content-Length", "3"], ["Bad Name", "x"], ["X-Line", "a\r\nB: c"]);
  for (const name of ["curl", "fetch", "Swift", "HTTPie"]) {
    assert.doesNotMatch(formats[name](capture, empty), /Content-Length|Bad Name|X-Line/, name);
  }
});

test("a masked value is a variable, whose name has a prefix", () => {
  const capture = captured({}, ["Authorization", "Bearer …"], ["Path", "…"], ["X-Text", "and so on … here"]);
  const command = formats.curl(capture, empty);
  assert.deepEqual(variables(command), ["HTTPWARE_AUTHORIZATION", "HTTPWARE_FIELD_PATH"]);
  assert.ok(command.includes("and so on … here"));
  assert.ok(isMasked("Bearer …") && !isMasked("Bearer x"));
});

test("a body that is not text is sent as base64", () => {
  const body = Uint8Array.of(0, 255, 1), capture = captured({ method: "PUT" });
  for (const name of ["curl", "HTTPie"]) assert.match(formats[name](capture, body), /^printf %s AP8B \| base64 -d \| /);
  assert.match(formats.fetch(capture, body), /atob\("AP8B"\)/);
  assert.match(formats.Swift(capture, body), /Data\(base64Encoded: "AP8B"\)/);
});

test("only a URL for a network is copied as a command", () => {
  for (const url of ["file:///etc/passwd", "-o x", "http:// a"]) {
    for (const name of ["curl", "fetch", "Swift", "HTTPie"]) {
      assert.throws(() => formats[name](captured({ url }), empty), /only http and https/);
    }
  }
});

test("code of fetch and Swift keeps quotes and line ends", () => {
  const capture = captured({ method: "POST" }, ["X-Odd", 'a "b" \\c']);
  assert.match(formats.fetch(capture, bytes("d\n`e`")), /\["X-Odd", "a \\"b\\" \\\\c"\]/);
  assert.match(formats.fetch(capture, bytes("d\n`e`")), /body: "d\\n`e`"/);
  assert.ok(formats.Swift(capture, bytes('d\n"e"')).includes('request.httpBody = Data("d\\n\\"e\\"".utf8)'));
});
