// The handle between the list and the detail: it sets the width of the detail, which the browser keeps.
import { make } from "./dom.js";
import { choices } from "./state.js";

const least = 25, most = 80;

/** A width in per cent, within its bounds. */
export const boundedWidth = (percent) => Math.max(least, Math.min(most, percent));

export class Divider {
  constructor() {
    this.handle = make("div.handle", {
      role: "separator",
      "aria-orientation": "vertical",
      "aria-label": "width of the detail",
      tabindex: 0,
      onpointerdown: (event) => this.drag(event),
      onkeydown: (event) => this.key(event),
    });
  }

  /** Sets the width of an element from now on. */
  attach(element) {
    this.element = element;
    this.set(choices.read("width", 58));
  }

  set(percent) {
    this.width = boundedWidth(percent);
    this.element.style.setProperty("--width", this.width + "%");
  }

  keep() {
    choices.write("width", this.width);
  }

  drag(event) {
    const { handle } = this, parent = this.element.parentElement.getBoundingClientRect();
    handle.setPointerCapture(event.pointerId);
    const move = (event) => this.set((parent.right - event.clientX) / parent.width * 100);
    const end = () => {
      handle.removeEventListener("pointermove", move);
      this.keep();
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end, { once: true });
  }

  key(event) {
    const step = { ArrowLeft: 3, ArrowRight: -3 }[event.key];
    if (!step) return;
    event.stopPropagation();
    this.set(this.width + step);
    this.keep();
  }
}
