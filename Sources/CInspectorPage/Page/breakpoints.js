// Requests and responses that a break rule holds: let them go on, change them, or abort them.
import { button, dialog, duration, empty, field, make, table, toast } from "./dom.js";
import { get, post } from "./api.js";
import { link } from "./state.js";
import { readFields, writeFields } from "./fields.js";
import { withoutCaptures } from "./live.js";

const pause = 1000;

export function breakpoints(main) {
  const box = make("div");
  let timer = 0;
  const { form, filter } = breakForm(load);
  main.append(make("div.viewhead", make("h2", "Breakpoints")), form, box);

  async function load() {
    try {
      const { breaks } = await get("/v1/breaks");
      box.replaceChildren(heldTable(breaks, load));
    } catch (error) {
      box.replaceChildren(withoutCaptures("Breakpoints are not on", error));
    }
    clearTimeout(timer);
    timer = setTimeout(load, pause);
  }

  load();
  return {
    leave() {
      clearTimeout(timer);
    },
    key(event) {
      if (event.key !== "/") return false;
      filter.focus();
      return true;
    },
  };
}

/** The form that sets a breakpoint, then calls `done`; and its filter. */
function breakForm(done) {
  const filter = make("input", {
    name: "filter",
    "aria-label": "filter of the breakpoint",
    placeholder: "filter, as ~u /orders & ~m POST",
    spellcheck: "false",
  });
  const side = make("select", { "aria-label": "side" }, ["request", "response"].map((name) => make("option", name)));
  const set = async (event) => {
    event.preventDefault();
    try {
      await post("/v1/rules", {
        filter: filter.value.trim(),
        ware: "break",
        options: { on: side.value },
        for: "30m",
        reason: "breakpoint of the inspector",
      });
      toast("the breakpoint is set for 30 minutes");
      done();
    } catch (error) {
      toast((error.column ? `column ${error.column}: ` : "") + error.message);
    }
  };
  const send = make("button.primary", { type: "submit" }, "set a breakpoint");
  return { form: make("form.line", { onsubmit: set }, filter, side, send), filter };
}

function heldTable(breaks, done) {
  if (!breaks.length) {
    return empty(
      "Nothing is held",
      "Set a breakpoint; requests that its filter finds wait here until they are resumed, changed or aborted.",
    );
  }
  const rows = breaks.map((item) => [
    String(item.id),
    item.side,
    make("a", { href: link("requests", item.capture) }, nameOf(item)),
    item.since ? duration(Math.max(0, Date.now() - new Date(item.since))) : "",
    tools(item, done),
  ]);
  return table(["id", "held", "what", "since", ""], rows);
}

const nameOf = (item) => [item.method, item.url].filter(Boolean).join(" ") || "request " + item.capture;

function tools(item, done) {
  const tool = (name, onclick) => button(name, onclick, { "aria-label": name + " " + item.id });
  return make(
    "span.tools",
    tool("resume", () => act(item, "resume", {}, done)),
    tool("edit", () => edit(item, done)),
    tool("abort", () => act(item, "abort", undefined, done)),
  );
}

async function act(item, action, value, done) {
  try {
    await post(`/v1/breaks/${item.id}/${action}`, value);
  } catch (error) {
    toast(error.message);
  }
  done();
}

/** Asks for changes of what is held, and lets it go on; then calls `done`. */
async function edit(item, done) {
  const isRequest = item.side === "request", first = firstValues(item, await captureOf(item));
  const inputs = makeInputs(first);
  const { method, url, status, headers, body } = inputs;
  const form = [
    isRequest ? make("div.line", field("Method", method), field("URL", url)) : field("Status", status),
    field("Headers", headers, "A masked value that is left as it is stays what it was."),
    field("Body", body),
  ];
  const resume = async () => {
    const now = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
    await post(`/v1/breaks/${item.id}/resume`, changeOf(isRequest, first, now));
    done();
  };
  dialog(`Change the ${item.side}`, form, resume, "Resume");
}

/** The capture of what is held; `null` if there is none: it is edited without its fields then. */
async function captureOf(item) {
  try {
    return item.capture ? await get("/v1/captures/" + item.capture) : null;
  } catch {
    return null;
  }
}

/** The texts that the user may change. */
export function firstValues(item, capture) {
  const half = capture?.[item.side], message = half?.client ?? half?.origin;
  return {
    method: item.method ?? capture?.method ?? "",
    url: item.url ?? capture?.url ?? "",
    status: String(item.status ?? capture?.status ?? 200),
    headers: writeFields(message?.headers ?? []),
  };
}

function makeInputs(first) {
  return {
    method: make("input", { name: "method", value: first.method, size: 10 }),
    url: make("input", { name: "url", value: first.url }),
    status: make("input", { name: "status", type: "number", min: 200, max: 599, value: first.status }),
    headers: make("textarea", { name: "headers", rows: 8, value: first.headers, spellcheck: "false" }),
    body: make("textarea", {
      name: "body",
      rows: 6,
      spellcheck: "false",
      placeholder: "empty: the content stays as it is",
    }),
  };
}

/** The changes of the user: those of `now` that differ from `first`, and a body if one was written. */
export function changeOf(isRequest, first, now) {
  const change = {};
  if (isRequest && now.method !== first.method) change.method = now.method;
  if (isRequest && now.url !== first.url) change.url = now.url;
  if (!isRequest && now.status !== first.status) change.status = Number(now.status);
  if (now.headers !== first.headers) change.headers = readFields(now.headers);
  if (now.body) change.body = now.body;
  return change;
}
