// The live list of requests, and the one that is chosen beside it.
import { button, empty, make, menu, toast, zone } from "./dom.js";
import { post } from "./api.js";
import { go } from "./state.js";
import { listeners, sample } from "./gateway.js";
import { RowList } from "./list.js";
import { FilterBox, hintFor, valuesOf } from "./filter.js";
import { Chips } from "./chips.js";
import { allColumns, emptyColumns, layout, widthsOf } from "./columns.js";
import { chosenColumns, ColumnMenu, hasChosen } from "./columnmenu.js";
import { Feed, most } from "./feed.js";
import { openHar, saveHar } from "./har.js";
import { Detail } from "./detail.js";
import { Spark } from "./spark.js";

export const requests = (main, start) => new Requests(main, start);

/** The rows whose texts set the widths of columns. */
const mostMeasured = 200;

/** How long *clear* can be undone, in milliseconds. */
const undoTime = 8000;

/** How many requests there are: all, or the matches of a filter. `kept` is the number that the gateway has. */
export function countText({ shown, hasMore, kept = 0, isFiltered, isPaused, waiting }) {
  const number = hasMore && !isFiltered ? Math.max(kept, shown) : shown;
  const isOpen = hasMore && (isFiltered || kept < shown);
  const all = isFiltered && kept >= shown ? ` of ${kept.toLocaleString()}` : "";
  const count = number.toLocaleString() + (isOpen ? "+" : "") + all +
    ((all ? kept : number) === 1 ? " request" : " requests");
  if (!isPaused) return count;
  return count + (waiting ? `, paused, ${waiting.toLocaleString()} new` : ", paused");
}

