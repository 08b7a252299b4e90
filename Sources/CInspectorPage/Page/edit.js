// A captured request, changed in place and sent again; or sent again as it was.
import { button, field, make } from "./dom.js";
import { post } from "./api.js";
import { readFields, writeFields } from "./fields.js";
import { prettyJson } from "./parse.js";

/** The fields that the gateway makes itself. */
const derived = new Set(["content-length", "transfer-encoding", "host", "connection"]);

/** The fields that a user may change. */
export const editable = (headers) => headers.filter(({ name }) => !derived.has(name.toLowerCase()));

/** The text of content; `null` if it is not UTF-8. */
export function textOf(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

/** The changes of the user: of the texts method, URL, headers and body those of `now` that differ from `first`. */
export function changeOf(first, now) {
  const change = {};
  if (now.method !== first.method) change.method = now.method;
  if (now.url !== first.url) change.url = now.url;
  if (now.headers !== first.headers) change.headers = readFields(now.headers);
  if (now.body !== first.body) change.body = now.body;
  return change;
}

/** Sends a request again, with changes or without; the number of the new one. */
export async function sendAgain(id, change = {}) {
  return String((await post(`/v1/captures/${id}/replay`, change)).id);
}

/** The note below a body that cannot be changed; `null` for others. */
function bodyNote(isText, { kept, size, whole = kept === size, masked }) {
  if (!isText) return "It is not text, and is sent as it was.";
  if (masked) return "Values in it are masked, and are sent as they were. Reveal them to change the body.";
  if (whole) return null;
  return "Only the beginning was kept: the body is sent as it was, if the gateway still has it.";
}

/** Fills `box` with a request to change; `data` is its content, and `sent(id)` is called with the new request. */
export function showEdit(box, capture, data, sent) {
  const { headers, content } = capture.request.client, text = textOf(data);
  const isText = text !== null, isWhole = (content.whole ?? content.kept === content.size) && !content.masked;
  const first = {
    method: capture.method,
    url: capture.url,
    headers: writeFields(editable(headers)),
    body: prettyJson(text ?? ""),
  };
  const inputs = makeInputs(first, isText && isWhole), mistake = make("p.mistake", { role: "alert" });
  const send = async (event) => {
    event?.preventDefault();
    mistake.textContent = "";
    try {
      const now = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
      if (inputs.body.disabled) now.body = first.body;
      sent(await sendAgain(capture.id, changeOf(first, now)));
    } catch (error) {
      mistake.textContent = error.message;
    }
  };
  const revert = () => Object.entries(inputs).forEach(([name, input]) => input.value = first[name]);
  const key = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.stopPropagation();
    send(event);
  };
  box.replaceChildren(make(
    "form.edit",
    { onsubmit: send, onkeydown: key },
    make("div.line", field("Method", inputs.method), field("URL", inputs.url)),
    field(
      "Headers",
      inputs.headers,
      "A masked value that is left as it is gets its value from the gateway, if scheme and host are the same.",
    ),
    field("Body", inputs.body, bodyNote(isText, content)),
    mistake,
    make(
      "div.tools",
      make("button.primary", { type: "submit", title: "Ctrl+Enter" }, "Send"),
      button("revert", revert),
      make("span.quiet", "Ctrl+Enter sends it; the result is shown beside the first."),
    ),
  ));
}

const linesOf = (text, least, most) => Math.max(least, Math.min(most, text.split("\n").length + 1));

function makeInputs(first, canChangeBody) {
  const spellcheck = "false", { method, url, headers, body } = first;
  return {
    method: make("input", { name: "method", value: method, required: true, size: 10, spellcheck }),
    url: make("input", { name: "url", value: url, required: true, spellcheck }),
    headers: make("textarea", { name: "headers", rows: linesOf(headers, 4, 14), value: headers, spellcheck }),
    body: make("textarea", {
      name: "body",
      rows: linesOf(body, 4, 24),
      value: body,
      spellcheck,
      disabled: !canChangeBody,
    }),
  };
}
