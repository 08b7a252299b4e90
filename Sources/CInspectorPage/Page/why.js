// Why an exchange ended as it did, in one sentence, from its record.

/** The words for who made a response. */
const makers = { upstream: "the origin server", cache: "the cache", gateway: "the gateway" };

/** The words for faults, as the record names them. RFC 9209 §2.3. */
const words = (fault) => fault.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();

const decisions = new Set(["passed", "skipped", "kept", "enforced"]);

/** The last ware that decided something, such as an abort; undefined if all passed the messages on. */
const decider = (record) =>
  record.wares?.findLast((ware) => !decisions.has(ware.decision) && ware.ware === record.responder) ??
    record.wares?.findLast((ware) => ["aborted", "failed", "gaveUp"].includes(ware.decision));

/**
 * The sentence, and whether something is bad; `null` if there is nothing to say: the origin server answered without an
 * error.
 */
export function reason(capture) {
  const { status, record, state } = capture;
  if (!record) {
    if (state === "open") return { text: "In progress.", isBad: false };
    return capture.fault ? { text: `Failed: ${words(capture.fault)}.`, isBad: true } : null;
  }
  const isBad = status >= 400 || !!record.fault || record.end !== "completed";
  const text = [madeBy(status, record), endOf(record), triesOf(record)].filter(Boolean).join(" ");
  return text ? { text, isBad } : null;
}

function madeBy(status, record) {
  const maker = makers[record.responder] ?? record.responder, ware = decider(record);
  if (record.fault) {
    const detail = record.reason ? ": " + record.reason : "";
    return `${status || "No response"} by ${maker}: ${words(record.fault)}${detail}.`;
  }
  if (record.responder === "upstream") return status >= 400 ? `${status} by ${maker}.` : "";
  if (record.responder === "cache") return `${status} by the cache${record.cache ? ": " + record.cache : ""}.`;
  const text = ware?.text && ware.text !== ware.decision ? ": " + ware.text : "";
  return `${status || "No response"} by ${maker}${text}.`;
}

function endOf({ end }) {
  if (end === "clientLeft") return "The client left before the end.";
  return end === "cutOff" ? "The response was cut off." : "";
}

function triesOf({ attempts, replays }) {
  if (!(attempts > 1)) return "";
  return `${attempts} attempts${replays ? `, sent again ${replays === 1 ? "once" : replays + " times"}` : ""}.`;
}
