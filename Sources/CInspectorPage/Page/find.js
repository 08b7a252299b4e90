// Search inside content that is shown: all places are marked, and Enter goes from one to the next.
import { button, make } from "./dom.js";

const most = 2000, pause = 120;

/** The places of a text in another one, without regard to case: pairs of start and end. */
export function placesOf(text, wanted, limit = most) {
  const found = [], low = text.toLowerCase(), part = wanted.toLowerCase();
  // A few letters have a longer form in lower case: then the places would be wrong.
  const [where, what] = low.length === text.length ? [low, part] : [text, wanted];
  if (!what) return found;
  for (let at = where.indexOf(what); at >= 0 && found.length < limit; at = where.indexOf(what, at + what.length)) {
    found.push([at, at + what.length]);
  }
  return found;
}

/** The text nodes in an element, their places in the whole text, and that text. */
function textOf(element) {
  const nodes = [], starts = [], pieces = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let length = 0;
  while (walker.nextNode()) {
    nodes.push(walker.currentNode);
    starts.push(length);
    pieces.push(walker.currentNode.data);
    length += walker.currentNode.data.length;
  }
  return { nodes, starts, text: pieces.join("") };
}

/** The last of ascending numbers that is at most `number`. */
function lastAtMost(numbers, number) {
  let low = 0, high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numbers[middle] <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}

function rangesOf(element, wanted) {
  const { nodes, starts, text } = textOf(element);
  return placesOf(text, wanted).map(([start, end]) => {
    const first = lastAtMost(starts, start), last = lastAtMost(starts, end - 1), range = new Range();
    range.setStart(nodes[first], start - starts[first]);
    range.setEnd(nodes[last], end - starts[last]);
    return range;
  });
}

/** The marks of the browser, if it has any; else the selection alone shows the place. */
const marks = () => globalThis.CSS?.highlights;

export class Find {
  /** Searches in `view`. */
  constructor(view) {
    this.view = view;
    this.ranges = [];
    this.at = -1;
    this.timer = 0;
    this.input = make("input.find", {
      type: "search",
      "aria-label": "find in the content",
      placeholder: "find",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => this.soon(),
      onkeydown: (event) => this.key(event),
    });
    this.count = make("span.quiet", { role: "status" });
    this.next = button("↓", () => this.step(1), { class: "small", "aria-label": "next place", hidden: true });
    this.element = make("span.finder", this.input, this.count, this.next);
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), pause);
  }

  /** Searches again, because the text or the view has changed. */
  search() {
    clearTimeout(this.timer);
    const wanted = this.input.value;
    this.ranges = wanted ? rangesOf(this.view, wanted) : [];
    this.at = -1;
    marks()?.set("found", new Highlight(...this.ranges));
    marks()?.delete("found-now");
    this.next.hidden = !this.ranges.length;
    if (this.ranges.length) return this.step(1);
    this.count.textContent = wanted ? "not found" : "";
  }

  /** Goes to the next place, or to the previous one for -1. */
  step(by) {
    const { length } = this.ranges;
    if (!length) return;
    this.at = (this.at + by + length) % length;
    const range = this.ranges[this.at];
    for (let node = range.startContainer.parentElement; node && node !== this.view; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (marks()) marks().set("found-now", new Highlight(range));
    else getSelection().setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
    range.startContainer.parentElement.scrollIntoView({ block: "nearest" });
    this.scrollTo(range);
    this.count.textContent = `${this.at + 1} of ${length}${length === most ? "+" : ""}`;
  }

  /** A long text is one element: the place in it is brought into view. */
  scrollTo(range) {
    const box = this.view.closest(".part"), place = range.getBoundingClientRect();
    if (!box || !place.height) return;
    const frame = box.getBoundingClientRect();
    if (place.top < frame.top + 40 || place.bottom > frame.bottom - 20) {
      box.scrollTop += place.top - frame.top - frame.height / 3;
    }
  }

  key(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      if (this.timer && this.at < 0) this.search();
      else this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.input.value) {
      event.preventDefault();
      event.stopPropagation();
      this.input.value = "";
      this.search();
    }
  }
}
