// One request beside the list: its head, the tabs of its parts, and what can be done with it.
import { button, copy, empty, make, menu, statusClass, toast } from "./dom.js";
import { ask, get, post } from "./api.js";
import { link } from "./state.js";
import { showTiming } from "./waterfall.js";
import { showPair } from "./pair.js";
import { showHeaders } from "./fields.js";
import { showSides } from "./sides.js";
import { showMessages } from "./messages.js";
import { showConnection } from "./connection.js";
import { showComment } from "./comment.js";
import { Divider } from "./divider.js";
import { captureOf } from "./record.js";
import { sendAgain, showEdit } from "./edit.js";
import { isRevealed, setRevealed, withSecrets } from "./secrets.js";
import { formats, variables } from "./copyas.js";

/** The parts of a request: the name of the tab, and how it fills a box while `isCurrent()`. */
const parts = {
  pair: { title: "Exchange", show: showPair },
  headers: { title: "Headers", show: showHeaders },
  request: { title: "Request", show: (box, capture, { isCurrent }) => showSides(box, capture, "request", isCurrent) },
  response: {
    title: "Response",
    show: (box, capture, { isCurrent }) => showSides(box, capture, "response", isCurrent),
  },
  messages: { title: "Messages", show: (box, capture, { isCurrent }) => showMessages(box, capture, isCurrent) },
  timing: { title: "Timing", show: showTiming },
  connection: { title: "Connection", show: showConnection },
  edit: {
    title: "Edit",
    show: async (box, capture, { isCurrent, requestContent, sent }) => {
      const data = await requestContent();
      if (isCurrent()) showEdit(box, capture, data, sent);
    },
  },
  notes: { title: "Notes", show: (box, capture, { changed }) => showComment(box, capture, changed) },
};

/** The names of the parts that a capture has. */
export function partsOf(capture) {
  if (capture.isRecord) return ["timing", "connection"];
  const hasMessages = capture.messages > 0 || capture.kind !== "http";
  const canBeSent = capture.kind !== "websocket" && capture.method !== "CONNECT";
  return Object.keys(parts).filter((name) => (name !== "messages" || hasMessages) && (name !== "edit" || canBeSent));
}

/** A filter for requests like this one; empty for a URL that cannot be read. */
export function ruleFilter(capture) {
  let url;
  try {
    url = new URL(capture.url);
  } catch {
    return "";
  }
  const host = url.hostname.replaceAll(".", "\\.");
  const path = url.pathname.replaceAll(/[.*+?()[\]{}|^$\\]/g, "\\$&");
  return `~m ^${capture.method}$ & ~d ^${host}$ & ~u "${path}"`;
}

export class Detail {
  /**
   * The functions of `actions`: `close()`, `tab(name)`, `compare(id)`, `again(first, second)` with a request and its
   * repetition, and `changed(row)` with the values of a row of the list that the user has
   * changed.
   */
  constructor(actions) {
    this.actions = actions;
    this.id = null;
    this.tab = "pair";
    this.capture = null;
    this.record = null; // the record of the request, if nothing is captured
    this.turn = 0; // answers to questions of an earlier turn are too late
    this.timer = 0;
    this.title = make("h2");
    this.tools = make("div.tools");
    this.tabs = make("div.tabs", {
      role: "tablist",
      "aria-label": "parts of the request",
      onkeydown: (event) => this.moveTab(event),
    });
    this.body = make("div.part", { role: "tabpanel", tabindex: 0 });
    const divider = new Divider();
    this.element = make(
      "section.detail",
      { hidden: true, "aria-label": "request" },
      divider.handle,
      make("div.inner", make("div.detailhead", this.title, this.tools), this.tabs, this.body),
    );
    divider.attach(this.element);
  }

  leave() {
    this.turn += 1;
    clearTimeout(this.timer);
  }

  show(id, tab) {
    const isNew = id !== this.id;
    const wanted = tab && parts[tab] ? tab : "pair";
    if (!isNew && wanted === this.tab) return;
    this.tab = wanted;
    this.id = id;
    this.element.hidden = id === null;
    if (id === null) return this.leave();
    if (!isNew) return this.draw();
    this.capture = null;
    return this.load();
  }

