// The content of a request or response. If the chain changed it, the user chooses between the client's side and the
// origin server's side.
import { empty, make } from "./dom.js";
import { ask } from "./api.js";
import { showContent } from "./content.js";
import { withSecrets } from "./secrets.js";

/** The words for the two sides. */
const words = {
  request: { client: "as the client sent it", origin: "as the origin server got it" },
  response: { client: "as the client got it", origin: "as the origin server sent it" },
};

/** Whether the content of the two sides differs. */
export function hasBothSides({ client, origin }) {
  if (!client || !origin) return false;
  const a = client.content, b = origin.content;
  return a.size + b.size > 0 && (a.sha256 !== b.sha256 || a.size !== b.size);
}

/** Fills `parent` with the content of a half, `request` or `response`, while `isCurrent()`. */
export async function showSides(parent, capture, half, isCurrent) {
  const sides = capture[half], box = make("div");
  parent.replaceChildren(box);
  let side = sides.client ? "client" : "origin";
  const draw = async (isRaw) => {
    const message = sides[side];
    if (!message || !message.content.size) {
      return box.replaceChildren(empty("No content", message ? null : "There is no such message."));
    }
    try {
      const data = await readContent(capture.id, half, side, isRaw);
      if (!isCurrent()) return;
      const choose = (value) => {
        side = value;
        draw(isRaw);
      };
      showContent(box, {
        data,
        fields: message.headers,
        content: message.content,
        isOpen: capture.state === "open",
        isRaw,
        name: "content-" + capture.id + "-" + half,
        choice: hasBothSides(sides) ? sideChoice(words[half], side, choose) : null,
        raw: draw,
      });
    } catch (error) {
      if (error.name !== "AbortError") box.replaceChildren(empty("The content cannot be shown", error.message));
    }
  };
  await draw(false);
}

async function readContent(id, half, side, isRaw) {
  const path = `/v1/captures/${id}/${half}/content?side=${side}${isRaw ? "&raw=true" : ""}`;
  const answer = await ask(withSecrets(path, id));
  return new Uint8Array(await answer.arrayBuffer());
}

function sideChoice(words, side, choose) {
  const options = Object.entries(words).map(([value, text]) =>
    make("option", { value, selected: value === side }, text)
  );
  return make("label", "side ", make("select", { onchange: (event) => choose(event.target.value) }, options));
}
