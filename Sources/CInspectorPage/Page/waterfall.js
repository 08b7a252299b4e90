// When what happened: wares and phases of each attempt on one line of time.
import { duration, empty, make } from "./dom.js";

/** The words for the phases of an attempt. */
const phases = {
  dns: "look up the name",
  connect: "connect",
  tls: "TLS handshake",
  send: "send the request",
  firstByte: "wait for the response",
  content: "receive the content",
  backoff: "wait before the next attempt",
};

/** The words for the kinds of bars. */
const kinds = {
  request: "ware, request",
  responseHalf: "ware, response",
  postware: "postware",
  phase: "origin server",
  backoff: "wait",
  fault: "fault",
};

export function showTiming(box, { record, state }) {
  if (record) return box.replaceChildren(waterfall(record));
  box.replaceChildren(
    state === "open"
      ? empty("Under way", "The steps of the wares are shown when the request has ended.")
      : empty("No record", "An imported request has no record of wares."),
  );
}

// The rows

/** The steps of the wares and the phases of the attempts, in order of their start. */
export function rowsOf(record) {
  const total = totalOf(record);
  const wares = record.wares.map((ware) => wareRow(ware, total));
  return wares.concat(phaseRows(record.phases)).sort((a, b) => a.start - b.start || a.duration - b.duration);
}

const totalOf = (record) => Math.max(record.duration, 0.001);

function wareRow(ware, total) {
  const isPassed = ware.decision === "passed";
  return {
    attempt: ware.attempt,
    start: ware.start,
    duration: ware.duration,
    kind: ware.side,
    name: ware.ware,
    text: isPassed ? "" : ware.text,
    changes: changesOf(ware),
    isPlain: isPassed && !hasChanges(ware) && ware.duration < total / 50,
  };
}

/** The changes of a ware: of fields, with a mark, and of the method, target and status. */
function changesOf(ware) {
  const marked = (mark, names) => (names ?? []).map((name) => mark + " " + name);
  return [
    ...marked("+", ware.added),
    ...marked("−", ware.removed),
    ...marked("~", ware.rewritten),
    ware.method && "method " + ware.method,
    ware.target && "target " + ware.target,
    ware.status && ware.decision === "passed" && "status " + ware.status,
  ].filter(Boolean);
}

const hasChanges = (ware) =>
  ware.added || ware.removed || ware.rewritten || ware.replacedFields || ware.method || ware.target;

/** The phases of all attempts. The endpoint of an attempt is said once. */
function phaseRows(list) {
  const said = new Map();
  // A phase that took no time, such as sending a small request, tells nothing.
  return list.filter((phase) => phase.duration > 0 || phase.fault).map((phase) => {
    const isNew = phase.endpoint && said.get(phase.attempt) !== phase.endpoint;
    if (isNew) said.set(phase.attempt, phase.endpoint);
    return {
      attempt: phase.attempt,
      start: phase.start,
      duration: phase.duration,
      kind: kindOf(phase),
      name: phases[phase.phase] ?? phase.phase,
      text: [phase.fault, isNew ? phase.endpoint : ""].filter(Boolean).join(" at "),
      changes: [],
      isPlain: false,
    };
  });
}

function kindOf(phase) {
  if (phase.fault) return "fault";
  return phase.phase === "backoff" ? "backoff" : "phase";
}

/** The whole in a sentence: what took the time. */
export function sentence(record) {
  const sum = (list) => list.reduce((total, step) => total + step.duration, 0);
  const outside = sum(record.phases.filter((phase) => phase.phase !== "backoff"));
  const pauses = sum(record.phases.filter((phase) => phase.phase === "backoff"));
  const count = record.wares.length;
  const parts = [`${duration(sum(record.wares))} in ${count} ware ${count === 1 ? "step" : "steps"}`];
  if (outside) parts.push(`${duration(outside)} with the origin server`);
  if (pauses) parts.push(`${duration(pauses)} in pauses before retries`);
  return `${duration(record.duration)} in total: ${parts.join(", ")}.`;
}

// The picture

function waterfall(record) {
  const rows = rowsOf(record), total = totalOf(record);
  const box = make("div.waterfall", make("div.line", make("span.who"), scale(total)), groups(record, rows, total));
  return make(
    "div",
    make("p", sentence(record)),
    foldToggle(rows, box),
    box,
    legend(rows),
    record.cut ? make("p.note", "The wares did more than is kept.") : null,
  );
}

function scale(total) {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const mark = make("span", duration(total * part));
    mark.style.left = part * 100 + "%";
    return mark;
  });
  return make("div.scale", { "aria-hidden": "true" }, marks);
}

/** The lines of each attempt; several attempts have titles. */
function groups(record, rows, total) {
  const attempts = new Map();
  for (const row of rows) {
    if (!attempts.has(row.attempt)) attempts.set(row.attempt, []);
    attempts.get(row.attempt).push(row);
  }
  const hasSeveral = rows.some((row) => row.attempt > 1);
  return [...attempts].map(([number, list]) => {
    const lines = list.map((row) => line(row, total));
    if (!hasSeveral) return make("div", lines);
    const title = "attempt " + number + failure(record, number);
    return make("details.attempt", { open: true }, make("summary", title), lines);
  });
}

function failure(record, number) {
  const phase = record.phases.find((phase) => phase.attempt === number && phase.fault);
  return phase ? ": " + phase.fault : "";
}

/** Shows the wares that are folded away; nothing if there are none. */
function foldToggle(rows, box) {
  const count = rows.filter((row) => row.isPlain).length;
  if (!count) return null;
  return make(
    "label.fold",
    make("input", { type: "checkbox", onchange: (event) => box.classList.toggle("all", event.target.checked) }),
    ` show ${count} ${count === 1 ? "ware" : "wares"} that passed and changed nothing`,
  );
}

function legend(rows) {
  const shown = Object.entries(kinds).filter(([kind]) => rows.some((row) => row.kind === kind));
  return make("p.legend", shown.map(([kind, text]) => [make("i." + kind), text + "  "]));
}

function line(row, total) {
  return make(
    "div.line" + (row.isPlain ? ".plain" : ""),
    make("span.who", row.name),
    make(
      "div.track",
      { role: "img", "aria-label": `begins at ${duration(row.start)}, takes ${duration(row.duration)}` },
      bar(row, total),
    ),
    make("span.took", duration(row.duration)),
    row.text || row.changes.length ? description(row) : null,
  );
}

function bar(row, total) {
  const bar = make("i." + row.kind);
  bar.style.left = Math.min(99.5, row.start / total * 100) + "%";
  bar.style.width = Math.max(0.5, Math.min(100, row.duration / total * 100)) + "%";
  return bar;
}

function description({ text, changes }) {
  return make("span.what", text ? make("span", text) : null, changes.map((change) => make("code", change)));
}
