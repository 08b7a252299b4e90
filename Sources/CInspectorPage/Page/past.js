// The time before the overview was opened, from the requests that the gateway has kept.
import { get } from "./api.js";

const step = 10000, longest = 3600000, mostPages = 4;

/** The points of the charts for rows of the list: one for each ten seconds that had requests, and those between. */
export function pointsOfRows(rows, now) {
  const slots = new Map();
  for (const row of rows) {
    const time = new Date(row.time).getTime(), slot = Math.floor(time / step);
    if (Number.isNaN(time) || time < now - longest || time > now || row.state !== "ended") continue;
    if (!slots.has(slot)) slots.set(slot, { count: 0, bad: 0, times: [] });
    const part = slots.get(slot);
    part.count += 1;
    if (row.status >= 500) part.bad += 1;
    if (row.kind === "http") part.times.push(row.duration);
  }
  if (!slots.size) return [];
  // The line begins and ends at 0.
  const points = [], first = Math.min(...slots.keys()) - 1, last = Math.floor(now / step) - 1;
  for (let slot = first; slot <= last; slot += 1) {
    const part = slots.get(slot) ?? { count: 0, bad: 0, times: [] };
    const times = part.times.sort((a, b) => a - b);
    points.push({
      time: (slot + 1) * step,
      rate: part.count / step * 1000,
      bad: part.bad / step * 1000,
      p50: at(times, 0.5),
      p99: at(times, 0.99),
    });
  }
  return points;
}

/** A quantile of ascending numbers; NaN of none. */
const at = (times, part) => times.length ? times[Math.min(times.length - 1, Math.floor(times.length * part))] : NaN;

/** Reads the last requests; no points if nothing is captured. */
export async function readPast() {
  const rows = [];
  try {
    let before = null;
    for (let page = 0; page < mostPages; page += 1) {
      const answer = await get("/v1/captures?" + new URLSearchParams({ limit: 1000, ...(before ? { before } : {}) }));
      rows.push(...answer.captures);
      before = answer.next;
      if (!before) break;
    }
  } catch { /* only the metrics then */ }
  return pointsOfRows(rows, Date.now());
}
