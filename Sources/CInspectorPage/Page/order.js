// The order of the list: by a column, and in groups of one host. Without either, the list needs no order of its own.
import { hostAndPath } from "./columns.js";

/** A row of the list that begins a group. */
const groupOf = (host, rows, isClosed) => ({ isGroup: true, id: "group " + host, host, count: rows.length, isClosed });

const hostOf = (row) => (row.parts ??= hostAndPath(row.url))[0] || "no host";

function compare(a, b) {
  if (a === b) return 0;
  if (a === undefined || a === null || Number.isNaN(a)) return 1;
  if (b === undefined || b === null || Number.isNaN(b)) return -1;
  return a < b ? -1 : 1;
}

/**
 * The rows from the top to the bottom, of `rows` in ascending order of their numbers. `order` has `value(row)` and
 * `isDown`, or is null for the newest first; `groups` has the set `closed` of hosts, or is null. `before` has rows as
 * they were in order before, and others behind them: most are in their places then, so that sorting takes little time.
 */
export function ordered(rows, order, groups, before = null) {
  const sorted = order ? sortedBy(order, before ?? rows.toReversed()) : rows.toReversed();
  if (!groups) return sorted;
  const byHost = new Map();
  for (const row of sorted) {
    const host = hostOf(row), list = byHost.get(host);
    if (list) list.push(row);
    else byHost.set(host, [row]);
  }
  const items = [];
  for (const [host, list] of [...byHost].sort((a, b) => compare(a[0], b[0]))) {
    const isClosed = groups.closed.has(host);
    items.push(groupOf(host, list, isClosed));
    if (!isClosed) { for (const row of list) items.push(row); }
  }
  return items;
}

/** Sorts a list; each value is read once, and kept in its row. */
function sortedBy(order, list) {
  const sign = order.isDown ? -1 : 1;
  for (const row of list) row.sortValue = order.value(row);
  return list.sort((a, b) => sign * compare(a.sortValue, b.sortValue) || b.number - a.number);
}
