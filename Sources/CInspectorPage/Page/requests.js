// The live list of requests, and the one that is chosen beside it.
import { button, empty, make, toast, zone } from "./dom.js";
import { post } from "./api.js";
import { go } from "./state.js";
import { RowList } from "./list.js";
import { FilterBox, valuesOf } from "./filter.js";
import { fitting } from "./columns.js";
import { chosenColumns, ColumnMenu } from "./columnmenu.js";
import { Feed, most } from "./feed.js";
import { openHar, saveHar } from "./har.js";
import { Detail } from "./detail.js";
import { Spark } from "./spark.js";

export const requests = (main, start) => new Requests(main, start);

/** How many requests are shown, and whether there are more. */
export function countText({ shown, hasMore, isPaused, waiting }) {
  const count = shown.toLocaleString() + (hasMore ? "+" : "") + (shown === 1 ? " request" : " requests");
  if (!isPaused) return count;
  return count + (waiting ? `, paused, ${waiting.toLocaleString()} new` : ", paused");
}

class Requests {
  constructor(main, start) {
    this.compareWith = null; // the request to compare the next chosen one with
    this.filtered = null; // the filter of the list
    this.wasOpen = false;
    this.filter = new FilterBox((text) => this.applyFilter(text), (operator) => valuesOf(operator, this.list.rows));
    this.list = this.makeList();
    this.detail = this.makeDetail();
    this.feed = this.makeFeed();
    this.spark = new Spark();
    this.counts = make("span.counts", { role: "status" });
    this.note = make("p.note", { hidden: true });
    this.split = make("div.split", this.list.element, this.detail.element);
    this.columnMenu = new ColumnMenu(() => this.fitColumns());
    main.append(
      make("div.bar", this.filter.element, this.makeTools(), this.spark.element, this.counts),
      this.note,
      this.split,
    );
    this.sizes = this.watchWidth();
    this.update(start);
  }

  // The parts

  makeList() {
    return new RowList({
      label: "requests",
      onSelect: (row) => {
        if (!this.detail.element.hidden) this.open(row.id);
      },
      onOpen: (row) => this.open(row.id),
      onEnd: () => this.feed.loadOlder(),
    });
  }

  makeDetail() {
    return new Detail({
      close: () => this.open(null),
      tab: (name) => go("requests", this.detail.id, { filter: this.filter.value, tab: name }, true),
      again: (id) => this.open(id),
      compare: (id) => this.compare(id),
      changed: (row) => this.list.put([row], most),
    });
  }

  makeFeed() {
    return new Feed(this.list, {
      filter: () => this.filter.value,
      mistake: (error) => this.filter.say(error),
      first: () => this.selectOpen(),
      arrived: (rows) => this.showArrived(rows),
      counted: () => this.showCounts(),
      settled: () => this.showEmpty(),
      live: showLive,
      withoutCaptures: () => this.explainRecords(),
    });
  }

  makeTools() {
    this.pauseButton = button("pause", () => this.pause(!this.feed.isPaused), {
      "aria-label": "pause",
      "aria-pressed": "false",
    });
    return make(
      "div.tools",
      this.pauseButton,
      button("clear", () => this.clear(), { "aria-label": "clear", title: "Forget all captures but pinned ones" }),
      button("pin", () => this.pinChosen(), {
        "aria-label": "pin",
        title: "Keep the chosen request as long as others can go",
      }),
      this.columnMenu.button,
      button("HAR", () => saveHar(this.filter.value), { title: "Save what the filter shows as an HTTP archive" }),
      button("open HAR", () => openHar(() => this.feed.load())),
    );
  }

  /** Chooses the columns again when the width of the list changes. */
  watchWidth() {
    let width = 0;
    const sizes = new ResizeObserver(() => {
      const now = this.list.element.clientWidth;
      if (Math.abs(now - width) <= 20) return;
      width = now;
      this.fitColumns();
    });
    sizes.observe(this.list.element);
    return sizes;
  }

  fitColumns() {
    this.list.setColumns(fitting(chosenColumns(), this.list.element.clientWidth));
  }

  // The calls of the feed

  /** Shows the row of the open request in the list. */
  selectOpen() {
    const { id } = this.detail;
    if (!id) return;
    this.giveRecord(id);
    this.list.select(id, true);
  }

  /** Without captures, the detail shows the record of the row. */
  giveRecord(id) {
    if (this.feed.hasOnlyRecords) this.detail.record = this.list.byId.get(id)?.record;
  }

  showArrived(rows) {
    this.spark.add(rows);
    const { id } = this.detail;
    if (id && rows.some((row) => row.id === id)) this.detail.refresh();
  }

  showCounts() {
    const { next, isPaused, waiting } = this.feed;
    this.counts.textContent = countText({ shown: this.list.rows.length, hasMore: next, isPaused, waiting });
    this.counts.title = "Times: " + zone();
  }

