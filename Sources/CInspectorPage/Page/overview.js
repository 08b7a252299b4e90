// Requests a second, faults and times of the last hour, as long as this page is open: kept in its memory only.
import { duration, empty, make, table } from "./dom.js";
import { ask } from "./api.js";

const most = 1800, step = 2000;
const samples = [];
let timer = 0, shown = null;

/** A number with its labels from the text of Prometheus. */
function read(text) {
  const sums = { total: 0, bad: 0, client: 0, inFlight: 0, connections: 0, routes: new Map(), buckets: new Map() };
  const line = /^(\w+)(?:\{(.*)\})? (\S+)/;
  for (const row of text.split("\n")) {
    if (row[0] === "#" || !row) continue;
    const found = line.exec(row);
    if (!found) continue;
    const [, name, labels, number] = found, value = Number(number);
    const label = (key) => new RegExp(`(?:^|,)${key}="((?:[^"\\\\]|\\\\.)*)"`).exec(labels ?? "")?.[1] ?? "";
    if (name === "httpware_requests_total") {
      const route = label("listener") + " " + (label("route") || "–"), code = label("code");
      const item = sums.routes.get(route) ??
        { total: 0, bad: 0, client: 0, service: label("service"), buckets: new Map() };
      item.total += value;
      sums.total += value;
      if (code === "5xx") {
        item.bad += value;
        sums.bad += value;
      }
      if (code === "4xx") {
        item.client += value;
        sums.client += value;
      }
      sums.routes.set(route, item);
    } else if (name === "httpware_request_duration_seconds_bucket") {
      const route = label("listener") + " " + (label("route") || "–"),
        limit = label("le") === "+Inf" ? Infinity : Number(label("le"));
      const item = sums.routes.get(route) ??
        { total: 0, bad: 0, client: 0, service: label("service"), buckets: new Map() };
      item.buckets.set(limit, (item.buckets.get(limit) ?? 0) + value);
      sums.buckets.set(limit, (sums.buckets.get(limit) ?? 0) + value);
      sums.routes.set(route, item);
    } else if (name === "httpware_requests_in_flight") sums.inFlight += value;
    else if (name === "httpware_connections") sums.connections += value;
  }
  return sums;
}

/** A quantile of what was counted between two samples, in milliseconds; NaN without requests. */
function quantile(part, now, before) {
  const limits = [...now.keys()].sort((a, b) => a - b);
  const counts = limits.map((limit) => now.get(limit) - (before?.get(limit) ?? 0));
  const all = counts[counts.length - 1] ?? 0;
  if (!(all > 0)) return NaN;
  for (let index = 0; index < limits.length; index += 1) {
    if (counts[index] < all * part) continue;
    const low = index ? limits[index - 1] : 0, below = index ? counts[index - 1] : 0;
    if (limits[index] === Infinity) return low * 1000;
    return (low + (limits[index] - low) * (all * part - below) / Math.max(1, counts[index] - below)) * 1000;
  }
  return NaN;
}

async function sample() {
  try {
    const text = await (await ask("/metrics")).text();
    samples.push({ time: Date.now(), ...read(text) });
    if (samples.length > most) samples.shift();
    // Only the ends need their tables of routes.
    if (samples.length > 40) {
      const old = samples[samples.length - 40];
      old.routes = null;
    }
  } catch { /* the next one may be answered */ }
  shown?.();
}

