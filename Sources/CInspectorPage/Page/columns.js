// The columns of the list of requests, and which of them fit.
import { bytes, clock, duration, statusClass } from "./dom.js";

/** The host and the path of a URL. */
export const hostAndPath = (url) => {
  const rest = /^[a-z]+:\/\/([^/?#]*)(.*)$/i.exec(url ?? "");
  return rest ? [rest[1], rest[2] || "/"] : ["", url ?? ""];
};
/** The words for exchanges other than plain HTTP. */
const kinds = { http: "", websocket: "ws", sse: "sse", grpc: "grpc" };

/** A content type without what most types have in common: `json` for `application/json; charset=utf-8`. */
const shortType = (type) =>
  (type ?? "").split(";")[0]
    .replace(/^(application|text|image)\//, "")
    .replace(/^x-/, "")
    .replace("javascript", "js")
    .replace("octet-stream", "binary");

/** The actions of wares in plain words, each once: `httpCache hit` for `hit` and `httpCache: hit`. */
export function didText(row) {
  const words = row.did ?? [],
    named = new Set(words.filter((word) => word.includes(": ")).map((word) => word.split(": ")[1]));
  const ended = row.status >= 400 ? "refused" : "answered";
  const shown = words.filter((word) => word.includes(": ") || !named.has(word))
    .map((word) => word.replace(/: aborted$/, " " + ended).replace(": ", " "));
  return [row.replayOf && "sent again", row.rules?.length && "rule", ...shown].filter(Boolean).join(", ");
}

const partsOf = (row) => row.parts ??= hostAndPath(row.url);
const isTls = (row) => /^(https|wss):/i.test(row.url ?? "") || row.method === "CONNECT";
const pathOf = (row) => row.method === "CONNECT" ? "tunnel" : partsOf(row)[1];

export const allColumns = [
  {
    key: "id",
    title: "#",
    width: "58px",
    isNumber: true,
    text: (row) => row.id,
    value: (row) => row.number,
    className: () => "number quiet",
  },
  {
    key: "time",
    title: "Time",
    width: "92px",
    text: (row) => row.clock ??= clock(row.time),
    value: (row) => row.time,
    className: () => "quiet",
  },
  {
    key: "method",
    title: "Method",
    width: "70px",
    text: (row) => row.method,
    className: (row) => "method m-" + row.method,
  },
  {
    key: "status",
    title: "Status",
    width: "58px",
    text: (row) => row.status ? String(row.status) : row.state === "open" ? "…" : row.fault ? "fault" : "–",
    value: (row) => row.status ?? (row.fault ? 600 : 0),
    className: (row) => "status " + statusClass(row),
  },
  {
    key: "host",
    title: "Host",
    width: "minmax(90px,1.4fr)",
    hasTitle: true,
    text: (row) => partsOf(row)[0],
    className: (row) => isTls(row) ? "host tls" : "host",
  },
  {
    key: "path",
    title: "Path",
    width: "minmax(90px,3fr)",
    hasTitle: true,
    text: (row) => (row.pinned ? "★ " : "") + (row.operation ? row.operation + "  " : "") + pathOf(row),
    value: pathOf,
  },
  {
    key: "where",
    title: "Host and path",
    width: "minmax(90px,3fr)",
    hasTitle: true,
    text: (row) => (row.pinned ? "★ " : "") + partsOf(row)[0] + (row.method === "CONNECT" ? "" : partsOf(row)[1]),
    className: (row) => isTls(row) ? "where tls" : "where",
  },
  {
    key: "type",
    title: "Type",
    width: "minmax(60px,92px)",
    hasTitle: true,
    text: (row) => kinds[row.kind] || shortType(row.contentType) || "",
    className: () => "quiet",
  },
  {
    key: "did",
    title: "Wares",
    width: "minmax(60px,1.2fr)",
    hasTitle: true,
    text: (row) => row.fault ?? didText(row),
    className: (row) => row.fault ? "fault" : "did",
  },
  {
    key: "route",
    title: "Route",
    width: "minmax(60px,96px)",
    hasTitle: true,
    text: (row) => row.route ?? "",
    className: () => "quiet",
  },
  {
    key: "service",
    title: "Service",
    width: "minmax(60px,96px)",
    text: (row) => row.service ?? "",
    className: () => "quiet",
  },
  {
    key: "client",
    title: "Client",
    width: "minmax(90px,130px)",
    text: (row) => row.client ?? "",
    className: () => "quiet",
  },
  { key: "version", title: "Protocol", width: "74px", text: (row) => row.version ?? "", className: () => "quiet" },
  { key: "comment", title: "Comment", width: "minmax(60px,130px)", hasTitle: true, text: (row) => row.comment ?? "" },
  {
    key: "size",
    title: "Size",
    width: "76px",
    isNumber: true,
    text: (row) => bytes(row.responseSize),
    value: (row) => row.responseSize,
  },
  {
    key: "duration",
    title: "Duration",
    width: "80px",
    isNumber: true,
    text: (row) => duration(row.duration),
    value: (row) => row.duration,
    className: (row) => row.duration > 1000 ? "number slow" : "number",
  },
];
/** The columns that are shown until the user chooses others. */
export const usual = ["time", "method", "status", "host", "path", "type", "did", "route", "size", "duration"];
/** The columns of a narrow screen, where a row has two lines. */
const narrow = ["method", "status", "did", "size", "duration", "where"];
/** The width below which a row has two lines, in pixels. */
export const narrowWidth = 520;

/** The columns that leave if there is little room, the first one first. */
const leaving = ["service", "route", "version", "client", "comment", "type", "id", "did", "size", "time", "duration"];

/** The columns that are shown only if they tell something, and whether rows do. */
const needed = {
  did: (rows) => rows.some((row) => row.fault || didText(row)),
  route: (rows) => new Set(rows.map((row) => row.route)).size > 1,
};

/** The keys of the columns that tell nothing about rows: all have the same route, or no ware did anything. */
export function emptyColumns(rows) {
  return Object.keys(needed).filter((key) => !needed[key](rows));
}

/** The width that stretching columns want at least. */
const wants = { host: 110, path: 150, did: 80, route: 60, type: 60, service: 60 };
/** The width of a character, of what else is in a cell, and the most that a column wants, in pixels. */
const character = 7.6, besides = 16, mostWanted = 340;

/** The widths that columns want for the texts of rows, by their keys. */
export function widthsOf(rows) {
  const found = { ...wants };
  for (const { key, text } of allColumns) {
    if (!Object.hasOwn(wants, key)) continue;
    const longest = Math.max(0, ...rows.map((row) => text(row).length));
    found[key] = Math.max(wants[key], Math.min(mostWanted, Math.ceil(longest * character) + besides));
  }
  return found;
}

/** The width that a column has at least, of a style such as `58px` or `minmax(90px,1fr)`. */
export const leastWidth = (column) => parseInt(column.width.replace("minmax(", ""));

const wantedWidth = (columns, widths) =>
  columns.reduce((sum, column) => sum + 12 + (widths[column.key] ?? leastWidth(column)), 30);

/** The chosen columns that fit in a width: the first of `leaving` are left out until the others fit. */
export function fitting(chosen, width, empty = [], widths = wants) {
  let shown = allColumns.filter((column) =>
    column.key !== "where" && chosen.has(column.key) && !empty.includes(column.key)
  );
  for (const key of leaving) {
    if (shown.length > 1 && wantedWidth(shown, widths) > width) shown = shown.filter((column) => column.key !== key);
  }
  return shown;
}

/** A column that is as wide as its texts, and takes its part of what is left. */
function widened(column, widths) {
  const width = widths[column.key], part = /,(.+)\)$/.exec(column.width)?.[1];
  if (!width || !part) return column;
  return { ...column, width: `minmax(${width}px,${part.endsWith("fr") ? part : width + "px"})` };
}

/** The columns of a list, and whether a row has two lines, because host and path do not fit in one. */
export function layout(chosen, width, empty, widths) {
  const shown = fitting(chosen, width, empty, widths), isNarrow = width < narrowWidth;
  const isTall = isNarrow || shown.some(({ key }) => key === "path") && wantedWidth(shown, widths) > width;
  if (!isTall) return { columns: shown.map((column) => widened(column, widths)), isTall };
  const columns = allColumns.filter(({ key }) => narrow.includes(key) && !empty.includes(key));
  return { columns: columns.filter(({ key }) => key !== "did" || width > 300), isTall };
}
