// Sends a captured request again, as it was or changed.
import { dialog, field, make, toast } from "./dom.js";
import { post } from "./api.js";
import { readFields, writeFields } from "./fields.js";

/** The text of content; `null` if it is not UTF-8. */
function textOf(data) {
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

/** The note below a body that cannot be changed; `null` for others. */
function bodyNote(isText, isWhole) {
  if (!isText) return "It is not text, and is sent as it was.";
  if (isWhole) return null;
  return "Only the beginning was kept: the body is sent as it was, if the gateway still has it.";
}

/** Asks for changes of a request with the content `data`, and sends it; then calls `done(id)` with the new one. */
export function editAndSend(capture, data, done) {
  const { headers, content } = capture.request.client, text = textOf(data);
  const isText = text !== null, isWhole = content.kept === content.size;
  const first = { method: capture.method, url: capture.url, headers: writeFields(headers), body: text ?? "" };
  const inputs = makeInputs(first, isText && isWhole);
  const form = [
    make("div.line", field("Method", inputs.method), field("URL", inputs.url)),
    field(
      "Headers",
      inputs.headers,
      "A value that is masked is put back by the gateway, as long as scheme and host are the same.",
    ),
    field("Body", inputs.body, bodyNote(isText, isWhole)),
  ];
  const send = async () => {
    const now = valuesOf(inputs);
    const change = changeOf(first, inputs.body.disabled ? { ...now, body: first.body } : now);
    const answer = await post(`/v1/captures/${capture.id}/replay`, change);
    toast("sent as request " + answer.id);
    done(String(answer.id));
  };
  dialog("Edit and send again", form, send, "Send");
}

function makeInputs(first, canChangeBody) {
  const spellcheck = "false";
  return {
    method: make("input", { name: "method", value: first.method, required: true, size: 10, spellcheck }),
    url: make("input", { name: "url", value: first.url, required: true, spellcheck }),
    headers: make("textarea", { name: "headers", rows: 10, value: first.headers, spellcheck }),
    body: make("textarea", { name: "body", rows: 8, value: first.body, spellcheck, disabled: !canChangeBody }),
  };
}

const valuesOf = (inputs) => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