  showEmpty() {
    const box = this.list.element.querySelector(".empty");
    if (this.list.rows.length) return box?.remove();
    if (box || this.feed.isLoading) return;
    this.list.element.append(
      this.filter.value
        ? empty("Nothing matches", "The filter is read by the gateway; matching requests appear as they come.")
        : empty(
          "Waiting for requests",
          "Send one through the gateway, as: curl -x http://127.0.0.1:8888 http://example.com/",
        ),
    );
  }

  explainRecords() {
    this.note.hidden = false;
    this.note.textContent =
      "Nothing is captured: write admin.capture: {} in the configuration, or start with httpware inspect, " +
      "to see fields and content here. Shown are the records of the last exchanges, without a filter.";
    this.filter.input.disabled = true;
  }

  // Where one is

  /** The view for a place: the filter, the open request and its tab. */
  update(place) {
    const text = place.parameters.get("filter") ?? "";
    if (text !== this.filtered) {
      this.filtered = text;
      this.filter.value = text;
      this.filter.say(null);
      this.feed.load();
    }
    this.show(place.id, place.parameters.get("tab"));
  }

  show(id, tab) {
    this.list.select(id);
    if (id) this.giveRecord(id);
    this.detail.show(id, tab);
    const isOpen = id !== null;
    this.split.classList.toggle("open", isOpen);
    if (isOpen !== this.wasOpen || !this.list.columns.length) {
      this.wasOpen = isOpen;
      this.fitColumns();
    }
    this.list.draw();
  }

  applyFilter(text) {
    go("requests", this.detail.id, { filter: text, tab: tabOfPlace() }, true);
  }

  /** Opens a request; `null` closes the open one. */
  open(id) {
    const isOther = this.detail.id !== null && id !== null;
    go("requests", id, { filter: this.filter.value, tab: id ? tabOfPlace() : null }, isOther);
  }

  leave() {
    this.feed.leave();
    this.sizes.disconnect();
    this.list.leave();
    this.spark.leave();
    this.detail.leave();
    document.getElementById("live").textContent = "";
  }

  // Actions

  pause(isOn) {
    this.feed.isPaused = isOn;
    this.pauseButton.setAttribute("aria-pressed", String(isOn));
    this.pauseButton.textContent = isOn ? "go on" : "pause";
    if (!isOn) this.feed.load();
    this.showCounts();
  }

  async clear() {
    if (this.feed.hasOnlyRecords) {
      this.list.clear();
      return this.showCounts();
    }
    try {
      await this.feed.removeAll();
      this.open(null);
      await this.feed.load();
    } catch (error) {
      toast(error.message);
    }
  }

  async pinChosen() {
    const row = this.list.byId.get(this.list.selected);
    if (!row) return toast("choose a request first");
    try {
      const pinned = !row.pinned;
      await post(`/v1/captures/${row.id}/pin`, { pinned });
      this.list.put([{ id: row.id, pinned }], most);
      this.detail.refresh();
    } catch (error) {
      toast(error.message);
    }
  }

  /** The first call chooses a request, the second one compares it with another. */
  compare(id) {
    if (this.compareWith && this.compareWith !== id) {
      go("compare", null, { a: this.compareWith, b: id });
      this.compareWith = null;
      return;
    }
    this.compareWith = id;
    toast(`choose the request to compare ${id} with, and press compare again`);
  }

  // Keys

  escape() {
    if (this.columnMenu.isOpen) this.columnMenu.toggle();
    else if (this.detail.id) this.open(null);
  }

  /** Acts on a key; true if the key has a meaning here. */
  key(event) {
    const action = this.actionOf(event.key);
    if (action) {
      action();
      return true;
    }
    if (event.target === this.list.body || !this.list.key(event)) return false;
    this.list.body.focus({ preventScroll: true });
    return true;
  }

  /** The action of a key; `null` if it has none now. */
  actionOf(key) {
    const { selected } = this.list, isOpen = !!this.detail.id;
    if (key === "/") return () => this.focusFilter();
    if (key === "x") return () => this.pause(!this.feed.isPaused);
    if (key === "p") return () => this.pinChosen();
    if (key === "c" && selected) return () => this.compare(selected);
    if (key === "e" && isOpen) return () => this.detail.edit();
    if (key === "y" && isOpen) return () => this.detail.copyCurl();
    return null;
  }

  focusFilter() {
    this.filter.input.focus();
    this.filter.input.select();
  }
}

/** The tab in the URL. */
const tabOfPlace = () => new URLSearchParams(location.hash.split("?")[1] ?? "").get("tab");

/** Says whether the stream of the gateway is open. */
function showLive(isOpen) {
  const box = document.getElementById("live");
  box.textContent = isOpen ? "live" : "no connection to the gateway";
  box.className = isOpen ? "ok" : "bad";
}
