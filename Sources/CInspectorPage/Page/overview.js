// Requests a second, faults and times of the last hour: since this page was opened from the metrics, and before that
// from the requests that the gateway has kept.
import { duration, empty, make, table } from "./dom.js";
import { ask } from "./api.js";
import { link } from "./state.js";
import { Chart } from "./chart.js";
import { readPast } from "./past.js";
import { pointsOf, quantile, readMetrics } from "./metrics.js";

const most = 1800, step = 2000;
/** The rates are those of the last samples. */
const spread = 6;
/** Only the last samples need their tables of routes. */
const withRoutes = 40;

const samples = [];
let past = [];
let timer = 0;
/** Draws the view, while it is shown. */
let draw = null;

async function sample() {
  try {
    const text = await (await ask("/metrics")).text();
    samples.push({ time: Date.now(), ...readMetrics(text) });
    if (samples.length > most) samples.shift();
    if (samples.length > withRoutes) samples[samples.length - withRoutes].routes = null;
  } catch { /* the next one may be answered */ }
  draw?.();
}

export function overview(main) {
  const tiles = make("div.tiles"), totals = make("p.totals"), routes = make("div");
  const rate = new Chart("Requests a second"), faults = new Chart("5xx a second", requestsWith("~c 5xx"));
  const half = new Chart("p50, in ms"), slow = new Chart("p99, in ms", requestsWith("~dur >1s"));
  main.append(
    make("h2", "Overview"),
    tiles,
    totals,
    make("div.charts", rate.element, faults.element, half.element, slow.element),
    make("h3", "By route, since the start"),
    routes,
    make(
      "p.quiet",
      "The charts show an hour at most; what was before this page is read from the kept requests. " +
        "Metrics for longer: /metrics.",
    ),
  );
  draw = () => {
    const now = samples[samples.length - 1], before = samples[Math.max(0, samples.length - spread)];
    if (!now) return;
    const points = past.filter((point) => point.time < samples[0].time).concat(pointsOf(samples));
    tiles.replaceChildren(...tilesOf(now, before));
    totals.replaceChildren(...totalsOf(now));
    rate.draw(points, ["rate"]);
    faults.draw(points, ["bad"]);
    half.draw(points, ["p50"]);
    slow.draw(points, ["p99"]);
    // A link that is pressed or focused stays.
    if (!routes.matches(":hover, :focus-within")) routes.replaceChildren(routeTable(now, before));
  };
  if (timer) {
    draw();
  } else {
    timer = setInterval(sample, step);
    sample();
    readPast().then((points) => {
      past = points;
      draw?.();
    });
  }
  return {
    leave() {
      draw = null;
    },
  };
}

const requestsWith = (filter) => link("requests", null, { filter });

/** A number with the requests behind it. */
const counted = (number, filter) => number ? make("a", { href: requestsWith(filter) }, number.toLocaleString()) : "0";

const totalsOf = ({ total, client, bad }) => [
  `Since the start: ${total.toLocaleString()} requests, `,
  counted(client, "~c 4xx"),
  " of them 4xx, ",
  counted(bad, "~c 5xx"),
  " 5xx.",
];

/** The seconds between two samples. */
const secondsOf = (now, before) => Math.max(0.001, (now.time - before.time) / 1000);

function tilesOf(now, before) {
  const seconds = secondsOf(now, before);
  const [total, bad, client] = ["total", "bad", "client"].map((key) => (now[key] - before[key]) / seconds);
  const time = (part) => duration(quantile(part, now.buckets, before.buckets)) || "–";
  return [
    tile("requests/s", total.toFixed(total < 10 ? 1 : 0)),
    tile("5xx/s", bad.toFixed(1), bad > 0 ? "bad" : null, requestsWith("~c 5xx")),
    tile("4xx/s", client.toFixed(1), null, requestsWith("~c 4xx")),
    tile("p50", time(0.5)),
    tile("p99", time(0.99)),
    tile("in progress", String(now.inFlight)),
    tile("connections", String(now.connections)),
  ];
}

const tile = (name, text, kind, href) =>
  make(
    (href ? "a.tile" : "div.tile") + (kind ? "." + kind : ""),
    href ? { href } : {},
    make("span", name),
    make("b", text),
  );

function routeTable(now, before) {
  const routes = [...now.routes].filter(([, item]) => item.total > 0).sort((a, b) => b[1].total - a[1].total);
  if (!routes.length) return empty("No requests yet");
  const seconds = secondsOf(now, before);
  const rows = routes.map(([name, item]) => routeRow(name, item, before.routes?.get(name), seconds));
  return table(["listener, route", "service", "#requests", "#/s", "#4xx", "#5xx", "#p50", "#p99"], rows);
}

function routeRow(name, item, old, seconds) {
  const time = (part) => duration(quantile(part, item.buckets)) || "–";
  const route = name.split(" ").slice(1).join(" ");
  const filter = (status) => `~route "^${route.replaceAll(/[.*+?[\]{}|^$()\\]/g, "\\$&")}$" & ~c ${status}`;
  return [
    name,
    item.service || "none",
    item.total.toLocaleString(),
    ((item.total - (old?.total ?? 0)) / seconds).toFixed(1),
    counted(item.client, filter("4xx")),
    counted(item.bad, filter("5xx")),
    time(0.5),
    time(0.99),
  ];
}