class Requests {
  constructor(main, start) {
    this.compareWith = null; // the request to compare the next chosen one with
    this.filtered = null; // the filter of the list
    this.wasOpen = false;
    this.useful = new Set(); // the columns that told something
    this.isGrouped = false;
    this.filter = new FilterBox((text) => this.applyFilter(text), (operator) => valuesOf(operator, this.list.rows));
    this.chips = new Chips({
      filter: () => this.filter.value,
      apply: (text) => this.filter.apply(text),
      hosts: () => this.hosts(),
    });
    this.list = this.makeList();
    this.detail = this.makeDetail();
    this.feed = this.makeFeed();
    this.spark = new Spark();
    this.counts = make("span.counts", { role: "status" });
    this.note = make("p.note", { hidden: true });
    this.split = make("div.split", this.list.element, this.detail.element);
    this.columnMenu = new ColumnMenu(() => this.fitColumns());
    main.append(
      make(
        "div.bar",
        this.filter.element,
        this.chips.element,
        this.makeTools(),
        make("span.barend", this.spark.element, this.counts),
      ),
      this.note,
      this.split,
    );
    this.sizes = this.watchWidth();
    this.update(start);
    this.offerTunnels();
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
      onSort: (key) => this.sort(key),
    });
  }

  makeDetail() {
    return new Detail({
      close: () => this.open(null),
      tab: (name) => go("requests", this.detail.id, { filter: this.filter.value, tab: name }, true),
      again: (first, second) => go("compare", null, { a: first, b: second }),
      compare: (id) => this.compare(id),
      changed: (row) => this.list.put([row], most),
    });
  }

  makeFeed() {
    return new Feed(this.list, {
      filter: () => this.filter.value,
      always: () => this.always(),
      mistake: (error) => this.filter.say(error),
      first: () => {
        this.checkColumns(this.list.rows.slice(-mostMeasured));
        this.selectOpen();
      },
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
      button("clear", () => this.clear(), {
        "aria-label": "clear",
        title: "Forget all shown requests but pinned ones",
      }),
      button("delete", () => this.removeChosen(), { "aria-label": "delete", title: "Forget the chosen requests: Del" }),
      button("pin", () => this.pinChosen(), {
        "aria-label": "pin",
        title: "Keep the chosen request as long as others can go",
      }),
      this.columnMenu.button,
      this.groupButton = button("group", () => this.group(!this.isGrouped), {
        "aria-pressed": "false",
        title: "Group by host: h",
      }),
      menu("HAR", {
        "save as HAR": () => saveHar(this.filter.value),
        "open a HAR": () => openHar(() => this.feed.load()),
      }),
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
    const { clientWidth } = this.list.element, empty = hasChosen() ? [] : this.emptyColumns();
    this.widths = widthsOf(this.list.rows.slice(-mostMeasured));
    const { columns, isTall } = layout(chosenColumns(), clientWidth, empty, this.widths);
    this.list.setColumns(columns, isTall);
  }

  /** The columns that told nothing so far: one that was shown stays. */
  emptyColumns() {
    return emptyColumns(this.list.rows.slice(-300)).filter((key) => !this.useful.has(key));
  }

  /** Shows columns that tell something from now on, and gives longer texts their room. */
  checkColumns(rows) {
    const empty = emptyColumns(rows), found = ["did", "route"].filter((key) => !empty.includes(key));
    const fresh = found.filter((key) => !this.useful.has(key)), widths = widthsOf(rows);
    fresh.forEach((key) => this.useful.add(key));
    const isWider = Object.keys(widths).some((key) => widths[key] > (this.widths?.[key] ?? 0));
    if (fresh.length && !hasChosen() || isWider) this.fitColumns();
  }

  /** The hosts of the last requests, in order. */
  hosts() {
    const rows = this.list?.rows.slice(-3000) ?? [];
    const names = rows.map((row) => valuesOf("~d", [row])[0]).filter(Boolean);
    return [...new Set(names)].sort().slice(0, 200);
  }

  // The calls of the feed

  /** Shows the row of the open request in the list. */
  selectOpen() {
    const { id } = this.detail;
    if (!id) return;
    this.giveRecord(id);
    this.list.select(id, true);
  }

  /** A forward proxy reads tunnels: their own requests tell little, and are hidden until the user asks for them. */
  async offerTunnels() {
    this.isForward = (await listeners()).some(({ mode }) => mode === "forward");
    if (!this.isForward) return;
    const show = () => {
      this.showsTunnels = !this.showsTunnels;
      chip.setAttribute("aria-pressed", String(this.showsTunnels));
      this.feed.load();
    };
    const chip = button("tunnels", show, {
      class: "chip",
      "aria-pressed": "false",
      title: "Show also the CONNECT of each tunnel that is read",
    });
    this.chips.element.append(chip);
    this.feed.load();
  }

  always() {
    const isWanted = this.showsTunnels || !this.isForward || /connect/i.test(this.filter.value);
    return isWanted ? "" : "!(~m ^CONNECT$ & !~err & ~size =0B)";
  }

  /** Without captures, the detail shows the record of the row. */
  giveRecord(id) {
    if (this.feed.hasOnlyRecords) this.detail.record = this.list.byId.get(id)?.record;
  }

  showArrived(rows) {
    this.spark.add(rows);
    this.checkColumns(this.list.rows.slice(-50));
    const { id } = this.detail;
    if (id && rows.some((row) => row.id === id)) this.detail.refresh();
  }

  showCounts() {
    const { next, kept, isPaused, waiting } = this.feed, isFiltered = this.filter.value !== "";
    const shown = this.list.rows.length;
    this.counts.textContent = countText({ shown, hasMore: next, kept, isFiltered, isPaused, waiting });
    this.counts.title = "Times: " + zone();
  }

  async showEmpty() {
    const box = this.list.element.querySelector(".empty");
    if (this.list.rows.length) return box?.remove();
    const filter = this.filter.value;
    if (this.feed.isLoading || box?.filter === filter) return;
    const shown = filter ? this.emptySearch(filter) : empty("Waiting for requests", null);
    shown.filter = filter;
    box?.remove();
    this.list.element.append(shown);
    if (filter) return;
    const known = await listeners();
    const samples = known.map((listener) =>
      make("p", known.length > 1 ? listener.name + ": " : "Send one: ", make("code", sample(listener)))
    );
    shown.append(...samples);
  }

  /** Says that nothing matches, and what else may. */
  emptySearch(filter) {
    const hint = hintFor(filter);
    if (!hint) return empty("Nothing matches", "Matching requests appear here as they come.");
    const choice = (text) => button(text, () => this.filter.apply(text), { class: "chip" });
    return make(
      "div.empty",
      make("p.title", "Nothing matches"),
      make("p", hint.text),
      make("p.tools", hint.filters.map(choice)),
    );
  }

  explainRecords() {
    this.note.hidden = false;
    this.note.textContent =
      "Nothing is captured: write admin.capture: {} in the configuration, or start with httpware inspect, " +
      "to see fields and content here. Shown are the records of the last exchanges, without a filter.";
    this.filter.input.disabled = true;
    this.chips.element.hidden = true;
  }

  // Where one is

  /** The view for a place: the filter, the open request and its tab. */
  update(place) {
    const text = place.parameters.get("filter") ?? "";
    if (text !== this.filtered) {
      const isFirst = this.filtered === null;
      this.filtered = text;
      if (this.filter.value !== text || isFirst) this.filter.value = text;
      this.filter.say(null);
      this.forget();
      this.feed.load();
    }
    this.chips.update();
    if (place.parameters.get("sort") !== this.sorted) {
      this.sorted = place.parameters.get("sort");
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
    this.forget();
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

  /** Hides what the list shows. Until some time later, it can be undone; then the gateway forgets it. */
  async clear() {
    if (this.feed.hasOnlyRecords || !this.list.rows.length) {
      this.list.clear();
      return this.showCounts();
    }
    await this.forget();
    const count = this.feed.next && !this.filter.value ? this.feed.kept : this.list.rows.length;
    this.open(null);
    await this.feed.hide();
    this.clearTimer = setTimeout(() => this.forget(), undoTime);
    toast(`${count.toLocaleString()} requests cleared`, ["undo", () => this.undo()], undoTime);
  }

  /** Lets the gateway forget what *clear* has hidden. */
  async forget() {
    clearTimeout(this.clearTimer);
    try {
      await this.feed.removeHidden();
    } catch (error) {
      toast(error.message);
    }
  }

  undo() {
    clearTimeout(this.clearTimer);
    this.feed.showHidden();
  }

  /** Forgets the chosen requests; pinned ones stay. */
  async removeChosen() {
    const ids = this.list.chosen, free = ids.filter((id) => !this.list.byId.get(id)?.pinned);
    if (!ids.length) return toast("choose a request first");
    if (free.length < ids.length) toast("pinned requests stay; unpin them first");
    if (!free.length) return;
    try {
      await this.feed.remove(free);
      this.list.remove(free);
      if (this.detail.id && free.includes(this.detail.id)) this.open(this.list.selected);
      this.showCounts();
      this.showEmpty();
    } catch (error) {
      toast(error.message);
    }
  }

  // The order

  /** Sorts by a column; by the same one again in the other direction, and then the newest first again. */
  sort(key) {
    const now = this.list.order, column = allColumns.find((column) => column.key === key);
    const value = column.value ?? column.text;
    const isFirstDown = column.isNumber || key === "time";
    let order = { key, value, isDown: isFirstDown };
    if (now?.key === key) order = now.isDown === isFirstDown ? { ...now, isDown: !isFirstDown } : null;
    this.list.setOrder(order, this.list.groups);
  }

  group(isOn) {
    this.isGrouped = isOn;
    this.groupButton.setAttribute("aria-pressed", String(isOn));
    this.list.setOrder(this.list.order, isOn ? { closed: new Set() } : null);
  }

  async pinChosen() {
    const ids = this.list.chosen;
    if (!ids.length) return toast("choose a request first");
    try {
      const pinned = !this.list.byId.get(ids[0])?.pinned;
      for (const id of ids) {
        await post(`/v1/captures/${id}/pin`, { pinned });
        this.list.put([{ id, pinned }], most);
      }
      this.detail.refresh();
    } catch (error) {
      toast(error.message);
    }
  }

  /** The first call chooses a request, the second one compares it with another. */
  compare(id) {
    if (this.list.marked.size === 2) {
      const [a, b] = [...this.list.marked].sort((a, b) => a - b);
      return go("compare", null, { a, b });
    }
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
    else if (this.list.marked.size) {
      this.list.marked.clear();
      this.list.draw();
    } else if (this.detail.id) this.open(null);
  }

  /** Acts on a key; true if the key has a meaning here. */
  key(event) {
    const action = this.actionOf(event.key);
    if (action) {
      action();
      return true;
    }
    if (event.target.closest("button, a, summary, [role=tab], [role=columnheader]") && event.key === "Enter") {
      return false;
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
    if (key === "h") return () => this.group(!this.isGrouped);
    if (key === "Delete" || key === "Backspace") return () => this.removeChosen();
    if (key === "c" && selected) return () => this.compare(selected);
    if (!isOpen) return null;
    const { detail } = this;
    if (key === "e") return () => detail.edit();
    if (key === "r") return () => detail.sendAgain();
    if (key === "y") return () => detail.copyCurl();
    if (key === "v") return () => detail.toggleReveal();
    if (key === "f") return () => detail.find();
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
