// The masked values that the user has asked for. The gateway has them in memory as long as it keeps the request; the
// page has them until it is closed, and nowhere but in its memory.
import { get } from "./api.js";

const requests = new Set(), values = new Map();

/** Whether all values of a request are shown. */
export const isRevealed = (id) => requests.has(id);

/** Shows or hides the values of a request. */
export function setRevealed(id, isOn) {
  if (isOn) return requests.add(id);
  requests.delete(id);
  for (const key of values.keys()) if (key.startsWith(id + "/")) values.delete(key);
}

/** A path of the API that answers with the values, if they are shown. */
export const withSecrets = (path, id) =>
  isRevealed(id) ? path + (path.includes("?") ? "&" : "?") + "secrets=true" : path;

const keyOf = ({ id, half, side, index }) => [id, half, side, index].join("/");

/**
 * The value of a field line that was revealed alone; undefined for others. `place` has `id`, `half`, `side` and
 * `index`.
 */
export const revealedValue = (place) => values.get(keyOf(place));

/** Reads the value of one field line. Throws if the gateway does not have it. */
export async function revealValue(place) {
  const capture = await get(`/v1/captures/${place.id}?secrets=true`);
  const value = capture[place.half]?.[place.side]?.headers[place.index]?.value;
  if (value === undefined || /(^| )…$/.test(value)) {
    throw new Error("the gateway does not have this value: it is its own credential, or no longer in memory");
  }
  values.set(keyOf(place), value);
  return value;
}

export const hideValue = (place) => values.delete(keyOf(place));
