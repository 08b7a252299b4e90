// Rules for a while: wares that act on a running gateway without touching its file.
import { button, clock, dialog, duration, empty, field, make, toast } from "./dom.js";
import { get, post, remove } from "./api.js";
import { Rows, withoutCaptures } from "./live.js";

const pause = 2000;

const edit = { rules: [{ find: "old", replace: "new" }] };
/** The options of a ware, as a beginning. */
const examples = {
  fault: { status: 503, ratio: "50%" },
  throttle: { preset: "3g" },
  break: { on: "request" },
  mock: { status: 200, body: "made by a rule\n" },
  rewrite: { path: { strip: "/v1" } },
  requestHeaders: { set: { "X-Rule": "yes" } },
  responseHeaders: { set: { "X-Rule": "yes" } },
  timeout: { total: "2s" },
  redirect: { to: "/elsewhere", status: 302 },
  errorPage: { body: "Sorry." },
  record: { file: "session" },
  replay: { file: "session" },
  rewriteBody: edit,
  rewriteRequestBody: edit,
  jsonTransform: { on: "response", set: { "/name": "new" } },
};

export function rules(main, start) {
  const shown = new Rows(["id", "filter", "ware", "options", "reason", "until", "#hits", ""], noRules),
    fault = make("div");
  let timer = 0, isGone = false;
  main.append(
    make(
      "div.viewhead",
      make("h2", "Rules for a while"),
      button("add a rule", () => addRule("", load), { class: "primary" }),
    ),
    make(
      "p.quiet",
      "They act on requests that their filter finds, behind every ware that checks access and before the wares " +
        "that answer, and end by themselves. httpware rule save prints one for the file.",
    ),
    fault,
    shown.element,
  );

  async function load() {
    clearTimeout(timer);
    try {
      const { rules } = await get("/v1/rules");
      if (isGone) return;
      fault.replaceChildren();
      shown.show(rules, (rule) => cellsOf(rule, load), changedOf);
    } catch (error) {
      if (!isGone) fault.replaceChildren(withoutCaptures("Rules are not on", error));
    }
    if (!isGone) timer = setTimeout(load, pause);
  }

  load();
  if (start.parameters.has("filter")) addRule(start.parameters.get("filter"), load);
  return {
    leave() {
      isGone = true;
      clearTimeout(timer);
    },
  };
}

const noRules = () =>
  empty(
    "No rules are in force",
    "Add one to answer with a fault, slow requests down, hold them at a breakpoint, or change their headers.",
  );

function cellsOf(rule, done) {
  return [
    String(rule.id),
    make("code", rule.filter || "all"),
    rule.ware,
    make("code", JSON.stringify(rule.options ?? {})),
    rule.reason ?? "",
    make("span", { title: rule.until }, untilText(rule.until)),
    hits(rule),
    removeButton(rule.id, done),
  ];
}

function changedOf(cells, rule) {
  cells[5].textContent = untilText(rule.until);
  cells[6].replaceChildren(hits(rule));
}

function hits({ hits, missed, missedBecause }) {
  if (!missed) return String(hits);
  return make("span", { title: "not acted on: " + missedBecause }, hits + ", missed " + missed);
}

function removeButton(id, done) {
  const act = async () => {
    try {
      await remove("/v1/rules/" + id);
      done();
    } catch (error) {
      toast(error.message);
    }
  };
  return button("remove", act, { "aria-label": "remove rule " + id });
}

/** When a rule ends, and how much time is left. */
export function untilText(text, now = Date.now()) {
  const left = new Date(text) - now;
  return clock(text).slice(0, 8) + ", " + (left > 0 ? duration(left) + " left" : "over");
}

/** Asks for a rule, and puts it in force; then calls `done`. */
function addRule(filter, done) {
  const inputs = makeInputs(filter);
  const form = [
    field("Ware", inputs.ware),
    field("Filter", inputs.filter, "Empty for every request."),
    field("Options", inputs.options, "JSON, as the ware's options in the file."),
    make("div.line", field("For", inputs.time, "at most 24h"), field("Times at most", inputs.count)),
    field("Reason", inputs.reason),
  ];
  const send = async () => {
    const values = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
    await post("/v1/rules", ruleOf(values));
    done();
  };
  dialog("Add a rule", form, send, "Put in force");
}

function makeInputs(text) {
  const spellcheck = "false";
  const showExample = () => {
    options.value = exampleOf(ware.value);
  };
  const names = Object.keys(examples).map((name) => make("option", name));
  const ware = make("select", { name: "ware", onchange: showExample }, names);
  const options = make("textarea", { name: "options", rows: 5, spellcheck, value: exampleOf("fault") });
  return {
    ware,
    filter: make("input", { name: "filter", value: text, spellcheck, placeholder: "~d example.com & ~m POST" }),
    options,
    time: make("input", { name: "for", value: "10m", required: true, size: 6 }),
    count: make("input", { name: "count", type: "number", min: 1, size: 6 }),
    reason: make("input", { name: "reason", required: true, placeholder: "the reason, for other users" }),
  };
}

const exampleOf = (ware) => JSON.stringify(examples[ware], null, 2);

/** The rule that the user has written. */
export function ruleOf({ filter, ware, options, time, count, reason }) {
  return {
    filter: filter.trim(),
    ware,
    options: readOptions(options),
    for: time.trim(),
    ...(count ? { count: Number(count) } : {}),
    reason,
  };
}

function readOptions(text) {
  if (!text.trim()) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error("the options are not JSON: " + error.message);
  }
}
