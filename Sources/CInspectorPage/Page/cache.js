// The stores of the cache, with their entries, and what the cache did for each route.
import { button, bytes, dialog, duration, empty, field, make, table, toast } from "./dom.js";
import { get, post } from "./api.js";
import { live } from "./live.js";

const mostEntries = 500;

export function cache(main) {
  return live(main, "Cache", null, async (again) => {
    const { stores, routes } = await get("/v1/cache");
    const elements = stores.map((store) => storeCard(store, again));
    if (routes.length) elements.push(make("h3", "By route"), routeTable(routes));
    return elements.length ? elements : [empty("Nothing is cached", "No chain has httpCache.")];
  });
}

function storeCard(store, again) {
  const share = make("i.phase");
  share.style.width = Math.min(100, store.limit ? store.bytes / store.limit * 100 : 0) + "%";
  return make(
    "section.card",
    make("h3", store.name, make("span.quiet", "  " + store.kind)),
    make("div.track", share),
    make("p", storeText(store)),
    make(
      "div.tools",
      button("entries", () => showEntries(store.name)),
      button("purge", () => purge(store.name, again)),
    ),
  );
}

/** The number and size of the stored responses. */
export function storeText(store) {
  const size = bytes(store.bytes) + (store.limit ? " of " + bytes(store.limit) : "");
  const evicted = store.evicted ? `, ${store.evicted.toLocaleString()} evicted` : "";
  return `${store.responses.toLocaleString()} responses, ${size}` + evicted;
}

/** The results of the cache, and the heads of their columns. */
const results = {
  hit: "#hits",
  stale: "#stale",
  collapsed: "#collapsed",
  validated: "#validated",
  miss: "#misses",
  bypass: "#bypassed",
};

function routeTable(routes) {
  const heads = ["listener", "route", "service", "#requests", "#hit ratio", ...Object.values(results)];
  const rows = routes.map((route) => [
    route.listener,
    route.route,
    route.service ?? "",
    route.requests.toLocaleString(),
    (route.hitRatio * 100).toFixed(1) + " %",
    ...Object.keys(results).map((key) => route.results[key].toLocaleString()),
  ]);
  return table(heads, rows);
}

const pathOf = (store) => "/v1/cache/" + encodeURIComponent(store);

async function showEntries(store) {
  try {
    const { entries } = await get(pathOf(store) + "/entries");
    dialog(`Entries of ${store}`, entries?.length ? entryTable(entries.slice(0, mostEntries)) : empty("No entries"));
  } catch (error) {
    toast(error.message);
  }
}

function entryTable(entries) {
  const rows = entries.map((entry) => [
    entry.key,
    String(entry.status),
    entry.size === null ? "" : bytes(entry.size),
    duration(entry.age * 1000),
    entry.ttl > 0 ? duration(entry.ttl * 1000) : "stale",
    entry.tags.join(", "),
  ]);
  return table(["key", "#status", "#size", "#age", "#fresh for", "tags"], rows);
}

/** The ways to name the entries that are purged. */
const purgeKinds = { key: "one key, as /path?query", prefix: "keys that begin with", tag: "a tag" };

function purge(store, done) {
  const options = Object.entries(purgeKinds).map(([value, text]) => make("option", { value }, text));
  const kind = make("select", { name: "kind" }, options), value = make("input", { name: "value" });
  const send = async () => {
    const answer = await post(pathOf(store) + "/purge?" + new URLSearchParams({ [kind.value]: value.value }));
    toast(`${answer.purged} purged`);
    done();
  };
  dialog(`Purge ${store}`, [field("What", kind), field("Value", value)], send, "Purge");
}
