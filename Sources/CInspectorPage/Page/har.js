// HTTP archives: saves what the filter shows, and reads one.
import { make, save, toast } from "./dom.js";
import { ask, post } from "./api.js";

/** Saves the requests that the filter finds. */
export async function saveHar(filter) {
  try {
    const answer = await ask("/v1/har?" + new URLSearchParams(filter ? { filter } : {}));
    save("httpware.har", await answer.blob(), "application/json");
  } catch (error) {
    toast(error.message);
  }
}

/** Lets the user choose a file, which the gateway reads; then calls `done`. */
export function openHar(done) {
  const input = make("input", { type: "file", accept: ".har,application/json" });
  input.addEventListener("change", async () => {
    try {
      const headers = { "Content-Type": "application/json" };
      toast(importText(await post("/v1/har", undefined, { body: input.files[0], headers })));
      done();
    } catch (error) {
      toast(error.message);
    }
  });
  input.click();
}

/** Says what the gateway has read. */
export function importText({ imported, warnings }) {
  const warning = warnings?.length ? `, ${warnings.length} warnings: ${warnings[0]}` : "";
  return `${imported} requests read` + warning;
}
