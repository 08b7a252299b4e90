// The order of the list: by a column, and in groups of one host. Without either, the list needs no order of its own.

/** A row of the list that begins a group. */
const groupOf = (host, rows, isClosed) => ({ isGroup: true, id: "group " + host, host, count: rows.length, isClosed });

const hostOf = (row) => row.parts?.[0] || "no host";

function compare(a, b) {
  if (a === b) return 0;
  if (a === undefined || a === null || Number.isNaN(a)) return 1;
  if (b === undefined || b === null || Number.isNaN(b)) return -1;
  return a < b ? -1 : 1;
}

/**
 * The rows from the top to the bottom, of `rows` in any order. `order` has `value(row)` and `isDown`, or is null for
 * the newest first; `groups` has the set `closed` of hosts, or is null. Rows that were in order before cost little.
 */
export function ordered(rows, order, groups) {
  const sorted = rows.slice(), sign = order?.isDown ? -1 : 1;
  if (order) {
    // Each value is read once.
    const values = new Map(sorted.map((row) => [row, order.value(row)]));
    sorted.sort((a, b) => sign * compare(values.get(a), values.get(b)) || b.number - a.number);
  } else sorted.sort((a, b) => b.number - a.number);
  if (!groups) return sorted;
  const byHost = new Map();
  for (const row of sorted) {
    const host = hostOf(row);
    if (!byHost.has(host)) byHost.set(host, []);
    byHost.get(host).push(row);
  }
  const items = [];
  for (const [host, list] of [...byHost].sort((a, b) => compare(a[0], b[0]))) {
    const isClosed = groups.closed.has(host);
    items.push(groupOf(host, list, isClosed));
    if (!isClosed) { for (const row of list) items.push(row); }
  }
  return items;
}
