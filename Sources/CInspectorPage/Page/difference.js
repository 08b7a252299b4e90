// The difference of two lists of lines.

/** The most edits that are searched for. */
const mostEdits = 500;

/**
 * The lines of both lists, each with a mark: `-` only in `a`, `+` only in `b`, ` ` in both. The edits are the fewest
 * (Myers), if `mostEdits` suffice; else all lines between the common ends differ.
 */
export function difference(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail += 1;
  }
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  const middle = shortest(x, y) ?? [...x.map((text) => ["-", text]), ...y.map((text) => ["+", text])];
  return [
    ...a.slice(0, head).map((text) => [" ", text]),
    ...middle,
    ...a.slice(a.length - tail).map((text) => [" ", text]),
  ];
}

/** The marked lines; `null` if more than `mostEdits` are necessary. */
function shortest(a, b) {
  const most = Math.min(a.length + b.length, mostEdits), trace = [];
  // How far into `a` the edits so far come on each diagonal, where a diagonal is the place in `a` minus the one in `b`.
  const ends = new Map([[1, 0]]);
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(ends));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = isAdded(ends, diagonal, edits) ? ends.get(diagonal + 1) ?? 0 : (ends.get(diagonal - 1) ?? 0) + 1;
      let y = x - diagonal;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      ends.set(diagonal, x);
      if (x >= a.length && y >= b.length) return walk(trace, a, b);
    }
  }
  return null;
}

/** Whether the best way to a diagonal ends with a line that was added, rather than removed. */
function isAdded(ends, diagonal, edits) {
  if (diagonal === -edits) return true;
  return diagonal !== edits && (ends.get(diagonal - 1) ?? -1) < (ends.get(diagonal + 1) ?? -1);
}

/** The way back through the edits. */
function walk(trace, a, b) {
  const found = [];
  let x = a.length, y = b.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const ends = trace[edits], diagonal = x - y;
    const before = isAdded(ends, diagonal, edits) ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : ends.get(before) ?? 0, fromY = fromX - before;
    while (x > fromX && y > Math.max(0, fromY) && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      x -= 1;
      y -= 1;
      found.push([" ", a[x]]);
    }
    if (edits === 0) break;
    if (x > fromX) {
      x -= 1;
      found.push(["-", a[x]]);
    } else if (y > 0) {
      y -= 1;
      found.push(["+", b[y]]);
    }
  }
  return found.reverse();
}
