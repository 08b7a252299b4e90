// How many messages wait at breakpoints or for an answer, for the navigation and the title of the tab.
import { get } from "./api.js";

const pause = 1500;

/**
 * Calls `changed(count)` when the number of elements in `member` of the answer at `path` has changed; asks while the
 * page is seen, and is seldom asked else.
 */
export function watchCount(path, member, changed) {
  let last = 0, isOff = false;
  async function turn() {
    if (!isOff && !document.hidden) {
      try {
        const { length } = (await get(path))[member];
        if (length !== last) changed(last = length);
      } catch (error) {
        isOff = error.status === 404;
      }
    }
    if (!isOff) setTimeout(turn, pause);
  }
  turn();
}
