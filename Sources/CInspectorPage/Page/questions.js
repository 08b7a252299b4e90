// The questions of the ware ask: requests that wait until a person allows or refuses them, and earlier answers.
import { button, bytes, duration, empty, make, toast } from "./dom.js";
import { get, post, remove } from "./api.js";
import { link } from "./state.js";
import { Rows } from "./live.js";

const pause = 1000;

export function questions(main) {
  const open = new Rows(["request", "from", "waits", "answers at the latest", ""], () => noQuestion());
  const kept = new Rows(["request", "from", "answer", "for", ""], () => make("p.quiet", "There is no earlier answer."));
  const fault = make("div");
  let timer = 0, isGone = false;
  main.append(
    make("div.viewhead", make("h2", "Questions")),
    fault,
    open.element,
    make("h3", "Earlier answers that count"),
    kept.element,
  );

  async function load() {
    clearTimeout(timer);
    try {
      const [{ questions }, { approvals }] = await Promise.all([get("/v1/questions"), get("/v1/approvals")]);
      if (isGone) return;
      fault.replaceChildren();
      open.show(questions, (item) => questionRow(item, load), changeQuestion);
      kept.show(approvals.map(keyed), (item) => approvalRow(item, load), changeApproval);
    } catch (error) {
      if (!isGone) fault.replaceChildren(empty("They cannot be shown", error.message));
    }
    if (!isGone) timer = setTimeout(load, pause);
  }

  load();
  return {
    leave() {
      isGone = true;
      clearTimeout(timer);
    },
  };
}

const noQuestion = () =>
  empty("No request waits", "The ware ask, and hostRule with otherwise: ask, let requests wait here for an answer.");

/** The subject of a question. */
export const subjectOf = ({ scope, host, method, url }) =>
  scope === "host" ? `all requests to ${host}` : method + " " + url;

/** How long a question has waited, and how many requests do. */
export function waitText({ since, waiting }, now = Date.now()) {
  const time = duration(Math.max(0, now - new Date(since)));
  return waiting > 1 ? `${time}, ${waiting} requests` : time;
}

/** How long it is until a question ends by itself. */
export const restText = ({ until }, now = Date.now()) => "in " + duration(Math.max(0, new Date(until) - now));

function questionRow(item, done) {
  const span = make("select", { "aria-label": "how long the answer to " + item.id + " counts" }, spansOf(item));
  const say = async (word) => {
    try {
      await post(`/v1/questions/${item.id}/answer`, { answer: word, for: span.value });
      toast(word === "yes" ? "it is allowed" : "it is refused");
    } catch (error) {
      toast(error.message);
    }
    done();
  };
  return [
    make("details", make("summary", make("code", subjectOf(item))), details(item)),
    item.who,
    waitText(item),
    restText(item),
    make(
      "span.tools",
      span,
      button("allow", () => say("yes"), { class: "primary", "aria-label": "allow " + item.id }),
      button("refuse", () => say("no"), { "aria-label": "refuse " + item.id }),
    ),
  ];
}

const names = { once: "once", run: "until the gateway ends", always: "always" };

const spansOf = ({ answers }) => [
  ...answers.map((name) => make("option", { value: name }, names[name] ?? name)),
  ...(answers.includes("run") ? [make("option", { value: "10m" }, "for 10 minutes")] : []),
];

function changeQuestion(cells, item) {
  cells[2].textContent = waitText(item);
  cells[3].textContent = restText(item);
}

/** The whole request, as far as it is known. */
function details(item) {
  const { content, headers, capture, hiddenHeaders } = item;
  const lines = headers.map(({ name, value }) => name + ": " + value).join("\n");
  const rest = content.whole ? null : make("p.quiet", "More content follows, which is not known yet.");
  const body = content.text ?? (content.size ? bytes(content.size) + " that are not text" : "");
  return make(
    "div",
    make("pre", lines),
    hiddenHeaders ? make("p.quiet", hiddenHeaders + " more fields are not shown.") : null,
    body ? make("pre", body) : null,
    rest,
    capture ? make("a", { href: link("requests", capture) }, "open the request") : null,
  );
}

const keyed = (item) => ({ ...item, key: item.id, id: item.id + item.for + (item.file ?? "") });

function approvalRow(item, done) {
  const act = async () => {
    try {
      await remove("/v1/approvals/" + item.key);
      toast("it is taken back");
    } catch (error) {
      toast(error.message);
    }
    done();
  };
  return [
    make("code", item.what),
    item.who,
    item.answer === "yes" ? "allowed" : "refused",
    names[item.for] ?? item.for,
    button("take back", act, { "aria-label": "take back " + item.key }),
  ];
}

function changeApproval(cells, item) {
  cells[3].textContent = names[item.for] ?? item.for;
}
