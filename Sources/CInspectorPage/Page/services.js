// The services: their endpoints, circuits and retries; wares that are offline, and hosts that pass unread.
import { clock, duration, empty, make, table } from "./dom.js";
import { get, remove } from "./api.js";
import { actionButton, live, stateBadge } from "./live.js";

export function services(main) {
  return live(main, "Services", null, async (again) => {
    const { services, passthrough, discovery } = await get("/v1/services");
    const offline = await readOffline();
    const { unread } = await get("/v1/unread");
    const cards = [
      ...services.map(serviceCard),
      discovery ? foundCard(discovery) : null,
      offline.length ? offlineCard(offline) : null,
      unread.length ? unreadCard(unread, again) : null,
      passthrough.count ? passthroughCard(passthrough) : null,
    ].filter(Boolean);
    return cards.length ? cards : [empty("No services", "The configuration names none.")];
  });
}

/** The wares that can be offline; none if the gateway does not say. */
async function readOffline() {
  try {
    return (await get("/v1/offline")).offline;
  } catch {
    return [];
  }
}

function serviceCard(service) {
  const { name, down, circuit, at, endpoints } = service;
  return make(
    "section.card",
    make(
      "h3",
      name,
      " ",
      down ? stateBadge("down", false) : stateBadge("up", true),
      circuit ? stateBadge("circuit " + circuit.state, isGoodCircuit(circuit.state)) : null,
      make("span.quiet", " " + at),
    ),
    table(addressHeads, endpoints.flatMap(addressRows)),
    make("p.quiet", serviceText(service)),
  );
}

function isGoodCircuit(state) {
  if (state === "closed") return true;
  return state === "open" ? false : null;
}

const addressHeads = [
  "endpoint",
  "#weight",
  "address",
  "state",
  "#requests",
  "#open",
  "#idle",
  "#waiting",
  "checks",
  "last failure",
];

/** A row for each address of an endpoint, or one without. The first one has the values of the endpoint itself. */
function addressRows(endpoint) {
  const { url, weight, connections, addresses } = endpoint;
  const counts = [connections.open, connections.idle, connections.requestsWaiting].map(String);
  return (addresses.length ? addresses : [null]).map((address, place) => [
    ...(place ? ["", ""] : [url, String(weight)]),
    address?.address ?? "",
    address ? stateBadge(addressText(address), address.state === "open") : "",
    address ? String(address.requests) : "",
    ...(place ? ["", "", ""] : counts),
    address ? checksText(address.checks) : "",
    address?.lastFailure ? failureText(address.lastFailure) : "",
  ]);
}

const addressText = ({ state, ejectedForMilliseconds: time }) => state + (time ? ", back in " + duration(time) : "");

const checksText = ({ passed, failed }) => passed + failed ? `${passed} passed, ${failed} failed` : "";

const failureText = ({ what, agoMilliseconds }) => `${what}, ${duration(agoMilliseconds)} ago`;

/** The balance, the circuit and the retries of a service. */
export function serviceText({ balance, circuit, retries }) {
  const texts = [balance];
  if (circuit) texts.push(circuitText(circuit));
  if (retries) texts.push(`retries sent ${retries.sent}, denied ${retries.denied}`);
  return texts.filter(Boolean).join(" · ");
}

function circuitText({ opened, refused, openForMilliseconds: time }) {
  const next = time ? `, tries again in ${duration(time)}` : "";
  return `circuit opened ${opened} times, refused ${refused}` + next;
}

/** The sources of found services, the containers and files that they found, and why one is not used. */
export function foundCard({ sources, found }) {
  const rows = found.instances.map((instance) => [
    instance.service,
    instance.place,
    instance.addresses.join(" "),
    instance.unused ? stateBadge("not used", null) : stateBadge("used", true),
    instance.unused ?? "",
  ]);
  return make(
    "section.card",
    make("h3", "Found", ...sources.map(sourceBadge)),
    ...sources.filter((source) => !source.answers).map((source) => make("p.quiet", sourceText(source))),
    rows.length ? table(["service", "found as", "address", "state", "reason"], rows) : empty("Nothing was found", ""),
    found.problems.length
      ? table(["place", "mistake"], found.problems.map(({ place, message }) => [place, message]))
      : null,
  );
}

const sourceBadge = ({ source, answers }) => stateBadge(source, answers);

/** The state of a source that does not answer. */
export const sourceText = ({ source, since, failure }) =>
  `${source} has not answered since ${clock(since)}: ${failure}; services that were found before stay`;

function offlineCard(offline) {
  const rows = offline.map((item) => [item.label, item.mode, item.configured, item.until ? clock(item.until) : ""]);
  return make("section.card", make("h3", "Offline"), table(["ware", "mode", "configured", "until"], rows));
}

function unreadCard(unread, again) {
  const rows = unread.map((item) => [
    item.host,
    item.client ?? "",
    item.principal ?? "",
    String(item.tunnels),
    clock(item.until),
    readAgainButton(item, again),
  ]);
  return make(
    "section.card",
    make("h3", "Passing unread", make("span.quiet", "  a client refused the certificate for these hosts")),
    table(["host", "client", "principal", "#tunnels", "until", ""], rows),
  );
}

function readAgainButton({ id, host }, again) {
  const act = async () => {
    await remove("/v1/unread/" + id);
    return host + " is read again";
  };
  return actionButton("read again", act, again);
}

function passthroughCard({ count, endpoints }) {
  const rows = endpoints.map(({ endpoint, connections }) => [
    endpoint,
    String(connections.open),
    String(connections.idle),
  ]);
  return make(
    "section.card",
    make("h3", "passthrough", make("span.quiet", `  ${count} hosts that clients chose`)),
    table(["endpoint", "#open", "#idle"], rows),
  );
}
