// Filters for one click: errors, JSON, slow requests, a host.
import { button, make } from "./dom.js";

/** The names of the chips, and the part of a filter that each one adds. */
export const parts = { errors: "~err", JSON: "~t json", slow: "~dur >1s" };

const join = " & ";

/** Whether a filter has a part, at its top level. */
export const hasPart = (filter, part) => filter.split(join).includes(part);

/** The filter with a part, or without it if it has it. */
export function toggled(filter, part) {
  if (hasPart(filter, part)) return filter.split(join).filter((other) => other !== part).join(join);
  if (!filter) return part;
  // Parentheses keep together all that binds less than &.
  return (/[|]|[^&|!(]\s+[^&|)\s]/.test(filter.replaceAll(/~\w+\s+\S+/g, "~")) ? `(${filter})` : filter) + join + part;
}

/** The part for a host. */
export const hostPart = (host) => `~d ^${host.replaceAll(/[.*+?[\]{}|^$\\]/g, "\\$&")}$`;

export class Chips {
  /** `filter()` gives the filter, `apply(text)` sets it, `hosts()` gives the hosts that were seen. */
  constructor({ filter, apply, hosts }) {
    this.filter = filter;
    this.apply = apply;
    this.hosts = hosts;
    this.buttons = Object.entries(parts).map(([name, part]) => this.chip(name, part));
    this.host = make("select.chip", {
      "aria-label": "host",
      onpointerdown: () => this.fill(),
      onfocus: () => this.fill(),
      onchange: () => this.choose(),
    });
    this.fill();
    this.element = make("div.chips", { role: "group", "aria-label": "filters" }, this.buttons, this.host);
  }

  chip(name, part) {
    const chip = button(name, () => this.apply(toggled(this.filter(), part)), { class: "chip", title: part });
    chip.part = part;
    return chip;
  }

  /** Shows which parts the filter has. */
  update() {
    const filter = this.filter();
    for (const chip of this.buttons) chip.setAttribute("aria-pressed", String(hasPart(filter, chip.part)));
    this.fill();
  }

  fill() {
    const filter = this.filter(), hosts = this.hosts();
    const now = hosts.find((host) => hasPart(filter, hostPart(host))) ?? "";
    const texts = [["", now ? "every host" : "host"], ...hosts.map((host) => [host, host])];
    const key = JSON.stringify([texts, now]);
    if (key === this.filled) return;
    this.filled = key;
    this.host.replaceChildren(...texts.map(([value, text]) => make("option", { value }, text)));
    this.host.value = now;
    this.now = now;
    this.host.classList.toggle("on", now !== "");
  }

  choose() {
    const without = this.now ? toggled(this.filter(), hostPart(this.now)) : this.filter();
    this.apply(this.host.value ? toggled(without, hostPart(this.host.value)) : without);
  }
}
