// The credentials with their tokens, and the holds. No value of a token is shown.
import { bytes, clock, duration, empty, facts, fullTime, make, table } from "./dom.js";
import { get } from "./api.js";
import { live, postButton, stateBadge } from "./live.js";

export function tokens(main) {
  return live(main, "Tokens", "No value of a token is ever shown here.", async (again) => {
    const { credentials } = await get("/v1/credentials"), { holds } = await get("/v1/holds");
    const elements = credentials.map((credential) => credentialCard(credential, again));
    if (holds.length) elements.push(make("h3", "Holds"), holdTable(holds, again));
    return elements.length ? elements : [empty("No credentials", "The configuration names none.")];
  });
}

function credentialCard(credential, again) {
  const { name, state, grant, at, history } = credential, path = "/v1/credentials/" + encodeURIComponent(name);
  return make(
    "section.card",
    make("h3", name, " ", stateBadge(state, isGoodState(state)), make("span.quiet", ` ${grant} · ${at}`)),
    facts(credentialFacts(credential)),
    make(
      "div.tools",
      postButton("refresh", path + "/refresh", again),
      postButton("forget the token", path + "/clear", again),
    ),
    history?.length > 1 ? historyTable(history) : null,
  );
}

function isGoodState(state) {
  if (state === "ready") return true;
  return state === "refreshing" ? null : false;
}

export function credentialFacts(credential) {
  const { expires, held, heldBytes, heldTotal, timeouts, overflows, lastRefresh, pausedForMilliseconds, shortfall } =
    credential;
  return [
    ["expires", expires ? fullTime(expires) + timeLeft(expires) : "not known"],
    ["held now", `${held} requests` + (heldBytes ? ", " + bytes(heldBytes) : "")],
    ["held in total", `${heldTotal}, of which ${timeouts} timed out and ${overflows} found no place`],
    ["last refresh", lastRefresh ? refreshText(lastRefresh) : "none"],
    ["warning", shortfall ?? null],
    ["pause", pausedForMilliseconds ? `no refresh for ${duration(pausedForMilliseconds)}` : null],
  ];
}

function refreshText({ number, outcome, durationMilliseconds, ended, reason }) {
  const text = `number ${number}: ${outcome} after ${duration(durationMilliseconds)}, at ${clock(ended)}`;
  return text + (reason ? `: ${reason}` : "");
}

function timeLeft(text) {
  const time = new Date(text) - Date.now();
  return time > 0 ? ", in " + duration(time) : ", over";
}

function historyTable(history) {
  const rows = history.map((refresh) => [
    String(refresh.number),
    clock(refresh.ended),
    duration(refresh.durationMilliseconds),
    refresh.outcome,
    refresh.reason ?? "",
    String(refresh.held),
  ]);
  return make(
    "details",
    make("summary", `${history.length} refreshes`),
    table(["#number", "ended", "#took", "outcome", "reason", "#held"], rows),
  );
}

function holdTable(holds, again) {
  const rows = holds.map(({ label, closed, held }) => {
    const path = "/v1/holds/" + encodeURIComponent(label);
    return [
      label,
      stateBadge(closed ? "closed" : "open", !closed),
      String(held),
      make("span.tools", postButton("open", path + "/open", again), postButton("close", path + "/close", again)),
    ];
  });
  return table(["name", "state", "#waiting", ""], rows);
}