  /** Shows the capture again when it changes, if it is still under way: at most four times a second. */
  refresh() {
    if (!this.id || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.load();
    }, 250);
  }

  async load() {
    const own = ++this.turn;
    if (this.record && this.record.id === this.id) {
      this.capture = captureOf(this.record);
      return this.draw();
    }
    try {
      const capture = await get(withSecrets("/v1/captures/" + encodeURIComponent(this.id), this.id));
      if (own !== this.turn) return;
      const before = this.capture;
      this.capture = capture;
      // Content on the screen is drawn again only if it has changed.
      const isKept = ["pair", "request", "response", "edit", "notes"].includes(this.tab);
      if (before && before.state === "ended" && isKept) return this.drawHead();
      this.draw();
    } catch (error) {
      if (own === this.turn && error.name !== "AbortError") this.drawError(error);
    }
  }

  // The head

  drawError(error) {
    const isGone = error.status === 404;
    this.title.textContent = "Request " + this.id;
    this.tools.replaceChildren(this.closeButton());
    this.tabs.replaceChildren();
    this.body.replaceChildren(
      isGone
        ? empty(
          "The request is no longer kept",
          "Captures are bounded in bytes: the oldest go first. Pin a request to keep it longer.",
        )
        : empty("It cannot be shown", error.message),
    );
  }

  drawHead() {
    const { method, url } = this.capture;
    this.title.replaceChildren(
      make("span.method", method),
      " ",
      make("span.url", { title: url }, url),
      " ",
      make("span.badge." + statusClass(this.capture), statusText(this.capture)),
    );
    this.tools.replaceChildren(...(this.capture.isRecord ? [] : this.captureTools()), this.closeButton());
  }

  /** The tools for a request whose fields and content are known. */
  captureTools() {
    const capture = this.capture;
    return [
      button("edit", () => this.edit(), { "aria-label": "edit and send again", title: "e" }),
      button("send again", () => this.sendAgain(), { title: "as it was, and compare both: r" }),
      menu("copy", Object.fromEntries(Object.keys(formats).map((name) => [name, () => this.copyAs(name)]))),
      this.revealButton(),
      button("compare", () => this.actions.compare(this.id), { "aria-label": "compare" }),
      button(capture.pinned ? "unpin" : "pin", () => this.pin()),
      make("a.button", { href: link("rules", null, { filter: ruleFilter(capture) }) }, "rule"),
    ];
  }

  revealButton() {
    const isOn = isRevealed(this.id);
    return button("reveal", () => this.reveal(!isOn), {
      "aria-pressed": String(isOn),
      title: "Show masked values of this request until they are hidden again: v",
    });
  }

  closeButton() {
    return button("close", () => this.actions.close(), { "aria-label": "close" });
  }

  // The parts

  draw() {
    const capture = this.capture;
    if (!capture) return;
    this.drawHead();
    const shown = partsOf(capture);
    if (!shown.includes(this.tab)) this.tab = shown[0];
    this.tabs.replaceChildren(...shown.map((name) => this.tabButton(name)));
    // On a narrow screen, the tabs scroll.
    const chosen = this.tabs.querySelector("[aria-selected=true]");
    if (chosen) this.tabs.scrollLeft = chosen.offsetLeft - this.tabs.clientWidth / 2;
    this.body.setAttribute("aria-labelledby", "tab-" + this.tab);
    const isSame = this.body.dataset.part === this.tab + this.id;
    const top = isSame ? this.body.scrollTop : 0;
    this.body.dataset.part = this.tab + this.id;
    const own = this.turn;
    parts[this.tab].show(this.body, capture, {
      isCurrent: () => own === this.turn,
      changed: (row) => this.actions.changed(row),
      requestContent: () => this.requestContent(),
      sent: (id) => this.actions.again(this.id, id),
    });
    this.body.scrollTop = top;
  }

  tabButton(name) {
    const isSelected = name === this.tab;
    return make(
      "button",
      {
        type: "button",
        role: "tab",
        id: "tab-" + name,
        "aria-selected": String(isSelected),
        tabindex: isSelected ? 0 : -1,
        onclick: () => this.actions.tab(name),
      },
      parts[name].title,
      name === "messages" ? make("span.count", String(this.capture.messages)) : null,
    );
  }

  moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    const tabs = [...this.tabs.children];
    const now = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const next = tabs[(now + step + tabs.length) % tabs.length];
    next.click();
    requestAnimationFrame(() => document.getElementById(next.id)?.focus());
  }

  // Actions

  async pin() {
    try {
      const pinned = !this.capture.pinned;
      await post(`/v1/captures/${this.id}/pin`, { pinned });
      this.capture.pinned = pinned;
      this.actions.changed({ id: this.id, pinned });
      this.drawHead();
    } catch (error) {
      toast(error.message);
    }
  }

  /** The content that the client sent, as it went over the wire. */
  async requestContent() {
    if (!this.capture.request.client?.content?.size) return new Uint8Array();
    const answer = await ask(withSecrets(`/v1/captures/${this.id}/request/content?raw=true`, this.id));
    return new Uint8Array(await answer.arrayBuffer());
  }

  async copyAs(name) {
    try {
      if (name === "HAR") return copy(await this.har(), name);
      const text = formats[name](this.capture, await this.requestContent());
      const read = variables(text);
      await copy(text, read.length ? name + ", which reads " + read.join(" and ") + "," : name);
    } catch (error) {
      toast(error.message);
    }
  }

  async har() {
    return (await ask(withSecrets("/v1/har?filter=" + encodeURIComponent("~id " + this.id), this.id))).text();
  }

  copyCurl() {
    if (this.capture && !this.capture.isRecord) this.copyAs("curl");
  }

  edit() {
    if (this.capture && !this.capture.isRecord) this.actions.tab("edit");
  }

  /** Sends the request again as it was. */
  async sendAgain() {
    if (!this.capture || this.capture.isRecord) return;
    try {
      this.actions.again(this.id, await sendAgain(this.id));
    } catch (error) {
      toast(error.message);
    }
  }

  /** Shows or hides the masked values of the request. */
  reveal(isOn) {
    if (!this.capture || this.capture.isRecord) return;
    setRevealed(this.id, isOn);
    this.capture = null;
    this.load();
  }

  toggleReveal() {
    this.reveal(!isRevealed(this.id));
  }

  /** Goes to the search in the content. */
  find() {
    this.body.querySelector("input.find")?.focus();
  }
}

function statusText({ status, state, fault }) {
  if (status) return String(status);
  return state === "open" ? "in progress" : fault ?? "no response";
}
