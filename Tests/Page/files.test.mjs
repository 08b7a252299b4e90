// The files of the page are the ones that the program contains.
import test from "node:test";
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../Sources/CInspectorPage/Page/", import.meta.url);
const names = readdirSync(folder).filter((name) => name !== "package.json").sort();
const read = (name) => readFileSync(new URL(name, folder), "utf8");
const found = (pattern, text) => [...text.matchAll(pattern)].map((match) => match[1]);

test("each file of the page is embedded and served under its name", () => {
  const code = read("../files.c");
  assert.deepEqual(found(/^#embed "Page\/(.*)"$/gm, code), names);
  assert.deepEqual(found(/^ {4}\{"(.*?)", /gm, code), names);
});

test("each import names a file of the page", () => {
  for (const name of names.filter((name) => name.endsWith(".js"))) {
    for (const imported of found(/^(?:import|\}) .*from "\.\/(.*)";$/gm, read(name))) {
      assert.ok(names.includes(imported), `${name} imports ${imported}`);
    }
  }
});
