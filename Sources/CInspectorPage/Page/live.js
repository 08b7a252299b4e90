// A view of the gateway's state, which is read again every two seconds.
import { button, empty, make, table, toast } from "./dom.js";
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

/**
 * A table whose rows stay the same elements while their items are there: no press of a button is lost, and no focus.
 */
export class Rows {
  /** `none()` is shown without rows. */
  constructor(heads, none) {
    this.heads = heads;
    this.none = none;
    this.items = [];
    this.rows = new Map();
    this.element = make("div", none());
  }

  /**
   * Shows items, which have an `id`; `row(item)` makes the cells of one, and `change(cells, item)` changes them
   * later.
   */
  show(items, row, change) {
    const isOther = items.length !== this.items.length || items.some(({ id }, place) => id !== this.items[place].id);
    this.items = items;
    for (const id of this.rows.keys()) if (!items.some((item) => item.id === id)) this.rows.delete(id);
    for (const item of items) {
      const known = this.rows.get(item.id);
      if (known) change(known.cells, item);
      else {
        const cells = row(item).map((cell) => cell instanceof Node ? cell : make("span", cell));
        const classOf = (place) => this.heads[place].startsWith("#") ? "td.number" : "td";
        this.rows.set(item.id, { cells, line: make("tr", cells.map((cell, place) => make(classOf(place), cell))) });
      }
    }
    if (!isOther && this.body) return;
    if (!items.length) {
      this.body = null;
      return this.element.replaceChildren(this.none());
    }
    if (!this.body) {
      const box = table(this.heads, []);
      this.body = box.querySelector("tbody");
      this.element.replaceChildren(box);
    }
    const lines = items.map(({ id }) => this.rows.get(id).line);
    for (const line of [...this.body.children]) if (!lines.includes(line)) line.remove();
    lines.forEach((line, place) => {
      if (this.body.children[place] !== line) this.body.insertBefore(line, this.body.children[place] ?? null);
    });
  }
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
