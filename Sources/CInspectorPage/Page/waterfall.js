// When what happened: wares and phases of each attempt on one line of time.
import { duration, make } from "./dom.js";

const waits = { backoff: "wait before the next attempt", pool: "wait for a connection", held: "held" };
const phases = {
  dns: "look up the name",
  connect: "connect",
  tls: "TLS handshake",
  send: "send the request",
  firstByte: "wait for the response",
  content: "receive the content",
  backoff: waits.backoff,
};

export function waterfall(record) {
  const total = Math.max(record.duration, 0.001);
  // Where an attempt went is said once.
  const told = new Map();
  const place = (phase) => {
    if (!phase.endpoint || told.get(phase.attempt) === phase.endpoint) return "";
    told.set(phase.attempt, phase.endpoint);
    return phase.endpoint;
  };
  const rows = record.wares.map((ware) => ({
    attempt: ware.attempt,
    start: ware.start,
    duration: ware.duration,
    kind: ware.side,
    name: ware.ware,
    text: ware.decision === "passed" ? "" : ware.text,
    changes: [["+", ware.added], ["−", ware.removed], ["~", ware.rewritten]].flatMap(([mark, names]) =>
      (names ?? []).map((name) => mark + " " + name)
    )
      .concat(
        ware.method ? "method " + ware.method : [],
        ware.target ? "target " + ware.target : [],
        ware.status && ware.decision === "passed" ? "status " + ware.status : [],
      ),
    isPlain: ware.decision === "passed" && !ware.added && !ware.removed && !ware.rewritten && !ware.replacedFields &&
      !ware.method && !ware.target && ware.duration < total / 50,
    isWait: ware.duration > 1 && ware.decision !== "failed",
  })).concat(record.phases.map((phase) => ({
    attempt: phase.attempt,
    start: phase.start,
    duration: phase.duration,
    kind: phase.fault ? "fault" : phase.phase === "backoff" ? "backoff" : "phase",
    name: phases[phase.phase] ?? phase.phase,
    text: [phase.fault, place(phase)].filter(Boolean).join(" at "),
    changes: [],
    isPlain: false,
  }))).sort((a, b) => a.start - b.start || a.duration - b.duration);
  const several = rows.some((row) => row.attempt > 1);
  const box = make("div.waterfall");
  const scale = make(
    "div.scale",
    { "aria-hidden": "true" },
    [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const mark = make("span", duration(total * part));
      mark.style.left = part * 100 + "%";
      return mark;
    }),
  );
  const attempts = new Map();
  for (const row of rows) {
    if (!attempts.has(row.attempt)) attempts.set(row.attempt, []);
    attempts.get(row.attempt).push(row);
  }
  const folded = rows.filter((row) => row.isPlain).length;
  const toggle = folded
    ? make(
      "label.fold",
      make("input", { type: "checkbox", onchange: (event) => box.classList.toggle("all", event.target.checked) }),
      ` show ${folded} ${folded === 1 ? "ware" : "wares"} that passed and changed nothing`,
    )
    : null;
  box.append(make("div.line", make("span.who"), scale));
  for (const [number, list] of attempts) {
    const group = several
      ? make("details.attempt", { open: true }, make("summary", "attempt " + number + failure(record, number)))
      : make("div");
    for (const row of list) group.append(line(row, total));
    box.append(group);
  }
  const legend = make(
    "p.legend",
    [
      ["request", "ware, request"],
      ["responseHalf", "ware, response"],
      ["postware", "postware"],
      ["phase", "origin server"],
      ["backoff", "wait"],
      ["fault", "fault"],
    ]
      .filter(([kind]) => rows.some((row) => row.kind === kind)).map((
        [kind, text],
      ) => [make("i." + kind), text + "  "]),
  );
  return make(
    "div",
    make("p", sentence(record)),
    toggle,
    box,
    legend,
    record.cut ? make("p.note", "The wares did more than is kept.") : null,
  );
}

function failure(record, number) {
  const phase = record.phases.find((phase) => phase.attempt === number && phase.fault);
  return phase ? ": " + phase.fault : "";
}

/** The whole in a sentence: what took the time. */
function sentence(record) {
  const inside = record.wares.reduce((sum, ware) => sum + ware.duration, 0);
  const outside = record.phases.filter((phase) => phase.phase !== "backoff").reduce(
    (sum, phase) => sum + phase.duration,
    0,
  );
  const pauses = record.phases.filter((phase) => phase.phase === "backoff").reduce(
    (sum, phase) => sum + phase.duration,
    0,
  );
  const parts = [`${duration(inside)} in ${record.wares.length} ware ${record.wares.length === 1 ? "step" : "steps"}`];
  if (outside) parts.push(`${duration(outside)} with the origin server`);
  if (pauses) parts.push(`${duration(pauses)} in pauses before retries`);
  return `${duration(record.duration)} in total: ${parts.join(", ")}.`;
}

function line(row, total) {
  const bar = make("i." + row.kind);
  bar.style.left = Math.min(99.5, row.start / total * 100) + "%";
  bar.style.width = Math.max(0.5, Math.min(100, row.duration / total * 100)) + "%";
  return make(
    "div.line" + (row.isPlain ? ".plain" : ""),
    make("span.who", row.name),
    make("div.track", {
      role: "img",
      "aria-label": `begins at ${duration(row.start)}, takes ${duration(row.duration)}`,
    }, bar),
    make("span.took", duration(row.duration)),
    row.text || row.changes.length
      ? make("span.what", row.text ? make("span", row.text) : null, row.changes.map((change) => make("code", change)))
      : null,
  );
}
