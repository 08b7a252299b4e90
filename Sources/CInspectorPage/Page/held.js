// How many messages wait at breakpoints, for the navigation and the title of the tab.
import { get } from "./api.js";

const pause = 1500;

/**
 * Calls `changed(count)` when the number of held messages has changed; asks while the page is seen, and is seldom
 * asked else.
 */
export function watchHeld(changed) {
  let last = 0, isOff = false;
  async function turn() {
    if (!isOff && !document.hidden) {
      try {
        const { breaks } = await get("/v1/breaks");
        if (breaks.length !== last) changed(last = breaks.length);
      } catch (error) {
        isOff = error.status === 404;
      }
    }
    if (!isOff) setTimeout(turn, pause);
  }
  turn();
}