export function overview(main) {
  const tiles = make("div.tiles"), charts = make("div.charts"), routes = make("div");
  const canvases = {
    rate: chart("Requests a second"),
    faults: chart("5xx a second"),
    time: chart("p50 and p99, in ms"),
  };
  charts.append(...Object.values(canvases).map((item) => item.element));
  main.append(
    make("h2", "Overview"),
    tiles,
    charts,
    make("h3", "By route"),
    routes,
    make("p.quiet", "Since this page was opened, for an hour at most. Metrics for longer: /metrics."),
  );

  shown = () => {
    const now = samples[samples.length - 1], before = samples[Math.max(0, samples.length - 6)];
    if (!now) return;
    const time = Math.max(0.001, (now.time - before.time) / 1000), rate = (key) => (now[key] - before[key]) / time;
    const tile = (name, text, kind) => make("div.tile" + (kind ? "." + kind : ""), make("span", name), make("b", text));
    const p50 = quantile(0.5, now.buckets, before.buckets), p99 = quantile(0.99, now.buckets, before.buckets);
    tiles.replaceChildren(
      tile("requests/s", rate("total").toFixed(rate("total") < 10 ? 1 : 0)),
      tile("5xx/s", rate("bad").toFixed(1), rate("bad") > 0 ? "bad" : null),
      tile("4xx/s", rate("client").toFixed(1)),
      tile("p50", duration(p50) || "–"),
      tile("p99", duration(p99) || "–"),
      tile("under way", String(now.inFlight)),
      tile("connections", String(now.connections)),
      tile("requests in total", now.total.toLocaleString()),
    );
    const points = [];
    for (let index = 1; index < samples.length; index += 1) {
      const a = samples[index - 1], b = samples[index], span = (b.time - a.time) / 1000;
      points.push({
        time: b.time,
        rate: Math.max(0, b.total - a.total) / span,
        bad: Math.max(0, b.bad - a.bad) / span,
        p50: quantile(0.5, b.buckets, a.buckets),
        p99: quantile(0.99, b.buckets, a.buckets),
      });
    }
    canvases.rate.draw(points, ["rate"]);
    canvases.faults.draw(points, ["bad"]);
    canvases.time.draw(points, ["p50", "p99"]);
    const rows = [...now.routes].filter(([, item]) => item.total > 0).sort((a, b) => b[1].total - a[1].total).map(
      ([name, item]) => {
        const old = before.routes?.get(name);
        return [
          name,
          item.service || "none",
          item.total.toLocaleString(),
          ((item.total - (old?.total ?? 0)) / time).toFixed(1),
          item.client.toLocaleString(),
          item.bad.toLocaleString(),
          duration(quantile(0.5, item.buckets)) || "–",
          duration(quantile(0.99, item.buckets)) || "–",
        ];
      },
    );
    routes.replaceChildren(
      rows.length
        ? table(["listener, route", "service", "#requests", "#/s", "#4xx", "#5xx", "#p50", "#p99"], rows)
        : empty("No requests yet"),
    );
  };
  if (!timer) {
    timer = setInterval(sample, step);
    sample();
  } else shown();
  return {
    leave() {
      shown = null;
    },
  };
}

function chart(title) {
  const canvas = make("canvas", { role: "img", "aria-label": title }), last = make("b");
  return {
    element: make("figure", make("figcaption", title + "  ", last), canvas),
    draw(points, keys) {
      const width = canvas.clientWidth * devicePixelRatio, height = canvas.clientHeight * devicePixelRatio;
      if (!width || !height) return;
      canvas.width = width;
      canvas.height = height;
      const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
      const highest = Math.max(0, ...points.flatMap((point) => keys.map((key) => point[key]).filter(Number.isFinite))),
        top = highest || 1;
      const nice = (value) => value >= 100 ? Math.round(value) : value >= 1 ? value.toFixed(1) : value.toFixed(2);
      const end = points[points.length - 1]?.time ?? 0, span = Math.max(120000, end - (points[0]?.time ?? 0));
      context.font = `${11 * devicePixelRatio}px system-ui`;
      context.fillStyle = style.getPropertyValue("--quiet");
      context.strokeStyle = style.getPropertyValue("--line");
      context.lineWidth = devicePixelRatio;
      for (const part of [0, 0.5, 1]) {
        const y = height - 2 - part * (height - 16 * devicePixelRatio);
        context.beginPath();
        context.moveTo(0, y);
        context.lineTo(width, y);
        context.stroke();
        if (part && highest) context.fillText(nice(top * part), 2, y - 3);
      }
      keys.forEach((key, index) => {
        context.strokeStyle = style.getPropertyValue(index ? "--spark-line" : "--accent");
        context.lineWidth = 1.6 * devicePixelRatio;
        context.beginPath();
        let begun = false;
        for (const point of points) {
          if (!Number.isFinite(point[key])) {
            begun = false;
            continue;
          }
          const x = width - (end - point.time) / span * width,
            y = height - 2 - point[key] / top * (height - 16 * devicePixelRatio);
          if (begun) context.lineTo(x, y);
          else context.moveTo(x, y);
          begun = true;
        }
        context.stroke();
      });
      last.textContent = keys.map((key) => points[points.length - 1]?.[key]).filter(Number.isFinite).map(nice).join(
        " · ",
      );
    },
  };
}
