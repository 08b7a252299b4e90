// The record of an exchange, which is all that the page has if nothing is captured: what happened, but no fields and no
// content.

/** The record as a row of the list. */
export const rowOf = (record) => ({
  ...record,
  record,
  url: "http://" + (record.host ?? "") + record.target,
  state: "ended",
  kind: "http",
  pinned: false,
  comment: "",
  operation: null,
  replayOf: null,
  rules: [],
  did: record.wares.filter((ware) => ware.decision !== "passed").map((ware) => ware.decision),
  responseSize: record.responseBytes,
  requestSize: record.requestBytes,
  version: record.protocol,
});

/** The record as the capture that is shown beside the list. */
export const captureOf = (record) => ({
  ...record,
  isRecord: true,
  record,
  url: (record.tunnel ? "https://" : "http://") + (record.host ?? "") + (record.target === "-" ? "" : record.target),
  state: "ended",
  kind: "http",
  version: record.protocol,
  rules: [],
});
