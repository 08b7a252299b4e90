// Requests a second, faults and times of the last hour, as long as this page is open: kept in its memory only.
import { duration, empty, make, table } from "./dom.js";
import { ask } from "./api.js";
import { Chart } from "./chart.js";
import { pointsOf, quantile, readMetrics } from "./metrics.js";

const most = 1800, step = 2000;
/** The rates are those of the last samples. */
const spread = 6;
/** Only the last samples need their tables of routes. */
const withRoutes = 40;

const samples = [];
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
  const tiles = make("div.tiles"), routes = make("div");
  const rate = new Chart("Requests a second"), faults = new Chart("5xx a second");
  const time = new Chart("p50 and p99, in ms");
  main.append(
    make("h2", "Overview"),
    tiles,
    make("div.charts", rate.element, faults.element, time.element),
    make("h3", "By route"),
    routes,
    make("p.quiet", "Since this page was opened, for an hour at most. Metrics for longer: /metrics."),
  );
  draw = () => {
    const now = samples[samples.length - 1], before = samples[Math.max(0, samples.length - spread)];
    if (!now) return;
    const points = pointsOf(samples);
    tiles.replaceChildren(...tilesOf(now, before));
    rate.draw(points, ["rate"]);
    faults.draw(points, ["bad"]);
    time.draw(points, ["p50", "p99"]);
    routes.replaceChildren(routeTable(now, before));
  };
  if (timer) {
    draw();
  } else {
    timer = setInterval(sample, step);
    sample();
  }
  return {
    leave() {
      draw = null;
    },
  };
}

/** The seconds between two samples. */
const secondsOf = (now, before) => Math.max(0.001, (now.time - before.time) / 1000);

function tilesOf(now, before) {
  const seconds = secondsOf(now, before);
  const [total, bad, client] = ["total", "bad", "client"].map((key) => (now[key] - before[key]) / seconds);
  const time = (part) => duration(quantile(part, now.buckets, before.buckets)) || "–";
  return [
    tile("requests/s", total.toFixed(total < 10 ? 1 : 0)),
    tile("5xx/s", bad.toFixed(1), bad > 0 ? "bad" : null),
    tile("4xx/s", client.toFixed(1)),
    tile("p50", time(0.5)),
    tile("p99", time(0.99)),
    tile("under way", String(now.inFlight)),
    tile("connections", String(now.connections)),
    tile("requests in total", now.total.toLocaleString()),
  ];
}

const tile = (name, text, kind) => make("div.tile" + (kind ? "." + kind : ""), make("span", name), make("b", text));

function routeTable(now, before) {
  const routes = [...now.routes].filter(([, item]) => item.total > 0).sort((a, b) => b[1].total - a[1].total);
  if (!routes.length) return empty("No requests yet");
  const seconds = secondsOf(now, before);
  const rows = routes.map(([name, item]) => routeRow(name, item, before.routes?.get(name), seconds));
  return table(["listener, route", "service", "#requests", "#/s", "#4xx", "#5xx", "#p50", "#p99"], rows);
}

function routeRow(name, item, old, seconds) {
  const time = (part) => duration(quantile(part, item.buckets)) || "–";
  return [
    name,
    item.service || "none",
    item.total.toLocaleString(),
    ((item.total - (old?.total ?? 0)) / seconds).toFixed(1),
    item.client.toLocaleString(),
    item.bad.toLocaleString(),
    time(0.5),
    time(0.99),
  ];
}
