// A list of very many rows: only the visible ones are elements. The newest row is the first, unless the user orders
// them.
import { make } from "./dom.js";
import { ordered } from "./order.js";

const usualHeight = 26, spare = 6, pause = 80;
/** The least time between two orderings, in milliseconds. */
const orderPause = 700;

export class RowList {
  /**
   * `columns`: [{ key, title, width, isNumber, text(row), value(row), className(row) }]. `onSort(key)` is called when
   * the user chooses a head.
   */
  constructor({ label, onSelect, onOpen, onEnd, onSort }) {
    this.rows = []; // by number, ascending: the newest is the last
    this.items = null; // rows and groups from the top, if the user orders them
    this.order = null;
    this.groups = null;
    this.marked = new Set(); // the numbers of several chosen rows
    this.rowHeight = usualHeight;
    this.orderTimer = 0;
    this.onSort = onSort;
    this.byId = new Map();
    this.selected = null;
    this.pool = [];
    this.columns = [];
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.onEnd = onEnd;
    this.head = make("div.head", { role: "row" });
    this.space = make("div.space", { role: "rowgroup" });
    this.body = make(
      "div.body",
      { tabindex: 0, role: "grid", "aria-label": label, "aria-multiselectable": "true" },
      this.space,
    );
    this.element = make("div.list", make("div.headbox", this.head), this.body);
    this.body.addEventListener("scroll", () => {
      this.element.firstChild.scrollLeft = this.body.scrollLeft;
      this.draw();
    });
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("[role=row]")?.row;
      if (!row) return;
      if (row.isGroup) return this.toggleGroup(row.host);
      if (event.ctrlKey || event.metaKey) return this.toggleMark(row.id);
      if (event.shiftKey) return this.markTo(row.id);
      this.marked.clear();
      this.select(row.id);
      this.onOpen?.(row);
    });
    this.body.addEventListener("keydown", (event) => {
      if (this.key(event)) event.preventDefault();
    });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.body);
    this.drawnAt = 0;
    this.timer = 0;
  }

  leave() {
    this.sizes.disconnect();
    clearTimeout(this.timer);
    clearTimeout(this.orderTimer);
  }

  /** With `isTall`, a row has two lines: for narrow screens. */
  setColumns(columns, isTall = false) {
    this.columns = columns;
    this.rowHeight = isTall ? 46 : usualHeight;
    this.height = -1;
    this.element.classList.toggle("tall", isTall);
    this.element.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.element.style.setProperty(
      "--least",
      isTall
        ? "0px"
        : columns.reduce((sum, column) => sum + (parseInt(column.width.replace("minmax(", "")) || 60), 0) + "px",
    );
    this.head.replaceChildren(
      ...columns.map((column) => this.headOf(column)),
    );
    this.pool = [];
    this.space.replaceChildren();
    this.draw();
  }

  headOf(column) {
    const { key, isNumber, title } = column, isSorted = this.order?.key === key;
    const sort = isSorted ? (this.order.isDown ? "descending" : "ascending") : "none";
    const press = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      this.onSort?.(key);
    };
    return make(
      isNumber ? "span.number" : "span",
      {
        role: "columnheader",
        tabindex: 0,
        "aria-sort": sort,
        title: "sort by " + title,
        onclick: () => this.onSort?.(key),
        onkeydown: press,
      },
      title,
      isSorted ? make("span.arrow", { "aria-hidden": "true" }, this.order.isDown ? "↓" : "↑") : null,
    );
  }

  clear() {
    this.rows = [];
    this.byId.clear();
    this.marked.clear();
    if (this.items) this.items = [];
    this.body.scrollTop = 0;
    this.draw();
  }

  // The order of the user

  /** `order` has `key`, `value(row)` and `isDown`, `groups` a set `closed` of hosts; both null for the newest first. */
  setOrder(order, groups) {
    const focused = [...this.head.children].indexOf(document.activeElement);
    this.order = order;
    this.groups = groups;
    this.setColumns(this.columns, this.element.classList.contains("tall"));
    if (focused >= 0) this.head.children[focused]?.focus();
    this.body.scrollTop = 0;
    // A key is answered at once; long lists need a moment.
    clearTimeout(this.orderTimer);
    this.orderTimer = setTimeout(() => this.reorder(), 0);
  }

  reorder() {
    this.orderTimer = 0;
    if (!this.order && !this.groups) this.items = null;
    else {
      this.items = ordered(this.rows, this.order, this.groups, this.order && this.itemsBefore());
    }
    this.height = -1;
    this.draw();
  }

  /** The rows in their order before, and the new ones behind them; null if all are new. */
  itemsBefore() {
    if (!this.items?.length || this.groups) return null;
    const turn = this.turn = (this.turn ?? 0) + 1;
    const known = this.items.filter((row) => this.byId.get(row.id) === row);
    for (const row of known) row.turn = turn;
    return known.concat(this.rows.filter((row) => row.turn !== turn));
  }

  reorderSoon() {
    if ((this.order || this.groups) && !this.orderTimer) this.orderTimer = setTimeout(() => this.reorder(), orderPause);
  }

  toggleGroup(host) {
    const { closed } = this.groups;
    if (closed.has(host)) closed.delete(host);
    else closed.add(host);
    // Rows of a closed group are not in `items`.
    this.items = null;
    this.reorder();
  }

  get count() {
    return this.items ? this.items.length : this.rows.length;
  }

  // Several rows

  toggleMark(id) {
    if (!this.marked.size && this.selected && this.selected !== id) this.marked.add(this.selected);
    if (this.marked.has(id)) this.marked.delete(id);
    else this.marked.add(id);
    this.selected = id;
    this.draw();
  }

  /** Marks the rows between the chosen one and another. */
  markTo(id) {
    const from = this.placeOf(this.anchor ?? this.selected ?? id), to = this.placeOf(id);
    this.anchor ??= this.selected ?? id;
    this.marked.clear();
    for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) {
      const row = this.at(place);
      if (row && !row.isGroup) this.marked.add(row.id);
    }
    this.selected = id;
    this.draw();
  }

  /** The numbers of the chosen rows. */
  get chosen() {
    if (this.marked.size) return [...this.marked];
    return this.byId.has(this.selected) ? [this.selected] : [];
  }

  /** Takes rows out; the row below them is chosen. */
  remove(ids) {
    const gone = new Set(ids), place = Math.max(0, ...ids.map((id) => this.placeOf(id)));
    let next = null;
    for (let at = place + 1; at < this.count && !next; at += 1) {
      const row = this.at(at);
      if (!row.isGroup && !gone.has(row.id)) next = row.id;
    }
    this.rows = this.rows.filter((row) => !gone.has(row.id));
    for (const id of gone) this.byId.delete(id);
    this.marked.clear();
    this.selected = next;
    if (this.items) this.reorder();
    else {
      this.height = -1;
      this.draw();
    }
  }

  /** Takes rows in: new ones, and what changed of others. Older ones are dropped above `most`. */
  put(rows, most) {
    let above = 0;
    for (const row of rows) {
      const known = this.byId.get(row.id);
      if (known) {
        Object.assign(known, row);
        continue;
      }
      row.number = Number(row.id);
      this.byId.set(row.id, row);
      if (!this.rows.length || this.rows[this.rows.length - 1].number < row.number) {
        this.rows.push(row);
        above += 1;
      } else {
        const place = this.find(row.number);
        this.rows.splice(place, 0, row);
      }
    }
    if (this.rows.length > most) {
      for (const old of this.rows.splice(0, this.rows.length - most + Math.floor(most / 20))) {
        this.byId.delete(old.id);
      }
    }
    // A user who has scrolled away from the newest row keeps the rows on the screen.
    if (above && !this.items && this.body.scrollTop > this.rowHeight) {
      this.space.style.height = this.rows.length * this.rowHeight + "px";
      this.body.scrollTop += above * this.rowHeight;
    }
    this.reorderSoon();
    this.drawSoon();
  }

  /** The rows of an older page. */
  putOlder(rows) {
    const fresh = rows.filter((row) => !this.byId.has(row.id)).reverse();
    for (const row of fresh) {
      row.number = Number(row.id);
      this.byId.set(row.id, row);
    }
    this.rows = fresh.concat(this.rows);
    this.reorderSoon();
    this.draw();
  }

  find(number) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].number < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get oldest() {
    return this.rows[0];
  }

  /** The place from the top; -1 where it is not in the list. */
  placeOf(id) {
    const row = this.byId.get(id);
    if (!row) return -1;
    return this.items ? this.items.indexOf(row) : this.rows.length - 1 - this.find(row.number);
  }

  at(place) {
    return this.items ? this.items[place] : this.rows[this.rows.length - 1 - place];
  }

  select(id, follows = false) {
    this.selected = id;
    this.anchor = null;
    if (follows) this.reveal(this.placeOf(id));
    this.draw();
  }

  reveal(place) {
    if (place < 0) return;
    const top = place * this.rowHeight, height = this.body.clientHeight, bottom = top + this.rowHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (bottom > this.body.scrollTop + height) this.body.scrollTop = bottom - height;
  }

  /** Goes up or down by keys. True if the key was one of them. */
  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowUp: -1, k: -1, K: -1, ArrowDown: 1, j: 1, J: 1, PageUp: -page, PageDown: page };
    const step = { ...steps, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter") {
      const row = this.byId.get(this.selected);
      if (row) this.onOpen?.(row);
      return !!row;
    }
    if (step === undefined || !this.rows.length) return false;
    const from = this.selected === null ? -1 : this.placeOf(this.selected);
    const row = this.rowAt(Math.max(0, Math.min(this.count - 1, from + step)), step < 0 ? -1 : 1);
    if (!row) return true;
    if (event.shiftKey) {
      this.markTo(row.id);
      this.reveal(this.placeOf(row.id));
      return true;
    }
    this.marked.clear();
    this.select(row.id, true);
    this.onSelect?.(row);
    return true;
  }

  /** The row at a place; where a group begins, the next one in a direction. */
  rowAt(place, direction) {
    for (let at = place; at >= 0 && at < this.count; at += direction) if (!this.at(at).isGroup) return this.at(at);
    return null;
  }

  /** Draws, but not too often: while many rows arrive, other work comes between. */
  drawSoon() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      requestAnimationFrame(() => this.draw());
    }, Math.max(0, pause - (performance.now() - this.drawnAt)));
  }

  draw() {
    this.drawnAt = performance.now();
    const { count, rowHeight } = this, height = this.body.clientHeight;
    if (!height || !this.columns.length) return;
    if (this.height !== count) {
      this.space.style.height = count * rowHeight + "px";
      this.height = count;
      this.body.setAttribute("aria-rowcount", count);
    }
    const first = Math.max(0, Math.floor(this.body.scrollTop / rowHeight) - spare);
    const last = Math.min(count, Math.ceil((this.body.scrollTop + height) / rowHeight) + spare);
    for (let index = 0; index < Math.max(last - first, this.pool.length); index += 1) {
      const place = first + index;
      let line = this.pool[index];
      if (place >= last) {
        if (line && !line.hidden) line.hidden = true;
        continue;
      }
      if (!line) {
        line = make(
          "div.row",
          { role: "row" },
          this.columns.map((column) => make(column.isNumber ? "span.number" : "span", { role: "gridcell" }, " ")),
        );

        this.pool.push(line);
        this.space.append(line);
      }
      this.fill(line, this.at(place), place);
    }
    if (last > count - 40) this.onEnd?.();
  }

  fill(line, row, place) {
    if (line.hidden) line.hidden = false;
    if (line.place !== place) {
      line.place = place;
      line.style.transform = `translateY(${place * this.rowHeight}px)`;
      line.setAttribute("aria-rowindex", place + 1);
      line.classList.toggle("odd", place % 2 === 1);
    }
    if (row.isGroup) return this.fillGroup(line, row);
    if (line.row?.isGroup) {
      line.classList.remove("group");
      line.lastChild.remove();
    }
    const isCurrent = row.id === this.selected, isSelected = isCurrent || this.marked.has(row.id);
    if (line.isSelected !== isSelected) {
      line.isSelected = isSelected;
      line.setAttribute("aria-selected", isSelected);
    }
    if (isCurrent) {
      line.id = "selected-row";
      this.body.setAttribute("aria-activedescendant", line.id);
    } else if (line.id) line.removeAttribute("id");
    line.row = row;
    let cell = line.firstChild;
    for (const column of this.columns) {
      const text = column.text(row);
      if (cell.firstChild.data !== text) {
        cell.firstChild.data = text;
        if (column.hasTitle) cell.title = text;
      }
      const name = column.className?.(row);
      if (name !== undefined && cell.className !== name) cell.className = name;
      cell = cell.nextSibling;
    }
  }

  /** A line that begins a group: its host, and the number of its rows. */
  fillGroup(line, { host, count, isClosed }) {
    if (line.row?.isGroup) line.lastChild.remove();
    line.append(
      make("span.grouptext", { role: "gridcell" }, `${isClosed ? "▸" : "▾"} ${host} `, make("b", String(count))),
    );
    line.classList.add("group");
    line.isSelected = false;
    line.setAttribute("aria-selected", "false");
    line.removeAttribute("id");
    line.row = this.at(line.place);
  }
}
