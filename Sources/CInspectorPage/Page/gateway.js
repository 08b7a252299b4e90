// The state of the gateway: services, cache, tokens.
import { button, bytes, clock, dialog, duration, empty, facts, field, fullTime, make, table, toast } from "./dom.js";
import { get, post, remove } from "./api.js";

/** A view that is read again every two seconds, unless the user types in it. */
function live(main, title, note, load) {
  const box = make("div");
  let timer = 0, gone = false;
  main.append(make("div.viewhead", make("h2", title)), note ? make("p.quiet", note) : "", box);
  async function turn() {
    try {
      const parts = await load(turn);
      if (gone) return;
      if (
        !box.contains(document.activeElement) ||
        !document.activeElement.matches("input, textarea, select, button, summary")
      ) box.replaceChildren(...parts);
    } catch (error) {
      if (!gone) box.replaceChildren(empty("It cannot be shown", error.message));
    }
    clearTimeout(timer);
    if (!gone) timer = setTimeout(turn, 2000);
  }
  turn();
  return {
    leave() {
      gone = true;
      clearTimeout(timer);
    },
  };
}

const state = (text, isGood) => make("span.badge." + (isGood === null ? "s0" : isGood ? "s2" : "s5"), text);
const act = (text, path, value, done) =>
  button(text, async (event) => {
    event.target.blur();
    try {
      await post(path, value);
      toast(text + ": done");
    } catch (error) {
      toast(error.message);
    }
    done();
  });

export function services(main) {
  return live(main, "Services", null, async (again) => {
    const { services, passthrough } = await get("/v1/services");
    let offline = [];
    try {
      offline = (await get("/v1/offline")).offline;
    } catch { /* without it */ }
    const parts = services.map((service) =>
      make(
        "section.card",
        make(
          "h3",
          service.name,
          " ",
          service.down ? state("down", false) : state("up", true),
          service.circuit
            ? state(
              "circuit " + service.circuit.state,
              service.circuit.state === "closed" ? true : service.circuit.state === "open" ? false : null,
            )
            : null,
          make("span.quiet", " " + service.at),
        ),
        table(
          [
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
          ],
          service.endpoints.flatMap((endpoint) =>
            (endpoint.addresses.length ? endpoint.addresses : [null]).map((address, place) => [
              place ? "" : endpoint.url,
              place ? "" : String(endpoint.weight),
              address?.address ?? "",
              address
                ? state(
                  address.state +
                    (address.ejectedForMilliseconds ? ", back in " + duration(address.ejectedForMilliseconds) : ""),
                  address.state === "open",
                )
                : "",
              address ? String(address.requests) : "",
              place ? "" : String(endpoint.connections.open),
              place ? "" : String(endpoint.connections.idle),
              place ? "" : String(endpoint.connections.requestsWaiting),
              address && address.checks.passed + address.checks.failed
                ? `${address.checks.passed} passed, ${address.checks.failed} failed`
                : "",
              address?.lastFailure
                ? `${address.lastFailure.what}, ${duration(address.lastFailure.agoMilliseconds)} ago`
                : "",
            ])
          ),
        ),
        make(
          "p.quiet",
          [
            service.balance,
            service.circuit &&
            `circuit opened ${service.circuit.opened} times, refused ${service.circuit.refused}` +
              (service.circuit.openForMilliseconds
                ? `, tries again in ${duration(service.circuit.openForMilliseconds)}`
                : ""),
            service.retries && `retries sent ${service.retries.sent}, denied ${service.retries.denied}`,
          ].filter(Boolean).join(" · "),
        ),
      )
    );
    if (offline.length) {
      parts.push(
        make(
          "section.card",
          make("h3", "Offline"),
          table(
            ["ware", "mode", "configured", "until"],
            offline.map((item) => [item.label, item.mode, item.configured, item.until ? clock(item.until) : ""]),
          ),
        ),
      );
    }
    const { unread } = await get("/v1/unread");
    if (unread.length) {
      parts.push(
        make(
          "section.card",
          make("h3", "Passing unread", make("span.quiet", "  a client refused the certificate for these hosts")),
          table(
            ["host", "client", "principal", "#tunnels", "until", ""],
            unread.map(
              (item) => [
                item.host,
                item.client ?? "",
                item.principal ?? "",
                String(item.tunnels),
                clock(item.until),
                button("read again", async (event) => {
                  event.target.blur();
                  try {
                    await remove("/v1/unread/" + item.id);
                    toast(item.host + " is read again");
                  } catch (error) {
                    toast(error.message);
                  }
                  again();
                }),
              ],
            ),
          ),
        ),
      );
    }
    if (passthrough.count) {
      parts.push(
        make(
          "section.card",
          make("h3", "passthrough", make("span.quiet", `  ${passthrough.count} hosts that clients chose`)),
          table(
            ["endpoint", "#open", "#idle"],
            passthrough.endpoints.map(
              (item) => [item.endpoint, String(item.connections.open), String(item.connections.idle)],
            ),
          ),
        ),
      );
    }
    return parts.length ? parts : [empty("No services", "The configuration names none.")];
  });
}

