// A view of the gateway's state, which is read again every two seconds.
import { button, empty, make, toast } from "./dom.js";
import { post } from "./api.js";

const pause = 2000;

/**
 * A view that shows the elements of `load(again)` in `main`, unless the user types in them. `again()` reads them again
 * at once.
 */
export function live(main, title, note, load) {
  const box = make("div");
  let timer = 0, isGone = false;
  const draw = (elements) => {
    const active = document.activeElement;
    const isUsed = box.contains(active) && active.matches("input, textarea, select, button, summary");
    if (!isUsed) box.replaceChildren(...elements);
  };
  async function turn() {
    try {
      const elements = await load(turn);
      if (isGone) return;
      draw(elements);
    } catch (error) {
      if (!isGone) box.replaceChildren(empty("It cannot be shown", error.message));
    }
    clearTimeout(timer);
    if (!isGone) timer = setTimeout(turn, pause);
  }
  main.append(make("div.viewhead", make("h2", title)), note ? make("p.quiet", note) : "", box);
  turn();
  return {
    leave() {
      isGone = true;
      clearTimeout(timer);
    },
  };
}

/** A state: good, bad, or neither for null. */
export function stateBadge(text, isGood) {
  if (isGood === null) return make("span.badge.s0", text);
  return make(isGood ? "span.badge.s2" : "span.badge.s5", text);
}

/** A button that does something, says so by the text that `act` gives, and calls `done`, also after a failure. */
export const actionButton = (text, act, done) =>
  button(text, async (event) => {
    event.target.blur();
    try {
      toast(await act());
    } catch (error) {
      toast(error.message);
    }
    done();
  });

/** A button that posts to a path. */
export function postButton(text, path, done) {
  const act = async () => {
    await post(path);
    return text + ": done";
  };
  return actionButton(text, act, done);
}

/** Says that a view cannot be shown; with `title`, if the gateway has no captures. */
export function withoutCaptures(title, error) {
  if (error.status !== 404) return empty("They cannot be shown", error.message);
  return empty(title, "Write admin.capture: {} in the configuration, or start with httpware inspect.");
}
