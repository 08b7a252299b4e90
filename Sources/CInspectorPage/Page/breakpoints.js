// Breakpoints, and the requests and responses that they hold: let them go on, change them, or abort them.
import { button, dialog, duration, empty, field, make, toast } from "./dom.js";
import { ask, get, post, remove } from "./api.js";
import { link } from "./state.js";
import { readFields, writeFields } from "./fields.js";
import { editable, textOf } from "./edit.js";
import { prettyJson } from "./parse.js";
import { untilText } from "./rules.js";
import { Rows, withoutCaptures } from "./live.js";

const pause = 1000;

export function breakpoints(main) {
  const held = new Rows(["id", "held", "what", "since", ""], () => emptyHeld());
  const set = new Rows(["filter", "side", "until", "#hits", ""], () => make("p.quiet", "None is set."));
  const resumeAll = button("resume all", () => all(held.items, load), { class: "primary", hidden: true });
  const fault = make("div");
  let timer = 0, isGone = false;
  const { form, filter } = breakForm(load);
  main.append(
    make("div.viewhead", make("h2", "Breakpoints"), resumeAll),
    form,
    fault,
    held.element,
    make("h3", "Set breakpoints"),
    set.element,
  );

  async function load() {
    clearTimeout(timer);
    try {
      const [{ breaks }, { rules }] = await Promise.all([get("/v1/breaks"), get("/v1/rules")]);
      if (isGone) return;
      fault.replaceChildren();
      held.show(breaks, (item) => heldRow(item, load), since);
      set.show(rules.filter((rule) => rule.ware === "break"), (rule) => setRow(rule, load), changedOf);
      resumeAll.hidden = breaks.length < 2;
    } catch (error) {
      if (!isGone) fault.replaceChildren(withoutCaptures("Breakpoints are not on", error));
    }
    if (!isGone) timer = setTimeout(load, pause);
  }

  load();
  return {
    leave() {
      isGone = true;
      clearTimeout(timer);
    },
    key(event) {
      if (event.key === "/") {
        filter.focus();
        return true;
      }
      if (event.key !== "a" || !held.items.length) return false;
      all(held.items, load);
      return true;
    },
  };
}

const emptyHeld = () =>
  empty(
    "Nothing is held",
    "Set a breakpoint; requests that its filter finds wait here until they are resumed, changed or aborted.",
  );

/** The form that sets a breakpoint, then calls `done`; and its filter. */
function breakForm(done) {
  const filter = make("input", {
    name: "filter",
    "aria-label": "filter of the breakpoint",
    placeholder: "filter, as ~u /orders & ~m POST",
    spellcheck: "false",
  });
  const side = make("select", { "aria-label": "side" }, ["request", "response"].map((name) => make("option", name)));
  const mistake = make("p.mistake", { role: "alert", hidden: true });
  const set = async (event) => {
    event.preventDefault();
    mistake.hidden = true;
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
      mistake.textContent = error.message;
      mistake.hidden = false;
    }
  };
  const send = make("button.primary", { type: "submit" }, "set a breakpoint");
  return { form: make("form.line", { onsubmit: set }, filter, side, send, mistake), filter };
}

function setRow(rule, done) {
  const act = async () => {
    try {
      await remove("/v1/rules/" + rule.id);
    } catch (error) {
      toast(error.message);
    }
    done();
  };
  return [
    make("code", rule.filter || "all"),
    rule.options?.on ?? "request",
    untilText(rule.until),
    String(rule.hits),
    button("remove", act, { "aria-label": "remove breakpoint " + rule.id }),
  ];
}

function changedOf(cells, rule) {
  cells[2].textContent = untilText(rule.until);
  cells[3].textContent = String(rule.hits);
}

function heldRow(item, done) {
  return [
    String(item.id),
    item.side,
    make("a", { href: link("requests", item.capture) }, nameOf(item)),
    sinceText(item),
    tools(item, done),
  ];
}

function since(cells, item) {
  cells[3].textContent = sinceText(item);
}

const sinceText = ({ since }) => since ? duration(Math.max(0, Date.now() - new Date(since))) : "";

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

/** Lets all go on, unchanged. */
async function all(items, done) {
  // A message may have gone on by itself meanwhile.
  await Promise.allSettled(items.map(({ id }) => post(`/v1/breaks/${id}/resume`, {})));
  toast(items.length === 1 ? "1 message was resumed" : items.length + " messages were resumed");
  done();
}

/** Asks for changes of what is held, and lets it go on; then calls `done`. */
async function edit(item, done) {
  const isRequest = item.side === "request", capture = await captureOf(item), first = firstValues(item, capture);
  first.body = await bodyOf(item, capture);
  const isText = first.body !== null, inputs = makeInputs(first, isText && item.bodyEditable !== false);
  const { method, url, status, headers, body } = inputs;
  const note = isText ? null : "It is not text, or not all of it is kept: it goes on as it is.";
  const form = [
    isRequest ? make("div.line", field("Method", method), field("URL", url)) : field("Status", status),
    field("Headers", headers, "A masked value that is left as it is stays what it was."),
    field("Body", body, note),
  ];
  const resume = async () => {
    const now = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
    await post(`/v1/breaks/${item.id}/resume`, changeOf(isRequest, { ...first, body: first.body ?? "" }, now));
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

/** The content that is held, formatted if it is JSON; `null` if it cannot be shown as text, or is not whole. */
async function bodyOf(item, capture) {
  const half = capture?.[item.side], side = item.side === "request" ? "client" : "origin";
  const content = (half?.[side] ?? half?.client)?.content;
  if (!content?.size) return "";
  if (!(content.whole ?? content.kept >= content.size)) return null;
  try {
    const path = `/v1/captures/${item.capture}/${item.side}/content?secrets=true`;
    const answer = await ask(path + (half[side] ? "&side=" + side : ""));
    const text = textOf(new Uint8Array(await answer.arrayBuffer()));
    return text === null || text.includes("\0") ? null : prettyJson(text);
  } catch {
    return null;
  }
}

/** The texts that the user may change, except the body. */
export function firstValues(item, capture) {
  const half = capture?.[item.side], headers = item.headers ?? (half?.client ?? half?.origin)?.headers;
  return {
    method: item.method ?? capture?.method ?? "",
    url: item.url ?? capture?.url ?? "",
    status: String(item.status ?? capture?.status ?? 200),
    headers: writeFields(editable(headers ?? [])),
  };
}

const linesOf = (text, least, most) => Math.max(least, Math.min(most, text.split("\n").length + 1));

function makeInputs(first, canChangeBody) {
  return {
    method: make("input", { name: "method", value: first.method, size: 10 }),
    url: make("input", { name: "url", value: first.url }),
    status: make("input", { name: "status", type: "number", min: 200, max: 599, value: first.status }),
    headers: make("textarea", { name: "headers", rows: 8, value: first.headers, spellcheck: "false" }),
    body: make("textarea", {
      name: "body",
      rows: linesOf(first.body ?? "", 4, 18),
      value: first.body ?? "",
      spellcheck: "false",
      disabled: !canChangeBody,
    }),
  };
}

/** The changes of the user: those of `now` that differ from `first`. */
export function changeOf(isRequest, first, now) {
  const change = {};
  if (isRequest && now.method !== first.method) change.method = now.method;
  if (isRequest && now.url !== first.url) change.url = now.url;
  if (!isRequest && now.status !== first.status) change.status = Number(now.status);
  if (now.headers !== first.headers) change.headers = readFields(now.headers);
  if ((now.body ?? "") !== (first.body ?? "")) change.body = now.body;
  return change;
}