export function cache(main) {
  return live(main, "Cache", null, async (again) => {
    const { stores, routes } = await get("/v1/cache");
    const parts = stores.map((store) => {
      const part = make("i.phase");
      part.style.width = Math.min(100, store.limit ? store.bytes / store.limit * 100 : 0) + "%";
      return make(
        "section.card",
        make("h3", store.name, make("span.quiet", "  " + store.kind)),
        make("div.track", part),
        make(
          "p",
          `${store.responses.toLocaleString()} responses, ${bytes(store.bytes)}` +
            (store.limit ? " of " + bytes(store.limit) : "") +
            (store.evicted ? `, ${store.evicted.toLocaleString()} evicted` : ""),
        ),
        make(
          "div.tools",
          button("entries", () => entries(store.name)),
          button("purge", () => purge(store.name, again)),
        ),
      );
    });
    if (routes.length) {
      parts.push(
        make("h3", "By route"),
        table(
          [
            "listener",
            "route",
            "service",
            "#requests",
            "#hit ratio",
            "#hits",
            "#stale",
            "#collapsed",
            "#validated",
            "#misses",
            "#bypassed",
          ],
          routes.map(
            (item) => [
              item.listener,
              item.route,
              item.service ?? "",
              item.requests.toLocaleString(),
              (item.hitRatio * 100).toFixed(1) + " %",
              ...["hit", "stale", "collapsed", "validated", "miss", "bypass"].map((key) =>
                item.results[key].toLocaleString()
              ),
            ],
          ),
        ),
      );
    }
    return parts.length ? parts : [empty("Nothing is cached", "No chain has httpCache.")];
  });
}

async function entries(store) {
  try {
    const answer = await get(`/v1/cache/${encodeURIComponent(store)}/entries`), list = answer.entries ?? [];
    dialog(
      `Entries of ${store}`,
      list.length
        ? table(
          ["key", "#status", "#size", "#age", "#fresh for", "tags"],
          list.slice(0, 500).map(
            (item) => [
              item.key,
              String(item.status),
              item.size === null ? "" : bytes(item.size),
              duration(item.age * 1000),
              item.ttl > 0 ? duration(item.ttl * 1000) : "stale",
              item.tags.join(", "),
            ],
          ),
        )
        : empty("No entries"),
    );
  } catch (error) {
    toast(error.message);
  }
}

function purge(store, done) {
  const kind = make(
    "select",
    { name: "kind" },
    [["key", "one key, as /path?query"], ["prefix", "keys that begin with"], ["tag", "a tag"]].map(([value, text]) =>
      make("option", { value }, text)
    ),
  );
  const value = make("input", { name: "value" });
  dialog(`Purge ${store}`, [field("What", kind), field("Value", value)], async () => {
    const answer = await post(
      `/v1/cache/${encodeURIComponent(store)}/purge?` + new URLSearchParams({ [kind.value]: value.value }),
    );
    toast(`${answer.purged} purged`);
    done();
  }, "Purge");
}

export function tokens(main) {
  return live(main, "Tokens", "No value of a token is ever shown here.", async (again) => {
    const { credentials } = await get("/v1/credentials"), { holds } = await get("/v1/holds");
    const parts = credentials.map((item) =>
      make(
        "section.card",
        make(
          "h3",
          item.name,
          " ",
          state(item.state, item.state === "ready" ? true : item.state === "refreshing" ? null : false),
          make("span.quiet", ` ${item.grant} · ${item.at}`),
        ),
        facts([["expires", item.expires ? fullTime(item.expires) + left(item.expires) : "not known"], [
          "held now",
          `${item.held} requests` + (item.heldBytes ? ", " + bytes(item.heldBytes) : ""),
        ], [
          "held in total",
          `${item.heldTotal}, of which ${item.timeouts} timed out and ${item.overflows} found no place`,
        ], [
          "last refresh",
          item.lastRefresh
            ? `number ${item.lastRefresh.number}: ${item.lastRefresh.outcome} after ${
              duration(item.lastRefresh.durationMilliseconds)
            }, at ${clock(item.lastRefresh.ended)}` + (item.lastRefresh.reason ? `: ${item.lastRefresh.reason}` : "")
            : "none",
        ], ["pause", item.pausedForMilliseconds ? `no refresh for ${duration(item.pausedForMilliseconds)}` : null]]),
        make(
          "div.tools",
          act("refresh", `/v1/credentials/${encodeURIComponent(item.name)}/refresh`, undefined, again),
          act("forget the token", `/v1/credentials/${encodeURIComponent(item.name)}/clear`, undefined, again),
        ),
        item.history?.length > 1
          ? make(
            "details",
            make("summary", `${item.history.length} refreshes`),
            table(
              ["#number", "ended", "#took", "outcome", "reason", "#held"],
              item.history.map(
                (turn) => [
                  String(turn.number),
                  clock(turn.ended),
                  duration(turn.durationMilliseconds),
                  turn.outcome,
                  turn.reason ?? "",
                  String(turn.held),
                ],
              ),
            ),
          )
          : null,
      )
    );
    if (holds.length) {
      parts.push(
        make("h3", "Holds"),
        table(
          ["name", "state", "#waiting", ""],
          holds.map(
            (hold) => [
              hold.label,
              state(hold.closed ? "closed" : "open", !hold.closed),
              String(hold.held),
              make(
                "span.tools",
                act("open", `/v1/holds/${encodeURIComponent(hold.label)}/open`, undefined, again),
                act("close", `/v1/holds/${encodeURIComponent(hold.label)}/close`, undefined, again),
              ),
            ],
          ),
        ),
      );
    }
    return parts.length ? parts : [empty("No credentials", "The configuration names none.")];
  });
}

function left(text) {
  const time = new Date(text) - Date.now();
  return time > 0 ? ", in " + duration(time) : ", over";
}
