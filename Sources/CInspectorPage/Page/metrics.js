// The metrics of the gateway, read from the text of Prometheus, and what two samples of them say.

/** The sums of a text of Prometheus, in total and for each route. */
export function readMetrics(text) {
  const sums = { ...noRequests(), inFlight: 0, connections: 0, routes: new Map() };
  for (const line of text.split("\n")) {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const [, name, labels, number] = found;
    if (!Object.hasOwn(readers, name)) continue;
    readers[name](sums, (key) => labelOf(labels ?? "", key), Number(number));
  }
  return sums;
}

const noRequests = () => ({ total: 0, bad: 0, client: 0, buckets: new Map() });

const labelOf = (labels, key) => new RegExp(`(?:^|,)${key}="((?:[^"\\\\]|\\\\.)*)"`).exec(labels)?.[1] ?? "";

/** The metrics that count here. */
const readers = {
  httpware_requests_total(sums, label, value) {
    const code = label("code");
    for (const part of [sums, routeOf(sums, label)]) {
      part.total += value;
      if (code === "5xx") part.bad += value;
      if (code === "4xx") part.client += value;
    }
  },
  httpware_request_duration_seconds_bucket(sums, label, value) {
    const limit = label("le") === "+Inf" ? Infinity : Number(label("le"));
    for (const { buckets } of [sums, routeOf(sums, label)]) buckets.set(limit, (buckets.get(limit) ?? 0) + value);
  },
  httpware_requests_in_flight(sums, _, value) {
    sums.inFlight += value;
  },
  httpware_connections(sums, _, value) {
    sums.connections += value;
  },
};

/** The sums of a route, which begin at 0. */
function routeOf({ routes }, label) {
  const name = label("listener") + " " + (label("route") || "–");
  if (!routes.has(name)) routes.set(name, { ...noRequests(), service: label("service") });
  return routes.get(name);
}

/** A quantile of what was counted between two samples, in milliseconds; NaN without requests. */
export function quantile(part, now, before) {
  const limits = [...now.keys()].sort((a, b) => a - b);
  const counts = limits.map((limit) => now.get(limit) - (before?.get(limit) ?? 0));
  const all = counts[counts.length - 1] ?? 0;
  if (!(all > 0)) return NaN;
  const index = counts.findIndex((count) => count >= all * part);
  if (index < 0) return NaN;
  const low = index ? limits[index - 1] : 0, below = index ? counts[index - 1] : 0;
  if (limits[index] === Infinity) return low * 1000;
  const width = limits[index] - low, count = Math.max(1, counts[index] - below);
  return (low + width * (all * part - below) / count) * 1000;
}

/** The points of the charts: what happened between each sample and the one before it, a second. */
export const pointsOf = (samples) =>
  samples.slice(1).map((now, index) => {
    const before = samples[index], span = (now.time - before.time) / 1000;
    return {
      time: now.time,
      rate: Math.max(0, now.total - before.total) / span,
      bad: Math.max(0, now.bad - before.bad) / span,
      p50: quantile(0.5, now.buckets, before.buckets),
      p99: quantile(0.99, now.buckets, before.buckets),
    };
  });
