// The frame of the page: which view is shown, the keys that work everywhere, the colours.
import { dialog, field, make, table } from "./dom.js";
import { begin, onTokenNeeded } from "./api.js";
import { choices, go, link, place } from "./state.js";
import { requests } from "./requests.js";
import { compare } from "./compare.js";
import { overview } from "./overview.js";
import { rules } from "./rules.js";
import { breakpoints } from "./breakpoints.js";
import { questions } from "./questions.js";
import { services } from "./services.js";
import { cache } from "./cache.js";
import { tokens } from "./tokens.js";
import { configuration, routes } from "./config.js";
import { emptyViews } from "./gateway.js";
import { watchCount } from "./held.js";

const views = {
  requests,
  overview,
  rules,
  breakpoints,
  questions,
  services,
  cache,
  tokens,
  routes,
  configuration,
  compare,
};
const titles = {
  requests: "Requests",
  overview: "Overview",
  rules: "Rules",
  breakpoints: "Breakpoints",
  questions: "Questions",
  services: "Services",
  cache: "Cache",
  tokens: "Tokens",
  routes: "Routes",
  configuration: "Configuration",
  compare: "Compare",
};
const main = document.getElementById("main");
let shown = null;

function show() {
  const now = place();
  const name = Object.hasOwn(views, now.view) ? now.view : "requests";
  for (const item of document.querySelectorAll("#nav a")) {
    if (item.dataset.view === name) {
      item.setAttribute("aria-current", "page");
      item.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else item.removeAttribute("aria-current");
  }
  if (shown?.name === name) return shown.view.update?.(now);
  shown?.view.leave?.();
  main.replaceChildren();
  main.className = name;
  shown = { name, view: views[name](main, now) };
  showTitle();
  chooseViews();
}

// Messages that wait at breakpoints, or for an answer, are seen from everywhere, also from another tab.

const waiting = { held: 0, asked: 0 };

function showTitle() {
  const counts = Object.entries(waiting).filter(([, count]) => count).map(([word, count]) => `${count} ${word}`);
  const start = counts.length ? `(${counts.join(", ")}) ` : "";
  document.title = start + titles[shown?.name ?? "requests"] + " – httpware";
}

/** Shows how many wait in a view, beside its name. */
function showCount(view, word, count) {
  waiting[word] = count;
  const item = document.querySelector(`#nav a[data-view=${view}]`);
  item.querySelector(".count")?.remove();
  if (count) item.append(make("span.count." + word, { "aria-label": count + " " + word }, String(count)));
  if (count) item.hidden = false;
  showTitle();
}

/** Shows the views that have anything to show, and the one that is open. */
async function chooseViews() {
  const empty = await emptyViews().catch(() => []);
  for (const item of document.querySelectorAll("#nav a")) {
    item.hidden = empty.includes(item.dataset.view) && item.dataset.view !== shown?.name;
  }
}

for (const name of Object.keys(titles)) {
  if (name === "compare") continue;
  document.getElementById("nav").append(make("a", { href: link(name), "data-view": name }, titles[name]));
}

watchCount("/v1/breaks", "breaks", (count) => showCount("breakpoints", "held", count));
watchCount("/v1/questions", "questions", (count) => showCount("questions", "asked", count));

// Colours: those of the system, until one is chosen.

function paint(choice) {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

paint(choices.read("theme", null));
document.getElementById("theme").addEventListener("click", () => {
  const isDark = (document.documentElement.dataset.theme ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const choice = isDark ? "light" : "dark";
  choices.write("theme", choice);
  paint(choice);
  dispatchEvent(new Event("themechange"));
});

function help() {
  const key = (name) => make("kbd", name);
  dialog(
    "Keys",
    table([], [
      [key("/"), "to the filter"],
      [[key("j"), " ", key("k"), " ", key("↑"), " ", key("↓"), " ", key("Home")], "choose a request"],
      [[key("Shift"), " ", key("↓")], "choose several; Ctrl and a click one more"],
      [key("Enter"), "open it"],
      [key("Esc"), "close, or leave the filter"],
      [key("x"), "pause the list, or go on"],
      [key("p"), "pin"],
      [key("c"), "compare: first one, then the other"],
      [key("e"), "edit and send again"],
      [key("r"), "send again as it was, and compare both"],
      [key("v"), "reveal masked values, or hide them"],
      [key("f"), "find in the content"],
      [key("h"), "group by host"],
      [key("Del"), "forget the chosen requests"],
      [key("a"), "at the breakpoints: resume all"],
      [key("y"), "copy as curl"],
      [
        [key("g"), " ", key("o"), key("r"), key("u"), key("b"), key("q"), key("s"), key("t")],
        "go to Overview, Requests, Rules, Breakpoints, Services, Tokens",
      ],
      [key("?"), "this table"],
    ]),
  );
}

document.getElementById("help").addEventListener("click", help);

let goesTo = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const isTyping = event.target.matches("input, textarea, select");
  if (event.key === "Escape") return shown?.view.escape?.(event);
  if (isTyping) return;
  if (goesTo) {
    goesTo = false;
    const view = {
      o: "overview",
      r: "requests",
      u: "rules",
      b: "breakpoints",
      q: "questions",
      s: "services",
      t: "tokens",
    }[event.key];
    if (view) go(view);
    return;
  }
  if (event.key === "g") {
    goesTo = true;
    setTimeout(() => {
      goesTo = false;
    }, 1500);
    return;
  }
  if (event.key === "?") return help();
  if (shown?.view.key?.(event)) event.preventDefault();
});

let asks = false;
onTokenNeeded(() => {
  if (asks) return;
  asks = true;
  const input = make("input", { type: "password", autocomplete: "off", name: "token", required: true });
  dialog(
    "The admin listener wants its token",
    field("Token", input, "httpware page prints a URL that opens this page without it."),
    async () => {
      await begin(input.value.trim());
      location.reload();
    },
    "Open",
  ).addEventListener("close", () => {
    asks = false;
  });
});

addEventListener("hashchange", show);
// A page that the browser keeps for the way back holds no connection.
addEventListener("pagehide", () => {
  shown?.view.leave?.();
  shown = null;
});
addEventListener("pageshow", (event) => {
  if (event.persisted) show();
});

// A URL of httpware ends in a code that begins one session. It leaves the address before anything else happens.
const code = /^#open=(\w+)$/.exec(location.hash)?.[1];
if (code) {
  history.replaceState(null, "", "/");
  try {
    await begin(code);
  } catch { /* used already, or too old: the page asks for the token */ }
}
show();
