// Routes, with a question which one takes a URL, and the configuration as it is in force.
import { button, empty, facts, fullTime, make, table } from "./dom.js";
import { get, post } from "./api.js";
import { link } from "./state.js";

/** A place in a file, as `file:line:column`, with a link to the line. */
function placeLink(at) {
  const found = /^(.*):(\d+):(\d+)$/.exec(at ?? "");
  if (!found) return at;
  return make("a.quiet", { href: link("configuration", null, { file: found[1], line: found[2] }) }, at);
}

// Routes

export function routes(main) {
  const box = make("div"), answer = make("div.explanation", { "aria-live": "polite" });
  main.append(make("div.viewhead", make("h2", "Routes")), explainForm(answer), answer, box);
  showRoutes(box);
  return {};
}

/** The form that asks which route takes a URL, and shows the answer in `box`. */
function explainForm(box) {
  const method = make("input", { name: "method", value: "GET", size: 8, "aria-label": "method" });
  const url = make("input", {
    name: "url",
    required: true,
    "aria-label": "URL",
    placeholder: "http://localhost:8080/orders/7",
    spellcheck: "false",
  });
  const explain = async (event) => {
    event.preventDefault();
    try {
      const question = { method: method.value.trim(), url: url.value.trim() };
      box.replaceChildren(explanation(await post("/v1/explain", question)));
    } catch (error) {
      box.replaceChildren(make("p.mistake", error.message));
    }
  };
  const send = make("button.primary", { type: "submit" }, "explain");
  return make("form.line", { onsubmit: explain }, method, url, send);
}

async function showRoutes(box) {
  try {
    const { listeners } = await get("/v1/routes");
    box.replaceChildren(...listeners.map(listenerCard));
  } catch (error) {
    box.replaceChildren(empty("They cannot be shown", error.message));
  }
}

function listenerCard({ name, mode, address, at, routes }) {
  const heads = ["route", "matches", "service", "wares; ? on a condition", "written at"];
  return make(
    "section.card",
    make("h3", name, make("span.quiet", `  ${mode}, ${address}  `), placeLink(at)),
    routes.length ? table(heads, routes.map(routeRow)) : make("p.quiet", "no routes"),
  );
}

const routeRow = (route) => [
  route.name,
  route.match.map((item) => item.key + " " + item.value).join(", ") || "everything",
  route.service ?? "none",
  chain(route.chain),
  placeLink(route.at),
];

function chain({ middlewares, postwares }) {
  const wares = middlewares.concat(postwares);
  return make(
    "span.chain",
    wares.map((ware) => make("code", { title: ware.at }, ware.label + (ware.conditional ? "?" : ""))),
  );
}

/** The answer of /v1/explain: which route takes it, and what each ware would do. */
function explanation(value) {
  const { listener, route, service, upstream, answer, interception, passed, middlewares, postwares } = value;
  return make(
    "section.card",
    facts([
      ["listener", listener.name],
      ["route", route ? [route.name, " ", placeLink(route.at)] : "none"],
      ["service", service?.name],
      ["sent to", upstream?.to],
      ["answer", answer && answerText(answer)],
      ["tunnel", interception],
    ]),
    passed.length ? passedRoutes(passed) : null,
    middlewares.length
      ? table(["ware", "decision", "effect", "if", "written at"], middlewares.map(middlewareRow))
      : null,
    postwares.length ? table(["postware", "decision", "if", "written at"], postwares.map(postwareRow)) : null,
  );
}

const answerText = ({ status, by, because }) => `${status} by ${by}` + (because ? ": " + because : "");

function passedRoutes(passed) {
  const rows = passed.map((route) => [route.name, route.reason, placeLink(route.at)]);
  return make(
    "details",
    make("summary", `${passed.length} routes before it do not match`),
    table(["route", "because", "written at"], rows),
  );
}

const decisionClasses = { passed: "s2", answers: "s3", failed: "s5" };

const middlewareRow = (step) => [
  step.label,
  make("span.badge." + (decisionClasses[step.decision] ?? "s0"), step.decision),
  effectText(step),
  step.if ?? "",
  placeLink(step.at),
];

/** The effects of a ware on a request, a line for each. */
export const effectText = ({ reason, target, added, removed }) =>
  [
    reason,
    target,
    ...(added ?? []).map((line) => "+ " + line),
    ...(removed ?? []).map((line) => "− " + line),
  ].filter(Boolean).join("\n");

const postwareRow = (step) => [step.label, step.decision, step.if ?? "", placeLink(step.at)];

// The configuration

export function configuration(main, start) {
  const box = make("div"), result = make("div", { role: "alert" });
  let wanted = start.parameters;
  const load = () => showConfiguration(box, wanted);
  const reload = async () => {
    result.replaceChildren(...await reloadGateway());
    load();
  };
  main.append(
    make("div.viewhead", make("h2", "Configuration"), button("reload", reload, { class: "primary" })),
    result,
    box,
  );
  load();
  return {
    update(now) {
      wanted = now.parameters;
      load();
    },
  };
}

/** Makes the gateway read its configuration again; gives elements that say what came of it. */
async function reloadGateway() {
  try {
    const { changes, warnings } = await post("/v1/reload");
    const count = `${changes} ${changes === 1 ? "change" : "changes"}`;
    return [
      make("p.good", `The configuration was read again and is in force: ${count}.`),
      ...warnings.map((text) => make("p.note", text)),
    ];
  } catch (error) {
    return [
      make("p.mistake", error.message),
      ...(error.errors ?? []).map((text) => make("pre.mistake", linked(text))),
    ];
  }
}

/** An error, as `file:line:column: …`, with a link to the line. */
function linked(text) {
  const found = /^(.*?:\d+:\d+)(: .*)$/s.exec(text);
  return found ? [placeLink(found[1]), found[2]] : text;
}

async function showConfiguration(box, wanted) {
  try {
    const { values, lastReload } = await get("/v1/config"), files = await readFiles();
    box.replaceChildren(
      make("p.quiet", reloadText(lastReload)),
      lastReload.error ? make("pre.mistake", lastReload.error) : "",
      ...files.flatMap((file) => [make("h3", file.name), source(file, lineOf(file, wanted))]),
      valueTable(values, !files.length),
    );
    box.querySelector(".marked")?.scrollIntoView({ block: "center" });
  } catch (error) {
    box.replaceChildren(empty("It cannot be shown", error.message));
  }
}

/** The texts of the files; none if the gateway shows only values. */
async function readFiles() {
  try {
    return (await get("/v1/config/text")).files;
  } catch {
    return [];
  }
}

function reloadText({ success, time, reloads }) {
  return `${success ? "loaded" : "refused"} ${fullTime(time)}` + (reloads ? `, read again ${reloads} times` : "");
}

function valueTable(values, isOpen) {
  const rows = values.map((value) => [
    make("code", value.path),
    make(value.secret ? "span.masked" : "span", value.value),
    placeLink(value.at),
  ]);
  return make(
    "details",
    { open: isOpen },
    make("summary", "values in force, with what was not written"),
    table(["path", "value", "written at"], rows),
  );
}

/** The number of the line that a link wants of a file; 0 if it wants another file. */
export function lineOf(file, wanted) {
  const name = wanted.get("file");
  const isWanted = name === file.name || name && file.name.endsWith("/" + name);
  return isWanted ? Number(wanted.get("line")) : 0;
}

function source(file, marked) {
  const line = (text, index) => {
    const isMarked = index + 1 === marked;
    return make("li" + (isMarked ? ".marked" : ""), { id: isMarked ? "line" : null }, make("code", text || " "));
  };
  return make("ol.source", file.lines.map(line));
}
